"""What a commit notes that it replaces although the host has changed it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.session.forced_files import read_forced, write_forced
from yolofs.system.disks import OnDisk

ONE, OTHER = OnDisk(b"uuid \xff one", 12), OnDisk(b"", 12)


def test_a_file_is_known_on_its_disk_alone(tmp_path: Path) -> None:
    write_forced(bytes(tmp_path), [ONE, ONE])
    found = read_forced(bytes(tmp_path))
    assert found is not None
    assert found.has(ONE)
    assert not found.has(OTHER)
    assert not found.has(OnDisk(ONE.disk, 13))


def test_in_a_note_of_an_earlier_version_it_may_be_on_any(tmp_path: Path) -> None:
    (tmp_path / "forced").write_text("[12]")
    found = read_forced(bytes(tmp_path))
    assert found is not None
    assert found.has(ONE)
    assert found.has(OTHER)
    assert not found.has(OnDisk(b"", 13))


@pytest.mark.parametrize("text", ["", "[12", '["x"]', "[[null]]", "\0"])
def test_where_the_note_is_damaged_nobody_knows(tmp_path: Path, text: str) -> None:
    (tmp_path / "forced").write_text(text)
    assert read_forced(bytes(tmp_path)) is None


def test_without_a_note_no_file_was_forced(tmp_path: Path) -> None:
    found = read_forced(os.fsencode(tmp_path))
    assert found is not None
    assert not found.has(ONE)


def test_the_note_lists_disk_and_number_of_each_file(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path)
    write_forced(directory, [OnDisk(b"disk", 7), OnDisk(b"", 9), OnDisk(b"", 9), OnDisk(b"", 2)])
    assert (tmp_path / "forced").read_bytes() == b'[["",2],["",9],["ZGlzaw==",7]]'
    (tmp_path / "forced").write_bytes(b'[["",2,1]]')
    assert read_forced(directory) is None
