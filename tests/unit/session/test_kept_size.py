"""How much of the disk commits take is found once, and looking costs the same with any number of
them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yolofs.session import kept_size
from yolofs.session.kept_size import size_of_session, sizes_of_commits
from yolofs.system.disk_usage import size_of


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
        found = size_of_session(place).all
        du = subprocess.run(["du", "-s", "--block-size=1", session], check=True, capture_output=True, text=True)
        assert found == size_of(place) == int(du.stdout.split()[0])
        assert {number: size.kept for number, size in sizes_of_commits(place).items()} == {
            number: size_of(place + b"/commits/%d/replaced" % number) for number in (1, 2, 12)
        }


def test_no_commit_is_walked_that_was_before(session: Path, walked: list[str]) -> None:
    archive(session, *range(1, 40))
    place = os.fsencode(session)
    size_of_session(place)
    walked.clear()
    size_of_session(place)
    few = len(walked)
    assert not [name for name in walked if "/commits/" in name]
    archive(session, *range(40, 80))
    size_of_session(place)
    walked.clear()
    size_of_session(place)
    assert len(walked) == few


def test_what_has_no_end_yet_is_looked_at_each_time(session: Path) -> None:
    archive(session, 1)
    archive(session, 2, is_ended=False)
    place = os.fsencode(session)
    before = size_of_session(place).all
    (session / "commits/2/replaced/2").write_bytes(b"x" * 50_000)
    (session / "commits/1/replaced/1/file").unlink()  # as an undo takes it
    assert size_of_session(place).all == size_of(place) != before


def test_what_an_undo_takes_is_missed_once_it_says_so(session: Path) -> None:
    archive(session, 1, 2)
    place = os.fsencode(session)
    size_of_session(place)
    archive(session, 3, is_ended=False)
    kept_size.forget_sizes(place)
    (session / "commits/1/replaced/1/file").unlink()
    assert sizes_of_commits(place)[1].kept == size_of(place + b"/commits/1/replaced")
    (session / "commits/3/done").touch()
    (session / "commits/3/journal").touch()
    assert size_of_session(place).all == size_of(place)


@pytest.mark.parametrize("text", [b"", b"\xff", b"\x81\x01\x92\xa1x\x01", b"\x81\xa1a\x92\x01\x01"])
def test_a_note_that_does_not_read_counts_for_nothing(session: Path, text: bytes) -> None:
    archive(session, 1)
    (session / "commits/sizes").write_bytes(text)
    place = os.fsencode(session)
    size_of_session(place)
    assert size_of_session(place).all == size_of(place)
