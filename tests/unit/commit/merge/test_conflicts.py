"""Conflicts: base has changed under staged files, or these cannot be committed at all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.support.clocks import let_clocks_pass
from tests.support.commit_model import CommitScribe
from yolofs.commit import find_conflicts
from yolofs.errors import ConflictError
from yolofs.journal.records import ChangeRecord, Delete, Rename
from yolofs.state.drift import may_have_drifted

pytestmark = pytest.mark.disk  # not every tmpfs knows attributes of users


class RealTimeScribe(CommitScribe):
    """Its records carry the time of day."""

    def _now(self) -> int:
        return time.time_ns()


class EarlierScribe(RealTimeScribe):
    """Its records do not say what base had, as those of earlier versions."""

    def _apply(self, record: ChangeRecord) -> None:
        if isinstance(record, Delete):
            base = record.base
            record = msgspec.structs.replace(
                record, base=msgspec.structs.replace(base, owner=None) if base is not None else None
            )
        elif isinstance(record, Rename):
            record = msgspec.structs.replace(record, src_was=None, dst_was=None)
        super()._apply(record)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "d" / "sub").mkdir(parents=True)
    for name in ("a", "b", "d/x", "d/sub/y"):
        (base / name).write_text(name)
    return base


@pytest.fixture
def scribe(tmp_path: Path, base: Path) -> RealTimeScribe:
    return RealTimeScribe(os.fsencode(base), os.fsencode(tmp_path / "store"))


def conflicts(scribe: CommitScribe) -> list[bytes]:
    found: list[bytes] = list(find_conflicts(scribe.tree, scribe.base, scribe.store))
    assert may_have_drifted(scribe.tree, scribe.base, scribe.store, frozenset()) or not found
    return found


def test_a_file_that_lost_its_known_names_is_a_conflict_if_the_host_wrote_to_it(
    scribe: RealTimeScribe, base: Path
) -> None:
    (base / "other").hardlink_to(base / "a")
    scribe.write(b"a", b"new")
    scribe.remove(b"a")
    assert conflicts(scribe) == []
    (base / "other").write_bytes(b"by the host")
    assert conflicts(scribe) == [b"a"]


def test_the_cheap_check_for_drift_follows_renames(scribe: RealTimeScribe, base: Path) -> None:
    let_clocks_pass()
    scribe.rename(b"a", b"d/a")
    scribe.rename(b"d", b"e")
    scribe.write(b"e/new", b"new")
    assert not may_have_drifted(scribe.tree, scribe.base, scribe.store, frozenset())
    (base / "a").write_text("by the host, and still what the view shows")
    assert not may_have_drifted(scribe.tree, scribe.base, scribe.store, frozenset())
    (base / "a").unlink()
    assert may_have_drifted(scribe.tree, scribe.base, scribe.store, frozenset())
    assert conflicts(scribe) == [b"e/a"]


def work(scribe: CommitScribe) -> None:
    """Change something of every kind."""
    scribe.write(b"a", b"new")
    scribe.chmod(b"d", 0o700)
    scribe.rename(b"b", b"d/b")
    scribe.remove(b"d/x")
    scribe.write(b"d/x", b"another file")
    scribe.remove(b"d/sub/y")
    scribe.write(b"c", b"new")
    scribe.link(b"a", b"a2")


def test_there_is_no_conflict_if_base_stays_as_it_is(scribe: RealTimeScribe) -> None:
    work(scribe)
    assert conflicts(scribe) == []


def test_a_modified_file_that_the_host_modified_too_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    work(scribe)
    (base / "a").write_text("from the host")
    assert conflicts(scribe) == [b"a", b"a2"]


def same_by_both(scribe: RealTimeScribe, base: Path) -> None:
    """Give a file the same new content in the view and in base, at other times."""
    scribe.write(b"a", b"both")
    (base / "a").write_text("both")


def test_a_file_that_the_host_gave_the_same_content_is_no_conflict(
    scribe: RealTimeScribe, base: Path, tmp_path: Path
) -> None:
    same_by_both(scribe, base)
    assert conflicts(scribe) == []
    staged_ns = os.stat(scribe.meta(b"a")).st_mtime_ns
    scribe.commit(os.fsencode(tmp_path / "commit"))
    assert (base / "a").read_text() == "both"
    assert (base / "a").stat().st_mtime_ns == staged_ns


def test_a_file_that_both_replaced_by_one_of_the_same_content_is_no_conflict(
    scribe: RealTimeScribe, base: Path
) -> None:
    """As git does with its index, by a file beside it."""
    scribe.write(b"a.lock", b"both")
    scribe.rename(b"a.lock", b"a")
    (base / "a.lock").write_text("both")
    (base / "a.lock").rename(base / "a")
    assert conflicts(scribe) == []
    (base / "a").write_text("BOTH")
    assert conflicts(scribe) == [b"a"]


def test_a_new_file_that_both_made_alike_is_no_conflict(scribe: RealTimeScribe, base: Path) -> None:
    scribe.write(b"d/new", b"both")
    (base / "d/new").write_text("both")
    assert conflicts(scribe) == []


@pytest.mark.parametrize("other", ["content", "mode", "type", "xattr"])
def test_the_same_content_is_a_conflict_if_anything_but_the_time_differs(
    scribe: RealTimeScribe, base: Path, other: str
) -> None:
    same_by_both(scribe, base)
    match other:
        case "content":
            (base / "a").write_text("BOTH")
        case "mode":
            (base / "a").chmod(0o600)
        case "type":
            (base / "a").unlink()
            (base / "a").symlink_to("both")
        case _:
            os.setxattr(base / "a", "user.by", b"the host")
    assert conflicts(scribe) == [b"a"]


def test_a_file_moved_away_that_was_changed_alike_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    """What base has is at its old name, where the view has nothing."""
    same_by_both(scribe, base)
    scribe.rename(b"a", b"z")
    assert conflicts(scribe) == [b"z"]


def test_a_file_with_hard_links_that_was_changed_alike_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    (base / "other").hardlink_to(base / "a")
    same_by_both(scribe, base)
    assert conflicts(scribe) == [b"a"]


def test_a_file_that_the_host_replaced_by_one_of_the_same_size_and_time_is_a_conflict(
    scribe: RealTimeScribe, base: Path
) -> None:
    work(scribe)
    st = (base / "a").stat()
    (base / "other").write_text("A")
    os.utime(base / "other", ns=(st.st_atime_ns, st.st_mtime_ns))
    (base / "other").rename(base / "a")
    assert conflicts(scribe) == [b"a", b"a2"]


@pytest.mark.parametrize("stage", ["write", "chmod", "rename"])
def test_a_staged_file_that_the_host_removed_is_a_conflict(scribe: RealTimeScribe, base: Path, stage: str) -> None:
    getattr(scribe, stage)(b"a", {"write": b"new", "chmod": 0o600, "rename": b"z"}[stage])
    (base / "a").unlink()
    assert conflicts(scribe) == [b"z" if stage == "rename" else b"a"]


def test_changes_within_a_directory_do_not_conflict_with_its_new_mode(scribe: RealTimeScribe, base: Path) -> None:
    scribe.chmod(b"d", 0o700)
    (base / "d" / "from host").touch()
    assert conflicts(scribe) == []


def test_an_attribute_that_the_host_gives_to_a_directory_with_a_new_mode_is_a_conflict(
    scribe: RealTimeScribe, base: Path
) -> None:
    os.setxattr(base / "d", "user.of both", b"1")
    scribe.chmod(b"d", 0o700)
    (base / "d" / "from host").touch()
    assert conflicts(scribe) == []
    os.setxattr(base / "d", "user.of the host", b"1")
    assert conflicts(scribe) == [b"d"]


def test_an_attribute_that_both_sides_have_given_to_a_directory_is_no_conflict(
    scribe: RealTimeScribe, base: Path
) -> None:
    scribe.chmod(b"d", 0o700)
    (staged,) = scribe.tree.staged.values()
    os.setxattr(scribe.store.path(staged.ino), "user.one", b"1")
    os.setxattr(base / "d", "user.one", b"1")
    assert conflicts(scribe) == []
    os.setxattr(base / "d", "user.one", b"2")
    assert conflicts(scribe) == [b"d"]


def test_a_directory_with_a_new_mode_that_the_host_replaced_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    scribe.chmod(b"d/sub", 0o700)
    (base / "d" / "sub").rename(base / "gone")
    (base / "d" / "sub").mkdir()
    assert conflicts(scribe) == [b"d/sub"]


def test_a_new_file_where_the_host_made_one_too_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    scribe.write(b"d/new", b"")
    (base / "d" / "new").write_text("from the host")
    assert conflicts(scribe) == [b"d/new"]


def test_a_removed_file_that_the_host_wrote_later_is_a_conflict(scribe: RealTimeScribe, base: Path) -> None:
    scribe.remove(b"d/x")
    (base / "d" / "x").write_text("from the host")
    assert conflicts(scribe) == [b"d/x"]


def test_a_removed_file_that_the_host_wrote_before_is_no_conflict(scribe: RealTimeScribe, base: Path) -> None:
    (base / "d" / "x").write_text("from the host")
    scribe.remove(b"d/x")
    assert conflicts(scribe) == []


def test_a_file_moved_away_may_change_its_content(scribe: RealTimeScribe, base: Path) -> None:
    """The view shows it under its new name, with what the host wrote."""
    scribe.rename(b"a", b"z")
    (base / "a").write_text("from the host")
    assert conflicts(scribe) == []


def test_a_file_in_a_directory_that_the_host_moved_cannot_be_committed(scribe: RealTimeScribe, base: Path) -> None:
    scribe.write(b"d/sub/new", b"")
    scribe.remove(b"d/sub/y")
    scribe.rename(b"a", b"d/sub/a")
    (base / "d").rename(base / "elsewhere")
    assert conflicts(scribe) == [b"d/sub/a", b"d/sub/new"]
    with pytest.raises(
        ConflictError, match=rf"what is staged at {base}/d/sub/.* and other paths cannot be committed"
    ) as caught:
        scribe.plan()
    assert sorted(caught.value.paths) == [b"d/sub/a", b"d/sub/new"]


def test_a_file_in_a_directory_that_the_host_made_a_symlink_cannot_be_committed(
    scribe: RealTimeScribe, base: Path
) -> None:
    scribe.write(b"d/sub/y", b"new")
    (base / "d").rename(base / "elsewhere")
    (base / "d").symlink_to("elsewhere")
    assert conflicts(scribe) == [b"d/sub/y"]
    with pytest.raises(ConflictError, match=f"what is staged at {base}/d/sub/y cannot be committed"):
        scribe.plan()


def test_a_new_mode_for_a_file_that_is_gone_cannot_be_committed(scribe: RealTimeScribe, base: Path) -> None:
    scribe.chmod(b"a", 0o600)
    (base / "a").unlink()
    with pytest.raises(ConflictError, match=f"what is staged at {base}/a cannot be committed"):
        scribe.plan()


def test_a_forced_commit_takes_base_as_it_is(scribe: RealTimeScribe, base: Path, tmp_path: Path) -> None:
    scribe.write(b"a", b"new")
    scribe.rename(b"b", b"z")
    scribe.chmod(b"d/sub", 0o700)
    scribe.write(b"d/sub/new", b"new")
    (base / "a").unlink()
    (base / "b").unlink()
    assert conflicts(scribe) == [b"a", b"z"]
    scribe.commit(os.fsencode(tmp_path / "commit"))
    assert (base / "a").read_text() == "new"
    assert not (base / "z").exists()


def test_a_directory_with_a_new_mode_is_made_again_by_force(scribe: RealTimeScribe, base: Path, tmp_path: Path) -> None:
    """Its store inode says all of it; what base had in it is the host's to have removed."""
    scribe.chmod(b"d/sub", 0o700)
    scribe.write(b"d/sub/new", b"new")
    (base / "d" / "sub" / "y").unlink()
    (base / "d" / "sub").rmdir()
    assert conflicts(scribe) == [b"d/sub"]
    scribe.commit(os.fsencode(tmp_path / "commit"))
    assert (base / "d" / "sub" / "new").read_text() == "new"
    assert (base / "d" / "sub").stat().st_mode & 0o777 == 0o700


