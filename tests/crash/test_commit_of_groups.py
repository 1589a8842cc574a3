"""An ordinary user's commit of files of other groups or users: base becomes as a plain directory
would, also after a kill at any line.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.at_a_line import dies_at
from tests.support import core_driver
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.memory_disk import memory_directory
from tests.support.model_steps import how_many, is_nightly
from tests.support.plain_directory import PlainDirectory, by_first_name, walk_tree
from tests.support.required import do_without
from tests.support.user_identity import NOBODY, in_child
from yolofs.commit import plan_commit
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import FinishDirectory, Step
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.plan.script import script
from yolofs.commit.select.selection import Selection
from yolofs.errors import RolledBackError
from yolofs.overlay import Owner
from yolofs.paths import RelPath
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo

pytestmark = [pytest.mark.root_only, pytest.mark.timeout(300)]
GROUP, OTHER = 5000, 5001
POINTS = 8
"""So many of the lines at which the commit is killed, but for a run by night."""
SHARES = how_many(ci=1, nightly=8)
"""The lines are dealt out to so many tests by night, and to seven times as many that are not run:
test_commit_every_line has all lines of a commit.
"""
Listing = dict[bytes, tuple[Any, ...]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in which the ordinary user has room for a project, for state and for a plain
    directory.
    """
    with memory_directory() as directory:
        directory.chmod(0o711)
        os.chown(directory / "state", NOBODY, NOBODY)
        yield directory


def populate(root: Path) -> bytes:
    """Make, as root, what a web project is after ``chown -R $USER:www-data; chmod g+s``, and files
    that somebody else left there.
    """
    for name in ("shared", "shared/old", "moving", "own"):
        (root / name).mkdir(parents=True)
    for name in ("file", "shared/page", "shared/locked", "shared/old/one", "moving/in", "own/roots", "own/others"):
        (root / name).write_bytes(b"base " + name.encode())
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for path in (root / "file", *root.glob("shared/**"), root / "moving", *root.glob("shared/**/*")):
        os.chown(path, NOBODY, GROUP)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    (root / "shared/locked").chmod(0o444)
    (root / "own/roots").chmod(0o666)
    os.chown(root / "own/roots", 0, 0)
    (root / "own/others").chmod(0o646)
    os.chown(root / "own/others", OTHER, GROUP)
    return os.fsencode(root)


def work(at: CoreDriver | PlainDirectory) -> None:
    """Do what is permitted to an ordinary user."""
    at.overwrite(b"file", b"written in place")
    at.append(b"shared/page", b" and more")
    at.overwrite(b"own/roots", b"in place, too")
    at.append(b"own/others", b" and more")
    at.chmod(b"shared/locked", 0o640)
    at.create(b"shared/new", b"new", 0o640)
    at.symlink(b"page", b"shared/soft")
    at.mkdir(b"shared/sub", 0o750)
    at.mkdir(b"shared/sub/deep", 0o775)
    at.create(b"shared/sub/deep/file", b"deep", 0o600)
    at.create(b"shared/saved", b"another file by this name", 0o644)
    at.rename(b"shared/saved", b"shared/old/one")
    at.link(b"shared/new", b"shared/sub/linked")
    at.rename(b"moving", b"moved")
    at.create(b"moved/beside", b"in what moves", 0o644)
    at.create(b"own/plain", b"of one's own group", 0o644)


def listing(root: bytes) -> Listing:
    """Return all that a directory is, but for times that nobody has set and inode numbers."""
    return by_first_name(dict(walk_tree(root)))


def numbers(root: bytes) -> dict[bytes, tuple[int, int]]:
    """Return inode number and mtime of what is in a directory and has a time that may be set."""
    found = {}
    for path in listing(root):
        st = os.lstat(os.path.join(root, path))
        found[path] = st.st_ino, st.st_mtime_ns if st.st_uid == NOBODY else 0
    return found


def as_user(place: Path, act: Callable[[], object], *, state: Path | None = None) -> None:
    """Do something in another process, as the ordinary user, and fail if it does."""

    def run() -> None:
        os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = str(state or place / "state")
        os.umask(0)
        core_driver.OWNER = Owner(NOBODY, NOBODY)
        act()

    assert in_child(run, is_root=False) == 0, "see above"


