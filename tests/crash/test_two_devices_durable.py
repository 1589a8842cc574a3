"""A commit over two devices: files that move between them are copied, and deleted once the copy is
durable.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.two_devices import Prepare, base_of, prepare, project, times_of, times_shown
from tests.support.core_driver import CoreDriver
from yolofs.commit.apply import execution, keeping, steps
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.other_devices import FarFolders
from yolofs.commit.apply.ready import Looks, Ready
from yolofs.commit.apply.step_log import LoggedStep
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Step
from yolofs.errors import NotPreparedError, YolofsError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.system import syscalls

__all__ = ["prepare", "project"]

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]


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
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
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
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)
    deleted = order.count("delete")
    assert deleted > 1
    assert order[order.index("sync") :] == ["sync", "settled", *["delete"] * deleted, "sync", "done"]
    assert times_of(project, times) == times


def test_a_commit_that_has_no_room_leaves_nothing_on_the_other_device(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    before = base_of(project)
    times = {path: path.lstat().st_mtime_ns for path in (project, *project.rglob("*"))}
    monkeypatch.setattr(Steps, "look", no_room)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        with pytest.raises(NotPreparedError, match="No space left on device"):
            commit(session)
        assert session.interrupted_commit() is None
    assert base_of(project) == before
    assert {path: path.lstat().st_mtime_ns for path in (project, *project.rglob("*"))} == times


def no_room_to_log(_steps: Steps, _step: Step) -> LoggedStep:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_room(_: Steps, _seen: Mapping[FileNumbers, Looks]) -> Ready:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_copy_made_in_the_switch_is_durable_before_a_note_calls_it_whole(
    project: Path, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = prepare()
    calls: list[str] = []
    noting = partial(note, calls, monkeypatch)
    monkeypatch.setattr(FarFolders, "folder_in", lambda *_: None)
    noting(syscalls, "sync_filesystem", lambda arguments: f"sync {os.fstat(arguments[0]).st_dev}")
    noting(
        os, "fsync", lambda arguments: f"sync names in {os.path.basename(os.readlink(f'/proc/self/fd/{arguments[0]}'))}"
    )
    noting(os, "symlink", lambda arguments: "note" if b"-is-" in arguments[1] else "symlink")
    noting(syscalls, "rename_noreplace", lambda arguments: "copied" if arguments[3].endswith(b"-copied") else "rename")
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
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


def make_one_there(view: CoreDriver) -> None:
    view.create(b"far/new", b"made there", 0o640)


@pytest.mark.parametrize("ends", ["well", "taken back", "not begun"])
def test_the_folder_on_the_other_device_is_gone_for_good_before_the_commit_has_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """After a power cut nothing tells of it any more."""
    view = CoreDriver(bytes(project))
    make_one_there(view)
    view.close()
    order: list[str] = []
    noting = partial(note, order, monkeypatch)
    noting(os, "rmdir", lambda arguments: "folder removed" if os.fsencode(arguments[0]).endswith(b"-new") else "")
    noting(os, "fsync", lambda arguments: f"sync {os.readlink(f'/proc/self/fd/{arguments[0]}')}")
    noting(execution, "write_new", lambda arguments: arguments[1].decode())
    noting(os, "unlink", lambda arguments: os.path.basename(os.fsdecode(arguments[0])))
    match ends:
        case "taken back":
            monkeypatch.setattr(Steps, "logged", no_room_to_log)
        case "not begun":
            monkeypatch.setattr(Steps, "look", no_room)
        case _:
            pass
    with Session.open(bytes(project), SessionAccess.WRITE) as session:
        if ends == "well":
            commit(session)
        else:
            with pytest.raises(YolofsError):
                commit(session)
    removed = order.index("folder removed")
    end = "done" if ends == "well" else "plan.json"
    assert f"sync {project}/far" in order[removed : order.index(end, removed)]
