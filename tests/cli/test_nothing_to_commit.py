"""What is staged and comes to nothing: no commit is made of it, and nothing of it is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


def _made_and_removed(view: Path) -> None:
    (view / "x").write_text("x")
    (view / "x").unlink()


def _directory_made_and_removed(view: Path) -> None:
    (view / "dir/x").mkdir()
    (view / "dir/x").rmdir()


def _written_back(view: Path) -> None:
    was = (view / "a.txt").stat()
    (view / "a.txt").write_text("other")
    (view / "a.txt").write_text("one\ntwo\n")
    os.utime(view / "a.txt", ns=(was.st_atime_ns, was.st_mtime_ns))


def _replaced_by_the_same(view: Path) -> None:
    was = (view / "a.txt").stat()
    (view / "new").write_text("one\ntwo\n")
    (view / "new").chmod(was.st_mode & 0o7777)
    os.utime(view / "new", ns=(was.st_atime_ns, was.st_mtime_ns))
    (view / "new").rename(view / "a.txt")


def _renamed_and_back(view: Path) -> None:
    (view / "a.txt").rename(view / "b.txt")
    (view / "b.txt").rename(view / "a.txt")


def _directory_made_again(view: Path) -> None:
    was, inside = (view / "dir").stat(), (view / "dir/b.txt").stat()
    (view / "dir/b.txt").unlink()
    (view / "dir").rmdir()
    (view / "dir").mkdir(was.st_mode & 0o7777)
    (view / "dir/b.txt").write_text("b\n")
    os.utime(view / "dir/b.txt", ns=(inside.st_atime_ns, inside.st_mtime_ns))


def _time_of_a_directory(view: Path) -> None:
    os.utime(view / "dir", ns=(1_000_000_000, 2_000_000_000))


_NOTHING = [
    _made_and_removed,
    _directory_made_and_removed,
    _written_back,
    _replaced_by_the_same,
    _renamed_and_back,
    _directory_made_again,
    _time_of_a_directory,
]


@pytest.mark.parametrize("do", _NOTHING)
@pytest.mark.some(4)
def test_staged_changes_that_cancel_out_make_no_commit(yolofs: Program, do: Callable[[Path], None]) -> None:
    before = _look(yolofs.project)
    with yolofs.mounted() as view:
        do(view)
        shown = _look(view)
        assert yolofs("status").out.endswith("\n\nno changes\n")
        done = yolofs("commit", "--yes")
        assert (done.out, done.err) == ("", "nothing to commit\n")
        assert _look(view) == shown
    document = yolofs("commit", "--yes", "--json").json
    assert (document["commit"], document["steps"], document["changes"]) == (None, 0, [])
    dry = yolofs("commit", "--dry-run")
    assert (dry.out, dry.err) == ("", "nothing to commit\n")
    assert yolofs("commit", "--script").out == ""
    assert _look(yolofs.project) == before
    assert not (yolofs.session / "commits").exists() or not os.listdir(yolofs.session / "commits")


def test_generations_are_still_there_after_a_commit_of_nothing(yolofs: Program) -> None:
    """Between them may be what somebody wants back."""
    with yolofs.mounted() as view:
        (view / "x").write_text("x")
        yolofs("snapshot", "with x")
        (view / "x").unlink()
        assert yolofs("commit", "--yes").err == "nothing to commit\n"
        yolofs("travel", "with x")
        assert (view / "x").read_text() == "x"


def test_the_time_of_a_directory_is_committed_with_what_is_changed_next(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        _time_of_a_directory(view)
        assert yolofs("commit", "--yes").err == "nothing to commit\n"
        (view / "a.txt").write_text("changed\n")
        assert "commit 1 done" in yolofs("commit", "--yes").err
    assert (yolofs.project / "dir").stat().st_mtime_ns == 2_000_000_000


def test_an_earlier_state_that_comes_to_nothing_makes_no_commit(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        _made_and_removed(view)
        yolofs("snapshot", "nothing")
        (view / "a.txt").write_text("changed\n")
        done = yolofs("commit", "--yes", "--up-to", "nothing")
        assert done.out == ""
        assert done.err == "nothing to commit\n1 change stays staged:\n  1 in the project: yolofs commit\n"
        assert (view / "a.txt").read_text() == "changed\n"


def test_hard_links_that_differ_in_nothing_else_are_committed(yolofs: Program) -> None:
    """No list shows them, yet base is to be what the view is."""
    (yolofs.project / "b.txt").hardlink_to(yolofs.project / "a.txt")
    with yolofs.mounted() as view:
        _replaced_by_the_same(view)
        assert "commit 1 done" in yolofs("commit", "--yes").err
    assert (yolofs.project / "a.txt").stat().st_nlink == 1


def _look(top: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time (but for the session's link) and content of all below a directory."""
    found = {}
    for path in sorted(top.rglob("*")):
        st = path.lstat()
        content = path.read_text() if path.is_file() and path.name != ".yolofs.toml" else ""
        found[str(path.relative_to(top))] = (st.st_mode, st.st_mtime_ns, content)
    return found


@pytest.mark.parametrize("letter", ["s", "c"])
def test_conflicts_that_the_user_skips_make_the_commit_no_failure(yolofs: Program, letter: str) -> None:
    for name in ("one", "other", "two"):
        (yolofs.project / name).write_text("old\n")
    with yolofs.mounted() as view:
        for name in ("one", "other", "two"):
            (view / name).write_text("staged\n")
        for name in ("one", "two"):
            (yolofs.project / name).write_text("the host's\n")
        with Terminal(yolofs.project, ["commit"]) as terminal:
            for count in (1, 2) if letter == "s" else (1,):
                terminal.wait_for("[q]uit?", count)
                terminal.type(f"{letter}\n")
            terminal.wait_for("[y/N]")
            terminal.type("y\n")
            assert terminal.wait() == 0
            assert "2 changes stay staged" in terminal.text
        assert (yolofs.project / "other").read_text() == "staged\n"
        assert (yolofs.project / "one").read_text() == "the host's\n"
        assert (view / "one").read_text() == "staged\n"
        with Terminal(yolofs.project, ["commit", "one"]) as terminal:
            terminal.wait_for("[q]uit?")
            terminal.type("s\n")
            assert terminal.wait() == 1
            assert "nothing committed" in terminal.text