# ---- records of earlier versions


@pytest.fixture
def earlier(tmp_path: Path, base: Path) -> EarlierScribe:
    return EarlierScribe(os.fsencode(base), os.fsencode(tmp_path / "store"))


def removed(scribe: CommitScribe) -> None:
    scribe.remove(b"d/x")


def replaced(scribe: CommitScribe) -> None:
    scribe.write(b"new", b"by the view")
    scribe.rename(b"new", b"d/x")


def moved(scribe: CommitScribe) -> None:
    scribe.rename(b"d/x", b"x")
    scribe.remove(b"x")


def removed_whole(scribe: CommitScribe) -> None:
    scribe.remove(b"d")


EARLIER = [(removed, b"d/x"), (replaced, b"d/x"), (moved, b"d/x"), (removed_whole, b"d")]


@pytest.mark.parametrize(("work", "path"), EARLIER)
def test_where_no_record_says_what_base_had_what_is_later_is_a_conflict(
    earlier: EarlierScribe, base: Path, work: Callable[[CommitScribe], None], path: bytes
) -> None:
    (base / "d/x").write_text("before")
    let_clocks_pass()
    work(earlier)
    assert conflicts(earlier) == []
    let_clocks_pass()
    (base / "link").hardlink_to(base / "d/x")  # so that only the ctime changes
    assert conflicts(earlier) == [path]


@pytest.mark.parametrize("work", [removed, removed_whole])
def test_what_an_earlier_version_says_of_what_it_removed_tells_at_once(
    earlier: EarlierScribe, base: Path, work: Callable[[CommitScribe], None]
) -> None:
    """Size, time and number; not mode and owner."""
    work(earlier)
    (base / "d/x").write_text("by the host")
    assert len(conflicts(earlier)) == 1
