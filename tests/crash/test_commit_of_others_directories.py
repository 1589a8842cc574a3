"""An ordinary user's commit that renames or removes directories of other users, as they may in a
directory of their own: the kernel lets nobody move such a directory to another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.crash.at_a_line import dies_at
from tests.crash.test_commit_of_groups import Listing, as_user, lines_of_a_commit, listing, numbers, place
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.plain_directory import PlainDirectory
from tests.support.user_identity import NOBODY
from yolofs.commit.merge.drift_descriptions import describe_drift
from yolofs.commit.select.selection import Selection
from yolofs.errors import NotPreparedError
from yolofs.paths import RelPath
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.state.regions import Region

__all__ = ["place"]
pytestmark = [pytest.mark.root_only, pytest.mark.timeout(300)]
POINTS = 14
"""So many of the lines at which the commit is killed, but for a run by night."""


def populate(root: Path) -> bytes:
    """Make, as root, a project of the user's in which somebody else has left directories."""
    for name in ("full", "own/empty", "own/other", "replaced"):
        (root / name).mkdir(parents=True)
    (root / "full/file").write_text("root's\n")
    (root / "own/file").write_text("own\n")
    for path in (root, root / "own", root / "own/file"):
        os.chown(path, NOBODY, NOBODY)
    for name in ("full", "own/empty"):
        os.utime(root / name, ns=(10**18, 10**18))
    return os.fsencode(root)


def work(at: CoreDriver | PlainDirectory) -> None:
    """Do what is permitted to an ordinary user."""
    at.rename(b"full", b"renamed")
    at.rmdir(b"own/empty")
    at.append(b"own/file", b"more\n")
    at.rmdir(b"replaced")
    at.create(b"replaced", b"a file\n", 0o644)


def staged(project: bytes) -> None:
    """Do the work in a view."""
    view = CoreDriver(project)
    work(view)
    view.close()


def expected_of(place: Path) -> Listing:
    """Return what the work makes of a plain directory."""
    plain = populate(place / "plain")
    as_user(place, lambda: work(PlainDirectory(plain)))
    return listing(plain)


def without_owners(found: Listing) -> Listing:
    """Return a listing without the owners of the directories that come back as the user's own."""
    return {path: looks for path, looks in found.items() if path not in (b"own/empty", b"replaced")}


def test_directories_of_others_are_renamed_and_removed_and_come_back(place: Path) -> None:
    expected = expected_of(place)
    project = populate(place / "project")
    before, before_numbers = listing(project), numbers(project)

    def act() -> None:
        staged(project)
        with Session.open(project, SessionAccess.WRITE) as session:
            left_out = commit(session).left_out
        assert left_out == dict.fromkeys((b"own/empty", b"replaced"), ("group", "owner"))
        assert listing(project) == expected
        assert os.lstat(os.path.join(project, b"renamed")).st_ino == before_numbers[b"full"][0]
        with Session.open(project, SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        after = listing(project)
        assert after.keys() == before.keys()
        assert without_owners(after) == without_owners(before)
        assert os.lstat(os.path.join(project, b"full")).st_ino == before_numbers[b"full"][0]
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert listing(project) == expected

    as_user(place, act)


def test_a_directory_that_somebody_has_closed_since_ends_the_commit_before_it_begins(place: Path) -> None:
    project = populate(place / "project")
    deep = Path(os.fsdecode(project), "full/sub/deep")
    deep.mkdir(parents=True)
    deep.parent.chmod(0o755)
    os.chown(deep, NOBODY, NOBODY)
    as_user(place, lambda: _make(project, b"full/sub/deep/file"))
    deep.parent.chmod(0o700)
    before = listing(project)

    def act() -> None:
        with Session.open(project, SessionAccess.WRITE) as session, pytest.raises(NotPreparedError) as caught:
            commit(session)
        said = f"nothing is committed: {deep}"
        assert caught.value.message.startswith(said)
        assert caught.value.message.endswith(": Permission denied")
        assert caught.value.hint == "check that you may read it, then yolofs commit"

    as_user(place, act)
    assert listing(project) == before


def test_drift_in_a_directory_that_the_user_may_not_read_is_told_all_the_same(place: Path) -> None:
    project = populate(place / "project")
    as_user(place, lambda: _remove(project, b"own/empty"))
    closed = Path(os.fsdecode(project), "own/empty/closed")
    closed.mkdir(mode=0o700)

    def act() -> None:
        with Session.open(project, SessionAccess.READ) as session:
            (drift,) = describe_drift(session.state(), session.base, session.store, [RelPath(b"own/empty")], ())
        assert drift.base_ns == closed.stat().st_ctime_ns

    as_user(place, act)


def _remove(project: bytes, path: bytes) -> None:
    view = CoreDriver(project)
    view.rmdir(path)
    view.close()


def _make(project: bytes, path: bytes) -> None:
    view = CoreDriver(project)
    view.create(path, b"new\n", 0o644)
    view.close()


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.some(1)
def test_a_commit_killed_at_a_line_is_brought_to_its_end(place: Path, goes_back: bool) -> None:
    expected = expected_of(place)
    lines = lines_of_a_commit(place, populate(place / "first"), staged)
    for line in points(range(1, lines + 1), goes_back, some=POINTS):
        project = populate(place / str(line))
        before = listing(project)
        as_user(place, partial(_die_and_end, project, line, expected, before, goes_back=goes_back))


def _die_and_end(project: bytes, line: int, expected: Listing, before: Listing, *, goes_back: bool) -> None:
    staged(project)
    before_numbers = numbers(project)
    dies_at(line, project, commit)
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        if goes_back and found is not None and found.way_back is not None:
            roll_back_interrupted(session)
            assert (listing(project), numbers(project)) == (before, before_numbers), f"killed at line {line}"
        finish_interrupted(session)
        commit(session)
    assert listing(project) == expected, f"killed at line {line}"
    assert not any(b".yolofs-" in path for path in listing(project)), f"killed at line {line}"


def move_above(view: CoreDriver) -> None:
    view.rmdir(b"own/empty")
    view.rename(b"own", b"moved")


@pytest.mark.parametrize(("act", "path"), [(move_above, "own/empty")], ids=lambda one: getattr(one, "__name__", ""))
def test_moves_of_others_directories_that_cannot_be_done_are_refused_before_base_is_touched(
    place: Path, act: Callable[[CoreDriver], None], path: str
) -> None:
    """It can in two commits."""
    project = populate(place / "project")
    before = listing(project)

    def run() -> None:
        view = CoreDriver(project)
        act(view)
        view.close()
        with Session.open(project, SessionAccess.WRITE) as session:
            with pytest.raises(NotPreparedError, match=f"{path}: it is another user's directory, and only"):
                commit(session)
            assert listing(project) == before
            regions = frozenset(Region)
            commit(session, selection=Selection(session.regions, regions, (RelPath(path.encode()),)))
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert sorted(os.listdir(os.path.join(project, b"moved"))) == [b"file", b"other"]

    as_user(place, run)
