"""What blocks a travel or an unmount: processes that write to files, or are inside the mount."""

from __future__ import annotations

import contextlib
import time

from yolofs.daemon.loop_calls import Call
from yolofs.errors import BusyFilesError
from yolofs.overlay import Overlay
from yolofs.paths import display
from yolofs.store.base import Base
from yolofs.system.mount_users import FileUse, UseKind, find_users
from yolofs.system.mounts import MountEntry, is_ours, mounts_at

_CLOSE_WAIT_S = 1.0
"""How long after close(2) has returned its release may still arrive."""


class Blockers:
    """Who uses the mount at ``mountpoint``."""

    def __init__(self, base: Base, overlay: Overlay, mountpoint: bytes, call: Call) -> None:
        self._base = base
        self._overlay = overlay
        self._mountpoint = mountpoint
        self._call = call

    def wait_for_writers(self) -> None:
        """Wait for the last close(2) to reach us; not on the device loop.

        Raises:
            BusyFilesError: processes have files open for writing.
        """
        deadline = time.monotonic() + _CLOSE_WAIT_S
        while True:
            is_over = time.monotonic() > deadline  # asked before the look, which is to come after whatever held us up
            if not self._call(self._overlay.writers):
                return
            users = [user for user in self._users() if user.use is UseKind.WRITING]
            if users or is_over:
                raise _busy(_lines(users) or self._call(self._writer_paths))
            time.sleep(0.005)  # between two looks: a close that is on its way is told by nobody

    def check_no_writers(self) -> None:
        """Look once, on the device loop.

        Raises:
            BusyFilesError: files are open for writing.
        """
        if self._overlay.writers():
            raise _busy(self._writer_paths())

    def inside(self) -> list[str]:
        """Return who has anything to do with the mount, a line each."""
        return _lines(self._users())

    def _writer_paths(self) -> list[str]:
        paths = []
        for inode in self._overlay.writers():
            with contextlib.suppress(FileNotFoundError):
                paths.append(f"? ? {display(self._base.path(self._overlay.path(inode)))}")
        return paths

    def _users(self) -> list[FileUse]:
        entry = mount_entry(self._mountpoint)
        return find_users(entry, self._base.root) if entry is not None else []


def mount_entry(mountpoint: bytes) -> MountEntry | None:
    """Return the entry of a mount of ours in the table of mounts, None if there is none."""
    ours = [entry for entry in mounts_at(mountpoint) if is_ours(entry)]
    return ours[-1] if ours else None


def _busy(lines: list[str]) -> BusyFilesError:
    return BusyFilesError("files are open for writing", users=lines, hint="close them, or: yolofs travel --force")


def _lines(users: list[FileUse]) -> list[str]:
    return list(dict.fromkeys(map(str, users)))
