"""A commit that is undone: base is what it was, to the bit, and the view is what it is, whatever was staged since."""

from __future__ import annotations

import os

import pytest
from hypothesis import event, example, given, note, settings

from tests.commit_model import CommitScribe, scan
from tests.property.test_commit_property import Operation, after, hard_links, has_second_device, perform, programs
from tests.undo_model import Commits, Undo
from yolofs.errors import HardLinksError


def run(scribe: CommitScribe, program: list[Operation]) -> None:
    for name, *arguments in program:
        if name == "freeze":
            scribe.freeze()
        else:
            perform(scribe, name, *arguments)


def note_down(undo: Undo) -> None:
    for record in (*undo.inverse, *undo.left):
        note(str(record))
    for line in undo.plan.lines():
        note(line)


def check(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]], session: str | None = None
) -> None:
    with after(program, links, session) as (scribe, parking):
        commits = Commits(scribe, os.path.dirname(parking) + b"/commits")
        root = scribe.base.root
        before = scan(root)
        if not commits.commit(1).steps:
            return
        run(scribe, second)
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
        commits.commit(3)
        assert scan(root) == view
        note_down(commits.undo(3, by=4))
        assert scan(root) == before
        assert scribe.expected() == view


@settings(max_examples=30)
@given(programs, programs)
@example([("mkdir", b"x"), ("mkdir", b"x/y"), ("write", b"x/y/z", b"new"), ("rename", b"b", b"x/b")], [])
def test_base_is_what_it_was(program: list[Operation], second: list[Operation]) -> None:
    check(program, second, [])


@settings(max_examples=30)
@given(programs, programs, hard_links)
def test_base_is_what_it_was_where_it_has_hard_links(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, second, links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@settings(max_examples=30)
@given(programs, programs, hard_links)
def test_base_is_what_it_was_where_the_session_is_on_another_device(
    program: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, second, links, session="/dev/shm")
