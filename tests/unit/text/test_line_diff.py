"""Hunks between two texts: right whatever the texts are, short where they are alike, and never
slow.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fault_points import points
from tests.support.model_steps import how_many
from yolofs.text.line_diff import Block, blocks, compare_pieces, compare_texts, hunks, similarity, split_lines

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"\xff\n"]), max_size=30).map(b"".join)
ends = st.sampled_from([b"", b"a", b"b"])


def diff(old: bytes, new: bytes, context: int = 3) -> bytes:
    return b"".join(hunks(compare_texts(old, new), context))


def test_one_replaced_line_is_a_hunk_with_context_around() -> None:
    old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    assert diff(old, old.replace(b"5", b"X")) == b"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"


def test_changes_far_apart_are_two_hunks_and_near_ones_are_one() -> None:
    old = b"".join(b"%d\n" % number for number in range(20))
    new = old.replace(b"\n3\n", b"\nX\n").replace(b"\n12\n", b"\nY\n")
    assert diff(old, new).count(b"@@ -") == 2
    assert diff(old, new, context=4).count(b"@@ -") == 1
    assert diff(old, new, context=0) == b"@@ -4 +4 @@\n-3\n+X\n@@ -13 +13 @@\n-12\n+Y\n"


def test_a_hunk_of_an_empty_text_begins_at_line_0() -> None:
    assert diff(b"", b"a\nb\n") == b"@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert diff(b"a\n", b"") == b"@@ -1 +0,0 @@\n-a\n"
    assert diff(b"a\n", b"a\n") == b""


def test_a_missing_newline_at_the_end_is_told() -> None:
    assert diff(b"a\nb", b"a\nb\n") == b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    assert diff(b"x\na", b"y\na") == b"@@ -1,2 +1,2 @@\n-x\n+y\n a\n\\ No newline at end of file\n"


def test_lines_end_at_newlines_only() -> None:
    assert split_lines(b"a\rb\r\nc\x0cd\x85e\n") == [b"a\rb\r\n", b"c\x0cd\x85e\n"]
    assert split_lines(b"") == []


def test_a_text_of_many_short_lines_takes_no_object_for_each_line_of_its_hunk() -> None:
    texts = compare_texts(b"", b"\n" * (1 << 20))
    tracemalloc.start()
    try:
        lengths = [len(hunk) for hunk in hunks(texts, 3)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lengths == [len(b"@@ -0,0 +1,1048576 @@\n") + (2 << 20)]
    assert peak < 24 << 20


def test_an_inserted_function_does_not_steal_its_neighbours_lines() -> None:
    function = b"def %b():\n    pass\n\n"
    old = function % b"a" + function % b"c"
    new = function % b"a" + function % b"b" + function % b"c"
    assert b"-" not in diff(old, new, context=0).replace(b"@@ -", b"")


def test_similarity_is_the_share_of_common_bytes() -> None:
    assert similarity(compare_texts(b"1\n2\n3\n4\n", b"1\n2\n3\nX\n")) == 75
    assert similarity(compare_texts(b"1\n", b"1\n")) == 100
    assert similarity(compare_texts(b"", b"1\n")) == 0
    assert similarity(compare_texts(b"1\n" * 1000, b"1\n" * 1001)) == 99


@given(texts, ends, texts, ends, st.integers(0, 4))
def test_the_hunks_lead_from_one_text_to_the_other(
    old: bytes, old_end: bytes, new: bytes, new_end: bytes, context: int
) -> None:
    result = compare_texts(old + old_end, new + new_end)
    assert apply(result.old, list(hunks(result, context))) == new + new_end


MOST_GONE = how_many(ci=600, nightly=9000)
"""Of lines that a change takes away: more than twice as many as are compared at a time."""


@given(st.integers(0, 9000), st.integers(0, MOST_GONE), st.sampled_from([b"\n", None]))
def test_what_is_equal_before_and_after_a_change_in_a_long_text_is_no_part_of_it(
    at: int, count: int, line: bytes | None
) -> None:
    old = [line or b"%d\n" % number for number in range(9000)]
    end = min(at + count, len(old))
    result = compare_pieces(old, [*old[:at], b"x\n", *old[end:]])
    assert list(blocks(result)) == [Block(at, end, at, at + 1)]


def apply(lines: list[bytes], parts: list[bytes]) -> bytes:
    """Apply hunks in the plainest way, checking every line of context."""
    result: list[bytes] = []
    at = 0
    for part in parts:
        head, _, body = part.partition(b"\n")
        start, _, count = head.split(b" ")[1][1:].partition(b",")
        begin = int(start) - (count != b"0")
        result += lines[at:begin]
        at = begin
        for line in body.replace(b"\n\\ No newline at end of file\n", b"\0").replace(b"\0", b"\0\n").split(b"\n")[:-1]:
            text = line[1:-1] if line.endswith(b"\0") else line[1:] + b"\n"
            if line[:1] in b" -":
                assert lines[at] == text
                at += 1
            if line[:1] in b" +":
                result.append(text)
    return b"".join(result + lines[at:])


def scatter(lines: list[bytes], edits: int) -> list[bytes]:
    """Change, remove and insert lines here and there."""
    rng = random.Random(1)
    lines = list(lines)
    for number in range(edits):
        index = rng.randrange(len(lines))
        match number % 3:
            case 0:
                lines[index] = b"changed %d\n" % number
            case 1:
                del lines[index]
            case _:
                lines.insert(index, b"inserted %d\n" % number)
    return lines


def numbered() -> list[bytes]:
    return [b"line %d\n" % number for number in range(100_000)]


def repeated() -> list[bytes]:
    rng = random.Random(2)
    return [b"line %d\n" % rng.randrange(100) for _ in range(100_000)]


def shuffled(lines: list[bytes]) -> list[bytes]:
    return random.Random(3).sample(lines, len(lines))


@pytest.mark.parametrize(
    ("make", "change", "longest"),
    points(
        [
            pytest.param(numbered, lambda lines: scatter(lines, 10_000), 900_000, id="unique lines, scattered edits"),
            pytest.param(repeated, lambda lines: scatter(lines, 1_000), 100_000, id="repeated lines, scattered edits"),
            pytest.param(numbered, shuffled, 3_000_000, id="shuffled"),
            pytest.param(repeated, shuffled, 3_000_000, id="repeated and shuffled"),
            pytest.param(
                lambda: [b"}\n"] * 100_000, lambda lines: scatter(lines, 300), 20_000, id="all lines the same"
            ),
            pytest.param(lambda: [b"a\n", b"b\n"] * 50_000, lambda lines: lines[1:] + lines[:1], 100, id="periodic"),
        ],
        "texts of many lines",
        some=2,
    ),
)
def test_a_hundred_thousand_lines_take_a_few_seconds(
    make: Callable[[], list[bytes]], change: Callable[[list[bytes]], list[bytes]], longest: int
) -> None:
    old = make()
    new = change(old)
    start = time.process_time()
    result = diff(b"".join(old), b"".join(new))
    assert time.process_time() - start < 15  # about 1 on an idle machine
    assert len(result) < longest
