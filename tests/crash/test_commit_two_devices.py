"""A commit whose files lie on two devices, killed at one line of its code after another: the same
as on one.

Whatever moves from one device to the other is copied, and deleted when that is durable.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.test_commit_every_line import dies_at, has_way_back, killed_at
from tests.property.core_driver import CoreDriver
from tests.property.plain_directory import by_first_name, walk_tree
from tests.support.fault_points import and_more, points
from tests.support.model_steps import how_many
from tests.support.required import do_without
from tests.support.seed import dice
from tests.support.session_cleaning import remove_sessions_below
from yolofs.commit.apply import execution, keeping, steps
from yolofs.commit.apply.other_devices import FarFolders
from yolofs.commit.apply.ready import Ready
from yolofs.commit.apply.step_log import Line
from yolofs.commit.apply.steps import Steps
from yolofs.commit.apply.trees import remove_tree
from yolofs.commit.plan.plan import Place, Step
from yolofs.errors import ConflictError, NotPreparedError
from yolofs.paths import Generation
from yolofs.session.commit import commit, finish_interrupted, roll_back_interrupted, split_staged
from yolofs.session.session import Access, Session
from yolofs.session.undo import choose, undo
from yolofs.session.up_to import commit_up_to
from yolofs.system import syscalls

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
SHARES = how_many(ci=1, nightly=24)
POINTS = 9
"""For each share; by night every line."""
Prepare = Callable[[], dict[bytes, tuple[Any, ...]]]

FAR = b"far"
SOME = (b"a", b"far/a", b"d", b"far/d", b"c", b"far/gone", b"far/there", b"new")
"""Moves of a file and of a directory are taken, there and back others stay."""


_BIND = 4096
BOTH = pytest.mark.parametrize("project", ["tmpfs", "bind"], indirect=True)
"""On another device, and on another mount of the same one: nothing can be renamed to there
either.
"""


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project in which a directory lies on another device, or mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    directory = tmp_path / "project"
    far = directory / os.fsdecode(FAR)
    far.mkdir(parents=True)
    if getattr(request, "param", "tmpfs") == "bind":
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
    """Return what makes the project anew with that work staged, and returns what the view shows."""

    def prepared() -> dict[bytes, tuple[Any, ...]]:
        populate(project)
        view = CoreDriver(os.fsencode(project))
        work(view)
        expected = view.tree()
        view.close()
        return expected

    return prepared


def lines(share: int, total: int) -> list[int]:
    return points(range(1, total + 1), "two devices", some=POINTS, share=share, shares=SHARES)


def base_of(project: Path) -> dict[bytes, tuple[Any, ...]]:
    return by_first_name(dict(walk_tree(os.fsencode(project))))


def times_shown(project: Path) -> dict[bytes, int]:
    """Return the mtimes that the view shows of directories in which names came or went."""
    with Session.open(os.fsencode(project), Access.READ) as session:
        times: dict[bytes, int] = {path: entry.touched_ns for path, entry in session.state().walk() if entry.touched_ns}
    assert b"far" in times
    return times


def times_of(project: Path, paths: Iterable[bytes]) -> dict[bytes, int]:
    return {path: (project / os.fsdecode(path)).stat().st_mtime_ns for path in paths}


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_all_of_it_is_finished(project: Path, prepare: Prepare, share: int) -> None:
    root = os.fsencode(project)
    prepare()
    total = killed_at(0, root)
    for line in lines(share, total):
        expected = prepare()
        killed_at(line, root)
        with Session.open(root, Access.WRITE) as session:
            finish_interrupted(session)
            commit(session)
        assert base_of(project) == expected, f"killed at line {line} of {total}"
        assert not [name for name in os.listdir(project / "far") if name.startswith(".yolofs")]


@pytest.mark.parametrize("share", range(SHARES))
@BOTH
def test_all_of_it_is_taken_back(project: Path, prepare: Prepare, share: int) -> None:
    root = os.fsencode(project)
    prepare()
    total = killed_at(0, root)
    for line in lines(share, total):
        expected = prepare()
        before = base_of(project)
        killed_at(line, root)
        if has_way_back(root):
            dies_at(line % 400, root, roll_back_interrupted)
            with Session.open(root, Access.WRITE) as session:
                roll_back_interrupted(session)
            assert base_of(project) == before, f"killed at line {line} of {total}"
            assert not [name for name in os.listdir(project / "far") if name.startswith(".yolofs")]
        with Session.open(root, Access.WRITE) as session:
            commit(session)
        assert base_of(project) == expected, f"killed at line {line} of {total}"


@pytest.mark.parametrize("share", range(SHARES))
def test_some_of_it_is_finished_and_the_rest_stays_staged(project: Path, prepare: Prepare, share: int) -> None:
    root = os.fsencode(project)
    prepare()
    before = base_of(project)
    total = killed_at(0, root, SOME)
    after = base_of(project)
    assert after != before
    assert (project / "far/a").read_text() == "project a"
    assert (project / "far/b").read_text() == "far b"
    assert (project / "far/back/file").exists()
    seen = set[bool]()
    for line in and_more(lines(share, total), range(total - 1, 0, -total // 40), lambda: len(seen) == 2):
        where = f"killed at line {line} of {total}"
        expected = prepare()
        killed_at(line, root, SOME)
        with Session.open(root, Access.WRITE) as session:
            seen.add(session.interrupted_commit() is not None)
            finish_interrupted(session)
        assert base_of(project) in (before, after), where
        view = CoreDriver(root)
        assert view.tree() == expected, where
        view.commit_paths(list(SOME))
        assert base_of(project) == after, where
        assert view.tree() == expected, where
        view.commit()
        assert view.tree() == expected, where
        view.close()
        assert base_of(project) == expected, where
    assert seen == {True, False}


def note(
    order: list[str], patch: pytest.MonkeyPatch, module: object, name: str, text: Callable[[tuple[Any, ...]], str]
) -> None:
    """Have each call of a function noted in ``order``, as ``text`` says it of the arguments."""
    really = getattr(module, name)

    def act(*arguments: Any, **options: Any) -> object:
        order.append(text(arguments))
        return really(*arguments, **options)

    patch.setattr(module, name, act)


def test_all_is_made_on_its_device_and_durable_before_the_first_step(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = prepare()
    order: list[str] = []
    noting = partial(note, order, monkeypatch)
    noting(steps.Steps, "_make_file", lambda arguments: f"make on {os.fstat(arguments[2].directory.fd).st_dev}")
    noting(syscalls, "sync_filesystem", lambda arguments: f"sync {os.fstat(arguments[0]).st_dev}")
    noting(execution, "_do_one", lambda _: "step")
    noting(keeping, "copy_tree", lambda arguments: f"copy to {os.stat(os.path.dirname(arguments[1])).st_dev}")
    with Session.open(os.fsencode(project), Access.WRITE) as session:
        commit(session)
    assert base_of(project) == expected
    first = order.index("step")
    near, far = project.stat().st_dev, (project / "far").stat().st_dev
    assert {f"make on {near}", f"make on {far}"} == {one for one in order if one.startswith("make")}
    assert not [one for one in order[first:] if one.startswith("make")]
    assert set(order[first - 2 : first]) == {f"sync {near}", f"sync {far}"}
    copies = [index for index, one in enumerate(order) if one.startswith("copy")]
    assert copies
    for index in copies:  # before anything says that the copy is whole
        assert order[index + 1] == order[index].replace("copy to", "sync")


def test_what_was_copied_is_deleted_when_its_copy_is_durable_and_that_is_durable_before_it_is_done(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    times = times_shown(project)
    order: list[str] = []
    noting = partial(note, order, monkeypatch)
    noting(steps.Steps, "sync", lambda _: "sync")
    noting(steps.Steps, "_discard", lambda _: "delete")
    noting(execution, "write_new", lambda arguments: arguments[1].decode())
    with Session.open(os.fsencode(project), Access.WRITE) as session:
        commit(session)
    deleted = order.count("delete")
    assert deleted > 1
    assert order[order.index("sync") :] == ["sync", "settled", *["delete"] * deleted, "sync", "done"]
    assert times_of(project, times) == times


@BOTH
def test_a_directory_has_its_time_back_though_the_deleting_of_what_was_copied_from_it_was_killed(
    project: Path, prepare: Prepare
) -> None:
    expected = prepare()
    root, times = os.fsencode(project), times_shown(project)
    child = os.fork()
    if not child:
        try:

            def remove_and_die(path: bytes) -> None:
                remove_tree(path)
                if b"/.yolofs-" in path:
                    os.kill(os.getpid(), signal.SIGKILL)

            with pytest.MonkeyPatch.context() as patch, Session.open(root, Access.WRITE) as session:
                patch.setattr(steps, "remove_tree", remove_and_die)
                commit(session)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with Session.open(root, Access.WRITE) as session:
        finish_interrupted(session)
    assert base_of(project) == expected
    assert times_of(project, times) == times


@BOTH
@pytest.mark.parametrize("loses_log", [False, True])
def test_a_step_that_is_done_and_not_in_the_log_is_not_done_twice(
    project: Path, prepare: Prepare, loses_log: bool
) -> None:
    """Killed after each step in turn, before its line; or a power cut has taken the log, and
    nothing else.
    """
    root = os.fsencode(project)
    stride = how_many(ci=5, nightly=1)
    count = itertools.count(dice("steps on two devices", loses_log).randint(1, stride), stride)
    while True:
        expected = prepare()
        times, last = times_shown(project), next(count)
        if not _killed_before_line(root, last):
            break
        with Session.open(root, Access.WRITE) as session:
            directory = session.interrupted_commit()
            assert directory is not None
            if loses_log:
                os.truncate(os.path.join(directory, b"progress"), 0)
            finish_interrupted(session)
        assert base_of(project) == expected, f"killed at step {last}"
        assert times_of(project, times) == times, f"killed at step {last}"
        assert list(project.rglob(".yolofs-*")) == [], f"killed at step {last}"
        assert os.listdir(os.path.join(directory, b"new")) == os.listdir(os.path.join(directory, b"parked")) == []
    assert last > 20


def test_a_name_that_another_user_has_seen_and_taken_blocks_no_commit(project: Path, prepare: Prepare) -> None:
    """The commit is taken back and done again: it has the same number, plan and place."""
    root = os.fsencode(project)
    expected = prepare()
    names: set[Path] = set()
    for last in range(1, 12, 2):
        assert _killed_before_line(root, last)
        names.update(project.rglob(".yolofs-*"))
        with Session.open(root, Access.WRITE) as session:
            roll_back_interrupted(session)
    assert {path.name.rpartition("-")[2].isdigit() for path in names} == {False, True}
    for path in names:
        path.mkdir()
    with Session.open(root, Access.WRITE) as session:
        commit(session)
    for path in names:
        path.rmdir()
    assert base_of(project) == expected


def _killed_before_line(root: bytes, last: int) -> bool:
    """Commit in a child that is killed before it logs so many a step; return whether there are as
    many.
    """
    child = os.fork()
    if not child:
        try:
            calls, really = itertools.count(1), Steps.seen

            def seen(self: Steps, step: Step) -> Line:
                if next(calls) == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                return really(self, step)

            # in a child, which ends: nothing has to be put back
            Steps.seen = seen  # type: ignore[method-assign]
            with Session.open(root, Access.WRITE) as session:
                commit(session)
        finally:
            os._exit(1)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_what_cannot_be_made_leaves_nothing_on_the_other_device(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    before = base_of(project)
    times = {path: path.lstat().st_mtime_ns for path in (project, *project.rglob("*"))}
    monkeypatch.setattr(Steps, "look", no_room)
    with Session.open(os.fsencode(project), Access.WRITE) as session:
        with pytest.raises(NotPreparedError, match="No space left on device"):
            commit(session)
        assert session.interrupted_commit() is None
    assert base_of(project) == before
    assert {path: path.lstat().st_mtime_ns for path in (project, *project.rglob("*"))} == times


def no_room(_: Steps) -> Ready:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@BOTH
@pytest.mark.parametrize(("source", "target"), [("far/", ""), ("", "far/")])
@pytest.mark.parametrize("change", ["mode", "content"])
@pytest.mark.parametrize("is_in_directory", [False, True])
def test_what_was_changed_and_moved_is_committed_again_after_an_undo(
    project: Path, source: str, target: str, change: str, is_in_directory: bool
) -> None:
    top = "moved" if is_in_directory else "file"
    file = f"{source}{top}/f" if is_in_directory else f"{source}{top}"
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).write_text("before")
    view = CoreDriver(os.fsencode(project))
    if change == "mode":
        view.chmod(file.encode(), 0o600)
    else:
        view.overwrite(file.encode(), b"view")
    view.rename(f"{source}{top}".encode(), f"{target}{top}".encode())
    view.close()
    with Session.open(bytes(project), Access.WRITE) as session:
        commit(session)
    after = by_first_name(dict(walk_tree(bytes(project))))
    for _ in range(2):
        with Session.open(bytes(project), Access.WRITE) as session:
            undo(session, choose(session, None))
        assert (project / file).read_text() == "before"
        with Session.open(bytes(project), Access.WRITE) as session:
            commit(session)
        assert by_first_name(dict(walk_tree(bytes(project)))) == after


@BOTH
def test_a_directory_that_was_removed_is_removed_again_after_an_undo(project: Path) -> None:
    (project / "far/gone/sub").mkdir(parents=True)
    (project / "far/gone/sub/x").write_text("x")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"far/gone/sub/x")
    view.rmdir(b"far/gone/sub")
    view.rmdir(b"far/gone")
    view.close()
    for _ in range(2):
        with Session.open(bytes(project), Access.WRITE) as session:
            commit(session)
        assert not (project / "far/gone").exists()
        with Session.open(bytes(project), Access.WRITE) as session:
            undo(session, choose(session, None))
        assert (project / "far/gone/sub/x").read_text() == "x"
    (project / "far/gone/sub/x").write_text("y")
    with Session.open(bytes(project), Access.WRITE) as session, pytest.raises(ConflictError):
        commit(session)


@BOTH
@pytest.mark.parametrize(("source", "target"), [("far/", ""), ("", "far/")])
@pytest.mark.parametrize("change", ["mode", "content"])
def test_of_a_changed_file_that_moved_along_each_name_is_staged_by_itself_after_an_undo(
    project: Path, source: str, target: str, change: str
) -> None:
    directory = project / f"{source}moved"
    directory.mkdir()
    (directory / "one").write_text("before")
    (directory / "two").hardlink_to(directory / "one")
    view = CoreDriver(os.fsencode(project))
    if change == "mode":
        view.chmod(f"{source}moved/one".encode(), 0o600)
    else:
        view.overwrite(f"{source}moved/one".encode(), b"view")
    view.rename(f"{source}moved".encode(), f"{target}moved".encode())
    view.close()
    with Session.open(bytes(project), Access.WRITE) as session:
        commit(session)
    committed = base_of(project)
    with Session.open(bytes(project), Access.WRITE) as session:
        undone = undo(session, choose(session, None))
    assert set(undone.left_out) == {f"{target}moved/{name}".encode() for name in ("one", "two")}
    assert [(directory / name).read_text() for name in ("one", "two")] == ["before", "before"]
    assert (directory / "one").samefile(directory / "two")
    view = CoreDriver(os.fsencode(project))
    shown = view.tree()
    view.close()
    assert {path: what[:5] for path, what in shown.items()} == {path: what[:5] for path, what in committed.items()}
    with Session.open(bytes(project), Access.WRITE) as session:
        commit(session)
    assert base_of(project) == shown


def test_what_there_was_no_place_to_make_before_is_durable_before_a_note_says_that_it_is_whole(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = prepare()
    calls: list[str] = []

    def noting(module: object, name: str, text: Callable[[tuple[Any, ...]], str]) -> None:
        really = getattr(module, name)

        def act(*arguments: Any, **options: Any) -> object:
            calls.append(text(arguments))
            return really(*arguments, **options)

        monkeypatch.setattr(module, name, act)

    monkeypatch.setattr(FarFolders, "on", lambda *_: None)
    noting(syscalls, "sync_filesystem", lambda arguments: f"sync {os.fstat(arguments[0]).st_dev}")
    noting(
        os, "fsync", lambda arguments: f"sync names in {os.path.basename(os.readlink(f'/proc/self/fd/{arguments[0]}'))}"
    )
    noting(os, "symlink", lambda arguments: "note" if b"-is-" in arguments[1] else "symlink")
    noting(syscalls, "rename_noreplace", lambda arguments: "copied" if arguments[3].endswith(b"-copied") else "rename")
    with Session.open(os.fsencode(project), Access.WRITE) as session:
        commit(session)
    assert base_of(project) == expected
    devices = {f"sync {path.stat().st_dev}" for path in (project, project / "far")}
    notes = [index for index, call in enumerate(calls) if call == "note"]
    assert notes
    for index in notes:
        assert calls[index - 1] in devices, calls[index - 3 : index + 3]
        assert calls[index + 1] == "sync names in new", calls[index - 3 : index + 3]
    copies = [index for index, call in enumerate(calls) if call == "copied"]
    assert copies
    for index in copies:
        assert calls[index + 1].startswith("sync names in "), calls[index - 3 : index + 3]


@BOTH
@pytest.mark.parametrize("by_the_host", [False, True], ids=["untouched", "changed by the host"])
def test_what_was_copied_before_a_kill_is_no_conflict_with_what_stays_staged(
    project: Path, *, by_the_host: bool
) -> None:
    populate(project)
    root = os.fsencode(project)
    view = CoreDriver(root)
    view.rename(b"d", b"far/moved")
    view.snapshot()
    view.overwrite(b"far/moved/x", b"later")
    view.close()
    child = os.fork()
    if not child:
        really = Steps.do

        def do(self: Steps, step: Step) -> None:
            really(self, step)
            if isinstance(step, Place):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with pytest.MonkeyPatch.context() as patch, Session.open(root, Access.WRITE) as session:
                patch.setattr(Steps, "do", do)
                commit_up_to(session, split=split_staged(session, None, tree=session.state(Generation(1))))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    if by_the_host:
        (project / "far/moved/x").write_text("the host's")
    with Session.open(root, Access.WRITE) as session:
        finish_interrupted(session)
    with Session.open(root, Access.WRITE) as session:
        if by_the_host:
            with pytest.raises(ConflictError):
                commit(session)
        else:
            commit(session)
    assert (project / "far/moved/x").read_text() == ("the host's" if by_the_host else "later")
    assert not (project / "d").exists()