def staged(project: bytes) -> Listing:
    """Do the work in a view, and return what it shows."""
    view = CoreDriver(project)
    work(view)
    shown = view.tree()
    view.close()
    return shown


def expected_of(place: Path) -> Listing:
    """Return what the work makes of a plain directory."""
    plain = populate(place / "plain")
    as_user(place, lambda: work(PlainDirectory(plain)))
    found = listing(plain)
    st = os.lstat(os.path.join(plain, b"shared/sub"))  # the kernel itself does that
    assert (st.st_mode, st.st_uid, st.st_gid) == (stat.S_IFDIR | 0o2750, NOBODY, GROUP)
    assert os.lstat(os.path.join(plain, b"own/roots")).st_uid == 0
    return found


@pytest.fixture(params=["the same device", "another device"])
def state(request: pytest.FixtureRequest, place: Path) -> Iterator[Path]:
    """A directory for the sessions, on the device of the project or on another one."""
    with tempfile.TemporaryDirectory(prefix="yolofs-state.") as other:
        os.chown(other, NOBODY, NOBODY)
        found = place / "state" if request.param == "the same device" else Path(other)
        if (found.stat().st_dev == place.stat().st_dev) != (request.param == "the same device"):
            do_without("there is no second device here")
        yield found


def test_the_view_and_base_are_what_a_plain_directory_would_be(place: Path, state: Path) -> None:
    expected = expected_of(place)
    project = populate(place / "project")
    before, before_numbers = listing(project), numbers(project)

    def act() -> None:
        assert staged(project) == expected
        assert listing(project) == before
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert listing(project) == expected
        for path in (b"file", b"shared/page", b"own/roots", b"own/others"):
            assert os.lstat(os.path.join(project, path)).st_ino == before_numbers[path][0], path
        with Session.open(project, SessionAccess.WRITE) as session:
            undo(session, choose_commit(session, None))
        assert listing(project) == before
        assert numbers(project) == before_numbers
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert listing(project) == expected

    as_user(place, act, state=state)


def test_the_script_of_a_commit_gives_files_the_groups_of_a_plain_directory(place: Path) -> None:
    expected = expected_of(place)
    project = populate(place / "project")

    def act() -> None:
        staged(project)
        with Session.open(project, SessionAccess.READ) as session:
            plan = plan_commit(session.present().tree, session.base, session.store)
            lines = list(script(plan, session.store, place=bytes(place / "state")))
            told = list(plan_lines(plan, session.base, session.store))
        assert f"rewrite {os.fsdecode(project)}/file in place, so that it keeps its owner and group (16 B)" in told
        subprocess.run(["sh"], input=b"\n".join(lines) + b"\n", check=True, capture_output=True)
        assert listing(project) == expected

    as_user(place, act)


def test_setgid_that_only_its_group_may_give_is_told_when_an_undo_cannot_give_it_back(place: Path) -> None:
    project = populate(place / "project")

    def act() -> None:
        view = CoreDriver(project)
        view.chmod(b"shared/old", 0o770)
        view.close()
        with Session.open(project, SessionAccess.WRITE) as session:
            assert commit(session).left_out == {}
        with Session.open(project, SessionAccess.WRITE) as session:
            assert undo(session, choose_commit(session, None)).left_out == {b"shared/old": ("mode",)}

    as_user(place, act)


def lines_of_a_commit(place: Path, project: bytes, stage: Callable[[bytes], object]) -> int:
    """Return how many lines a commit of what ``stage`` stages in a project goes through."""
    total = place / "state/total"

    def count() -> None:
        stage(project)
        total.write_text(str(dies_at(0, project, commit)))

    as_user(place, count)
    return int(total.read_text())


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_killed_at_a_line_is_brought_to_its_end(place: Path, share: int, goes_back: bool) -> None:
    expected = expected_of(place)
    lines = lines_of_a_commit(place, populate(place / "first"), staged)
    assert lines > 500
    for line in points(
        range(1, lines + 1), goes_back, some=POINTS, share=share, shares=8 * SHARES if is_nightly() else 1
    ):
        project = populate(place / str(line))
        before = listing(project)
        as_user(place, partial(_die_and_end, project, line, expected, before, goes_back=goes_back))


