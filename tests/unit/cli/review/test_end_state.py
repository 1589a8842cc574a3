"""The picks of what a diff tool has left."""

from __future__ import annotations

import pytest

from tests.unit.cli.review.models import change
from yolofs.changes.changes import ChangeKind
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.cli.review.differing_words import differing
from yolofs.cli.review.end_state import picks_for
from yolofs.paths import RelPath

A, B = "a" * 16, "b" * 16
BEFORE = b"1\n2\n3\n4\n5\n6\n"
PATH = RelPath(b"p/a")
FILE = FileHunks(
    change(PATH),
    (
        Hunk(A, HunkKind.TEXT, PATH, old_start=1, new_start=1, old_lines=(b"2\n",), new_lines=(b"two\n", b"more\n")),
        Hunk(B, HunkKind.TEXT, PATH, old_start=5, new_start=6, old_lines=(b"6\n",), new_lines=()),
    ),
)


@pytest.mark.parametrize(
    ("wanted", "picks"),
    [
        (b"1\ntwo\nmore\n3\n4\n5\n", {A: None, B: None}),
        (b"1\ntwo\nmore\n3\n4\n5\n6\n", {A: None}),
        (b"1\n2\n3\n4\n5\n", {B: None}),
        (b"1\n2\nmore\n3\n4\n5\n6\n", {A: frozenset({3})}),
        (b"1\n3\n4\n5\n6\n", {A: frozenset({1})}),
        (BEFORE, {}),
        (b"1\nwritten\n3\n4\n5\n6\n", None),
        (b"one\n2\n3\n4\n5\n6\n", None),
    ],
)
def test_a_text_is_what_just_these_picks_make_or_none(wanted: bytes, picks: object) -> None:
    assert picks_for(BEFORE, FILE, wanted) == picks


def test_no_picks_make_an_empty_file_of_an_added_one() -> None:
    added = Hunk(A, HunkKind.ADDED, PATH, old_start=0, new_start=0, old_lines=(), new_lines=(b"1\n", b"2\n"))
    file = FileHunks(change(PATH, ChangeKind.ADDED), (added,))
    assert picks_for(b"", file, b"1\n") == {A: frozenset({1})}
    assert picks_for(b"", file, b"") is None


def test_words_that_differ_are_found() -> None:
    assert differing("return x + 1", "return x + 22") == [(11, 12)]
    assert differing("return x + 1", "return x + 1") == []
    assert differing("nothing alike", "{}();") == []
