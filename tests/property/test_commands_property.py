"""Commits and undos, one after the other, by any options, while both sides work: nothing is lost,
and the view stays.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.property.commands_drawn import Committing, Undoing, rounds
from tests.property.commands_world import check
from tests.property.test_commit_property import hard_links, has_second_device
from tests.support.model_steps import so_many


@so_many(ci=5, nightly=3000)
@given(rounds, hard_links | st.just([]))
@example(  # how many names a file has is a part of the view
    [
        (
            [("chmod", b"d/b", 0o600)],
            [],
            [],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=True),
        )
    ],
    [(b"d/b", b"c/b", b"b")],
)
@example(  # another file takes one of several names; the name comes back at the new place of that file
    [
        (
            [("rename", b"e f", b"b")],
            [],
            [],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=True),
        )
    ],
    [(b"b", b"c", b"link")],
)
@example(  # the host takes the name by which a file with several was changed
    [
        (
            [("utimes", b"c/a/b", 1_450_000_000_000_000_000)],
            [],
            [("move", 1, 0)],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        )
    ],
    [(b"c/a/b", b"a", b"link")],
)
@example(  # a file of which something is staged is gone from base while another path is committed
    [
        (
            [("setxattr", b"e f", b"user.one", b"v"), ("rmtree", b"d/a/a")],
            [],
            [("remove", 19, 15)],
            Committing((b"d/a/a",), None, "", None, merge=False, side="theirs", trusted=False, is_undone=True),
        )
    ],
    [],
)
@example(  # the host takes a directory away in which something is staged, and it is made again
    [
        (
            [("mkfifo", b"d/d/d/a", 0o600)],
            [("write", 0, 0)],
            [],
            Committing((b"b",), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        ),
        ([], [], [("move", 15, 0)], Committing((), None, "", None, False, "ours", trusted=True, is_undone=False)),
    ],
    [],
)
@example(  # an undo of an undo takes out of base what the view lacks already: names of a file that has others
    [
        (
            [("rmtree", b"c")],
            [],
            [],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        ),
        ([], [], [], Undoing(None, (), force=True)),
        ([], [], [], Undoing(1, (), force=True)),
    ],
    [(b"e f", b"a", b"b"), (b"e f", b"c/a", b"b"), (b"e f", b"c", b"link")],
)
def test_nothing_is_lost_and_the_view_stays(some: list[Any], links: list[tuple[bytes, ...]]) -> None:
    check(some, links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=4, nightly=3000)
@given(rounds, hard_links | st.just([]))
def test_nothing_is_lost_and_the_view_stays_where_the_session_is_on_another_device(
    some: list[Any], links: list[tuple[bytes, ...]]
) -> None:
    check(some, links, "/dev/shm")