def _is_taken_back(session: Session) -> bool:
    """Take what is interrupted back, if anything is and can be; tell whether it was."""
    found = session.interrupted()
    if found is None or found.way_back is None:
        return False
    roll_back_interrupted(session)
    return True


def _die_and_end(project: bytes, line: int, expected: Listing, before: Listing, *, goes_back: bool) -> None:
    staged(project)
    before_numbers = numbers(project)
    dies_at(line, project, commit)
    with Session.open(project, SessionAccess.WRITE) as session:
        if goes_back and _is_taken_back(session):
            assert (listing(project), numbers(project)) == (before, before_numbers), f"killed at line {line}"
        finish_interrupted(session)
        commit(session)
    assert listing(project) == expected, f"killed at line {line}"
    assert not any(b".yolofs-" in path for path in listing(project)), f"killed at line {line}"


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
@pytest.mark.some(1)
def test_an_undo_killed_at_a_line_is_brought_to_its_end(place: Path, goes_back: bool) -> None:
    expected = expected_of(place)
    first = populate(place / "first")
    total = place / "state/total"

    def count() -> None:
        staged(first)
        with Session.open(first, SessionAccess.WRITE) as session:
            commit(session)
        total.write_text(str(dies_at(0, first, _undo_last)))

    as_user(place, count)
    for line in points(range(1, int(total.read_text()) + 1), "undo", goes_back, some=POINTS):
        project = populate(place / str(line))
        before = listing(project)
        as_user(place, partial(_die_in_undo, project, line, expected, before, goes_back=goes_back))


def test_a_name_of_a_file_that_cannot_be_copied_is_kept_as_a_link_and_the_redo_finds_no_conflict(place: Path) -> None:
    """No copy could be given its group."""
    project = populate(place / "project")

    def act() -> None:
        view = CoreDriver(project)
        view.link(b"shared/page", b"shared/other name")
        view.close()
        for do in (commit, _undo_last, commit):
            with Session.open(project, SessionAccess.WRITE) as session:
                do(session)
        assert b"shared/other name" in listing(project)

    as_user(place, act)


def test_what_was_taken_back_of_another_users_files_is_no_change_of_the_host(place: Path) -> None:
    """Their times cannot be given back."""
    project = populate(place / "project")
    (place / "project/own/others").write_bytes(b"\0 of which no text is kept")
    before = listing(project)
    really = Steps.do

    def fail(steps: Steps, step: Step) -> None:
        if isinstance(step, FinishDirectory):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        really(steps, step)

    def twice(act: Callable[[Session], object]) -> None:
        with Session.open(project, SessionAccess.WRITE) as session, pytest.MonkeyPatch.context() as patch:
            patch.setattr(Steps, "do", fail)
            with pytest.raises(RolledBackError):
                act(session)
        with Session.open(project, SessionAccess.WRITE) as session:
            act(session)

    def act() -> None:
        staged(project)
        twice(commit)
        after = listing(project)
        assert after != before
        twice(_undo_last)
        assert listing(project) == before
        twice(commit)
        assert listing(project) == after

    as_user(place, act)


def _undo_last(session: Session) -> None:
    undo(session, choose_commit(session, None))


def _die_in_undo(project: bytes, line: int, expected: Listing, before: Listing, *, goes_back: bool) -> None:
    staged(project)
    before_numbers = numbers(project)
    with Session.open(project, SessionAccess.WRITE) as session:
        commit(session)
    after_numbers = numbers(project)
    dies_at(line, project, _undo_last)
    with Session.open(project, SessionAccess.WRITE) as session:
        if goes_back and _is_taken_back(session):
            assert (listing(project), numbers(project)) == (expected, after_numbers), f"killed at line {line}"
        finish_interrupted(session)
    with Session.open(project, SessionAccess.WRITE) as session:
        if listing(project) != before:  # it was taken back, or had not begun
            assert listing(project) == expected, f"killed at line {line}"
            _undo_last(session)
    assert listing(project) == before, f"killed at line {line}"
    assert numbers(project) == before_numbers, f"killed at line {line}"
    assert not any(b".yolofs-" in path for path in listing(project)), f"killed at line {line}"


