"""Requests as the kernel sends them, taken apart: those that make, remove or rename names, and what
of any is needed when it has to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yolofs.fuse.direct.kernel_protocol import (
    CREATE_IN,
    HANDLE,
    IN,
    IN_SIZE,
    MKDIR_IN,
    MKNOD_IN,
    RENAME2_IN,
    Opcode,
)
from yolofs.fuse.request import KernelRequest, RequestKind

Buffer = bytearray | bytes
_CREATE_NAME_AT = IN_SIZE + 16
_MKNOD_NAME_AT = IN_SIZE + 16
_MKDIR_NAME_AT = IN_SIZE + 8
_LINK_NAME_AT = IN_SIZE + 8
_RENAME_NAMES_AT = IN_SIZE + 8
_RENAME2_NAMES_AT = IN_SIZE + 16


@dataclass(frozen=True, slots=True)
class Sender:
    """Who has sent a request."""

    uid: int
    gid: int
    pid: int
    """The thread's number; 0 where our pid namespace does not show it."""


def name(buffer: Buffer, size: int) -> bytes:
    """Return the name that a look-up, unlink or rmdir is about."""
    return bytes(buffer[IN_SIZE : size - 1])


def create(buffer: Buffer, size: int) -> tuple[bytes, int, int, int]:
    """Return name, mode, flags and umask of a file to be made and opened."""
    flags, mode, umask, _ = CREATE_IN.unpack_from(buffer, IN_SIZE)
    return bytes(buffer[_CREATE_NAME_AT : size - 1]), mode, flags, umask


def kernels_flags_of_create(buffer: Buffer) -> int:
    """Return the kernel's own flags of such a request."""
    return int(CREATE_IN.unpack_from(buffer, IN_SIZE)[3])


def mknod(buffer: Buffer, size: int) -> tuple[bytes, int, int, int]:
    """Return name, mode, device number and umask of a file to be made."""
    mode, rdev, umask = MKNOD_IN.unpack_from(buffer, IN_SIZE)
    return bytes(buffer[_MKNOD_NAME_AT : size - 1]), mode, rdev, umask


def mkdir(buffer: Buffer, size: int) -> tuple[bytes, int, int]:
    """Return name, mode and umask of a directory to be made."""
    mode, umask = MKDIR_IN.unpack_from(buffer, IN_SIZE)
    return bytes(buffer[_MKDIR_NAME_AT : size - 1]), mode, umask


def symlink(buffer: Buffer, size: int) -> tuple[bytes, bytes]:
    """Return name and target of a link to be made."""
    made, _, target = bytes(buffer[IN_SIZE : size - 1]).partition(b"\0")
    return made, target


def link(buffer: Buffer, size: int) -> tuple[int, bytes]:
    """Return the number of a file, and its new name."""
    return HANDLE.unpack_from(buffer, IN_SIZE)[0], bytes(buffer[_LINK_NAME_AT : size - 1])


def rename(buffer: Buffer, size: int) -> tuple[bytes, int, bytes]:
    """Return old name, new directory and new name; without flags the kernel sends this one."""
    old, _, new = bytes(buffer[_RENAME_NAMES_AT : size - 1]).partition(b"\0")
    return old, HANDLE.unpack_from(buffer, IN_SIZE)[0], new


def rename2(buffer: Buffer, size: int) -> tuple[bytes, int, bytes, int]:
    """Return old name, new directory, new name and flags."""
    directory, flags = RENAME2_IN.unpack_from(buffer, IN_SIZE)
    old, _, new = bytes(buffer[_RENAME2_NAMES_AT : size - 1]).partition(b"\0")
    return old, directory, new, flags


_KINDS = {
    Opcode.LOOKUP: RequestKind.LOOKUP,
    Opcode.GETATTR: RequestKind.GETATTR,
    Opcode.SETATTR: RequestKind.SETATTR,
    Opcode.READLINK: RequestKind.READLINK,
    Opcode.SYMLINK: RequestKind.SYMLINK,
    Opcode.MKNOD: RequestKind.MKNOD,
    Opcode.MKDIR: RequestKind.MKDIR,
    Opcode.UNLINK: RequestKind.UNLINK,
    Opcode.RMDIR: RequestKind.RMDIR,
    Opcode.RENAME: RequestKind.RENAME,
    Opcode.RENAME2: RequestKind.RENAME,
    Opcode.LINK: RequestKind.LINK,
    Opcode.OPEN: RequestKind.OPEN,
    Opcode.WRITE: RequestKind.WRITE,
    Opcode.STATFS: RequestKind.STATFS,
    Opcode.RELEASE: RequestKind.RELEASE,
    Opcode.SETXATTR: RequestKind.SETXATTR,
    Opcode.GETXATTR: RequestKind.GETXATTR,
    Opcode.LISTXATTR: RequestKind.LISTXATTR,
    Opcode.REMOVEXATTR: RequestKind.REMOVEXATTR,
    Opcode.OPENDIR: RequestKind.OPENDIR,
    Opcode.READDIRPLUS: RequestKind.READDIR,
    Opcode.RELEASEDIR: RequestKind.RELEASEDIR,
    Opcode.CREATE: RequestKind.CREATE,
    Opcode.TMPFILE: RequestKind.TMPFILE,
    Opcode.STATX: RequestKind.GETATTR,
    Opcode.FALLOCATE: RequestKind.FALLOCATE,
    Opcode.COPY_FILE_RANGE: RequestKind.COPY_FILE_RANGE,
}
"""Of what may have to wait, or be refused by a rule."""

_ARGUMENTS: dict[int, Callable[[Buffer, int, int], tuple[Any, ...]]] = {
    Opcode.LOOKUP: lambda buffer, size, node: (node, name(buffer, size)),
    Opcode.SYMLINK: lambda buffer, size, node: (node, *symlink(buffer, size)),
    Opcode.MKNOD: lambda buffer, size, node: (node, *mknod(buffer, size)),
    Opcode.MKDIR: lambda buffer, size, node: (node, *mkdir(buffer, size)),
    Opcode.UNLINK: lambda buffer, size, node: (node, name(buffer, size)),
    Opcode.RMDIR: lambda buffer, size, node: (node, name(buffer, size)),
    Opcode.RENAME: lambda buffer, size, node: (node, *rename(buffer, size), 0),
    Opcode.RENAME2: lambda buffer, size, node: (node, *rename2(buffer, size)),
    Opcode.LINK: lambda buffer, size, node: (link(buffer, size)[0], node, link(buffer, size)[1]),
    Opcode.CREATE: lambda buffer, size, node: (node, *create(buffer, size)),
    Opcode.TMPFILE: lambda buffer, size, node: (node, *create(buffer, size)),
}


def request(message: Buffer, size: int) -> KernelRequest | None:
    """Return a request as it is known while it waits, or when it is refused; None for a kind that
    does neither.
    """
    opcode, _, node, uid, gid, pid = IN.unpack_from(message)
    kind = _KINDS.get(opcode)
    if kind is None:
        return None
    arguments = _ARGUMENTS[opcode](message, size, node) if opcode in _ARGUMENTS else (node,)
    return KernelRequest(kind, (*arguments, Sender(uid, gid, pid)))
