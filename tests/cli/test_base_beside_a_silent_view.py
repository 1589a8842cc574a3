"""Base never looks below a yolofs mount: one that is paused, or whose daemon has stopped, would not
answer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.required import do_without
from yolofs.store.base import Base

pytestmark = pytest.mark.mount
ATTRIBUTES_S = 1.5
"""Longer than the kernel may keep what base has."""
PATIENCE_S = 15.0
LOOKS: dict[str, Callable[[Base, bytes], object]] = {
    "lstat": Base.lstat,
    "lstat_in": lambda base, rel: base.lstat_in(os.open("/", os.O_PATH), rel, rel),
    "names": Base.names,
    "open": Base.open,
    "may_have": Base.may_have,
    "holds_hidden": Base.holds_hidden,
    "is_hidden_name": lambda base, rel: base.is_hidden_name(rel, b".yolofs"),
}
_BIND, _DETACH = 4096, 2


@pytest.fixture(params=["the mount", "a bind mount of it"])
def silent(yolofs: Program, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Base, bytes]]:
    """Base, and a path of it that leads to a directory in a mount whose daemon has stopped."""
    (yolofs.project / "d").mkdir()
    (yolofs.project / "link").symlink_to("d")
    with ExitStack() as stack:
        mountpoint = stack.enter_context(yolofs.mounted("--root", "."))
        if request.param != "the mount":
            bound = tmp_path / "bound"
            bound.mkdir()
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mount(bytes(mountpoint), bytes(bound), None, _BIND, None):
                do_without("mounting is not permitted here")
            stack.callback(libc.umount2, bytes(bound), _DETACH)
            mountpoint = bound
        base = Base(b"/")
        assert list((mountpoint / "d").iterdir()) == []
        time.sleep(ATTRIBUTES_S)  # the kernel tells nobody when it has forgotten them
        pid = yolofs.daemon["pid"]
        os.kill(pid, signal.SIGSTOP)
        stack.callback(os.kill, pid, signal.SIGCONT)
        yield base, os.fsencode(mountpoint / "d").lstrip(b"/")


def ended(act: Callable[[], object]) -> str:
    """Return how something ends in a process of its own, which is killed if it does not."""
    child = os.fork()
    if not child:
        try:
            act()
        except FileNotFoundError:
            os._exit(2)
        finally:
            os._exit(0)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return {0: "answered", 2: "nothing there"}[os.waitstatus_to_exitcode(status)]
        time.sleep(0.01)  # between two looks whether it has ended
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "waits"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root binds a mount, and knows where it may look")
def test_no_look_at_base_enters_a_mount_that_does_not_answer(silent: tuple[Base, bytes]) -> None:
    base, rel = silent
    raising = {"lstat", "lstat_in", "names", "open"}
    for name, look in LOOKS.items():
        for path in (rel, rel + b"/deep", rel.rpartition(b"/")[0] + b"/link"):
            how = ended(partial(look, base, path))
            assert how == ("nothing there" if name in raising else "answered"), (name, path)
