"""A text with some of its hunks applied: what was picked and what was not come to the new text
together.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from hypothesis import assume, example, given
from hypothesis import strategies as st

from yolofs.changes.changes import Change, ChangeKind
from yolofs.changes.hunk_edit import edited, to_edit
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.changes.picks import LineNumbers, all_but, apply_picks, parse_picks, spell_pick
from yolofs.cli.commit.chunks import Chunk, chunks_of, patch_lines, picks_of_answers
from yolofs.paths import RelPath
from yolofs.text import line_diff

lines = st.sampled_from((b"a\n", b"b\n", b"c\r\n", b"\n", b"\xff\xfe\n", b"a", b"# no comment\n", b"\\ no\n", b"@@\n"))
texts = st.lists(lines, max_size=12).map(
    lambda found: b"".join(found[:-1]).replace(b"aa", b"a\n") + b"".join(found[-1:])
)


def hunks(before: bytes, after: bytes) -> list[Hunk]:
    compared = line_diff.compare_texts(before, after)
    return [
        Hunk(
            f"{number:016x}",
            HunkKind.TEXT,
            RelPath(b"f"),
            None,
            block.old_start,
            block.new_start,
            tuple(compared.old[block.old_start : block.old_end]),
            tuple(compared.new[block.new_start : block.new_end]),
        )
        for number, block in enumerate(line_diff.blocks(compared))
    ]


def picked(data: st.DataObject, found: list[Hunk], *, parts: bool) -> dict[str, LineNumbers | None]:
    picks: dict[str, LineNumbers | None] = {}
    for hunk in found:
        choice = data.draw(st.sampled_from(("none", "whole", "part") if parts else ("none", "whole")))
        if choice == "whole":
            picks[hunk.id] = None
        elif choice == "part":
            picks[hunk.id] = data.draw(st.frozensets(st.integers(1, hunk.line_count), min_size=1))
    return picks


@given(texts, texts)
def test_all_hunks_are_the_new_text_and_none_the_old(before: bytes, after: bytes) -> None:
    found = hunks(before, after)
    assert apply_picks(before, found, {hunk.id: None for hunk in found}) == after
    assert apply_picks(before, found, {}) == before


@given(texts, texts, st.data())
def test_the_hunks_that_are_left_lead_from_what_was_picked_to_the_new_text(
    before: bytes, after: bytes, data: st.DataObject
) -> None:
    found = hunks(before, after)
    picks = picked(data, found, parts=False)
    middle = apply_picks(before, found, picks)
    left = [hunk for hunk in found if hunk.id not in picks]
    moved = 0
    at_middle = []
    for hunk in found:  # where each hunk lies in the text with those applied that were picked
        at_middle.append((hunk, hunk.old_start + moved))
        moved += len(hunk.new_lines) - len(hunk.old_lines) if hunk.id in picks else 0
    result, at = [], 0
    middle_lines = line_diff.split_lines(middle)
    for hunk, start in at_middle:
        if hunk in left:
            assert tuple(middle_lines[start : start + len(hunk.old_lines)]) == hunk.old_lines
            result += [*middle_lines[at:start], *hunk.new_lines]
            at = start + len(hunk.old_lines)
    assert b"".join([*result, *middle_lines[at:]]) == after


@given(texts, texts, st.data())
def test_a_line_is_in_the_result_just_as_often_as_it_was_picked(
    before: bytes, after: bytes, data: st.DataObject
) -> None:
    found = hunks(before, after)
    picks = picked(data, found, parts=True)
    expected = [line.rstrip(b"\n") for line in line_diff.split_lines(before)]
    for hunk in found:
        chosen = picks.get(hunk.id, frozenset())
        for number, line in enumerate((*hunk.old_lines, *hunk.new_lines), 1):
            if chosen is None or number in chosen:
                if number <= len(hunk.old_lines):
                    expected.remove(line.rstrip(b"\n"))
                else:
                    expected.append(line.rstrip(b"\n"))
    result = [line.rstrip(b"\n") for line in line_diff.split_lines(apply_picks(before, found, picks))]
    assert sorted(result) == sorted(expected)


@given(texts, texts, st.data())
def test_a_pick_and_the_rest_are_all_lines(before: bytes, after: bytes, data: st.DataObject) -> None:
    found = hunks(before, after)
    file = FileHunks(Change(ChangeKind.MODIFIED, RelPath(b"f")), tuple(found))
    picks = picked(data, found, parts=True)
    rest = all_but([file], picks)
    for hunk in found:
        everything = frozenset(range(1, hunk.line_count + 1))
        one, other = picks.get(hunk.id, frozenset()), rest.get(hunk.id, frozenset())
        assert (everything if one is None else one) | (everything if other is None else other) == everything
        assert not (everything if one is None else one) & (everything if other is None else other)
    assert parse_picks(spell_pick(*pick) for pick in picks.items()) == picks


@given(texts, texts, st.integers(0, 4))
@example(b"a", b"b\na", 3)
def test_an_edit_that_changes_nothing_leaves_the_text_as_it_is(before: bytes, after: bytes, context: int) -> None:
    for hunk in hunks(before, after):
        assert edited(hunk, before, after, to_edit(hunk, before, after, context=context), context=context) == after


def applied_by_git(before: bytes, patch: bytes) -> bytes:
    """Return what ``git apply`` makes of a text."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    with tempfile.TemporaryDirectory(prefix="yolofs-picks-") as name:
        (Path(name) / "f").write_bytes(before)
        command = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
        environment["GIT_CEILING_DIRECTORIES"] = os.path.dirname(name)
        done = subprocess.run(command, cwd=name, input=patch, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr, patch)
        return (Path(name) / "f").read_bytes()


