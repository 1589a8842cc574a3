"""Which mounts there are, and taking one away."""

from __future__ import annotations

import contextlib
import errno
import os

import msgspec

from yolofs.errors import MountError
from yolofs.paths import display, is_below
from yolofs.system.host_programs import find_program
from yolofs.system.mount_table import unescape

FILESYSTEM_TYPE = b"fuse.yolofs"
_MOST_LINKS = 40
"""As many as the kernel follows in one path."""
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8


class MountEntry(msgspec.Struct, frozen=True):
    """One line of mountinfo."""

    mount_id: int
    device: bytes
    """``major:minor``, decimal."""
    mountpoint: bytes
    type: bytes


def read_mounts(pid: int | str = "self") -> list[MountEntry]:
    """Return the mounts that a process sees, in the order in which they were made.

    Raises:
        OSError: the process is gone, or somebody else's.
    """
    with open(f"/proc/{pid}/mountinfo", "rb") as lines:
        return [entry for line in lines if (entry := _parse(line)) is not None]


def mounts_at(mountpoint: bytes) -> list[MountEntry]:
    """Return what is mounted exactly at ``mountpoint``, an absolute path without links; the last
    one is on top.
    """
    return [entry for entry in read_mounts() if entry.mountpoint == mountpoint]


def is_ours(entry: MountEntry) -> bool:
    """Tell whether it is a yolofs mount."""
    return entry.type == FILESYSTEM_TYPE


def detach_stale(mountpoint: bytes) -> int:
    """Take away what a dead daemon left at ``mountpoint`` and return how many mounts that were.

    Danger: the caller holds the session's lock, so that no living daemon serves it.

    Raises:
        MountError: something else is mounted there, or it cannot be taken away.
    """
    count = 0
    while found := mounts_at(mountpoint):
        if not is_ours(found[-1]):
            raise MountError(
                f"{display(mountpoint)} already has a mount of type {display(found[-1].type)}",
                hint=f"umount {display(mountpoint)}",
            )
        try:
            unmount(mountpoint, lazy=True)
        except OSError as error:
            raise MountError(
                f"cannot take away the dead mount at {display(mountpoint)}: {error.strerror}",
                hint=f"fusermount3 -u -z {display(mountpoint)}",
            ) from error
        count += 1
    return count


def unmount(mountpoint: bytes, *, lazy: bool) -> None:
    """Unmount; with ``lazy`` also while processes are inside.  Blocks until the filesystem has
    written out.

    Raises:
        OSError: EBUSY while processes are inside, EINVAL if nothing is mounted there.
    """
    import ctypes  # this and more of it takes long, and looking at mounts does without
    import subprocess

    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(mountpoint, _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazy else 0)):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return
    program = find_program("fusermount3")
    if program is None:
        raise FileNotFoundError(errno.ENOENT, "fusermount3 is not installed")
    done = subprocess.run(
        [os.fsencode(program), b"-u", *([b"-z"] if lazy else []), b"--", mountpoint],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise _fusermount_error(done.stderr)


def _fusermount_error(message: bytes) -> OSError:
    """Return what fusermount3 complained about as the errno behind it; it speaks the C library's
    English.
    """
    text = message.decode(errors="replace").strip()
    for number in (errno.EBUSY, errno.EINVAL, errno.EPERM, errno.ENOENT):
        if os.strerror(number) in text:
            return OSError(number, text)
    return OSError(errno.EIO, text or "fusermount3 failed")


def _parse(line: bytes) -> MountEntry | None:
    before, separator, after = line.partition(b" - ")
    fields = before.split(b" ")
    if not separator or len(fields) < 5:
        return None
    return MountEntry(int(fields[0]), fields[2], unescape(fields[4]), after.split(b" ", 1)[0])


def is_inside_mount(path: bytes) -> bool:
    """Tell whether a path leads into a yolofs mount, by its name or by links on the way.

    Nothing is looked at there: a mount that is paused, or whose daemon has stopped, does not
    answer, and the kernel lets no signal that a process catches end the wait for it.
    """
    with open("/proc/self/mountinfo", "rb") as file:
        text = file.read()
    if FILESYSTEM_TYPE not in text:  # nearly always
        return False
    entries = (_parse(line) for line in text.split(b"\n") if FILESYSTEM_TYPE in line)
    places = [entry.mountpoint for entry in entries if entry is not None and is_ours(entry)]
    try:
        todo, at = os.path.join(os.getcwdb(), path).split(b"/"), b"/"
    except FileNotFoundError:  # the current directory was removed
        return False
    links = 0
    while todo:
        name = todo.pop(0)
        above, at = at, os.path.normpath(os.path.join(at, name))
        if any(is_below(at, place) for place in places):
            return True
        with contextlib.suppress(OSError):  # it is no link, or not there
            target = os.readlink(at)
            links += 1
            if links > _MOST_LINKS:
                return False
            todo, at = [*target.split(b"/"), *todo], b"/" if target.startswith(b"/") else above
    return False
