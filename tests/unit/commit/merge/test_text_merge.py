"""Merging texts: by git where it is there, and by our own code just as well."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolofs.commit.merge import diff3, text_merge
from yolofs.commit.merge.separate_places import merge_apart
from yolofs.commit.merge.text_merge import MOST_MERGED_BYTES, Merged, TextMerger, has_marks, why_not_text

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture(params=[pytest.param("git", marks=needs_git), "own"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Merge by git, and without."""
    if request.param == "own":
        monkeypatch.setattr(text_merge, "find_program", lambda _: None)
    return str(request.param)


def merge_texts(ours: bytes, was: bytes | None, theirs: bytes) -> Merged:
    """Merge one text."""
    with TextMerger(os.fsencode(tempfile.gettempdir())) as merger:
        return merger.merge(ours, was, theirs)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("ours", "was", "theirs", "merged"),
    [
        (b"A\nb\nc\nd\n", b"a\nb\nc\nd\n", b"a\nb\nc\nD\n", b"A\nb\nc\nD\n"),
        (b"a\nb\nc\n", b"b\nc\n", b"b\n", b"a\nb\n"),
        (b"A\nb\nC\nd", b"a\nb\nc\nd", b"a\nb\nC\nd", b"A\nb\nC\nd"),
        (b"A\r\nb\r\nc\r\n", b"a\r\nb\r\nc\r\n", b"a\r\nb\r\nC\r\n", b"A\r\nb\r\nC\r\n"),
        (b"\xff\nb\nc\n", b"a\nb\nc\n", b"a\nb\n\xfe\n", b"\xff\nb\n\xfe\n"),
        (b"a\nb\nc\n", b"a\nb\nc", b"A\nb\nc", b"A\nb\nc\n"),
        (b"", b"a\n", b"a\n", b""),
    ],
)
def test_changes_of_both_sides_to_different_lines_are_in_the_result(
    ours: bytes, was: bytes, theirs: bytes, merged: bytes
) -> None:
    assert merge_texts(ours, was, theirs) == (merged, 0)


def lines(text: str) -> bytes:
    """Return a text with a line for each word."""
    return "".join(f"{word}\n" for word in text.split()).encode()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("ours", "was", "theirs", "merged"),
    [
        ("4 4 3 0 5 5 5 2 0 1 7", "4 3 0 5 5 2 0 1 7", "4 3 0 5 5 5 2 0 1 8", "4 4 3 0 5 5 5 2 0 1 8"),
        ("2 0 2 6 6", "2 4 6 0 2 6", "2 4 6 0 2 6 6", "2 0 2 6 6"),
        ("2 2 8 1 4 6 7 1 2 2 6 7", "2 2 8 1 4 6 7 1 2 6 7", "2 8 1 4 6 7 1 2 2 6 7", "2 8 1 4 6 7 1 2 2 6 7"),
    ],
)
def test_a_line_that_both_sides_added_to_equal_ones_is_there_once(
    ours: str, was: str, theirs: str, merged: str
) -> None:
    assert merge_texts(lines(ours), lines(was), lines(theirs)) == (lines(merged), 0)


@pytest.mark.usefixtures("way")
def test_lines_that_both_sides_changed_differently_stand_between_marks() -> None:
    merged = merge_texts(b"1\nours\n3\n", b"1\n2\n3\n", b"1\ntheirs\n3\n")
    assert merged == (b"1\n<<<<<<< staged\nours\n=======\ntheirs\n>>>>>>> base\n3\n", 1)
    assert has_marks(merged.content)


