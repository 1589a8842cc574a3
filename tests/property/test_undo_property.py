"""A commit is undone: base is as before, to the bit, and the view stays the same."""

from __future__ import annotations

import os

import pytest
from hypothesis import event, example, given, note

from tests.property.test_commit_property import Operation, after, hard_links, has_second_device, perform_all, programs
from tests.support.commit_model import CommitScribe, Node, scan
from tests.support.model_steps import so_many
from tests.support.undo_model import Commits, Undo
from yolofs.errors import HardLinksError


def note_down(undo: Undo) -> None:
    for record in (*undo.inverse, *undo.left):
        note(str(record))
    for line in undo.plan.lines():
        note(line)


def check_link_counts(scribe: CommitScribe, view: dict[bytes, Node]) -> None:
    """Check that a staged file has as many names as the view shows of it."""
    for staged in scribe.tree.staged.values():
        for entry in staged.names:
            assert scribe.tree.nlink(staged) == max(1, len(view[entry.path()].links)), entry.path()


def check(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]], session: str | None = None
) -> None:
    with after(program, links, session) as (scribe, parking):
        commits = Commits(scribe, os.path.dirname(parking) + b"/commits")
        root = scribe.base.root
        before = scan(root)
        if not commits.commit(1).steps:
            return
        perform_all(scribe, second)
        event(f"something is staged since: {bool(scribe.records)}")
        view = scribe.expected()
        try:
            note_down(commits.undo(1, by=2))
        except HardLinksError:
            event("refused for hard links")
            assert links or any(step[0].startswith("link") for step in (*program, *second))
            assert scribe.records
            return
        assert scan(root) == before
        assert scribe.expected() == view
        check_link_counts(scribe, view)
        commits.commit(3)
        assert scan(root) == view
        note_down(commits.undo(3, by=4))
        assert scan(root) == before
        assert scribe.expected() == view
        check_link_counts(scribe, view)


@so_many(ci=7, nightly=2000)
@given(programs, programs)
@example([("mkdir", b"x"), ("mkdir", b"x/y"), ("write", b"x/y/z", b"new"), ("rename", b"b", b"x/b")], [])
def test_an_undo_leaves_base_as_it_was(program: list[Operation], second: list[Operation]) -> None:
    check(program, second, [])


@so_many(ci=7, nightly=2000)
@given(programs, programs, hard_links)
def test_an_undo_leaves_base_as_it_was_where_it_has_hard_links(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, second, links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=7, nightly=2000)
@given(programs, programs, hard_links)
@example(  # both names of a file are taken away
    [("chmod", (38, b"a"), 384), ("remove", (1, None)), ("write", (1, None), b"")],
    [("write", (0, None), b""), ("freeze",), ("symlink", (13, b"c"), b"d"), ("write", (32, None), b"one\n")],
    [(b"d/d/d/a", b"d/d/d", b"link"), (b"c/a/b", b"c", b"link"), (b"b", b"a", b"link"), (b"d/d/a", b"d", b"link")],
)
@example(  # a file with hard links is changed by one of its names, and gets another
    [
        ("mkfifo", (32, b"d")),
        ("chmod", (22, None), 2541),
        ("chown", (29, None), 7, 8),
        ("link", (5, None), (18, b"d")),
        ("freeze",),
    ],
    [("write", (39, b"a"), b"three")],
    [
        (b"d/d/a", b"d/d", b"link"),
        (b"c/a/b", b"d/d", b"link"),
        (b"e f", b"c", b"link"),
        (b"c/c", b"d/d/d", b"link"),
        (b"d/d/d/a", b"c", b"link"),
        (b"c/a/b", b"d/d/d", b"b"),
    ],
)
@example(  # a name goes of a file whose times are changed by another one
    [
        ("write", (4, b"c"), b""),
        ("mkfifo", (30, b"d")),
        ("utime_any", (6, b"b"), 929718082316402048),
        ("utime_any", (20, None), 131009749429383056),
        ("recreate", (18, None)),
        ("freeze",),
        ("remove", (13, None)),
        ("mkdir", (16, None)),
    ],
    [],
    [(b"c/c", b"d/d/d", b"link")],
)
@example(  # a file gets another name while one of its names goes
    [
        ("write", (4, None), b"one\n"),
        ("symlink", (7, None), b"c"),
        ("rename", (39, b"a"), (5, b"c")),
        ("recreate", (1, None)),
        ("mkfifo", (38, b"e f")),
        ("exchange", (14, None), (33, b"c")),
        ("chown", (2, b"\xff\xfe"), 7, 8),
        ("symlink", (11, None), b"b"),
        ("exchange", (12, None), (20, None)),
        ("recreate", (1, b"a")),
        ("freeze",),
        ("write", (21, b"e f"), b"one\n"),
        ("link_metadata", (5, None), (31, b"e f")),
        ("chmod", (37, b"a"), 384),
    ],
    [],
    [
        (b"c/a/b", b"d/d/d", b"b"),
        (b"d/c", b"c/b", b"link"),
        (b"e f", b"d/d/d", b"b"),
        (b"d/d/a", b"c", b"link"),
        (b"c/a/b", b"a", b"b"),
        (b"c/c", b"a", b"b"),
    ],
)
def test_base_is_what_it_was_where_the_session_is_on_another_device(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, second, links, session="/dev/shm")
