"""What the journals of ended commits name is read once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yolofs.session import archive
from yolofs.session.archive import numbers_of_ended_journals


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All journals that are read from now on."""
    really, paths = archive.store_numbers, list[bytes]()

    def store_numbers(journal: bytes, start: int = 0) -> set[int]:
        if not journal.endswith(b".torn"):
            paths.append(journal)
        return really(journal, start)

    monkeypatch.setattr(archive, "store_numbers", store_numbers)
    return paths


def end(session: Path, number: int, *inodes: int) -> Path:
    """Leave the journal of an ended commit."""
    directory = session / "commits" / str(number)
    directory.mkdir(parents=True)
    (directory / "journal").write_text("".join(f"S 1 path{ino} {ino} #00000000\n" for ino in inodes))
    return directory / "journal"


def test_each_chapter_is_read_once(tmp_path: Path, read: list[bytes]) -> None:
    first, second = end(tmp_path, 1, 1, 2, 3, 9), end(tmp_path, 2, 5)
    session = os.fsencode(tmp_path)
    assert numbers_of_ended_journals(session) == {1, 2, 3, 5, 9}
    assert sorted(read) == [bytes(first), bytes(second)]
    third = end(tmp_path, 3, 12)
    for _ in range(2):
        assert numbers_of_ended_journals(session) == {1, 2, 3, 5, 9, 12}
    assert sorted(read) == [bytes(first), bytes(second), bytes(third)]


def test_a_journal_that_is_another_now_is_read_again_and_one_that_is_gone_names_nothing(
    tmp_path: Path, read: list[bytes]
) -> None:
    first, second = end(tmp_path, 1, 1), end(tmp_path, 2, 5)
    session = os.fsencode(tmp_path)
    numbers_of_ended_journals(session)
    first.write_text("S 1 other 7 #00000000\n")
    second.unlink()
    assert numbers_of_ended_journals(session) == {7}
    assert read.count(bytes(first)) == 2


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x81\x01\xa1x", b"\x80"])
def test_a_damaged_note_counts_for_nothing(tmp_path: Path, read: list[bytes], content: bytes) -> None:
    first = end(tmp_path, 1, 1, 2)
    (tmp_path / "commits" / "numbers").write_bytes(content)
    assert numbers_of_ended_journals(os.fsencode(tmp_path)) == {1, 2}
    assert read == [bytes(first)]


def test_journals_are_read_each_time_if_no_note_can_be_written(tmp_path: Path, read: list[bytes]) -> None:
    first = end(tmp_path, 1, 1)
    (tmp_path / "commits" / "numbers.new").mkdir()
    for _ in range(2):
        assert numbers_of_ended_journals(os.fsencode(tmp_path)) == {1}
    assert read == [bytes(first)] * 2


def test_a_commit_that_is_known_costs_one_look_at_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 6):
        end(tmp_path, number, number)
    session = os.fsencode(tmp_path)
    numbers_of_ended_journals(session)
    looked: list[bytes] = []

    def noting(really: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: Any, *args: Any, **options: Any) -> Any:
            looked.append(os.fsencode(path))
            return really(path, *args, **options)

        return look

    for name in ("lstat", "stat", "open"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    assert numbers_of_ended_journals(session) == {1, 2, 3, 4, 5}
    inside = [path for path in looked if b"/commits/" in path and not path.endswith(b"numbers")]
    assert sorted(inside) == [session + b"/commits/%d/journal" % number for number in range(1, 6)]


def test_a_commit_whose_next_journal_waits_is_read_until_that_is_in_force(tmp_path: Path) -> None:
    journal = end(tmp_path, 1, 1)
    carried = journal.with_name("carried")
    carried.write_text("S 1 left 8 #00000000\n")
    session = os.fsencode(tmp_path)
    for _ in range(2):
        assert numbers_of_ended_journals(session) == {1, 8}
    carried.unlink()
    assert numbers_of_ended_journals(session) == {1}
