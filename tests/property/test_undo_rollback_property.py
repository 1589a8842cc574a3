"""An undo that is broken off, however often, is finished or taken back: base is as before the
commit, or as after it.

As in :mod:`tests.property.test_commit_rollback_property` it is killed at any line of its code, and
so is what takes it back or finishes it; a power failure takes lines of its log away.  The host is
at work in base meanwhile, and whatever has been in base by then is kept.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.test_commit_property import Operation, hard_links, has_second_device, perform_all, programs
from tests.property.test_commit_rollback_property import (
    Attempt,
    BrokenOff,
    Kill,
    check_work_of_host,
    ends,
    kills,
    lost,
    staged,
    whole,
)
from tests.support.commit_model import CommitScribe, contents, scan
from tests.support.host_edits import Edit, works
from tests.support.model_steps import so_many
from tests.support.undo_model import Commits, Undo
from yolofs.errors import HardLinksError
from yolofs.state.tree import Tree
from yolofs.store import restored

attempts = st.lists(st.builds(Attempt, st.booleans(), kills, lost), max_size=3)


class Run(BrokenOff):
    """The undo of commit 1, as commit 2, that is broken off and gone on with."""

    def __init__(self, commits: Commits) -> None:
        self.undo: Undo = commits.prepare(1)
        for record in (*self.undo.inverse, *self.undo.left):
            note(str(record))
        super().__init__(self.undo.plan, self.undo.store, commits.parking(2), os.path.dirname(commits.directory))


def undone(
    scribe: CommitScribe, parking: bytes, second: list[Operation], links: list[tuple[bytes, ...]]
) -> tuple[Commits, Run] | None:
    """Commit what is staged, stage more, and return what is to undo the commit; None if there is
    nothing to it.
    """
    commits = Commits(scribe, os.path.dirname(parking))
    if not commits.commit(1).steps:
        return None
    perform_all(scribe, second)
    try:
        return commits, Run(commits)
    except HardLinksError:
        event("refused for hard links")
        return None


def kept_by(parking: bytes) -> dict[bytes, object]:
    """Return all that a commit keeps; the time of the folder itself is nobody's."""
    return {path: what for path, what in whole(parking + b"/replaced").items() if path}


def check(
    program: list[Operation],
    second: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
    session: str | None = None,
    modes: Sequence[tuple[bytes, int]] = (),
) -> None:
    with staged(program, links, session, modes) as (scribe, parking):
        root = scribe.base.root
        before = scan(root)
        ready = undone(scribe, parking, second, links)
        if ready is None:
            return
        commits, run = ready
        view, after, kept = scribe.expected(), whole(root), kept_by(commits.parking(1))
        had = contents(root)
        if not run.begin(kill):
            event("it was not broken off")
            return
        if run.go_on_to_the_end((*some, end)):
            event("taken back")
            assert whole(root) == after
            assert scribe.expected() == view
            assert kept_by(commits.parking(1)) == kept
            assert not run.found
            assert not os.path.lexists(run.parking)
            commits.undo(1, by=2, restored=restored.read(os.path.dirname(commits.directory)))
        else:
            event("finished")
            commits.stage(Tree(run.undo.left))
        assert scan(root) == before
        assert scribe.expected() == view
        assert had <= contents(root) | contents(run.parking + b"/replaced")
        assert os.listdir(run.parking + b"/parked") == os.listdir(run.parking + b"/new") == []


def check_with_host(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
    session: str | None = None,
) -> None:
    """``work``: what the host does after each time that it is broken off."""
    with staged(program, links, session) as (scribe, parking):
        root = scribe.base.root
        before = contents(root)
        ready = undone(scribe, parking, [], links)
        had = before | contents(root)
        if ready is None or not ready[1].begin(kill):
            return
        check_work_of_host(ready[1], root, had, work, [*some, end])


few = so_many(ci=5, nightly=3000)


@few
@given(programs, programs, hard_links, kills, attempts, ends)
@example(  # the thing at a directory's new path looks just like the directory after its move
    [("chmod", b"a", 0o500), ("exchange", b"a", b"c")], [], [], Kill(0, 0), [], Attempt(True, None, 0)
)
def test_a_broken_off_undo_is_taken_back_or_finished(
    program: list[Operation],
    second: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
) -> None:
    check(program, second, links, kill, some, end)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@few
@given(programs, programs, hard_links, kills, attempts, ends)
@example(  # what is recalled from the log and done again is left over once
    [("rename", b"b", b"d/a/e f"), ("mkfifo", b"b")],
    [],
    [],
    Kill(2, 0),
    [],
    Attempt(False, None, 0),
)
def test_a_broken_off_undo_is_taken_back_or_finished_with_the_session_on_another_device(
    program: list[Operation],
    second: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
) -> None:
    check(program, second, links, kill, some, end, session="/dev/shm")


@few
@given(programs, hard_links, kills, works, attempts, ends)
@example(  # the directory is gone from which what is in its place had come
    [("rename", b"b", b"d/a/c")], [], Kill(2, 0), [[("rmtree", 4, 0)]], [], Attempt(False, None, 0)
)
@example(  # the second try to take it back tells of found files, too, after the first was killed
    [("write", b"b", b"new")],
    [],
    Kill(2, 0),
    [[("replace", 0, 0)]],
    [Attempt(True, Kill(2, 0), 0)],
    Attempt(True, None, 0),
)
@example(  # a file that has been written back already
    [("write", b"b", b"new"), ("write", b"e f", b"new")],
    [(b"b", b"d", b"link")],
    Kill(3, 0),
    [[], [("append", 0, 0)]],
    [Attempt(True, Kill(3, 0), 0)],
    Attempt(True, None, 0),
)
def test_nothing_that_was_in_base_meanwhile_is_lost(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
) -> None:
    check_with_host(program, links, kill, work, some, end)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@few
@given(programs, hard_links, kills, works, attempts, ends)
@example(  # what is to go back into a directory on its device that is gone
    [("rename", b"b", b"d/a/c")], [], Kill(2, 0), [[("move", 4, 0)]], [], Attempt(True, None, 0)
)
def test_nothing_that_was_in_base_meanwhile_is_lost_where_the_session_is_on_another_device(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    kill: Kill,
    work: list[list[Edit]],
    some: list[Attempt],
    end: Attempt,
) -> None:
    check_with_host(program, links, kill, work, some, end, session="/dev/shm")
