"""The one exception tree.  Every error meant for a user is one sentence, a hint and an exit code.

::

    YolofsError                     exit 1   anything else that is the user's to know
    ├── UsageError                  exit 2   a command or argument that makes no sense
    ├── ConfigError                 exit 3   .yolofs.toml (or a rules file) is wrong
    ├── NoSessionError              exit 4   no session here
    ├── SessionBusyError            exit 5   another process holds the session
    ├── JournalError                exit 6   the journal cannot be trusted
    ├── GenerationError             exit 7   no such generation or snapshot
    ├── BusyFilesError              exit 8   files are open for writing
    ├── ConflictError               exit 9   base changed under a staged change
    ├── MountError                  exit 10  FUSE is missing or refuses
    ├── DaemonError                 exit 11  the daemon does not answer, or answered with an error
    ├── CommitError                 exit 12  a commit stopped on its way
    ├── AskError                    exit 13  an ask does not wait any more
    ├── SandboxError                exit 14  this machine forbids the sandbox
    ├── TrustError                  exit 15  somebody else's, or settings not agreed to
    ├── UnnamedError                exit 16  a commit left what has to be named
    ├── NotPreparedError            exit 17  a commit could not make what it needs, and did nothing
    ├── RolledBackError             exit 18  a commit stopped on its way and was taken back
    ├── HardLinksError              exit 19  two states both change names of one file
    ├── StaleHunkError              exit 20  a hunk that does not exist (any more)
    ├── MissingInodeError           exit 21  the store lacks what a state shows
    ├── NotExecutableError          exit 126 the command of a run cannot be executed in the view
    └── CommandNotFoundError        exit 127 there is no such command in the view

``cli.main`` alone prints them.  Filesystem operations of the view raise plain :class:`OSError`:
their errno is the message, and the FUSE adapter hands it to the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence


class YolofsError(Exception):
    """An error that the user should read: one sentence, and what to do next.

    ``hint`` is the next command or action, empty if there is none.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(YolofsError):
    """A command or an argument that makes no sense here."""

    exit_code = 2


class ConfigError(YolofsError):
    """A configuration or rules file that cannot be used."""

    exit_code = 3


class NoSessionError(YolofsError):
    """There is no session for this directory or one above it."""

    exit_code = 4


class SessionBusyError(YolofsError):
    """Another process holds the session's lock."""

    exit_code = 5


class JournalError(YolofsError):
    """The journal (or a line of it) cannot be trusted."""

    exit_code = 6


class GenerationError(YolofsError):
    """A generation number or a snapshot name that does not exist."""

    exit_code = 7


class BusyFilesError(YolofsError):
    """Files are open for writing, so travel, abort or commit would pull them away.

    ``users`` holds one line for each process, as ``pid name path``.
    """

    exit_code = 8

    def __init__(self, message: str, *, users: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.users = tuple(users)


class ConflictError(YolofsError):
    """Base has changed, since a change was staged, where a commit would apply that change.

    ``paths`` holds the paths relative to base, and ``root`` where that is.
    """

    exit_code = 9
    root = b"/"

    def __init__(self, message: str, *, paths: Sequence[bytes] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.paths = tuple(paths)


class MountError(YolofsError):
    """FUSE is missing, forbidden or busy."""

    exit_code = 10


class DaemonError(YolofsError):
    """The daemon does not answer, or answered with an error of its own."""

    exit_code = 11


class SandboxError(YolofsError):
    """There can be no sandbox: this machine forbids it, or the session is not for all of `/`."""

    exit_code = 14


class TrustError(YolofsError):
    """A project, state directory or interrupted commit may be somebody else's, or the user has not
    agreed to something yet.
    """

    exit_code = 15


class UnnamedError(YolofsError):
    """A commit left a change staged, as the user has to name it, or what goes together with it; or
    an undo left what it could not take back.

    Setuid and setgid files, commands on PATH; other names (hard links) of a file, the other end of
    a rename.  Of an undo: what a later commit has changed, what the host has moved away.
    """

    exit_code = 16


class NotExecutableError(YolofsError):
    """The command of a run cannot be executed in the view, or its directory cannot be entered
    there.
    """

    exit_code = 126


class CommandNotFoundError(YolofsError):
    """There is no such command in the view."""

    exit_code = 127


class CommitError(YolofsError):
    """A commit stopped half way, so base partly has the view's content; nothing is lost.

    ``done`` counts the steps that are done; ``directory`` is the commit's own, with what was
    replaced.
    """

    exit_code = 12

    def __init__(self, message: str, *, done: int = 0, directory: bytes = b"", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.done = done
        self.directory = directory


class NotPreparedError(YolofsError):
    """A commit could not prepare what it needs, so base was not touched and all stays staged."""

    exit_code = 17


class RolledBackError(YolofsError):
    """A commit stopped half way and was taken back: base is as it was, and all stays staged."""

    exit_code = 18
    may_not_link = False
    """Whether it was as a store inode may not get a name where it is to be: with copies it may go
    through.
    """


class HardLinksError(YolofsError):
    """Staged changes and an undo, or an earlier state, both change names (hard links) of one
    file.
    """

    exit_code = 19


class StaleHunkError(YolofsError):
    """A hunk does not exist: its file has changed since, in the view or in base, or it never
    existed.

    ``ids`` are all that do not exist.
    """

    exit_code = 20

    def __init__(self, message: str, *, ids: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.ids = tuple(ids)


class MissingInodeError(YolofsError):
    """A state shows a store inode that is missing: a program has gone on, or the store is
    damaged.
    """

    exit_code = 21


class AskError(YolofsError):
    """An ask does not wait: it has been answered, its process is gone, or it never existed."""

    exit_code = 13


def reason(error: OSError) -> str:
    """Return what the system says of an error, to follow a colon."""
    return error.strerror or str(error)
