"""A commit is killed at one line of its code after another, and finished: base is what the view
was, every time.

By night that is every line; else some, and others in each run.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.fault_points import and_more, points
from tests.support.model_steps import how_many
from tests.support.new_process import forget_what_was_read
from tests.support.plain_directory import PlainDirectory, by_first_name, walk_tree
from tests.support.seed import dice
from yolofs.commit.select.selection import Selection
from yolofs.paths import RelPath
from yolofs.session.commit import commit, finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.timeout(300)
TRACED = (
    "commit",
    "journal",
    "registry",
    "session",
    "store.copying",
    "store.file_data",
    "store.store",
    "system.syscalls",
)
SHARES = how_many(ci=2, nightly=64)
"""The kill points are dealt out to so many tests, that each may be short."""
POINTS = 6
"""For each share; test_commit_every_step kills before and after steps besides."""


def populate(root: bytes) -> None:
    for directory in (b"d/sub", b"e", b"f"):
        os.makedirs(os.path.join(root, directory))
    for name in (b"a", b"b", b"c", b"d/x", b"d/sub/y", b"e/x", b"f/1", b"f/2"):
        Path(os.fsdecode(os.path.join(root, name))).write_bytes(b"base " + name)
    os.mkdir(os.path.join(root, b"g"))
    for number in (b"1", b"2", b"3"):
        Path(os.fsdecode(os.path.join(root, b"g/one" + number))).write_bytes(b"linked " + number)
        os.link(os.path.join(root, b"g/one" + number), os.path.join(root, b"g/other" + number))


def work(view: CoreDriver | PlainDirectory) -> None:
    """Leave something for every kind of step."""
    view.rename(b"a", b"t")
    view.rename(b"b", b"a")
    view.rename(b"t", b"b")
    view.overwrite(b"c", b"new c")
    view.chmod(b"e/x", 0o600)
    view.mkdir(b"new", 0o750)
    view.create(b"new/file", b"made", 0o640)
    view.link(b"new/file", b"e/link")
    view.symlink(b"somewhere", b"new/soft")
    view.rename(b"f", b"new/f")
    view.unlink(b"new/f/1")
    view.unlink(b"d/sub/y")
    view.rmdir(b"d/sub")
    view.unlink(b"d/x")
    view.rmdir(b"d")
    view.create(b"d", b"now a file", 0o644)
    view.utimes(b"e", 1_000_000_000_000_000_000)
    view.overwrite(b"g/one1", b"both change")
    view.write_without_name(b"g/one2", b"through a handle")
    view.unlink(b"g/one3")


def prepare(project: Path) -> dict[bytes, tuple[Any, ...]]:
    """Make a project with that work staged, and return what the view shows."""
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    populate(os.fsencode(project))
    view = CoreDriver(os.fsencode(project))
    work(view)
    expected = view.tree()
    view.close()
    return expected


def lines(total: int, share: int, shares: int) -> list[int]:
    """Return at which of so many lines one of so many shares is killed."""
    return points(range(1, total + 1), "lines", some=POINTS, share=share, shares=shares)


def killed_at(line: int, project: bytes, paths: tuple[bytes, ...] = (b"",)) -> int:
    """Commit ``paths`` in a child that kills itself at its ``line``-th line; return how many it ran
    if it did not.
    """

    def act(session: Session) -> None:
        commit(session, selection=Selection(session.regions, paths=tuple(map(RelPath, paths))))

    return dies_at(line, project, act)


def dies_at(line: int, project: bytes, act: Callable[[Session], object]) -> int:
    """Do something in a child that kills itself at its ``line``-th line; return how many it ran if
    it did not.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _act_and_die(line, project, act, writing)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0), status
    return int(said or b"0")