@given(texts, texts, st.integers(0, 3), st.data())
@example(b"a\n", b"", 3, None)
@example(b"", b"a\nb", 3, None)
@example(b"a", b"a\n", 3, None)
@example(b"c\r\nb\n", b"c\nb\n", 0, None)
def test_git_makes_the_same_of_what_was_picked(
    before: bytes, after: bytes, context: int, data: st.DataObject | None
) -> None:
    """The patch is what ``yolofs commit -p`` shows.

    Without context, git takes a last line without an end for any line that begins so: it does that
    with its own patches, too.
    """
    assume(context or not before or before.endswith(b"\n"))
    found = hunks(before, after)
    chunks = chunks_of(FileHunks(Change(ChangeKind.MODIFIED, RelPath(b"f")), tuple(found)), context=context)
    lines = line_diff.split_lines(before), line_diff.split_lines(after)
    patch, picks, moved = b"--- a/f\n+++ b/f\n", dict[str, LineNumbers | None](), 0
    for chunk in chunks:
        if data is not None and not data.draw(st.booleans()):
            moved += sum(len(hunk.old_lines) - len(hunk.new_lines) for hunk, _ in chunk.parts)
            continue
        picks |= {hunk.id: None for hunk, _ in chunk.parts}
        head, *body = patch_lines(chunk, lines, context=context)
        old, _, rest = head.partition(b"+")
        start = re.match(rb"\d+", rest)
        assert start is not None
        patch += b"%b+%d%b" % (old, int(start[0]) + moved, rest[start.end() :])
        patch += b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in body)
    if picks:
        assert applied_by_git(before, patch) == apply_picks(before, found, picks)


@given(texts, texts, st.integers(0, 3), st.data())
def test_git_makes_the_same_of_some_lines_of_a_hunk(
    before: bytes, after: bytes, context: int, data: st.DataObject
) -> None:
    """The patch is what ``yolofs commit -p`` shows of a hunk that was split.

    A line without an end is no part of it: it gets one where another line follows.
    """
    before, after = (text + b"\n" if text and not text.endswith(b"\n") else text for text in (before, after))
    found = hunks(before, after)
    assume(any(hunk.is_splittable for hunk in found))
    file = FileHunks(Change(ChangeKind.MODIFIED, RelPath(b"f")), tuple(found))
    hunk = data.draw(st.sampled_from([hunk for hunk in found if hunk.is_splittable]))
    part = data.draw(st.sampled_from(Chunk(file, [(hunk, None)]).split()))
    lines = line_diff.split_lines(before), line_diff.split_lines(after)
    head, *body = patch_lines(part, lines, context=context)
    assert sum(line[:1] == b" " for line in body) <= 2 * context
    old, new = (sum(line[:1] != mark for line in body) for mark in (b"+", b"-"))
    first = int(head.split(b",")[0].split()[1][1:]) - bool(old)
    alone = line_diff.head_line(line_diff.Block(first, first + old, first, first + new))
    before_it = [one for one in found if one is not hunk and one.old_start + len(one.old_lines) <= first]
    moved = sum(len(one.new_lines) - len(one.old_lines) for one in before_it if one.old_start <= hunk.old_start)
    assert head == line_diff.head_line(line_diff.Block(first, first + old, first + moved, first + moved + new))
    patch = b"".join([b"--- a/f\n+++ b/f\n", alone, *body])
    assert applied_by_git(before, patch) == apply_picks(before, found, picks_of_answers([taken(part)]))


def taken(part: Chunk) -> Chunk:
    part.is_taken = True
    return part
