"""Hunks of a change: their kinds, their ids, and what may be picked of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from yolofs.changes.changes import compare
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind, hunks_of
from yolofs.changes.picks import all_but, apply_picks, check_picks, parse_picks, spell_pick
from yolofs.errors import StaleHunkError, UsageError
from yolofs.state.tree import Tree

LONG_AGO_NS = 1_000_000_000_123_456_789


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A view of a base with a text of ten lines, a file with a NUL, a symlink and a directory with
    a file.
    """
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    (base / "text").write_bytes(b"".join(b"%d\n" % number for number in range(1, 11)))
    (base / "binary").write_bytes(b"\0\1")
    (base / "d/x").write_bytes(b"x\n")
    (base / "s").symlink_to("text")
    for path in (base / "text", base / "binary", base / "d/x"):
        path.chmod(0o644)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return Scribe(bytes(base), bytes(tmp_path / "store"))


def found(scribe: Scribe) -> list[FileHunks]:
    return [hunks_of(change, scribe.store) for change in compare(Tree(), scribe.tree, scribe.base, scribe.store)]


def hunks(scribe: Scribe) -> list[Hunk]:
    return [hunk for file in found(scribe) for hunk in file.hunks]


def told(scribe: Scribe) -> list[str]:
    return [f"{hunk.kind.value} {hunk.path.decode()}" for hunk in hunks(scribe)]


def text_with(**lines: bytes) -> bytes:
    return b"".join(lines.get(f"line{number}", b"%d\n" % number) for number in range(1, 11))


def test_each_run_of_changed_lines_is_a_hunk_with_its_range(scribe: Scribe) -> None:
    scribe.write(b"text", text_with(line2=b"two\n", line3=b"", line9=b"9\nnine\n"))
    assert [(one.old_start, one.old_lines, one.new_start, one.new_lines) for one in hunks(scribe)] == [
        (1, (b"2\n", b"3\n"), 1, (b"two\n",)),
        (9, (), 8, (b"nine\n",)),
    ]


def test_facts_about_a_whole_file_are_hunks_of_their_own(scribe: Scribe) -> None:
    scribe.rename(b"text", b"moved")
    scribe.write(b"moved", text_with(line1=b"one\n"))
    scribe.chmod(b"moved", 0o600)
    scribe.write(b"binary", b"\0\2")
    scribe.remove(b"d/x")
    scribe.remove(b"s")
    scribe.symlink(b"s", b"elsewhere")
    scribe.mkdir(b"new")
    scribe.write(b"new/f", b"f\n")
    assert told(scribe) == [
        "binary binary",
        "deleted d/x",
        "renamed moved",
        "text moved",
        "mode moved",
        "added new",
        "added new/f",
        "target s",
    ]
    mode = next(hunk for hunk in hunks(scribe) if hunk.kind is HunkKind.MODE)
    target = next(hunk for hunk in hunks(scribe) if hunk.kind is HunkKind.TARGET)
    assert (mode.old, mode.new, mode.old_path) == ("0644", "0600", b"text")
    assert (target.old, target.new) == ("text", "elsewhere")


def test_another_type_is_one_hunk(scribe: Scribe) -> None:
    scribe.remove(b"text")
    scribe.symlink(b"text", b"d")
    assert told(scribe) == ["type text"]


def test_a_new_time_alone_is_a_hunk(scribe: Scribe) -> None:
    scribe.utime(b"text", 5)
    assert told(scribe) == ["time text"]


def test_an_id_stays_as_long_as_the_file_is_what_it_was_in_both_versions(scribe: Scribe) -> None:
    scribe.write(b"text", text_with(line1=b"one\n"))
    before = [hunk.id for hunk in hunks(scribe)]
    scribe.write(b"d/x", b"other\n")
    scribe.chmod(b"text", 0o600)
    assert [hunk.id for hunk in hunks(scribe) if hunk.path == b"text"][:1] == before
    scribe.write(b"text", text_with(line1=b"one\n", line9=b"nine\n"))
    assert before[0] not in [hunk.id for hunk in hunks(scribe)]


def test_two_files_with_the_same_change_have_hunks_of_their_own(scribe: Scribe) -> None:
    scribe.write(b"one", b"same\n")
    scribe.write(b"two", b"same\n")
    one, two = hunks(scribe)
    assert one.id != two.id


def test_a_text_that_is_too_large_to_compare_is_one_hunk(scribe: Scribe) -> None:
    scribe.write(b"text", b"x\n" * 100)
    changes = compare(Tree(), scribe.tree, scribe.base, scribe.store)
    (file,) = (hunks_of(change, scribe.store, max_text_bytes=99) for change in changes)
    assert [hunk.kind for hunk in file.hunks] == [HunkKind.BINARY]


