"""A hunk as a patch that somebody edits, and the text that comes of it."""

from __future__ import annotations

import pytest

from yolofs.changes.hunk_edit import edited, to_edit
from yolofs.changes.hunks import Hunk, HunkKind
from yolofs.errors import UsageError
from yolofs.paths import RelPath
from yolofs.text import line_diff

BEFORE = b"1\n2\n3\n4\n5\n6\n7\n8\n"
AFTER = b"1\n2\n3\nfour\n5\n6\n7\neight"


def hunks(before: bytes, after: bytes) -> list[Hunk]:
    texts = line_diff.compare_texts(before, after)
    return [
        Hunk(
            "0" * 16,
            HunkKind.TEXT,
            RelPath(b"f"),
            None,
            block.old_start,
            block.new_start,
            tuple(texts.old[block.old_start : block.old_end]),
            tuple(texts.new[block.new_start : block.new_end]),
        )
        for block in line_diff.blocks(texts)
    ]


def patch_of(hunk: Hunk, before: bytes = BEFORE, after: bytes = AFTER) -> list[bytes]:
    return [line for line in line_diff.split_lines(to_edit(hunk, before, after)) if not line.startswith(b"#")]


def test_a_hunk_is_shown_with_the_lines_around_it() -> None:
    first, last = hunks(BEFORE, AFTER)
    assert patch_of(first) == [
        b"@@ -1,7 +1,7 @@\n", b" 1\n", b" 2\n", b" 3\n", b"-4\n", b"+four\n", b" 5\n", b" 6\n", b" 7\n",
    ]  # fmt: skip
    assert patch_of(last) == [
        b"@@ -5,4 +5,4 @@\n", b" 5\n", b" 6\n", b" 7\n", b"-8\n", b"+eight\n", b"\\ No newline at end of file\n",
    ]  # fmt: skip


def test_an_edit_saved_unchanged_changes_nothing() -> None:
    for hunk in hunks(BEFORE, AFTER):
        assert edited(hunk, BEFORE, AFTER, to_edit(hunk, BEFORE, AFTER)) == AFTER


def test_an_edited_line_is_in_the_new_text_and_the_other_hunks_stay() -> None:
    first, last = hunks(BEFORE, AFTER)
    patch = to_edit(first, BEFORE, AFTER).replace(b"+four\n", b"+FOUR\n+and a half\n")
    assert edited(first, BEFORE, AFTER, patch) == b"1\n2\n3\nFOUR\nand a half\n5\n6\n7\neight"
    patch = to_edit(last, BEFORE, AFTER).replace(b"-8\n", b" 8\n")
    assert edited(last, BEFORE, AFTER, patch) == b"1\n2\n3\nfour\n5\n6\n7\n8\neight"


def test_a_kept_line_and_no_new_one_is_the_old_text() -> None:
    first, _ = hunks(BEFORE, AFTER)
    patch = to_edit(first, BEFORE, AFTER).replace(b"+four\n", b"").replace(b"-4\n", b" 4\n")
    assert edited(first, BEFORE, AFTER, patch) == b"1\n2\n3\n4\n5\n6\n7\neight"


def test_an_edited_hunk_without_a_line_is_no_edit() -> None:
    first, _ = hunks(BEFORE, AFTER)
    assert edited(first, BEFORE, AFTER, b"# nothing\n") is None
    assert edited(first, BEFORE, AFTER, b"") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b" 2\n", b" two\n", "line 2 of the old version"),
        (b"-4\n", b"", "line 4 of the old version"),
        (b" 7\n", b"", "1 line of the old version .* is missing"),
        (b"+four\n", b"four\n", "line 6 starts with none of"),
    ],
)
def test_an_edit_that_does_not_fit_the_old_text_is_refused(old: bytes, new: bytes, message: str) -> None:
    first, _ = hunks(BEFORE, AFTER)
    with pytest.raises(UsageError, match=message):
        edited(first, BEFORE, AFTER, to_edit(first, BEFORE, AFTER).replace(old, new))


def test_a_line_after_one_without_a_newline_is_refused() -> None:
    _, last = hunks(BEFORE, AFTER)
    patch = to_edit(last, BEFORE, AFTER).replace(b"No newline at end of file\n", b"No newline at end of file\n+more\n")
    with pytest.raises(UsageError, match="without a newline"):
        edited(last, BEFORE, AFTER, patch)


def test_an_added_text_can_be_edited() -> None:
    hunk = Hunk("0" * 16, HunkKind.ADDED, RelPath(b"f"), None, 0, 0, (), (b"a\n", b"b\n"))
    patch = to_edit(hunk, b"", b"a\nb\n").replace(b"+b\n", b"+B\n")
    assert edited(hunk, b"", b"a\nb\n", patch) == b"a\nB\n"
