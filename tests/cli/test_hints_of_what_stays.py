"""The hint's command takes the file that must be named, in the version asked for, and no other."""

from __future__ import annotations

import shlex
import shutil

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount

UNNAMED = 16


@pytest.mark.parametrize("is_more", [False, True], ids=["alone", "beside others"])
def test_the_hint_for_a_held_file_names_no_later_version_of_it(yolofs: Program, *, is_more: bool) -> None:
    """If that version goes with the commit, the hint says that it is another one."""
    with yolofs.mounted() as view:
        (view / ".envrc").write_text("what was read\n")
        if is_more:
            (view / "new").write_text("new\n")
        yolofs("snapshot", "first task")
        (view / ".envrc").write_text("what nobody has read\n")
    hint = yolofs("commit", "--yes", "--up-to", "first task", code=UNNAMED).err.rpartition("hint: ")[2].strip()
    if is_more:
        assert hint == f"as it is now: yolofs commit {yolofs.project}/.envrc"
        return
    assert hint == f"yolofs commit --up-to 'first task' {yolofs.project}/.envrc"
    yolofs(*shlex.split(hint)[1:], "--yes")
    assert (yolofs.project / ".envrc").read_text() == "what was read\n"


@pytest.mark.parametrize("options", [("--merge",), ("--ours",), ("--merge", "--theirs")])
def test_the_hint_for_a_held_file_keeps_the_options_about_base(yolofs: Program, options: tuple[str, ...]) -> None:
    (yolofs.project / ".envrc").write_text("1\n2\n3\n4\n5\n")
    with yolofs.mounted() as view:
        (view / ".envrc").write_text("one\n2\n3\n4\n5\n")
    (yolofs.project / ".envrc").write_text("1\n2\n3\n4\nfive\n")
    hint = yolofs("commit", "--yes", *options, code=UNNAMED).err.rpartition("hint: ")[2].strip()
    assert hint == f"yolofs commit {' '.join(options)} {yolofs.project}/.envrc"
    yolofs(*shlex.split(hint)[1:], "--yes")
    assert (yolofs.project / ".envrc").read_text().startswith("one\n2\n3\n4\n")


def test_deletions_in_a_held_directory_get_no_hint_of_their_own(yolofs: Program) -> None:
    """They go with the new directory in its place, and that one has to be named."""
    for name in (".husky/one.sample", ".husky/two.sample", "elsewhere/pre-commit", "elsewhere/file"):
        (yolofs.project / name).parent.mkdir(parents=True, exist_ok=True)
        (yolofs.project / name).write_text(f"{name}\n")
    with yolofs.mounted() as view:
        shutil.rmtree(view / ".husky")
        (view / "elsewhere").rename(view / ".husky")
    said = yolofs("commit", "--yes", code=UNNAMED).err
    assert " changes stay staged:\n  2 that go with what is named below\n" in said
    assert "in the project: yolofs commit" not in said
    hint = said.rpartition("hint: ")[2].strip()
    yolofs(*shlex.split(hint)[1:], "--yes")
    assert sorted(path.name for path in (yolofs.project / ".husky").iterdir()) == ["file", "pre-commit"]
    assert yolofs("status", "--json").json["changes"] == []


def test_what_is_committed_in_a_directory_whose_rename_stays_is_not_said_to_stay(yolofs: Program) -> None:
    """It is committed by the path that it has in base."""
    (yolofs.project / "old").mkdir()
    for name in ("changed", "closed", "moved", "setuid"):
        (yolofs.project / "old" / name).write_text(f"{name}\n")
    (yolofs.project / "old/setuid").chmod(0o4755)
    with yolofs.mounted() as view:
        (view / "old").rename(view / "new")
        (view / "new/changed").write_text("changed again\n")
        (view / "new/closed").chmod(0o600)
        (view / "new/moved").rename(view / "new/moved on")
    said = yolofs("commit", "--yes", code=UNNAMED).err
    assert sorted(path.name for path in (yolofs.project / "old").iterdir()) == [
        "changed",
        "closed",
        "moved on",
        "setuid",
    ]
    assert "1 change stays staged:" in said
    assert "in the project" not in said
    hint = said.rpartition("hint: ")[2].strip()
    yolofs(*shlex.split(hint)[1:], "--yes")
    assert yolofs("status", "--json").json["changes"] == []
    assert not (yolofs.project / "old").exists()


def with_a_renamed_directory(yolofs: Program) -> None:
    """Stage a directory with another name, and changes in it."""
    (yolofs.project / "old").mkdir()
    (yolofs.project / "old/moved").write_text("moved\n")
    with yolofs.mounted() as view:
        (view / "old").rename(view / "new")
        (view / "new/born").write_text("born\n")
        (view / "new/moved").rename(view / "new/moved on")


@pytest.mark.parametrize(
    ("named", "left"),
    [("new/born", ["born", "moved"]), ("old/born", ["born", "moved"]), ("new/moved on", ["moved on"])],
)
def test_one_file_in_a_renamed_directory_is_committed_where_base_has_that_directory(
    yolofs: Program, named: str, left: list[str]
) -> None:
    with_a_renamed_directory(yolofs)
    yolofs("commit", "--yes", named)
    assert sorted(path.name for path in (yolofs.project / "old").iterdir()) == left
    yolofs.refused("commit", "--yes", "old/nothing", code=2)


def test_the_hint_for_the_old_name_of_a_file_in_a_renamed_directory_commits_it_there(yolofs: Program) -> None:
    """Its path there is neither staged nor in base, and no mistake all the same."""
    with_a_renamed_directory(yolofs)
    hint = yolofs("commit", "--yes", "old/moved", code=UNNAMED).err.rpartition("hint: ")[2].strip()
    said = yolofs(*shlex.split(hint)[1:], "--yes")
    assert sorted(path.name for path in (yolofs.project / "old").iterdir()) == ["moved on"]
    assert "nothing is staged at" not in said.err


def test_what_was_not_asked_for_and_has_to_be_named_gets_the_command_that_names_it(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / ".envrc").write_text("run\n")
        (view / "new").write_text("new\n")
    said = yolofs("commit", "--yes", "new").err
    (line,) = (line for line in said.splitlines() if "has to be named" in line)
    assert line == f"  1 that has to be named: yolofs commit {yolofs.project}/.envrc"
    yolofs(*shlex.split(line.partition(": ")[2])[1:], "--yes")
    assert (yolofs.project / ".envrc").read_text() == "run\n"
