"""A commit that was killed in the middle, and then other commands, in any order: nothing that it
needs goes by them.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.fault_points import points
from tests.support.looks import exactly, tree_of
from tests.support.planting import interrupt, interrupted
from tests.support.program import Program, run_program
from tests.support.seed import sample
from yolofs.session.opening.lock import session_locked

pytestmark = pytest.mark.timeout(300)
INTERRUPTED = 12
REFUSED = (("abort", "--yes"), ("travel", "0"), ("undo", "--yes"), ("undo", "1", "--yes", "--force"), ("snapshot",))
OTHERS = (("gc",), ("gc", "--generations"), ("unmount",), ("unmount", "--force"), ("commits",))
ORDERS = sample(list(itertools.permutations((*REFUSED, *OTHERS[:3]))), 6, "orders")


def with_commits(project: Path) -> dict[bytes, tuple[object, ...]]:
    """Make a project with two commits, of which one is to be kept, and work staged; return what the
    view shows.
    """
    project.mkdir()
    populate(os.fsencode(project))
    view = CoreDriver(os.fsencode(project))
    for name in (b"first", b"second"):
        view.create(name, name, 0o644)
        view.commit()
    work(view)
    expected = view.tree()
    view.close()
    (project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    Program(project).trust()
    return expected


def needed(program: Program, number: int) -> dict[str, tuple[int, ...]]:
    """Return the files of a commit and of the staging, without the notes of commands."""
    tops = (program.session / f"commits/{number}", program.session / "files")
    paths = [*(path for top in tops for path in top.rglob("*")), program.session / "journal"]
    return {str(path): (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_size) for path in paths}


@pytest.mark.parametrize(
    ("point", "way"),
    points(list(itertools.product(range(len(ORDERS)), ["--continue", "--roll-back"])), "meanwhile", some=4),
)
def test_an_interrupted_commit_can_be_finished_and_taken_back_after_any_other_commands(
    tmp_path: Path, point: int, way: str
) -> None:
    project = tmp_path / "project"
    expected = with_commits(project)
    program = Program(project)
    before = exactly(project)
    interrupt(project, 1 + 4 * point, "commit", "--yes")
    half, kept = exactly(project), needed(program, 3)
    assert half != before
    for words in ORDERS[point]:
        done = run_program(words, project)
        if words in REFUSED:
            assert done.returncode == INTERRUPTED, (words, done)
            assert "a commit was interrupted: commit 3" in done.stderr
            assert "yolofs commit --continue" in done.stderr
            assert "yolofs commit --roll-back" in done.stderr
        assert exactly(project) == half, words
        assert needed(program, 3) == kept, words
    program("commit", way)
    if way == "--roll-back":
        assert exactly(project) == before
        program("commit", "--yes")
    settings = {b".yolofs.toml"}
    assert {path: what for path, what in tree_of(project).items() if path not in settings | {b""}} == {
        path: what for path, what in expected.items() if path not in settings | {b""}
    }


def test_an_undo_of_a_commit_that_gc_has_taken_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    with_commits(project)
    program = Program(project)
    program("commit", "--yes")
    program("gc")
    before, kept = exactly(project), needed(program, 3)
    for words in (("undo", "1", "--yes"), ("undo", "1", "first", "--yes"), ("undo", "2", "--yes", "--force")):
        said = program.refused(*words, code=run_program(words, project).returncode)
        assert f"commit {words[1]}" in said
        assert "hint: yolofs " in said
        assert exactly(project) == before
        assert needed(program, 3) == kept
    program("undo", "3", "--yes")


def test_an_undo_works_though_the_commit_that_first_kept_its_files_is_gone(tmp_path: Path) -> None:
    """What a commit had kept came back, and went again; the commit that kept it first is gone by
    then.
    """
    project = tmp_path / "project"
    with_commits(project)
    program = Program(project)
    program("abort", "--yes")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"first")
    view.close()
    before = exactly(project)
    program("commit", "--yes")
    after = exactly(project)
    program("undo", "--yes")
    assert exactly(project) == before
    program("undo", "4", "--yes")
    assert exactly(project) == after
    program("gc")
    assert [one["commit"] for one in program("commits", "--json").json["commits"]] == [5]
    program("undo", "5", "--yes")
    assert exactly(project) == before


def test_a_note_of_an_interrupted_commit_that_cannot_be_read_is_named_and_nothing_is_done(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = with_commits(project)
    program = Program(project)
    interrupt(project, 6, "commit", "--yes")
    before = exactly(project)
    made = program.session / "commits/3/made"
    text = made.read_bytes()
    made.write_bytes(text[:-9])
    for way in ("--continue", "--roll-back"):
        said = program.refused("commit", way, code=15)
        assert f"the note that it made before its first step cannot be read ({made}: the note made" in said
        assert "hint: put that right, then yolofs commit --continue; or yolofs commit --discard-interrupted" in said
    assert "cannot be read" in program("status").err
    assert exactly(project) == before
    made.write_bytes(text)
    program("commit", "--continue")
    assert {path: what for path, what in tree_of(project).items() if path != b".yolofs.toml"} == expected


@pytest.mark.parametrize(
    "words",
    [
        *REFUSED,
        ("restore", "c"),
        ("restore", "--hunk", "0123456789abcdef"),
        ("restore", "--from", "base", "c"),
        ("travel", "0", "--only", "c"),
        ("hunks", "--edit", "0123456789abcdef"),
        ("commit", "--yes"),
        ("commit", "--dry-run"),
        ("commit", "--hunk", "0123456789abcdef", "--yes"),
        ("gc",),
        ("gc", "--dry-run"),
        ("undo", "--dry-run"),
        ("mount",),
        ("run", "true"),
    ],
)
@pytest.mark.some(9)
def test_that_a_commit_was_interrupted_is_said_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    project, _ = interrupted(tmp_path)
    said = Program(project).refused(*words, code=INTERRUPTED)
    assert said.count("a commit was interrupted: commit 1 of ") == 1, said


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--yes"),
        ("commit", "--continue"),
        ("commit", "--roll-back"),
        ("gc", "--dry-run"),
        ("undo", "--dry-run"),
    ],
)
@pytest.mark.some(3)
def test_a_commit_that_a_process_is_at_work_on_was_not_interrupted(tmp_path: Path, words: tuple[str, ...]) -> None:
    project, _ = interrupted(tmp_path)
    program = Program(project)
    with session_locked(os.fsencode(os.path.realpath(program.session))):
        said = program.refused(*words, code=5)
    assert "is at work on this session" in said
    assert "interrupted" not in said