def _closed(root: Path) -> bytes:
    """Make a setgid directory of a group that the user is not in, closed for writing."""
    (root / "closed/sub").mkdir(parents=True)
    (root / "closed/sub/in").write_bytes(b"in")
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY if path == root else GROUP)
    (root / "closed/sub").chmod(0o2555)
    (root / "closed").chmod(0o2555)
    return os.fsencode(root)


def _modes(project: bytes) -> list[int]:
    return [stat.S_IMODE(os.lstat(os.path.join(project, path)).st_mode) for path in (b"closed", b"closed/sub")]


def _stage_in_closed(project: bytes) -> None:
    view = CoreDriver(project)  # which asks for no permission: the host has closed it since
    view.create(b"closed/new", b"new", 0o644)
    view.rename(b"closed/sub/in", b"closed/sub/on")
    view.close()


def test_setgid_of_a_closed_directory_that_cannot_be_given_back_is_told(place: Path) -> None:
    project = _closed(place / "project")

    def act() -> None:
        _stage_in_closed(project)
        with Session.open(project, SessionAccess.WRITE) as session:
            left_out = commit(session).left_out
        assert [left_out.get(RelPath(path)) for path in (b"closed", b"closed/sub")] == [("mode",), ("mode",)]
        assert _modes(project) == [0o555, 0o555]

    as_user(place, act)


def test_setgid_that_a_kept_directory_has_lost_is_told_by_the_undo_that_brings_it_back(place: Path) -> None:
    """It was opened up to be removed."""
    project = _closed(place / "project")

    def act() -> None:
        view = CoreDriver(project)
        view.unlink(b"closed/sub/in")
        for path in (b"closed/sub", b"closed"):
            view.rmdir(path)
        view.create(b"other", b"other", 0o644)
        view.close()
        with Session.open(project, SessionAccess.WRITE) as session:
            assert commit(session).left_out == {b"closed": ("mode",)}
        with Session.open(project, SessionAccess.WRITE) as session:
            only = Selection(session.regions, paths=(RelPath(b"other"),))
            assert undo(session, choose_commit(session, 1), selection=only).left_out == {}
        with Session.open(project, SessionAccess.WRITE) as session:
            assert undo(session, choose_commit(session, 1)).left_out == {b"closed": ("mode",)}
        assert _modes(project) == [0o555, 0o2555]

    as_user(place, act)


@pytest.mark.parametrize("goes_back", [False, True], ids=["finished", "taken back"])
def test_a_closed_setgid_directory_is_closed_after_a_kill_at_any_line(place: Path, goes_back: bool) -> None:
    _closed(place / "first")
    total = place / "state/total"

    def count() -> None:
        _stage_in_closed(os.fsencode(place / "first"))
        total.write_text(str(dies_at(0, os.fsencode(place / "first"), commit)))

    def die_and_end(project: bytes, line: int) -> None:
        _stage_in_closed(project)
        dies_at(line, project, commit)
        with Session.open(project, SessionAccess.WRITE) as session:
            found = session.interrupted()
            if goes_back and found is not None and found.way_back is not None:
                back = roll_back_interrupted(session)
                assert back is not None
                left_out: Any = back.meanwhile.left_out
            else:
                ended = finish_interrupted(session)
                left_out = ended.left_out if ended is not None else {}
        for path, mode in zip((b"closed", b"closed/sub"), _modes(project), strict=True):
            assert mode & 0o777 == 0o555, f"{path!r} stays open after a kill at line {line}"
            if found is not None:
                assert bool(mode & stat.S_ISGID) != (path in left_out), f"killed at line {line}"

    as_user(place, count)
    for line in points(range(1, int(total.read_text()) + 1), goes_back, some=10):
        project = _closed(place / str(line))
        as_user(place, partial(die_and_end, project, line))