@pytest.mark.usefixtures("way")
def test_the_marks_of_a_merge_have_the_line_endings_of_the_text() -> None:
    merged = merge_texts(b"1\r\nours\r\n3\r\n", b"1\r\n2\r\n3\r\n", b"1\r\ntheirs\r\n3\r\n")
    assert merged.content == b"1\r\n<<<<<<< staged\r\nours\r\n=======\r\ntheirs\r\n>>>>>>> base\r\n3\r\n"
    assert has_marks(merged.content)
    merged = merge_texts(b"ours\r\n2", b"1\r\n2", b"theirs\r\nand more\r\n")  # none of whose lines both have
    between = [line for line in merged.content.split(b"\n") if line]
    assert all(line.endswith(b"\r") for line in between), "also where the conflict is at the beginning and the end"
    assert merged.conflicts == 1


@pytest.mark.usefixtures("way")
def test_lines_without_an_end_get_one_between_marks() -> None:
    merged = merge_texts(b"1\nours", b"1\n2", b"1\ntheirs")
    assert merged == (b"1\n<<<<<<< staged\nours\n=======\ntheirs\n>>>>>>> base\n", 1)


@pytest.mark.usefixtures("way")
def test_a_text_that_both_sides_made_is_one_conflict_unless_it_is_the_same() -> None:
    assert merge_texts(b"a\n", None, b"b\n") == (b"<<<<<<< staged\na\n=======\nb\n>>>>>>> base\n", 1)
    assert merge_texts(b"", None, b"b\n").conflicts == 1
    assert merge_texts(b"a\n", None, b"a\n") == (b"a\n", 0)


def test_a_binary_or_too_long_file_is_told_as_not_merged() -> None:
    assert why_not_text(b"a\0b", b"a") == "it is no text"
    assert why_not_text(b"a" * (MOST_MERGED_BYTES + 1)) == "it has more than 4 MiB"
    assert why_not_text(b"\xff\xfe", b"") == ""


def test_a_text_without_marks_has_none() -> None:
    assert not has_marks(b"a\n=======\n<<<<<<< HEAD\n")


@needs_git
def test_git_reads_no_configuration_and_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else ``merge.conflictStyle`` would put what the text was between the marks, too."""
    config = tmp_path / "config"
    config.write_text("[merge]\n\tconflictStyle = diff3\n[core]\n\trepositoryformatversion = 99\n")
    (tmp_path / ".git").mkdir()
    shutil.copy(config, tmp_path / ".git/config")
    shutil.copy(config, tmp_path / ".gitconfig")
    for name, value in (("GIT_CONFIG_GLOBAL", config), ("HOME", tmp_path), ("GIT_DIR", tmp_path / ".git")):
        monkeypatch.setenv(name, os.fspath(value))
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert b"|||||||" not in merge_texts(b"ours\n", b"was\n", b"theirs\n").content
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", ".gitconfig", "config"]


def test_a_git_that_fails_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\n: > {tmp_path}/started\nexit 255\n")
    git.chmod(0o755)
    monkeypatch.setattr(text_merge, "find_program", lambda _: os.fspath(git))
    assert merge_texts(b"A\nb\nC\nd\n", b"a\nb\nc\nd\n", b"A\nb\nc\nd\n") == (b"A\nb\nC\nd\n", 0)
    assert (tmp_path / "started").exists()


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Return a text of lines that are all different, and two others made of it: there is one way to
    compare them.
    """
    count = draw(st.integers(0, 8))
    was = [b"line %d\n" % number for number in range(count)]
    sides = []
    for side in (b"ours", b"theirs"):
        lines = []
        for line in was:
            what = draw(st.sampled_from("====-+~"))
            if what == "+":
                lines.append(b"%b before %b" % (side, line))
            if what in "=+":
                lines.append(line)
            elif what == "~":
                lines.append(draw(st.sampled_from([b"both ", side + b" "])) + line)
        if draw(st.booleans()):
            lines.append(side + b" at the end" + draw(st.sampled_from([b"", b"\n"])))
        sides.append(b"".join(lines))
    return sides[0], b"".join(was), sides[1]


