"""A project in which a directory lies on another device, or mount, and work that moves files there
and back.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.fault_points import way_of, ways
from tests.support.plain_directory import by_first_name, walk_tree
from tests.support.required import do_without
from tests.support.session_cleaning import remove_sessions_below
from yolofs.commit.apply.step_log import LoggedStep
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess

Prepare = Callable[[], dict[bytes, tuple[Any, ...]]]

FAR = b"far"
_BIND = 4096
BOTH = pytest.mark.parametrize("project", ways("tmpfs", "bind"), indirect=True)
"""On another device, or on another mount of the same one: nothing can be renamed to there either.
By night both, else one that is drawn for each test.
"""


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project in which a directory lies on another device, or mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    directory = tmp_path / "project"
    far = directory / os.fsdecode(FAR)
    far.mkdir(parents=True)
    if hasattr(request, "param") and way_of(request, "tmpfs", "bind") == "bind":
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        source, kind, flags = bytes(elsewhere), None, _BIND
    else:
        source, kind, flags = b"none", b"tmpfs", 0
    if libc.mount(source, bytes(far), kind, flags, None):
        do_without("a tmpfs cannot be mounted: there is no second device to be had")
    try:
        yield directory
    finally:
        assert libc.umount2(bytes(far), 2) == 0


def populate(project: Path) -> None:
    remove_sessions_below(os.fsencode(project))
    for top in (project, project / "far"):
        for entry in top.iterdir():
            if entry.name != "far":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (top / "d/sub").mkdir(parents=True)
        for name in ("a", "b", "c", "there", "d/x", "d/y", "d/sub/z"):
            (top / name).write_text(f"{top.name} {name}")
    (project / "far/gone/deep").mkdir(parents=True)
    (project / "far/gone/deep/file").write_text("gone")
    (project / "far/back").mkdir()
    (project / "far/back/file").write_text("back")


def work(view: CoreDriver) -> None:
    """Move files and directories from one device to the other, exchange some, replace, delete and
    make others.
    """
    view.unlink(b"far/a")
    view.rename(b"a", b"far/a")
    view.rename(b"b", b"t")
    view.rename(b"far/b", b"b")
    view.rename(b"t", b"far/b")
    view.rename(b"d", b"far/moved")
    view.rename(b"far/d", b"d")
    view.rename(b"far/moved", b"far/d")
    view.overwrite(b"far/d/x", b"written after it was moved")
    view.unlink(b"d/sub/z")
    view.rename(b"far/back", b"back")
    view.overwrite(b"c", b"new c")
    view.overwrite(b"far/c", b"new far/c")
    view.unlink(b"far/gone/deep/file")
    view.rmdir(b"far/gone/deep")
    view.rmdir(b"far/gone")
    view.chmod(b"far/there", 0o600)
    view.mkdir(b"new", 0o750)
    view.create(b"new/file", b"made", 0o640)
    view.create(b"far/new", b"made there", 0o640)


@pytest.fixture
def prepare(project: Path) -> Prepare:
    """Return a function that makes the project anew with that work staged, and returns the view's
    tree.
    """

    def prepared() -> dict[bytes, tuple[Any, ...]]:
        populate(project)
        view = CoreDriver(os.fsencode(project))
        work(view)
        expected = view.tree()
        view.close()
        return expected

    return prepared


def base_of(project: Path) -> dict[bytes, tuple[Any, ...]]:
    return by_first_name(dict(walk_tree(os.fsencode(project))))


def times_shown(project: Path) -> dict[bytes, int]:
    """Return the mtimes that the view shows of directories in which names came or went."""
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        times: dict[bytes, int] = {path: entry.touched_ns for path, entry in session.state().walk() if entry.touched_ns}
    assert b"far" in times
    return times


def times_of(project: Path, paths: Iterable[bytes]) -> dict[bytes, int]:
    return {path: (project / os.fsdecode(path)).stat().st_mtime_ns for path in paths}


def killed_before_line(root: bytes, last: int) -> bool:
    """Commit in a child that is killed before it logs so many a step; return whether there are as
    many.
    """
    child = os.fork()
    if not child:
        try:
            calls, really = itertools.count(1), Steps.logged

            def logged(self: Steps, step: Step) -> LoggedStep:
                if next(calls) == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                return really(self, step)

            # in a child, which ends: nothing has to be put back
            Steps.logged = logged  # type: ignore[method-assign]
            with Session.open(root, SessionAccess.WRITE) as session:
                commit(session)
        finally:
            os._exit(1)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
