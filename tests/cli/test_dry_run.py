"""``yolofs commit --dry-run`` and ``--script``: what a commit would do, and nothing of it done."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """A project in which a file is changed, one is made and one is moved."""
    (yolofs.project / "old").write_text("old\n")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "it's new").write_text("new\n")
        (view / "old").rename(view / "moved")
    return yolofs


def test_a_dry_run_names_each_real_file_and_does_nothing(staged: Program) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in staged.project.iterdir()}
    lines = staged("commit", "--dry-run").out.splitlines()
    project = staged.project
    assert f"replace {project}/a.txt by what is staged (8 B)" in lines
    assert f"create {project}/it's new (4 B)" in lines or f'create "{project}/it\'s new" (4 B)' in lines
    assert f"move {project}/old to {project}/moved" in lines
    assert not any("out of the way" in line or "in its place" in line for line in lines)
    assert {path.name: path.stat().st_mtime_ns for path in project.iterdir()} == before
    assert staged("status", "--json").json["counts"]
    assert staged("commit", "--dry-run", "a.txt").out.startswith(f"replace {project}/a.txt by what is staged")


def test_a_dry_run_says_what_a_rename_replaces_and_what_else_becomes_of_real_files(yolofs: Program) -> None:
    project = yolofs.project
    for name in ("f2", "f3", "gone", "mode", "hard", "one", "two"):
        (project / name).write_text(name)
    (project / "mode").chmod(0o644)
    (project / "hard-too").hardlink_to(project / "hard")
    for name in ("old-directory", "empty"):
        (project / name).mkdir()
    with yolofs.mounted() as view:
        (view / "f2").rename(view / "f3")
        (view / "gone").unlink()
        (view / "empty").rmdir()
        (view / "mode").chmod(0o755)
        (view / "hard").write_text("more")
        (view / "old-directory").rename(view / "new-directory")
        (view / "made").mkdir()
        (view / "link").symlink_to("f3")
        (view / "one").rename(view / "between")
        (view / "two").rename(view / "one")
        (view / "between").rename(view / "two")
    lines = yolofs("commit", "--dry-run").out.splitlines()
    here = f"{project}/"
    assert sorted(line.replace(here, "") for line in lines) == sorted(
        [
            "move f2 to f3, which replaces what is there",
            "delete gone",
            "delete directory empty",
            "change mode: mode 644 -> 755",
            "rewrite hard in place, as it has other names (4 B)",
            "move directory old-directory to new-directory",
            "create directory made",
            "create link (a symbolic link)",
            "move one to two",
            "move two to one",
            "at last set the times of 2 directories",
        ]
    )


def test_a_dry_run_counts_what_is_made_in_a_new_directory_and_lists_it_if_asked(yolofs: Program) -> None:
    project = yolofs.project
    (project / ".git/objects/aa").mkdir(parents=True)
    (project / "old").write_text("moved in")
    with yolofs.mounted() as view:
        objects = [f".git/objects/{name}/{name * 19}" for name in ("aa", "bb")]
        steers_git = ".git/objects/bb/info"
        for name in ("new/a", "new/deep/b", "new/deep/.envrc", *objects, steers_git):
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            (view / name).write_text("1")
        (view / "new/hard").hardlink_to(view / "new/a")
        (view / "beside").hardlink_to(view / "new/a")
        (view / "old").rename(view / "new/moved")
    here = f"{project}/"
    lines = yolofs("commit", "--dry-run", "--trusted").out.replace(here, "").splitlines()
    link = next(line for line in lines if "hard link" in line)
    assert sorted(lines) == sorted(
        [
            "create directory new (and 4 in it)",
            "create new/deep/.envrc (1 B)",
            "move old to new/moved",
            "create 3 of git's objects and their directories in .git/objects",
            f"create {steers_git} (1 B)",
            link,
            *(line for line in lines if line.startswith("at last set")),
        ]
    ), lines
    unfolded = yolofs("commit", "--dry-run", "--trusted", "--unfold").out.replace(here, "").splitlines()
    assert {"create directory new", "create directory new/deep", f"create {objects[0]} (1 B)"} <= set(unfolded)
    assert len(unfolded) == len(lines) + 4 + 3 - 1
    yolofs("commit", "--yes", "--trusted")
    undone = yolofs("undo", "--dry-run", "--yes").out.replace(here, "")
    assert "delete directory new" in undone


def test_the_script_of_a_commit_does_what_the_commit_would(staged: Program) -> None:
    done = staged("commit", "--script")
    assert done.out.startswith("#!/bin/sh\n")
    ran = subprocess.run(["sh"], input=done.out, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    project = staged.project
    assert f"what was replaced lies in {project}/.yolofs-script-" in ran.stderr
    assert (project / "a.txt").read_text() == "changed\n"
    assert (project / "it's new").read_text() == "new\n"
    assert (project / "moved").read_text() == "old\n"
    assert not (project / "old").exists()


def test_a_dry_run_of_a_script_is_the_script(staged: Program) -> None:
    both, alone = (staged("commit", *words).out for words in (("--dry-run", "--script"), ("--script",)))
    assert both == alone
    assert both.startswith("#!/bin/sh\n")


def test_a_script_shows_a_terminal_no_control_characters(yolofs: Program) -> None:
    """It is read before it is run, and a name could hide a line of it."""
    names = ("a\x1b[31m", "b\rc", "'\x07'", "d\x7f\x1b", "e\u009b2J", "two\nlines", "\x1b")
    with yolofs.mounted() as view:
        for name in names:
            (view / name).write_bytes(name.encode())
    script = yolofs("commit", "--script").out
    assert all(char.isprintable() or char == "\n" for char in script)
    ran = subprocess.run(["sh"], input=script, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert [(yolofs.project / name).read_bytes().decode() for name in names] == list(names)


def test_a_dry_run_says_that_nothing_is_staged(yolofs: Program) -> None:
    assert "nothing to commit" in yolofs("commit", "--dry-run").err
    assert yolofs("commit", "--script").out == ""


def test_a_script_cannot_be_had_as_json(yolofs: Program) -> None:
    assert "print no JSON" in yolofs.refused("commit", "--script", "--json", code=2)


def test_a_dry_run_refuses_what_the_commit_would_refuse(staged: Program) -> None:
    (staged.project / "a.txt").write_text("the host's\n")
    assert "base has changed at 1 path" in staged("commit", "--dry-run", code=9).err
    assert f"replace {staged.project}/a.txt by" in staged("commit", "--dry-run", "--force").out
    assert "go with no other option" in staged.refused("commit", "--dry-run", "--continue", code=2)


def test_a_dry_run_that_is_refused_lists_the_changes_and_marks_where_base_has_changed(staged: Program) -> None:
    (staged.project / "a.txt").write_text("the host's\n")
    lines = staged("commit", "--dry-run", code=9).out.splitlines()
    assert "M  a.txt  [changed in base, too]" in lines
    assert "R  old -> moved" in lines
    assert lines == staged("commit", "--yes", code=9).out.splitlines()
    assert staged("commit", "--script", code=9).out == ""


def test_what_the_script_keeps_is_no_hard_link_of_what_stays(yolofs: Program) -> None:
    project = yolofs.project
    (project / "one").write_text("1\n")
    (project / "two").hardlink_to(project / "one")
    (project / "three").hardlink_to(project / "one")
    with yolofs.mounted() as view:
        (view / "two").unlink()
        (view / "three").unlink()
        (view / "three").write_text("3\n")
    script = yolofs("commit", "--script").out
    subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    assert (project / "one").stat().st_nlink == 1
    assert (project / "three").read_text() == "3\n"
    kept = sorted(path.read_text() for path in project.glob(".yolofs-script-*/replaced/*"))
    assert kept == ["1\n", "1\n"]


def test_what_the_script_keeps_of_a_directory_or_a_link_is_no_hard_link_either(yolofs: Program) -> None:
    """Names that are kept together stay links of each other."""
    project = yolofs.project
    (project / "gone/closed").mkdir(parents=True)
    (project / "stays").write_text("1\n")
    for name in ("gone/one", "gone/closed/two"):
        (project / name).hardlink_to(project / "stays")
    (project / "link").symlink_to("stays")
    os.link(project / "link", project / "its other name", follow_symlinks=False)
    (project / "gone/closed").chmod(0o555)
    os.utime(project / "gone", ns=(10**18, 10**18))
    with yolofs.mounted() as view:
        shutil.rmtree(view / "gone")
        (view / "link").unlink()
    script = yolofs("commit", "--script").out
    subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    assert not (project / "gone").exists()
    assert (project / "stays").stat().st_nlink == (project / "its other name").lstat().st_nlink == 1
    (kept,) = project.glob(".yolofs-script-*/replaced/*/one")
    assert kept.samefile(kept.parent / "closed/two")
    assert kept.parent.stat().st_mtime_ns == 10**18
    assert stat.S_IMODE((kept.parent / "closed").stat().st_mode) == 0o555
    (kept.parent / "closed").chmod(0o755)


def test_the_script_works_in_directories_that_forbid_it(yolofs: Program) -> None:
    """Where the owner is not root, who may write anyway, it has to open them; it gives them their
    modes back.
    """
    project = yolofs.project
    for name in ("closed/inner", "moved/inner", "gone/inner"):
        (project / name).mkdir(parents=True)
        (project / name / "file").write_text("1\n")
    (project / "read-only").write_text("1\n")
    (project / "its other name").hardlink_to(project / "read-only")
    (project / "read-only").chmod(0o400)
    for name in ("closed/inner", "moved/inner", "moved", "gone/inner", "gone"):
        (project / name).chmod(0o555)
    with yolofs.mounted() as view:
        (view / "closed/inner/file").rename(view / "closed/inner/renamed")
        (view / "moved").rename(view / "elsewhere")
        (view / "elsewhere/inner/new").write_text("2\n")
        shutil.rmtree(view / "gone")
        (view / "read-only").chmod(0o600)
        (view / "read-only").write_text("2\n")
        (view / "read-only").chmod(0o400)
    script = yolofs("commit", "--script").out
    steps = script[script.index("\n}\n") :]
    for path in (project / "closed/inner", project / "moved", project / "gone", project / "elsewhere/inner"):
        assert f"\nchmod u+wx -- {path}\n" in steps
    assert f"\nchmod u+w -- {project}/read-only\n" in steps
    subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    for name in ("closed/inner", "elsewhere", "elsewhere/inner"):
        assert stat.S_IMODE((project / name).stat().st_mode) == 0o555
    kept = project.glob(".yolofs-script-*/replaced/*")
    assert sorted(stat.S_IMODE(path.stat().st_mode) for path in kept) == [0o400, 0o555]


def test_the_script_takes_setgid_from_directories(yolofs: Program) -> None:
    """chmod(1) leaves a directory its setgid if the mode has no fifth digit."""
    project = yolofs.project
    for name in ("shared", "above", "closed"):
        (project / name).mkdir()
        (project / name).chmod(0o2755)
    with yolofs.mounted() as view:
        (view / "shared").chmod(0o700)
        (view / "above/new").mkdir()
        (view / "above/new").chmod(0o750)
        (view / "closed").chmod(0o500)
    script = yolofs("commit", "--script").out
    subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    modes = {name: stat.S_IMODE((project / name).stat().st_mode) for name in ("shared", "above/new", "closed")}
    assert modes == {"shared": 0o700, "above/new": 0o750, "closed": 0o500}


@pytest.fixture
def partly(yolofs: Program) -> Program:
    """A project with staged changes, some taken by a commit and some not."""
    os.link(yolofs.project / "a.txt", yolofs.project / "second name")
    with yolofs.mounted() as view:
        (view / "dir/b.txt").write_text("changed\n")
        (view / ".envrc").write_text("export A=1\n")
        (view / "a.txt").write_text("changed\n")
    return yolofs


@pytest.mark.parametrize("how", ["--dry-run", "--script"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 16),  # the host would run .envrc
        (("--trusted",), 0),
        (("--exclude", ".envrc"), 0),
        (("dir",), 0),
        (("a.txt",), 16),  # it goes only together with its other name
        (("a.txt", "--ours"), 16),
        (("sub",), 1),  # nothing is staged there
        (("--up-to", "0"), 0),
        (("sub", "--up-to", "0"), 1),
    ],
)
@pytest.mark.some(8)
def test_a_dry_run_ends_as_the_commit_would(partly: Program, how: str, words: tuple[str, ...], code: int) -> None:
    (partly.project / "sub").mkdir()
    before = partly("status", "--json").json["counts"]
    foretold = partly("commit", how, *words, code=code)
    assert partly("status", "--json").json["counts"] == before
    done = partly("commit", "--yes", *words, code=code)
    if code == 16:
        assert foretold.err.splitlines()[-2:] == done.err.splitlines()[-2:]


@pytest.mark.parametrize("how", ["--dry-run", "--script"])
def test_a_dry_run_ends_as_the_commit_would_where_base_has_changed(partly: Program, how: str) -> None:
    (partly.project / "dir/b.txt").write_text("the host's\n")
    assert partly("commit", how, code=9).err.startswith("yolofs: ")
    if how == "--dry-run":
        partly("commit", how, "--merge", code=9)
    partly("commit", how, "--ours", "--trusted")
    partly("commit", "--yes", code=9)
