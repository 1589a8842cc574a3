"""Has the project's base files watched, so that the kernel may cache what it was told of them for
longer.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial

import trio

from yolofs.daemon.follow.base_changes import BaseChanges
from yolofs.errors import DaemonError
from yolofs.fuse.mount import LOOK_AT_OPEN_S
from yolofs.overlay import HostChange
from yolofs.paths import is_in
from yolofs.system.mounts import read_mounts

log = logging.getLogger("yolofs.daemon")

LOCAL_TYPES = frozenset(b"bcachefs btrfs ext2 ext3 ext4 f2fs overlay ramfs tmpfs xfs zfs".split())
"""Filesystem types that nobody but this machine changes: of others, inotify(7) would not see
everything.
"""
MAX_DIRECTORIES = 50_000
_SHARE = 4
"""At most this part of the user's inotify watches is taken."""
_LIMIT_FILE = "/proc/sys/fs/inotify/max_user_watches"
_LOOK_S = 0.5
"""How often files are looked at that a watch may have missed, so that a change by the host shows
within a second.
"""
_DELAY_S = 1.0
"""A mount that serves one command need not be watched, and one that starts has other things to
do.
"""
_LONGEST_PAUSE_S = 60.0
"""How long it takes at most until another watcher follows one that has ended; each pause is twice
the one before.
"""


async def watch_base(base: BaseChanges) -> None:
    """Watch until cancelled.  Where that cannot be done, only the log says so."""
    top = base.watchable()
    if top is None:
        return
    await trio.sleep(_DELAY_S)
    kind = _filesystem_of(top)
    if kind not in LOCAL_TYPES:
        log.info("the project is not watched: others may change what is on %s", os.fsdecode(kind))
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_look_after_watched, base)
        pause_s = _DELAY_S
        while not await _watch(base, top, is_again=pause_s > _DELAY_S):
            log.warning("the watcher of the project has ended; another one begins in %.0f s", pause_s)
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


async def _watch(base: BaseChanges, top: bytes, *, is_again: bool) -> bool:
    """Watch until the watcher ends; return whether it said why.  From then on nobody notices
    changes, so the kernel has to forget what it was told for long.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "yolofs.daemon.follow.watcher",
        "--limit",
        str(_limit()),
        "--",
        os.fsdecode(top),
    ]
    command += map(os.fsdecode, base.unwatched())
    run = partial(trio.run_process, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(run)
        try:
            said_why = await _listen(base, process, is_again=is_again)
        finally:
            with trio.CancelScope(shield=True):
                await _in_thread(partial(base.watch, on=False))
            nursery.cancel_scope.cancel()
    await _in_thread(partial(base.forget_watched))
    return said_why


async def _listen(base: BaseChanges, process: trio.Process, *, is_again: bool) -> bool:
    """Pass on what the process reports until it ends; return whether the last of that says why."""
    assert process.stdout is not None
    pending = b""
    letter = b""
    async for data in process.stdout:
        *records, pending = (pending + data).split(b"\0")
        changes: list[HostChange] = []
        for record in records:
            letter, path = record[:1], record[1:]
            if letter == b".":
                await _in_thread(partial(base.watch, on=True))
                log.info("the project is watched")
                if is_again:  # of what happened meanwhile nobody has told
                    await _in_thread(partial(base.forget_watched))
            elif letter == b"?":
                log.info("the project is not watched well: %s", path.decode(errors="replace"))
            elif letter == b"!":
                await _in_thread(partial(base.forget_watched))
            else:
                changes += base.at(path, is_name=letter != b"*")
        if changes:
            await _in_thread(partial(base.tell, changes))
    return letter == b"?"


async def look_after_open(base: BaseChanges) -> None:
    """Look at what is open, watched or not, until cancelled."""
    while True:
        await trio.sleep(LOOK_AT_OPEN_S)
        if base.has_open_files:
            await _in_thread(partial(base.look_at_open))


async def _look_after_watched(base: BaseChanges) -> None:
    while True:
        await trio.sleep(_LOOK_S)
        if base.is_trusted:
            await _in_thread(partial(base.look_after_watched))


async def _in_thread(function: partial[None]) -> None:
    try:
        await trio.to_thread.run_sync(function)
    except DaemonError:
        log.debug("the mount has ended")


def _filesystem_of(path: bytes) -> bytes:
    """Return the type of the filesystem that a path is on."""
    around = [entry for entry in read_mounts() if is_in(path, entry.mountpoint)]
    return max(around, key=lambda entry: len(entry.mountpoint)).type if around else b"an unknown filesystem"


def _limit() -> int:
    """Return how many directories may be watched."""
    try:
        with open(_LIMIT_FILE, "rb") as file:
            return min(MAX_DIRECTORIES, int(file.read()) // _SHARE)
    except (OSError, ValueError):
        return 0