def test_a_file_too_large_to_be_read_has_another_id_when_it_is_written_to_and_its_time_set_back(
    scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolofs.changes.hunks.MAX_DIGEST_BYTES", 1)
    scribe.write(b"binary", b"\0\2shown")
    (before,) = hunks(scribe)
    assert [before] == hunks(scribe)
    (side,) = (file.change.new for file in found(scribe))
    assert side is not None
    assert side.data is not None
    was = os.stat(side.data)
    deadline = time.monotonic() + 60
    while os.stat(side.data).st_ctime_ns == was.st_ctime_ns:  # the clock of files has steps
        assert time.monotonic() < deadline
        with open(side.data, "r+b") as file:
            file.write(b"\0\2other")
        os.utime(side.data, ns=(was.st_atime_ns, was.st_mtime_ns))
    (after,) = hunks(scribe)
    assert after.id != before.id


def test_picks_are_spelled_as_they_are_read() -> None:
    name = "0123456789abcdef"
    assert parse_picks([name]) == {name: None}
    assert parse_picks([f"{name}:1-3,5"]) == {name: frozenset({1, 2, 3, 5})}
    assert parse_picks([f"{name}:1", f"{name}:3"]) == {name: frozenset({1, 3})}
    assert parse_picks([f"{name}:1", name]) == {name: None}
    assert spell_pick(name, frozenset({1, 2, 3, 5})) == f"{name}:1-3,5"
    assert spell_pick(name, None) == name


@pytest.mark.parametrize(
    "word", ["", "abc", "0123456789abcdeg", "0123456789abcdef:", "0123456789abcdef:0", "0123456789abcdef:3-1",
             "0123456789abcdef:1-99999999999", "0123456789ABCDEF", "0123456789abcdef:1-9999999999"]
)  # fmt: skip
def test_a_malformed_pick_is_refused(word: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_picks([word])
    assert refused.value.hint == "yolofs hunks"


def test_a_hunk_that_is_not_there_is_refused_by_its_name(scribe: Scribe) -> None:
    scribe.write(b"text", text_with(line1=b"one\n"))
    with pytest.raises(StaleHunkError) as refused:
        check_picks({"0" * 16: None, hunks(scribe)[0].id: None}, found(scribe))
    assert refused.value.ids == ("0" * 16,)
    assert "0" * 16 in refused.value.message
    assert refused.value.hint == "yolofs hunks"
    assert refused.value.exit_code == 20


def test_lines_that_a_hunk_does_not_have_are_refused(scribe: Scribe) -> None:
    scribe.write(b"text", text_with(line1=b"one\n"))
    (hunk,) = hunks(scribe)
    with pytest.raises(UsageError, match="has 2 changed lines, and no line 3"):
        check_picks({hunk.id: frozenset({3})}, found(scribe))
    scribe.write(b"binary", b"\0\2")
    binary = hunks(scribe)[0]
    with pytest.raises(UsageError, match="is not text"):
        check_picks({binary.id: frozenset({1})}, found(scribe))


def test_where_lines_are_replaced_one_by_one_a_single_one_keeps_its_place(scribe: Scribe) -> None:
    scribe.write(b"text", text_with(line2=b"two\n", line3=b"three\n"))
    (hunk,) = hunks(scribe)
    before = text_with()
    assert apply_picks(before, [hunk], {hunk.id: frozenset({1, 3})}) == text_with(line2=b"two\n")
    assert apply_picks(before, [hunk], {hunk.id: frozenset({2, 4})}) == text_with(line3=b"three\n")


def test_single_lines_of_an_added_text_can_be_picked(scribe: Scribe) -> None:
    scribe.write(b"new", b"a\nb\r\nc")
    (hunk,) = hunks(scribe)
    assert hunk.is_splittable
    assert apply_picks(b"", [hunk], {hunk.id: frozenset({2, 3})}) == b"b\r\nc"
    assert apply_picks(b"", [hunk], {hunk.id: frozenset({2})}) == b"b\r\n"
    assert all_but(found(scribe), {hunk.id: frozenset({2})}) == {hunk.id: frozenset({1, 3})}


def test_an_old_line_without_a_newline_gets_one_where_a_new_line_follows(scribe: Scribe) -> None:
    scribe.write(b"base", b"")
    (added,) = hunks(scribe)
    hunk = Hunk(added.id, HunkKind.TEXT, added.path, None, 0, 0, (b"old",), (b"new\n", b"more"))
    assert apply_picks(b"old", [hunk], {hunk.id: frozenset({2})}) == b"old\nnew\n"