def _act_and_die(line: int, project: bytes, act: Callable[[Session], object], writing: int) -> None:
    count = 0
    traced = tuple(f"yolofs.{name}" for name in TRACED)
    known: dict[str, bool] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        name = frame.f_globals.get("__name__", "")
        if name not in known:
            known[name] = name.startswith(traced)
        if not known[name]:
            return None
        if event == "line":
            count += 1
            if count == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    forget_what_was_read()
    try:
        with Session.open(project, SessionAccess.WRITE) as session:
            sys.settrace(trace)
            act(session)
            sys.settrace(None)
        os.write(writing, b"%d" % count)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the parent has to know
        os.write(2, repr(error).encode())
        os._exit(1)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_killed_at_a_line_is_finished_and_base_is_the_view(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    assert total > 500
    was_interrupted = 0
    for line in lines(total, share, SHARES):
        expected = prepare(directory)
        killed_at(line, project)
        with Session.open(project, SessionAccess.WRITE) as session:
            was_interrupted += session.interrupted_commit() is not None
            finish_interrupted(session)
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, f"killed at line {line} of {total}"
    assert was_interrupted >= POINTS // 6  # the others died while planning or making, or when all was done


def exactly(project: Path) -> dict[str, tuple[int, ...]]:
    """Return all that tells what base is: kind, mode, owner, inode number, size and time of
    everything in it.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in (project, *project.rglob("*")):
        if ".yolofs" not in path.parts:
            st = path.lstat()
            found[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_size, st.st_mtime_ns, st.st_nlink)
    return found


def has_way_back(project: bytes) -> bool:
    """Tell whether a commit was interrupted, and that before all of it was durable."""
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        if found is not None and found.way_back is None:
            finish_interrupted(session)
        return found is not None and found.way_back is not None


@pytest.mark.parametrize("share", range(SHARES))
def test_a_commit_killed_at_a_line_is_taken_back_even_if_that_is_killed_too(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    taken_back = 0
    drawing = dice("taking back is killed", share)
    for line in lines(total, share, SHARES):
        where = f"killed at line {line} of {total}"
        expected = prepare(directory)
        before, contents = exactly(directory), by_first_name(dict(walk_tree(project)))
        killed_at(line, project)
        if has_way_back(project):
            dies_at(drawing.randrange(20, 320), project, roll_back_interrupted)
            with Session.open(project, SessionAccess.WRITE) as session:
                roll_back_interrupted(session)
                assert session.interrupted_commit() is None, where
            assert exactly(directory) == before, where
            assert by_first_name(dict(walk_tree(project))) == contents, where
            taken_back += 1
        with Session.open(project, SessionAccess.WRITE) as session:
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert taken_back >= POINTS // 6


@pytest.mark.parametrize("share", range(how_many(ci=1, nightly=16)))
def test_a_commit_that_was_killed_while_taken_back_can_be_finished_instead(tmp_path: Path, share: int) -> None:
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project)
    finished = 0
    drawing = dice("finished all the same", share)
    for _ in range(POINTS):
        expected = prepare(directory)
        line, back = drawing.randrange(total - total // 4, total - total // 6), drawing.randrange(100, 1100)
        where = f"killed at line {line} of {total}, and at line {back} of taking back"
        killed_at(line, project)
        dies_at(back, project, roll_back_interrupted)
        with Session.open(project, SessionAccess.WRITE) as session:
            finished += finish_interrupted(session) is not None
            commit(session)
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert finished


SOME = (b"a", b"b", b"c", b"new", b"d", b"g")
"""Of each kind of step one is taken and, where there are two, one stays; what moved out of ``f`` is
held back.
"""
SOME_SHARES = how_many(ci=1, nightly=64)


@pytest.mark.parametrize("share", range(SOME_SHARES))
def test_a_commit_of_some_paths_is_finished_and_the_rest_stays_staged(tmp_path: Path, share: int) -> None:
    """The view is the same all the time; base is what it was, or all that was selected is in it."""
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    before = by_first_name(dict(walk_tree(project)))
    total = killed_at(0, project, SOME)
    after = by_first_name(dict(walk_tree(project)))
    assert total > 500
    assert after != before
    seen = set[bool]()
    for line in and_more(lines(total, share, SOME_SHARES), range(total - 1, 0, -total // 40), lambda: len(seen) == 2):
        where = f"killed at line {line} of {total}"
        expected = prepare(directory)
        killed_at(line, project, SOME)
        with Session.open(project, SessionAccess.WRITE) as session:
            seen.add(session.interrupted_commit() is not None)
            finish_interrupted(session)
        now = by_first_name(dict(walk_tree(project)))
        assert now in (before, after), where
        view = CoreDriver(project)
        assert view.tree() == expected, where
        view.commit_paths(list(SOME))
        assert by_first_name(dict(walk_tree(project))) == after, where
        assert view.tree() == expected, where
        view.commit()
        assert view.tree() == expected, where
        view.close()
        assert by_first_name(dict(walk_tree(project))) == expected, where
    assert seen == {True, False}


LAST_SHARES = how_many(ci=1, nightly=8)


@pytest.mark.parametrize("share", range(LAST_SHARES))
def test_nothing_is_lost_between_the_journal_that_ends_and_the_one_that_follows(tmp_path: Path, share: int) -> None:
    """At some of the last lines, by which base is as it will be."""
    directory = tmp_path / "project"
    project = os.fsencode(directory)
    prepare(directory)
    total = killed_at(0, project, SOME)
    after = by_first_name(dict(walk_tree(project)))
    for line in points(range(total - 319, total + 1), "last", some=POINTS, share=share, shares=LAST_SHARES):
        expected = prepare(directory)
        killed_at(line, project, SOME)
        view = CoreDriver(project)
        if view.session.interrupted_commit() is not None:
            view.close()
            with Session.open(project, SessionAccess.WRITE) as session:
                finish_interrupted(session)
            view = CoreDriver(project)
        assert view.tree() == expected, f"killed at line {line} of {total}"
        assert view.session.timeline.resolve("left by commit 1") == 1
        view.close()
        assert by_first_name(dict(walk_tree(project))) == after
