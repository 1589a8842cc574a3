"""What would give the host a command or a file that runs with other rights is marked, and committed
by name alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Done, Program

pytestmark = pytest.mark.mount

UNNAMED = 16


@pytest.fixture
def yolofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A project with a directory of commands on PATH, one of its own and one elsewhere."""
    project = tmp_path / "project"
    for directory in (project / "src", project / ".venv/bin", tmp_path / "usr/bin", tmp_path / "home"):
        directory.mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (project / "a").write_text("a\n")
    script(project / ".venv/bin/tool")
    script(tmp_path / "usr/bin/old")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{project}/.venv/bin:{os.environ['PATH']}")
    program = Program(project)
    (project / ".yolofs.toml").write_text('scratch = []\n[rules]\n"/" = "allow"\n')
    program.start_session()
    program.trust()
    return program


@pytest.fixture
def top(yolofs: Program) -> Iterator[Path]:
    """The view of what holds the project, and directories beside it."""
    with yolofs.mounted("--root", "/") as mountpoint:
        yield mountpoint / str(yolofs.project.parent)[1:]


def script(path: Path, text: str = "#!/bin/sh\necho old\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def marks(yolofs: Program) -> dict[str, list[str]]:
    """Return the marked changes by their paths, relative to what holds the project."""
    above = f"{yolofs.project.parent}/"
    changes = yolofs("status", "--json", "--scratch", "--hidden").json["changes"]
    return {change["path"].removeprefix(above): change["marks"] for change in changes if change["marks"]}


def refused(yolofs: Program, *words: str | Path) -> Done:
    return yolofs("commit", "--yes", *words, code=UNNAMED)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
def test_a_device_node_that_base_would_get_is_marked(yolofs: Program, top: Path) -> None:
    """In the view it is none (nodev), but in base anybody could read the disk."""
    os.mknod(top / "project/src/disk", stat.S_IFBLK | 0o666, os.makedev(1, 0))
    os.mknod(top / "project/src/tty", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo(top / "project/src/fifo")
    assert marks(yolofs) == {"project/src/disk": ["device"], "project/src/tty": ["device"]}
    assert f"{yolofs.project}/src/tty: they have to be named (device)" in refused(yolofs).err
    assert [path.name for path in (yolofs.project / "src").iterdir()] == ["fifo"]
    yolofs("commit", "--yes", "src/tty")
    (yolofs.project / "src/tty").chmod(0o600)
    (top / "project/src/tty").chmod(0o666)
    assert marks(yolofs) == {"project/src/disk": ["device"], "project/src/tty": ["device"]}


def test_a_file_with_setuid_is_marked_everywhere_and_committed_by_name_alone(yolofs: Program, top: Path) -> None:
    tool = script(top / "project/src/suid", mode=0o4755)
    (top / "project/a").write_text("changed\n")
    assert marks(yolofs) == {"project/src/suid": ["setuid"]}
    status = yolofs("status")
    assert "A  src/suid  [setuid]\n" in status.out
    assert "a commit takes it by name or with --trusted" in status.err
    for words in ((), (".",), ("src",), ("src/../src",), ("--outside", "--scratch"), ("/",), (yolofs.project,)):
        done = refused(yolofs, *words)
        assert f"{yolofs.project}/src/suid: it has to be named (setuid)\n" in done.err
        assert f"hint: yolofs commit {yolofs.project}/src/suid\n" in done.err
        assert not (yolofs.project / "src/suid").exists()
    assert (yolofs.project / "a").read_text() == "changed\n"
    assert tool.stat().st_mode & stat.S_ISUID
    done = yolofs("commit", "--yes", "src/suid")
    assert "A  src/suid  [setuid]" in done.out
    assert stat.S_IMODE((yolofs.project / "src/suid").stat().st_mode) == 0o4755
    assert yolofs("status").out.endswith("no changes\n")


def test_abort_run_diff_and_json_mark_setuid_files_too(yolofs: Program, top: Path) -> None:
    done = yolofs("run", "--", "sh", "-c", "mkdir new; for i in 1 2 3; do : > new/$i; done; : > new/s; chmod u+s new/s")
    assert "A  new/s  [setuid]" in done.err
    assert "(and 3 in it)" in done.err
    done = yolofs("run", "--json", "--", "sh", "-c", ": > t; chmod 2755 t")
    assert '"marks":["setgid"]' in done.err.splitlines()[-1]
    assert "A  new/s  [setuid]" in yolofs("diff", "--list").out
    document = yolofs("commit", "--yes", "--json", code=UNNAMED).json
    held = {one["paths"][0]["path"]: (one["reason"], one["has_to_be_named"]) for one in document["held"]}
    assert held == {
        f"{yolofs.project}/new/s": ("it has to be named (setuid)", True),
        f"{yolofs.project}/t": ("it has to be named (setgid)", True),
    }


def test_setuid_and_setgid_of_a_file_are_marked(yolofs: Program, top: Path) -> None:
    marked = {
        0o4644: ["setuid"],
        0o2755: ["setgid"],
        0o2644: [],
        0o6711: ["setuid", "setgid"],
        0o1755: [],
        0o755: [],
    }
    for mode in marked:
        script(top / f"project/src/{mode:o}", mode=mode)
    assert marks(yolofs) == {f"project/src/{mode:o}": texts for mode, texts in marked.items() if texts}


def test_a_directory_with_setgid_is_ordinary(yolofs: Program, top: Path) -> None:
    (top / "project/shared").mkdir()
    (top / "project/shared").chmod(0o2775)
    (top / "project/shared/f").touch()
    assert marks(yolofs) == {}
    yolofs("commit", "--yes")
    assert (yolofs.project / "shared").stat().st_mode & stat.S_ISGID


def test_what_changes_a_file_that_has_the_bit_counts_too(yolofs: Program) -> None:
    for name in ("content", "owner", "moved", "linked", "gone", "touched", "loses"):
        script(yolofs.project / f"src/{name}", mode=0o4755)
    with yolofs.mounted("--root", "/") as mountpoint:
        src = mountpoint / str(yolofs.project / "src")[1:]
        (src / "content").write_text("other\n")
        (src / "content").chmod(0o4755)
        os.chown(src / "owner", 12, 12)
        (src / "owner").chmod(0o4755)
        (src / "moved").rename(src / "elsewhere")
        (src / "second").hardlink_to(src / "linked")
        (src / "gone").unlink()
        os.utime(src / "touched", (1, 1))
        (src / "loses").chmod(0o755)
        found = marks(yolofs)
        assert set(found) >= {f"project/src/{name}" for name in ("content", "owner", "elsewhere", "second")}
        assert {"setuid"} == {mark for one in found.values() for mark in one}
        assert not {f"project/src/{name}" for name in ("gone", "touched", "loses", "moved")} & set(found)
        refused(yolofs)
        assert not (yolofs.project / "src/elsewhere").exists()
        assert (yolofs.project / "src/moved").exists()
        assert not (yolofs.project / "src/gone").exists()


def test_a_renamed_directory_counts_for_what_is_in_it(yolofs: Program) -> None:
    script(yolofs.project / "src/deep/suid", mode=0o4755)
    script(yolofs.project / "src/deep/plain")
    with yolofs.mounted("--root", "/") as mountpoint:
        project = mountpoint / str(yolofs.project)[1:]
        (project / "src").rename(project / "lib")
        assert marks(yolofs) == {"project/lib": ["setuid"]}
        refused(yolofs)
        yolofs("commit", "--yes", "lib", "src")
        assert (yolofs.project / "lib/deep/suid").exists()


def test_of_a_renamed_directory_what_was_removed_from_it_does_not_count(yolofs: Program) -> None:
    script(yolofs.project / "src/deep/suid", mode=0o4755)
    with yolofs.mounted("--root", "/") as mountpoint:
        project = mountpoint / str(yolofs.project)[1:]
        (project / "src").rename(project / "lib")
        (project / "lib/deep/suid").unlink()
        assert marks(yolofs) == {}


def test_commands_on_path_are_marked_wherever_they_lie(yolofs: Program, top: Path) -> None:
    script(top / "usr/bin/ls", "#!/bin/sh\nevil\n")  # PATH has it by a link
    script(top / "project/.venv/bin/tool", "#!/bin/sh\nevil\n")
    (top / "usr/bin/link").symlink_to("/tmp/anything")
    script(top / "usr/bin/readme", mode=0o644)
    script(top / "usr/bin/sub/deeper")
    script(top / "project/src/tool")
    (top / "usr/bin/old").unlink()
    assert marks(yolofs) == {name: ["command"] for name in ("usr/bin/ls", "project/.venv/bin/tool", "usr/bin/link")}
    done = refused(yolofs, "--outside", "--scratch")
    assert "they have to be named (command on PATH)" in done.err
    above = yolofs.project.parent
    assert (yolofs.project / ".venv/bin/tool").read_text().endswith("old\n")
    assert not os.path.lexists(above / "usr/bin/link")
    assert not (above / "usr/bin/old").exists()
    assert (above / "usr/bin/readme").exists()
    assert "yolofs: 3 files stay staged, as they have to be named" in done.err
    (command,) = (line for line in done.err.splitlines() if line.startswith("hint: yolofs commit "))
    yolofs("commit", "--yes", *command.split()[3:])
    assert (above / "usr/bin/ls").read_text().endswith("evil\n")
    assert yolofs("status").out.endswith("no changes\n")


def test_every_way_to_a_changed_command_counts(yolofs: Program) -> None:
    above = yolofs.project.parent
    script(above / "usr/bin/plain", mode=0o644)
    script(above / "home/else")
    script(above / "usr/bin/touched")
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(above)[1:]
        (view / "usr/bin/plain").chmod(0o755)
        (view / "home/else").rename(view / "usr/bin/else")
        (view / "usr/bin/hard").hardlink_to(view / "usr/bin/old")
        os.utime(view / "usr/bin/touched", (1, 1))
        found = marks(yolofs)
        assert {"usr/bin/plain", "usr/bin/else", "usr/bin/hard"} <= set(found)
        assert "usr/bin/touched" not in found


def test_a_directory_renamed_onto_one_of_path_or_above_it_counts(yolofs: Program) -> None:
    above = yolofs.project.parent
    script(above / "home/evil/bin/ls")
    script(above / "home/empty/bin/readme", mode=0o644)
    with yolofs.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(above)[1:]
        (view / "usr").rename(view / "usr.old")
        (view / "home/empty").rename(view / "usr")
        assert "usr" not in marks(yolofs)
        (view / "usr").rename(view / "usr.empty")
        (view / "home/evil").rename(view / "usr")
        assert marks(yolofs)["usr"] == ["command"]
        refused(yolofs, "--outside")
        assert not (above / "usr/bin/ls").exists()


def test_what_path_means_by_the_current_directory_and_the_mount_counts(
    yolofs: Program, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    for number, entry in enumerate(("", ".", "src", "../project/src/", "{project}//src/./", "{mount}/src")):
        inside = f"src/tool{number}" if "src" in entry else f"tool{number}"
        script(top / f"project/{inside}")
        monkeypatch.setenv("PATH", path)
        assert marks(yolofs) == {}, entry
        monkeypatch.setenv("PATH", f"{path}:{entry.format(project=yolofs.project, mount=top / 'project')}")
        assert marks(yolofs) == {f"project/{inside}": ["command"]}, entry
        refused(yolofs)
        assert not (yolofs.project / inside).exists(), entry
        yolofs("commit", "--yes", inside)
        assert (yolofs.project / inside).exists(), entry


def test_a_link_on_the_way_to_a_directory_of_path_counts(yolofs: Program, top: Path) -> None:
    (top / "bin").unlink()
    (top / "bin").symlink_to("home/bin")
    script(top / "home/bin/ls")
    assert marks(yolofs) == {"bin": ["command"]}
    (top / "bin").unlink()
    script(top / "bin/ls")  # a directory in the place of the link
    assert marks(yolofs) == {"bin/ls": ["command"]}


def test_a_file_that_a_link_in_a_directory_of_path_leads_to_counts(yolofs: Program) -> None:
    above = yolofs.project.parent
    script(yolofs.project / "src/old.sh")
    (above / "usr/bin/tool").symlink_to(yolofs.project / "src/old.sh")
    (above / "usr/bin/soon").symlink_to("../../project/src/soon")
    with yolofs.mounted("--root", ".") as view:
        script(view / "src/old.sh", "#!/bin/sh\nevil\n")
        script(view / "src/soon")
        script(view / "src/other")
        assert marks(yolofs) == {name: ["command"] for name in ("project/src/old.sh", "project/src/soon")}
        refused(yolofs, ".")
        assert (yolofs.project / "src/other").exists()
        assert (yolofs.project / "src/old.sh").read_text() == "#!/bin/sh\necho old\n"
        assert not (yolofs.project / "src/soon").exists()
        yolofs("commit", "--yes", "src/old.sh", "src/soon")
        assert (yolofs.project / "src/old.sh").read_text() == "#!/bin/sh\nevil\n"
        script(view / "away/old.sh", "#!/bin/sh\nevil again\n")
        (view / "src").rename(view / "was")
        (view / "away").rename(view / "src")
        assert "project/src/old.sh" in marks(yolofs) or "project/src" in marks(yolofs)
        refused(yolofs)
        assert not (yolofs.project / "src/old.sh").exists()  # what was there has moved, what came has not come
        assert (yolofs.project / "was/old.sh").read_text() == "#!/bin/sh\nevil\n"


def test_a_directory_of_path_that_does_not_exist_yet_counts(
    yolofs: Program, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = yolofs.project.parent
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{above}/home/.local/bin")
    script(top / "home/.local/bin/ls")
    script(top / "home/real/bin/ls")
    assert marks(yolofs) == {"home/.local/bin/ls": ["command"]}
    (top / "home/.local/bin/ls").unlink()
    (top / "home/.local/bin").rmdir()
    (top / "home/.local").rmdir()
    (top / "home/.local").symlink_to("real")
    assert marks(yolofs) == {"home/.local": ["command"]}


def test_naming_one_command_does_not_commit_another(yolofs: Program, top: Path) -> None:
    for name in ("one", "two"):
        script(top / f"project/.venv/bin/{name}")
    refused(yolofs, ".venv/bin", ".venv/bin/one")
    assert (yolofs.project / ".venv/bin/one").exists()
    assert not (yolofs.project / ".venv/bin/two").exists()
    yolofs("commit", "--yes", ".", ".venv/bin/two")
    assert (yolofs.project / ".venv/bin/two").exists()


def test_a_commit_of_nothing_but_a_command_that_has_to_be_named_is_refused_with_the_hint(
    yolofs: Program, top: Path
) -> None:
    script(top / "project/.venv/bin/new")
    done = refused(yolofs)
    assert "nothing to commit" in done.err
    assert f"yolofs commit {yolofs.project}/.venv/bin/new" in done.err
    done = yolofs("commit", code=UNNAMED)  # nothing is asked
    assert "nothing to commit" in done.err


def test_a_command_in_a_directory_whose_rename_stays_is_held_back(yolofs: Program, top: Path) -> None:
    """The directory of PATH is renamed in the view; what is new in it would land on PATH without
    that rename.
    """
    (top / "usr/bin").rename(top / "usr/bin2")
    script(top / "usr/bin2/evil")
    (top / "project/pulled").mkdir()
    (top / "usr/bin2/old").rename(top / "project/pulled/old")
    yolofs("commit", "--yes", "--outside", yolofs.project.parent / "usr/bin2/evil", code=2)
    done = yolofs("commit", "--yes", yolofs.project.parent / "usr/bin2/evil", code=UNNAMED)
    assert not (yolofs.project.parent / "usr/bin/evil").exists(), done.err


@pytest.mark.parametrize("words", [(), ("src",), ("src/tool.sh",)])
def test_a_command_that_is_changed_by_another_name_of_the_same_file_counts(
    yolofs: Program, words: tuple[str, ...]
) -> None:
    project = yolofs.project
    script(project / "src/tool.sh")
    os.link(project / "src/tool.sh", project / ".venv/bin/linked")
    with yolofs.mounted("--root", "/") as mountpoint:
        script(mountpoint / str(project)[1:] / "src/tool.sh", "#!/bin/sh\necho EVIL\n")
        (mountpoint / str(project)[1:] / "a").write_text("changed\n")
        done = yolofs("commit", "--yes", *words, code=UNNAMED)
        assert ".venv/bin/linked" in done.err
        assert (project / ".venv/bin/linked").read_text() == "#!/bin/sh\necho old\n"
        assert (project / "a").read_text() == ("a\n" if words else "changed\n")
        yolofs("commit", "--yes", project / "src/tool.sh", project / ".venv/bin/linked")
    assert (project / ".venv/bin/linked").read_text() == "#!/bin/sh\necho EVIL\n"
