"""A merge has left marks in a file, and the next commit takes one side of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program

TEN = "".join(f"{number}\n" for number in range(1, 11))
OURS, THEIRS = TEN.replace("5\n", "five\n"), TEN.replace("5\n", "FIVE\n").replace("1\n", "one\n", 1)


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """A project in which a merge has left marks in two files."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "clash").write_text(TEN)
    (project / "other").write_text(TEN)
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"clash", OURS.encode())
    view.create(b"anew", b"five\n", 0o600)
    view.close()
    (project / "clash").write_text(THEIRS)
    (project / "anew").write_text("FIVE\n")
    program("commit", "--yes", "--merge", code=9)
    return program


def append(yolofs: Program, name: bytes, text: bytes) -> None:
    view = CoreDriver(os.fsencode(yolofs.project))
    view.append(name, text)
    view.close()


def check_ours(yolofs: Program) -> None:
    """See that base has what was staged before the merge, and nothing is staged any more."""
    assert (yolofs.project / "clash").read_text() == OURS
    assert (yolofs.project / "anew").read_text() == "five\n"
    assert (yolofs.project / "anew").stat().st_mode & 0o777 == 0o600
    assert yolofs("status", "--json").json["changes"] == []


def test_ours_of_a_marked_file_commits_what_was_staged_before_the_merge(yolofs: Program) -> None:
    done = yolofs("commit", "--yes", "--ours", "clash")
    assert "clash: what was staged before the merge is taken, without later edits" in done.err
    assert (yolofs.project / "clash").read_text() == OURS
    yolofs("commit", "--yes", "--ours", "anew")
    check_ours(yolofs)
    kept = {path.read_text() for path in (yolofs.session / "commits").glob("*/replaced/*")}
    assert kept == {THEIRS, "FIVE\n"}


@pytest.mark.parametrize("words", [("--ours",), ("--merge", "--ours")])
def test_ours_for_all_files_commits_none_with_marks(yolofs: Program, words: tuple[str, ...]) -> None:
    yolofs("commit", "--yes", *words)
    check_ours(yolofs)


def test_ours_drops_edits_of_a_file_that_still_has_the_marks(yolofs: Program) -> None:
    append(yolofs, b"clash", b"edited\n")
    yolofs("commit", "--yes", "--ours")
    check_ours(yolofs)


def test_ours_takes_a_file_as_it_is_once_the_marks_are_out(yolofs: Program) -> None:
    view = CoreDriver(os.fsencode(yolofs.project))
    view.overwrite(b"clash", b"settled\n")
    view.close()
    yolofs("commit", "--yes", "--ours")
    assert (yolofs.project / "clash").read_text() == "settled\n"


def test_ours_finds_what_was_staged_before_the_merge_after_another_commit(yolofs: Program) -> None:
    append(yolofs, b"other", b"more\n")
    yolofs("commit", "--yes", "other")
    append(yolofs, b"clash", b"edited\n")
    append(yolofs, b"other", b"again\n")
    yolofs("commit", "--yes", "other")
    yolofs("commit", "--yes", "--ours")
    check_ours(yolofs)


def test_a_second_merge_does_not_forget_what_was_staged_before_the_first(yolofs: Program) -> None:
    append(yolofs, b"other", b"more\n")
    (yolofs.project / "other").write_text(TEN.replace("1\n", "one\n", 1))
    yolofs("commit", "--yes", "--merge", code=9)
    yolofs("commit", "--yes", "--ours")
    check_ours(yolofs)


def test_ours_is_refused_if_what_was_staged_before_the_merge_is_not_kept(yolofs: Program) -> None:
    yolofs("gc", "--generations")
    done = yolofs("commit", "--yes", "--ours", "clash", code=9)
    assert "what was staged before the merge is no longer kept" in done.err
    assert "--ours" not in done.err.partition("hint:")[2]
    assert (yolofs.project / "clash").read_text() == THEIRS
    assert "clash" in yolofs("status").out


def test_a_script_has_no_marks_in_it(yolofs: Program) -> None:
    assert "marks of a merge" in yolofs("commit", "--script", "--ours", code=9).err


def test_a_dry_run_says_what_ours_is(yolofs: Program) -> None:
    done = yolofs("commit", "--dry-run", "--ours")
    assert "clash: what was staged before the merge would be taken" in done.err


def test_an_earlier_generation_with_marks_is_not_committed(yolofs: Program) -> None:
    append(yolofs, b"clash", b"edited\n")
    yolofs("snapshot", "with-marks")
    append(yolofs, b"other", b"more\n")
    done = yolofs("commit", "--yes", "--up-to", "with-marks", "--ours", code=9)
    assert "marks of a merge" in done.err
    assert (yolofs.project / "clash").read_text() == THEIRS