@needs_git
@settings(max_examples=40)
@given(three_texts())
def test_our_own_way_merges_as_git_does(texts: tuple[bytes, bytes, bytes]) -> None:
    by_git = _by_git(*texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_merge, "find_program", lambda _: None)
        own = merge_texts(*texts)
    assert bool(own.conflicts) == bool(by_git.conflicts)
    if not own.conflicts:
        assert own.content == by_git.content


def _by_git(ours: bytes, was: bytes, theirs: bytes) -> Merged:
    with TextMerger(os.fsencode(tempfile.gettempdir())) as merger:
        merged = merger._merge_by_git(ours, was, theirs)
    assert merged is not None
    return merged


@st.composite
def texts_of_few_lines(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Return a text whose lines occur again and again, and two others made of it, each by one
    change.
    """
    line = st.sampled_from([b"a\n", b"b\n", b"\n", b" {\n", b" }\n", b"x\r\n"])
    was = draw(st.lists(line, max_size=30))
    sides = []
    for _ in range(2):
        start = draw(st.integers(0, len(was)))
        end = draw(st.integers(start, min(len(was), start + 4)))
        last = draw(st.sampled_from([b"", b"", b"", b"no end"]))
        sides.append(b"".join([*was[:start], *draw(st.lists(line, max_size=4)), *was[end:], last]))
    return sides[0], b"".join(was), sides[1]


@needs_git
@settings(max_examples=200)
@given(texts_of_few_lines())
def test_what_is_merged_without_git_is_merged_as_git_does(texts: tuple[bytes, bytes, bytes]) -> None:
    apart = merge_apart(*texts)
    if apart is not None:
        assert _by_git(*texts) == (apart, 0)


@pytest.mark.parametrize(
    ("ours", "was", "theirs", "merged"),
    [
        (b"A\nb\nc\n", b"a\nb\nc\n", b"a\nb\nC\n", b"A\nb\nC\n"),
        (b"a\nb\nc\nnew", b"a\nb\nc\n", b"b\nc\n", b"b\nc\nnew"),
        (b"A\nb\n", b"a\nb\n", b"a\nB\n", None),  # no line between
        (b"a\na\nb\nc\n", b"a\nb\nc\n", b"a\nb\nC\n", None),  # which a is new?
        (b"a\nb\nc\nc\n", b"a\nb\nc\n", b"A\nb\nc\n", None),
        (b"b\nc\n", b"b\nb\nc\n", b"b\nb\nC\n", None),
        (b"A\nb\nC\n", b"a\nb\nc\n", b"a\nB\nc\n", None),
        (b"A\nb\nc\n", b"a\nb\nc\n", b"A\nb\nC\n", None),
        (b"a\nb\nc\nd\n", b"a\nb\nb\nc\nd\n", b"a\nb\nb\nc\nD\n", None),  # which b is gone?
    ],
)
def test_only_what_is_surely_apart_is_merged_without_a_diff(
    ours: bytes, was: bytes, theirs: bytes, merged: bytes | None
) -> None:
    assert merge_apart(ours, was, theirs) == merge_apart(theirs, was, ours) == merged


@pytest.mark.parametrize("mark", [b"<<<<<<< staged", b">>>>>>> base"])
def test_a_single_mark_of_a_merge_counts_as_marks(mark: bytes) -> None:
    assert has_marks(b"a\n" + mark + b"\nb\n")


def test_changes_within_a_longer_one_are_one_conflict_with_it() -> None:
    was = b"a\n1\n2\n3\n4\n5\nb\n"
    pieces = diff3.merge(b"a\nours\nb\n", was, b"a\n1\ntwo\n3\n4\nfive\nb\n")
    assert [piece for piece in pieces if piece.ours or piece.theirs] == [
        diff3.MergePiece([b"a\n"]),
        diff3.MergePiece([b"ours\n"], [b"1\n", b"two\n", b"3\n", b"4\n", b"five\n"]),
        diff3.MergePiece([b"b\n"]),
    ]
