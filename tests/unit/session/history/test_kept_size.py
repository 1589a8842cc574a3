"""How much of the disk commits take is found once, and looking costs the same with any number of
them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yolofs.session.history import kept_size
from yolofs.session.history.kept_size import size_of_session, sizes_of_commits
from yolofs.system.disk_usage import size_of

FRESH = 1 << 20
"""No store inode is as new as that."""
OLD = 1_700_000_000_000_000_000
"""When a shard of the store was last changed: of a newer one nothing is noted for two seconds."""


def archive(session: Path, *numbers: int, is_ended: bool = True) -> None:
    """Make directories as commits leave them."""
    for number in numbers:
        commit = session / f"commits/{number}"
        (commit / "replaced/1").mkdir(parents=True)
        (commit / "replaced/1/file").write_bytes(b"x" * 9000)
        (commit / "plan.json").write_bytes(b"x" * 5000)
        if is_ended:
            (commit / "done").write_bytes(b"1\n")
            (commit / "journal").write_bytes(b"x" * 100)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    (tmp_path / "files/00").mkdir(parents=True)
    (tmp_path / "files/00/1").write_bytes(b"x" * 20_000)
    (tmp_path / "files/bases").write_bytes(b"x" * 5_000)
    os.utime(tmp_path / "files/00", ns=(OLD, OLD))
    (tmp_path / "journal").write_bytes(b"x" * 100)
    return tmp_path


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the directories that are walked from then on."""
    found: list[str] = []

    def scandir(path: Any) -> Any:
        if not isinstance(path, int):
            found.append(os.fsdecode(path))
        return really(path)

    really = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    return found


def test_the_kept_size_is_what_du_says_before_and_after_it_is_noted(session: Path) -> None:
    archive(session, 1, 2, 12)
    (session / "commits/gone-3").mkdir()
    (session / "commits/gone-3/file").write_bytes(b"x" * 7000)
    place = os.fsencode(session)
    for _ in range(3):
        found = size_of_session(place, FRESH).all
        du = subprocess.run(["du", "-s", "--block-size=1", session], check=True, capture_output=True, text=True)
        assert found == size_of(place) == int(du.stdout.split()[0])
        assert {number: size.kept for number, size in sizes_of_commits(place).items()} == {
            number: size_of(place + b"/commits/%d/replaced" % number) for number in (1, 2, 12)
        }


def test_a_commit_whose_size_is_noted_is_not_walked_again(session: Path, walked: list[str]) -> None:
    archive(session, *range(1, 40))
    place = os.fsencode(session)
    size_of_session(place, FRESH)
    walked.clear()
    size_of_session(place, FRESH)
    few = len(walked)
    assert not [name for name in walked if "/commits/" in name]
    archive(session, *range(40, 80))
    size_of_session(place, FRESH)
    walked.clear()
    size_of_session(place, FRESH)
    assert len(walked) == few


def test_a_commit_without_an_end_is_measured_each_time(session: Path) -> None:
    archive(session, 1)
    archive(session, 2, is_ended=False)
    place = os.fsencode(session)
    before = size_of_session(place, FRESH).all
    (session / "commits/2/replaced/2").write_bytes(b"x" * 50_000)
    (session / "commits/1/replaced/1/file").unlink()  # as an undo takes it
    assert size_of_session(place, FRESH).all == size_of(place) != before


def test_what_an_undo_takes_is_missed_once_it_says_so(session: Path) -> None:
    archive(session, 1, 2)
    place = os.fsencode(session)
    size_of_session(place, FRESH)
    archive(session, 3, is_ended=False)
    kept_size.forget_sizes(place)
    (session / "commits/1/replaced/1/file").unlink()
    assert sizes_of_commits(place)[1].kept == size_of(place + b"/commits/1/replaced")
    (session / "commits/3/done").touch()
    (session / "commits/3/journal").touch()
    assert size_of_session(place, FRESH).all == size_of(place)


@pytest.mark.parametrize("text", [b"", b"\xff", b"\x81\x01\x92\xa1x\x01", b"\x81\xa1a\x92\x01\x01"])
def test_a_malformed_note_of_sizes_counts_for_nothing(session: Path, text: bytes) -> None:
    archive(session, 1)
    (session / "commits/sizes").write_bytes(text)
    place = os.fsencode(session)
    size_of_session(place, FRESH)
    assert size_of_session(place, FRESH).all == size_of(place)


def fill(session: Path, *shards: int, size: int = 3000) -> None:
    """Put some store inodes into shards, long ago."""
    (session / "commits").mkdir(exist_ok=True)
    for shard in shards:
        directory = session / f"files/{shard:02x}"
        directory.mkdir(exist_ok=True)
        for number in range(shard << 8 or 1, (shard << 8) + 5):
            (directory / str(number)).write_bytes(b"x" * size)
        os.utime(directory, ns=(OLD, OLD))


def test_store_inodes_whose_size_is_noted_are_not_looked_at_again(session: Path, walked: list[str]) -> None:
    place = os.fsencode(session)
    counts = []
    for shards in (range(2), range(100)):
        fill(session, *shards)
        size_of_session(place, FRESH)
        expected = size_of(place)
        walked.clear()
        assert size_of_session(place, FRESH).all == expected
        assert not [name for name in walked if "/files/" in name]
        assert str(session / "files") in walked
        counts.append(len(walked))
    assert counts[0] == counts[1]


def test_what_is_made_or_removed_in_a_shard_is_seen(session: Path) -> None:
    place = os.fsencode(session)
    fill(session, 0, 1)
    size_of_session(place, FRESH)
    (session / "files/01/256").unlink()
    assert size_of_session(place, FRESH).all == size_of(place)
    (session / "files/01/400").write_bytes(b"x" * 9000)
    assert size_of_session(place, FRESH).all == size_of(place)
    for path in (session / "files/01").iterdir():
        path.unlink()
    (session / "files/01").rmdir()
    assert size_of_session(place, FRESH).all == size_of(place)


def test_store_inodes_that_may_still_be_written_to_are_measured_each_time(session: Path) -> None:
    place = os.fsencode(session)
    fill(session, 0, 1)
    size_of_session(place, 300)
    (session / "files/01/257").write_bytes(b"x" * 90_000)
    os.utime(session / "files/01", ns=(OLD, OLD))
    assert size_of_session(place, 300).all == size_of(place)


@pytest.mark.parametrize("text", [b"", b"\xff", b"\x81\x01\x93\xa1x\x01\x01"])
def test_a_note_of_shards_that_does_not_read_counts_for_nothing(session: Path, text: bytes) -> None:
    fill(session, 0)
    (session / "commits/shards").write_bytes(text)
    place = os.fsencode(session)
    assert size_of_session(place, FRESH).all == size_of(place)
