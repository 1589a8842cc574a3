"""Owners and permissions in the view, as on a plain directory."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_in_python import core_in_python
from tests.support.in_process import MountedView
from yolofs.store.base import Base

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
NOBODY = 65534


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


def run_as_nobody(view: MountedView, code: str) -> str:
    """Run Python code as another user, in the view's root; return what it prints."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    prelude = f"import os; os.chdir({view.mountpoint!r}); os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    done = subprocess.run([sys.executable, "-c", prelude + code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.fixture
def shared(base: Path, mounted: Mounter) -> Mounter:
    """Mounts so that other users can reach the view."""
    if os.getuid() != 0:
        pytest.skip("only root can let other users in")
    os.chmod(base, 0o755)

    def mount() -> MountedView:
        view = mounted(allow_other=True)
        os.chmod(view.mountpoint, 0o755)
        return view

    return mount


@pytest.mark.parametrize("is_staged", [False, True])
def test_o_trunc_by_another_user_takes_setuid_and_setgid_away(base: Path, shared: Mounter, is_staged: bool) -> None:
    (base / "f").write_bytes(b"program")
    (base / "f").chmod(0o6777)
    view = shared()
    if is_staged:
        at(view, "f").chmod(0o6777)
    printed = run_as_nobody(view, "os.close(os.open('f', os.O_WRONLY | os.O_TRUNC)); print(oct(os.stat('f').st_mode))")
    assert printed == "0o100777"
    assert stat.S_IMODE(os.stat(base / "f").st_mode) == 0o6777


def test_o_trunc_by_root_keeps_setuid(base: Path, shared: Mounter) -> None:
    (base / "f").write_bytes(b"program")
    (base / "f").chmod(0o6777)
    view = shared()
    os.close(os.open(at(view, "f"), os.O_WRONLY | os.O_TRUNC))
    assert stat.S_IMODE(at(view, "f").stat().st_mode) == 0o6777


@core_in_python
def test_a_name_that_cannot_be_looked_at_is_listed_all_the_same(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "locked", "z"):
        (base / name).write_bytes(b"")
    view = mounted()
    found = Base._unhidden

    def refusing(base: Base, st: os.stat_result, rel: bytes) -> os.stat_result:
        if rel == b"locked":
            raise PermissionError(errno.EACCES, "as in a directory without x")
        return found(base, st, rel)

    monkeypatch.setattr(Base, "_unhidden", refusing)
    assert sorted(os.listdir(view.mountpoint)) == [b"a", b"locked", b"z"]
    with pytest.raises(PermissionError):
        at(view, "locked").lstat()
    monkeypatch.undo()
    assert at(view, "locked").is_file()
