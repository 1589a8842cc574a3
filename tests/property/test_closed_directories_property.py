"""An ordinary user's commits and undos work in directories that forbid writing, and are killed
there: each is taken back or finished, and every directory has its mode and its time.

Root may write anywhere, so where the other properties run as root no directory is ever opened up.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.property import test_commit_rollback_property as commits
from tests.property import test_undo_rollback_property as undos
from tests.property.test_commit_property import (
    DIRECTORIES,
    Operation,
    hard_links,
    has_second_device,
    operations,
)
from tests.property.test_commit_rollback_property import Attempt, Kill, attempts, ends, kills
from tests.support.model_steps import so_many
from tests.support.user_identity import NOBODY, acting_as

Modes = list[tuple[bytes, int]]

_READABLE = {0o600: 0o500, 0o4755: 0o555}


def _readable(operation: Operation) -> Operation:
    """Leave its owner what it takes to look into a directory: the test itself has to."""
    name, *arguments = operation
    return (name, arguments[0], _READABLE.get(arguments[1], arguments[1])) if name == "chmod" else operation


programs = st.lists(operations.map(_readable), max_size=25)
modes = st.lists(
    st.tuples(st.sampled_from((b"", *DIRECTORIES)), st.sampled_from((0o500, 0o555, 0o1555, 0o2555))), max_size=6
)
few = so_many(ci=4, nightly=3000)


@few
@given(programs, hard_links, modes, kills, attempts, ends)
@example(  # a directory that another one is to take the place of looks as that is to look
    [("exchange", b"a", b"c"), ("chmod", b"a", 0o755)], [], [(b"c", 0o500)], Kill(0, 0), [], Attempt(True, None, 0)
)
def test_a_broken_off_commit_is_taken_back_or_finished(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    closed: Modes,
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
) -> None:
    with acting_as(NOBODY, NOBODY):
        commits.check(program, links, kill, some, end, modes=closed)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@few
@given(programs, hard_links, modes, kills, attempts, ends)
def test_a_broken_off_commit_is_taken_back_or_finished_with_the_session_on_another_device(
    program: list[Operation],
    links: list[tuple[bytes, ...]],
    closed: Modes,
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
) -> None:
    with acting_as(NOBODY, NOBODY):
        commits.check(program, links, kill, some, end, "/dev/shm", closed)


CLOSING: list[Operation] = [("write", b"x", b"new"), ("chmod", b"", 0o500)]


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=12, nightly=400)
@given(st.integers(0, 399))
def test_a_directory_that_a_commit_closes_keeps_no_hidden_folder(line: int) -> None:
    with acting_as(NOBODY, NOBODY):
        commits.check(CLOSING, [], Kill(1, line), [], Attempt(False, None, 0), "/dev/shm")


@few
@given(programs, programs, hard_links, modes, kills, attempts, ends)
def test_a_broken_off_undo_is_taken_back_or_finished(
    program: list[Operation],
    second: list[Operation],
    links: list[tuple[bytes, ...]],
    closed: Modes,
    kill: Kill,
    some: list[Attempt],
    end: Attempt,
) -> None:
    with acting_as(NOBODY, NOBODY):
        undos.check(program, second, links, kill, some, end, modes=closed)
