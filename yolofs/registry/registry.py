"""The registry: one small file for each session, which says which directory it is about.

The file is called ``INODE-ID``: the inode number of the project's directory, by which it is found
from any directory in the project by one listing, and the session's id.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import Self

import msgspec

from yolofs.errors import TrustError
from yolofs.registry.identity import DirectoryIdentity
from yolofs.registry.private import place_in, read_private, write_private
from yolofs.registry.state_directory import REGISTRY, open_part, open_state
from yolofs.system.own_names import JOURNAL
from yolofs.system.plain_files import is_there, naming
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

_VERSION = 1


class SessionEntry(msgspec.Struct, frozen=True):
    """What the registry knows of a session; paths are percent-encoded bytes."""

    session: str
    project: str
    """Where the project was when the session was made or used last; empty where nothing tells."""
    identity: DirectoryIdentity
    is_moving: bool = False
    """Whether a session of an earlier version was about to be moved here."""
    version: int = _VERSION

    @classmethod
    def make(cls, session: bytes, project: bytes, identity: DirectoryIdentity) -> Self:
        """Return the entry of a session in the directory ``session``; both paths are absolute."""
        return cls(quote_from_bytes(session), quote_from_bytes(project), identity)

    @property
    def session_path(self) -> bytes:
        """The session's directory."""
        return unquote_to_bytes(self.session)

    @property
    def project_path(self) -> bytes:
        """The project's directory."""
        return unquote_to_bytes(self.project)

    @property
    def is_about_to_move(self) -> bool:
        """Whether the session is not here yet, and still in the project."""
        return self.is_moving and not is_there(os.path.join(self.session_path, JOURNAL))

    @property
    def id(self) -> str:
        """The session's id, by which commands name it."""
        return os.fsdecode(os.path.basename(self.session_path))

    @property
    def file_name(self) -> bytes:
        """What the entry's file is called."""
        return b"%d-%b" % (self.identity.inode, os.path.basename(self.session_path))


class Registry:
    """The registry of one state directory, open to be looked at.  Close it, or use it in a
    ``with``.
    """

    def __init__(self, fd: int) -> None:
        """Take over the descriptor of a registry's directory, -1 for one that does not exist."""
        self._fd = fd
        self.damaged: list[bytes] = []
        """The names of files that were looked at and are no entries."""
        self._by_inode: dict[int, list[bytes]] = {}
        for name in map(os.fsencode, _listed(fd)) if fd >= 0 else ():
            inode, _, session_id = name.partition(b"-")
            if inode.isdigit() and session_id:
                self._by_inode.setdefault(int(inode), []).append(name)

    @classmethod
    def open(cls, state: bytes | None = None, *, make: bool = False) -> Self:
        """Open the registry of a state directory, the user's own if none is named; empty if there
        is none.

        Raises:
            TrustError: others could change it.
            OSError: it cannot be opened or made.
        """
        try:
            state_fd = open_state(state, make=make)
        except FileNotFoundError:
            return cls(-1)
        try:
            return cls(open_part(state_fd, REGISTRY, make=make))
        except FileNotFoundError:
            return cls(-1)
        finally:
            os.close(state_fd)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from doing the same meanwhile; waits for them.  For a registry that
        is there.
        """
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def of_inode(self, inode: int) -> Iterator[SessionEntry]:
        """Yield the entries of the directories that have, or had, an inode number."""
        for name in self._by_inode.get(inode, ()):
            entry = self._read(name)
            if entry is not None:
                yield entry

    def __iter__(self) -> Iterator[SessionEntry]:
        """Yield all entries."""
        for inode in sorted(self._by_inode):
            yield from self.of_inode(inode)

    def add(self, entry: SessionEntry, *, instead_of: SessionEntry | None = None) -> None:
        """Write an entry, durably, and then take away the one that it replaces."""
        write_private(self._fd, entry.file_name, msgspec.json.encode(entry))
        if instead_of is not None and instead_of.file_name != entry.file_name:
            self.remove(instead_of)

    def remove(self, entry: SessionEntry) -> None:
        """Take an entry away, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(entry.file_name, dir_fd=self._fd)

    def _read(self, name: bytes) -> SessionEntry | None:
        """Return an entry; None for what is none, which then counts for no session.

        Danger: an entry that the disk does not give must not count as missing; otherwise another
        session would be started.

        Raises:
            OSError: it cannot be read.
        """
        try:
            with naming(place_in(self._fd, name)):
                text = read_private(self._fd, name)
            entry = msgspec.json.decode(text, type=SessionEntry)
            if entry.version == _VERSION and entry.file_name == name and os.path.isabs(entry.session_path):
                return entry
        except (FileNotFoundError, TrustError, msgspec.DecodeError, UnicodeError):
            pass
        if name not in self.damaged:
            self.damaged.append(name)
        return None

    def close(self) -> None:
        """Close it; twice does no harm."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listed(fd: int) -> list[str]:
    with naming(place_in(fd) or REGISTRY):
        return os.listdir(fd)
