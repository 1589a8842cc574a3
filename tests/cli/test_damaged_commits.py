"""Files of an ended commit are damaged or gone: that is named, no other commit is taken for it, and
nothing that is staged since is lost.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program

MISFIT = 15


@pytest.fixture
def twice(yolofs: Program) -> Program:
    """A project with two commits, and something staged since."""
    for act in (_first, _second):
        _stage(yolofs, act)
        yolofs("commit", "--yes")
    _stage(yolofs, lambda view: view.create(b"since", b"staged since\n", 0o644))
    return yolofs


def _stage(program: Program, act: Callable[[CoreDriver], object]) -> None:
    view = CoreDriver(os.fsencode(program.project))
    act(view)
    view.close()


def _first(view: CoreDriver) -> None:
    view.overwrite(b"a.txt", b"first\n")
    view.create(b"one", b"made first\n", 0o644)


def _second(view: CoreDriver) -> None:
    view.overwrite(b"dir/b.txt", b"second\n")
    view.rename(b"one", b"two")


def _overwrite_both(view: CoreDriver) -> None:
    view.overwrite(b"a.txt", b"new\n")
    view.overwrite(b"dir/b.txt", b"new\n")


def _rename_both(view: CoreDriver) -> None:
    view.rename(b"a.txt", b"moved.txt")
    view.rename(b"dir/b.txt", b"dir/c.txt")


def _remove_and_append(view: CoreDriver) -> None:
    view.unlink(b"linked")
    view.unlink(b"dir/b.txt")
    view.append(b"a.txt", b"more")


def _base(program: Program) -> dict[str, str]:
    names = ("a.txt", "dir/b.txt", "one", "two")
    return {name: (program.project / name).read_text() for name in names if (program.project / name).exists()}


BOTH = {"a.txt": "first\n", "dir/b.txt": "second\n", "two": "made first\n"}
DAMAGE: dict[str, Callable[[Path], object]] = {
    "no-seal": lambda commit: (commit / "seal").unlink(),
    "a-torn-seal": lambda commit: os.truncate(commit / "seal", 200),
    "a-torn-end": lambda commit: os.truncate(commit / "done", 20),
    "no-end": lambda commit: (commit / "done").unlink(),
    "no-plan": lambda commit: (commit / "plan.json").unlink(),
    "a-torn-plan": lambda commit: os.truncate(commit / "plan.json", 100),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_commit_whose_proof_is_damaged_is_named_and_not_passed_over(twice: Program, kind: str) -> None:
    DAMAGE[kind](twice.session / "commits/2")
    assert "interrupted" not in twice("status").err
    if "plan" not in kind:
        assert "cannot be undone: " in twice("commits").out.splitlines()[1]
        assert [one["damaged"] for one in twice("commits", "--json").json["commits"]] == [False, True]
    for words in (("undo", "--yes"), ("undo", "2", "--yes"), ("undo", "2", "--dry-run")):
        said = twice.refused(*words, code=MISFIT)
        assert "commit 2 is not undone: " in said
        assert _base(twice) == BOTH
    assert twice("status", "--json").json["changes"][0]["path"] == str(twice.project / "since")


@pytest.mark.parametrize("kind", DAMAGE)
def test_the_commit_before_a_damaged_one_is_undone_all_the_same(twice: Program, kind: str) -> None:
    DAMAGE[kind](twice.session / "commits/2")
    twice("undo", "1", "a.txt", "--yes")
    assert _base(twice) == BOTH | {"a.txt": "one\ntwo\n"}
    done = twice("undo", "1", "--yes", code=None)
    assert _base(twice) == BOTH | {"a.txt": "one\ntwo\n"}, "what commit 2 has moved on is not taken back"
    if "plan" in kind:  # nobody knows what commit 2 has done
        assert "nothing of commit 1 is to be undone" in done.err
    else:
        assert done.code == 16
        assert "one: commit 2 has changed it since" in done.err


def test_a_later_commit_whose_note_of_what_it_made_is_damaged_stops_no_undo(twice: Program) -> None:
    os.truncate(twice.session / "commits/2/made", 5)
    twice("undo", "1", "a.txt", "--yes")
    assert _base(twice) == BOTH | {"a.txt": "one\ntwo\n"}


def test_a_commit_whose_journal_is_gone_does_not_take_the_present_one_for_it(twice: Program) -> None:
    (twice.session / "commits/2/journal").unlink()
    assert "what was done before commit 2 is not shown, as its journal is missing" in twice("log").err
    twice("commit", "--yes")
    assert (twice.project / "since").read_text() == "staged since\n"
    assert not (twice.session / "commits/2/journal").exists()


def test_a_commit_whose_end_is_gone_is_not_finished_once_more(twice: Program) -> None:
    (twice.session / "commits/2/done").unlink()
    journal = (twice.session / "commits/2/journal").read_bytes()
    twice("commit", "--continue", code=None)
    assert (twice.session / "commits/2/journal").read_bytes() == journal
    twice("commit", "--yes")
    assert (twice.project / "since").read_text() == "staged since\n"


def test_a_damaged_commit_is_not_removed(twice: Program) -> None:
    shutil.copy(twice.session / "commits/1/seal", twice.session / "commits/2/seal")
    (twice.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    twice.trust()
    twice("commit", "--yes")
    twice("gc")
    assert sorted(name.name for name in (twice.session / "commits").iterdir() if name.name.isdigit()) == ["2", "3"]


@pytest.mark.parametrize("name", ["a.txt", "dir/b.txt"])
def test_a_kept_file_that_was_written_to_comes_back_with_a_note(yolofs: Program, name: str) -> None:
    os.link(yolofs.project / "dir/b.txt", yolofs.project / "other")
    _stage(yolofs, _overwrite_both)
    yolofs("commit", "--yes")
    old = "one\ntwo\n" if name == "a.txt" else "b\n"
    kept = next(one for one in (yolofs.session / "commits/1/replaced").iterdir() if one.read_text() == old)
    with kept.open("a") as file:
        file.write("appended by a program that had it open\n")
    said = yolofs("undo", "--yes").err
    assert f"note: {yolofs.project / name} comes back as" in said
    assert said.count("note: ") == 1
    assert (yolofs.project / name).read_text() == old + "appended by a program that had it open\n"


def test_an_undo_of_unchanged_kept_files_prints_no_note(twice: Program) -> None:
    os.link(twice.project / "a.txt", twice.project / "linked")
    _stage(twice, _remove_and_append)
    twice("commit", "--yes")
    for _ in range(3):
        assert "note: " not in twice("undo", "--yes").err
        twice("abort", "--yes")


def test_a_rename_is_taken_back_with_what_the_host_has_written_since_and_that_is_said(yolofs: Program) -> None:
    _stage(yolofs, _rename_both)
    yolofs("commit", "--yes")
    (yolofs.project / "moved.txt").write_text("written by the host\n")
    assert f"note: {yolofs.project / 'a.txt'} comes back as" in yolofs("undo", "--dry-run").err
    done = yolofs("undo", "--yes", "--json")
    assert done.json["as_now"] == [{"path": str(yolofs.project / "a.txt")}]
    assert done.err.count("note: ") == 1
    assert f"note: {yolofs.project / 'a.txt'} comes back as" in done.err
    assert (yolofs.project / "a.txt").read_text() == "written by the host\n"
    assert (yolofs.project / "dir/b.txt").read_text() == "b\n"
    assert not (yolofs.project / "moved.txt").exists()
    yolofs("commit", "--yes")
    assert (yolofs.project / "moved.txt").read_text() == "written by the host\n"


def test_a_fifo_in_the_place_of_what_is_kept_is_not_waited_for(yolofs: Program) -> None:
    _stage(yolofs, _overwrite_both)
    yolofs("commit", "--yes")
    kept = next(one for one in (yolofs.session / "commits/1/replaced").iterdir() if one.read_text() == "b\n")
    kept.unlink()
    os.mkfifo(kept)
    said = yolofs("undo", "--yes", code=16).err
    assert f"stays: {yolofs.project / 'dir/b.txt'}: commit 1 does not keep what was there any more" in said
    assert (yolofs.project / "dir/b.txt").read_text() == "new\n"
    assert (yolofs.project / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.mount
@pytest.mark.parametrize(
    "put", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)], ids=["fifo", "directory", "link"]
)
@pytest.mark.some(1)
def test_a_commit_whose_journal_was_replaced_stops_no_other_command(
    yolofs: Program, put: Callable[[Path], None]
) -> None:
    """Nobody knows which staged files it named, so none is removed: put back, it tells all."""
    for number in (1, 2, 3):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n")
            (view / "gone again").write_text(f"{number} and what no commit took\n")
            yolofs("snapshot", "before")
            (view / "gone again").unlink()
        yolofs("commit", "--yes")
    journal = yolofs.session / "commits/2/journal"
    journal.rename(yolofs.session / "saved")
    put(journal)
    kept = {path.name for path in (yolofs.session / "files").rglob("*")}
    assert f"{journal}" in yolofs("doctor").out
    with yolofs.mounted() as view:
        (view / "new").write_text("new\n")
        yolofs("commit", "--yes")
    yolofs("gc", "--dry-run")
    yolofs("gc")
    yolofs("undo", "--yes")
    yolofs("abort", "--yes")
    yolofs("undo", "3", "--yes")
    assert (yolofs.project / "a.txt").read_text() == "2\n"
    journal.rmdir() if journal.is_dir() and not journal.is_symlink() else journal.unlink()
    (yolofs.session / "saved").rename(journal)
    assert "damaged" not in yolofs("log").err
    assert kept <= {path.name for path in (yolofs.session / "files").rglob("*")}
    yolofs("undo", "2", "--yes")
    assert (yolofs.project / "a.txt").read_text() == "1\n"
