"""What is counted as needed on the disk that things are copied to, before base is touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.second_disk import mounted_disk
from yolofs.commit import Plan
from yolofs.commit.apply import cross_device_copies
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Fetch, Place, Rewrite
from yolofs.paths import RelPath

pytestmark = pytest.mark.root_only
KIB = 1 << 10
LARGE = 700 * KIB
"""Of two of these there is room for one on the other disk."""


@pytest.fixture
def scribe(tmp_path: Path) -> Iterator[CommitScribe]:
    """A base with a large directory, in which ``far`` is a disk of one MiB."""
    far = tmp_path / "base/far"
    far.mkdir(parents=True)
    (tmp_path / "commits").mkdir()
    (tmp_path / "base/d").mkdir()
    (tmp_path / "base/d/large").write_bytes(os.urandom(LARGE))
    with mounted_disk(far, mib=1):
        yield CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))


def check(scribe: CommitScribe, commits: Path, plan: Plan | None = None) -> None:
    plan = plan or scribe.plan()
    cross_device_copies.check(plan, os.fsencode(commits), Moves(plan), scribe.store.path)


def refused(scribe: CommitScribe, commits: Path, path: bytes, plan: Plan | None = None) -> None:
    """Check that a commit is refused for want of room, and names the path."""
    with pytest.raises(OSError, match=r"No space left on device: 1\.[34] MiB are needed on the disk of") as refusal:
        check(scribe, commits, plan)
    assert refusal.value.filename == path


def test_copies_to_one_disk_are_counted_together(scribe: CommitScribe, tmp_path: Path) -> None:
    (tmp_path / "base/e").write_bytes(os.urandom(LARGE))
    scribe.rename(b"d", b"far/d")
    check(scribe, tmp_path / "commits")
    scribe.rename(b"e", b"far/e")
    refused(scribe, tmp_path / "commits", b"d")


def test_a_file_with_two_names_is_counted_once(scribe: CommitScribe, tmp_path: Path) -> None:
    os.link(tmp_path / "base/d/large", tmp_path / "base/d/again")
    scribe.rename(b"d", b"far/d")
    check(scribe, tmp_path / "commits")


def test_what_is_taken_out_of_a_directory_before_is_not_counted_with_it(scribe: CommitScribe, tmp_path: Path) -> None:
    (tmp_path / "base/d/stays").write_bytes(os.urandom(LARGE))
    scribe.rename(b"d/stays", b"stays")
    scribe.rename(b"d", b"far/d")
    check(scribe, tmp_path / "commits")


@pytest.mark.parametrize("way", ["removed", "replaced"])
def test_files_kept_on_the_disk_of_the_session_are_counted(scribe: CommitScribe, tmp_path: Path, way: str) -> None:
    """The session lies on the small disk."""
    (tmp_path / "base/d/more").write_bytes(os.urandom(LARGE))
    commits = tmp_path / "base/far"
    for name in (b"d/large", b"d/more"):
        check(scribe, commits)
        scribe.remove(name)
        if way == "replaced":
            scribe.symlink(name, b"nowhere")
    refused(scribe, commits, b"d/large")


def test_files_that_an_undo_brings_back_from_the_disk_of_the_session_are_counted(
    scribe: CommitScribe, tmp_path: Path
) -> None:
    kept = tmp_path / "commits/1/replaced"
    kept.mkdir(parents=True)
    for slot in (5, 6):
        shutil.copy(tmp_path / "base/d/large", kept / f"{slot}")
    fetches = [Fetch(RelPath(b"far/%d" % slot), slot, 1, slot, (kept / f"{slot}").stat().st_ino) for slot in (5, 6)]
    plan = Plan(scribe.base.root, (*fetches, *(Place(step.path, step.number) for step in fetches)))
    refused(scribe, tmp_path / "commits", b"far/6", plan)


def test_a_file_that_moves_on_its_disk_and_grows_is_counted_where_it_is(scribe: CommitScribe, tmp_path: Path) -> None:
    """It has hard links, so it is written in place, where it is by then."""
    far = tmp_path / "base/far"
    (far / "one").write_bytes(b"short")
    os.link(far / "one", far / "two")
    scribe.rename(b"far/one", b"far/moved")
    scribe.write(b"far/moved", os.urandom(2 * LARGE))
    plan = scribe.plan()
    assert [step.path for step in plan.steps if isinstance(step, Rewrite)] == [b"far/moved"]
    refused(scribe, tmp_path / "commits", b"far/one")


def test_a_copy_between_two_mounts_of_one_disk_is_counted_as_no_space(scribe: CommitScribe, tmp_path: Path) -> None:
    """A mount of the same disk: nothing can be renamed to there, but blocks may be shared."""
    small = tmp_path / "base/far"
    for name in ("base/other", "commits"):
        (small / name).mkdir(parents=True)
    (small / "base/large").write_bytes(os.urandom(LARGE))
    with mounted_disk(small / "base/other", source=small / "commits"):
        inner = CommitScribe(os.fsencode(small / "base"), os.fsencode(tmp_path / "store"))
        inner.rename(b"large", b"other/large")
        check(inner, small / "commits")
