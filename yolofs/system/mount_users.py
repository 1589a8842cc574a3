"""Finds the users of a mount in ``/proc``, and never touches the mount itself, which might hang.

Files are recognised by their mount's number (``mnt_id`` in fdinfo), looked up in the mount table
that their process sees, and mappings by the device number.  Processes of other users stay unseen,
except to root.
"""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterator
from typing import NamedTuple

from yolofs.paths import display
from yolofs.system.mounts import MountEntry, read_mounts


class UseKind(enum.Enum):
    """How a process uses a file or directory in the mount."""

    WRITING = "writing"
    READING = "reading"
    INSIDE = "inside"
    """It is the working directory, the root directory or the program."""


class FileUse(NamedTuple):
    """One use of one file."""

    pid: int
    name: str
    """The process' name, printable."""
    use: UseKind
    path: bytes
    """Absolute as the host names it, that is without the mountpoint; empty if it is not known."""

    def __str__(self) -> str:
        return f"{self.pid} {self.name} {display(self.path)}"


def find_users(mount: MountEntry, root: bytes = b"/") -> list[FileUse]:
    """Return all uses of ``mount`` but our own, by pid; ``root`` is the directory that it shows.

    Takes some milliseconds for each hundred processes.
    """
    finder = _Finder(mount, root)
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [user for pid in pids if pid != os.getpid() for user in finder.users(pid)]


class _Finder:
    def __init__(self, mount: MountEntry, root: bytes) -> None:
        self._mount = mount
        self._root = root
        major, minor = mount.device.split(b":")
        self._maps_device = b" %02x:%02x " % (int(major), int(minor))
        self._ids: dict[str, frozenset[bytes]] = {}
        """For each mount namespace: the numbers of our mount's copies in it."""

    def users(self, pid: int) -> Iterator[FileUse]:
        seen: set[tuple[UseKind, bytes]] = set()
        with contextlib.suppress(OSError):  # gone, or not ours to look at
            ids = self._ids_for(pid)
            if not ids:
                return
            name = ""
            for use, path in self._uses(pid, ids):
                if (use, path) not in seen:
                    seen.add((use, path))
                    name = name or _process_name(pid)
                    yield FileUse(pid, name, use, self._host_path(path))

    def _uses(self, pid: int, ids: frozenset[bytes]) -> Iterator[tuple[UseKind, bytes]]:
        for link in ("cwd", "root", "exe"):
            if _mount_id(f"/proc/{pid}/{link}") in ids:
                yield UseKind.INSIDE, _readlink(f"/proc/{pid}/{link}")
        yield from self._open_files(pid, ids)
        yield from self._mappings(pid)

    def _open_files(self, pid: int, ids: frozenset[bytes]) -> Iterator[tuple[UseKind, bytes]]:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                fields = _fdinfo(f"/proc/{pid}/fdinfo/{fd}")
                if fields[b"mnt_id"] in ids:
                    writes = int(fields[b"flags"], 8) & os.O_ACCMODE != os.O_RDONLY
                    yield UseKind.WRITING if writes else UseKind.READING, _readlink(f"/proc/{pid}/fd/{fd}")

    def _mappings(self, pid: int) -> Iterator[tuple[UseKind, bytes]]:
        """Yield the files that are mapped, which keeps them in use after their descriptor was
        closed.
        """
        maps = _read(f"/proc/{pid}/maps")
        if self._maps_device not in maps:
            return
        for line in maps.splitlines():
            if self._maps_device in line:
                fields = line.split(None, 5)
                is_shared_writable = fields[1][1:2] == b"w" and fields[1][3:4] == b"s"
                yield UseKind.WRITING if is_shared_writable else UseKind.READING, fields[5] if len(fields) > 5 else b""

    def _ids_for(self, pid: int) -> frozenset[bytes]:
        namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        ids = self._ids.get(namespace)
        if ids is None:
            same = (entry for entry in read_mounts(pid) if entry.device == self._mount.device)
            ids = self._ids[namespace] = frozenset(b"%d" % entry.mount_id for entry in same)
        return ids

    def _host_path(self, path: bytes) -> bytes:
        prefix = self._mount.mountpoint
        if path != prefix and not path.startswith(prefix + b"/"):
            return path
        return os.path.join(self._root, path[len(prefix) + 1 :]).rstrip(b"/") or b"/"


def _mount_id(link: str) -> bytes:
    """Return the number of the mount that a link of ``/proc`` leads into; asks nothing of that
    filesystem.
    """
    try:
        fd = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return _fdinfo(f"/proc/self/fdinfo/{fd}")[b"mnt_id"]
    finally:
        os.close(fd)


def _fdinfo(path: str) -> dict[bytes, bytes]:
    fields = (line.partition(b":") for line in _read(path).splitlines())
    return {key: value.strip() for key, _, value in fields}


def _process_name(pid: int) -> str:
    try:
        return display(_read(f"/proc/{pid}/comm").rstrip(b"\n")) or "?"
    except OSError:
        return "?"


def _readlink(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
