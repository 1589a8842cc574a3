"""What the kernel asks for: the kind of a request, and its arguments as the adapter gets them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

DirectoryAndName = tuple[int, bytes]
"""A directory's number and a name in it."""


class RequestKind(enum.Enum):
    """The kinds of requests; the value is FUSE's name."""

    LOOKUP = "lookup"
    GETATTR = "getattr"
    MKNOD = "mknod"
    MKDIR = "mkdir"
    SYMLINK = "symlink"
    CREATE = "create"
    TMPFILE = "tmpfile"
    LINK = "link"
    UNLINK = "unlink"
    RMDIR = "rmdir"
    RENAME = "rename"
    SETATTR = "setattr"
    READLINK = "readlink"
    STATFS = "statfs"
    GETXATTR = "getxattr"
    LISTXATTR = "listxattr"
    SETXATTR = "setxattr"
    REMOVEXATTR = "removexattr"
    OPEN = "open"
    WRITE = "write"
    FLUSH = "flush"
    RELEASE = "release"
    OPENDIR = "opendir"
    READDIR = "readdir"
    RELEASEDIR = "releasedir"
    FALLOCATE = "fallocate"
    COPY_FILE_RANGE = "copy_file_range"

    @property
    def locks_directories(self) -> bool:
        """Whether the kernel keeps directories locked until it is answered."""
        return self in _NAMES_AT

    @property
    def is_path_walk(self) -> bool:
        """Whether a thread sends it while it walks along a path."""
        return self in (RequestKind.LOOKUP, RequestKind.GETATTR)


_NAMES_AT = {
    RequestKind.MKNOD: (0,),
    RequestKind.MKDIR: (0,),
    RequestKind.SYMLINK: (0,),
    RequestKind.CREATE: (0,),
    RequestKind.LINK: (1,),
    RequestKind.UNLINK: (0,),
    RequestKind.RMDIR: (0,),
    RequestKind.RENAME: (0, 2),
}
"""For each kind that locks directories, which of its arguments they are; a name follows each."""


class KernelRequest:
    """One request.  Made only for those that wait or are refused: all others are answered without
    it.
    """

    __slots__ = ("args", "is_interrupted", "kind")

    def __init__(self, kind: RequestKind, args: Sequence[Any]) -> None:
        """``args``: what the adapter's method got; a request that is judged ends with its
        context.
        """
        self.kind = kind
        self.args = tuple(args)
        self.is_interrupted = False
        """Whether its sender has been interrupted or killed, and wants no answer any more."""

    @property
    def thread(self) -> int:
        """The thread that waits for the answer; 0 if our pid namespace does not show it, or the
        request tells none.
        """
        return thread_of(self.args)

    @property
    def names(self) -> list[DirectoryAndName]:
        """The names that it makes, removes or renames."""
        return [(self.args[at], self.args[at + 1]) for at in _NAMES_AT.get(self.kind, ())]

    @property
    def asked_for(self) -> tuple[Any, ...]:
        """What is asked for, whoever asks."""
        return self.args[:-1]


def thread_of(args: Sequence[Any]) -> int:
    """Return the thread that sent the request with these arguments, 0 if they do not tell."""
    return getattr(args[-1], "pid", 0)
