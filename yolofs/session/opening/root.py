"""Which directory is the base of a session.  That is noted in ``session.json``, as the journal's
paths are relative to it.
"""

import os
from typing import Self

import msgspec

from yolofs.errors import ConfigError, UsageError, YolofsError
from yolofs.paths import display
from yolofs.registry.private import write_private
from yolofs.registry.search import FoundProject
from yolofs.system.plain_files import read_plain
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

MOVED_JOURNAL = b"journal.moved"
"""The journal of a session whose project has moved, until it takes the other one's place."""

_MOST_BYTES = 1 << 20


class SessionFile(msgspec.Struct, frozen=True):
    """``session.json``: what a session's paths are relative to.  All paths here are percent-encoded
    bytes.
    """

    root: str
    configured: str
    """What the configuration said then: once it says something else, that counts again."""
    project: str = ""
    """Where the project was when the paths in the journal were right; empty: as the registry has
    it.
    """
    version: int = 1
    has_moved_journal: bool = False
    """Whether the journal is the one called :data:`MOVED_JOURNAL`, which has not been renamed
    yet.
    """

    @property
    def root_path(self) -> bytes:
        """The base directory."""
        return unquote_to_bytes(self.root)

    @property
    def configured_path(self) -> bytes:
        """What the configuration said."""
        return unquote_to_bytes(self.configured)

    @property
    def project_path(self) -> bytes:
        """Where the project was; empty if that is not noted."""
        return unquote_to_bytes(self.project)

    def with_paths(self, *, root: bytes, configured: bytes, project: bytes) -> Self:
        """Return a copy with other paths."""
        paths = map(quote_from_bytes, (root, configured, project))
        return msgspec.structs.replace(self, **dict(zip(("root", "configured", "project"), paths, strict=True)))


def settle_root(
    directory: bytes, project: bytes, configured_root: str, root: bytes | None, *, is_empty: bool, may_write: bool
) -> bytes:
    """Return the base directory of a session, and note it so that every later command uses the
    same.

    ``directory`` is the session's.  ``root`` is what the user asks for now, ``configured_root``
    what the configuration says; ``is_empty``: nothing is staged, so that it may change.

    Raises:
        UsageError: the root cannot change now, or the one that the user asks for is no directory.
        ConfigError: the one in the configuration is none.
        YolofsError: ``session.json`` cannot be read.
    """
    stored = read_session_file(directory)
    configured = _absolute(project, configured_root)
    old = unquote_to_bytes(stored.root) if stored is not None else None
    if stored is not None and old is not None:
        is_as_before = root is None and unquote_to_bytes(stored.configured) == configured
        if not may_write or is_as_before or root == old:
            return old
    wanted = root if root is not None else configured
    if old is not None and old != wanted and not is_empty:
        if root is None:
            return old
        raise UsageError(
            f"what is staged, snapshots too, is relative to {display(old)}, so the root cannot be {display(wanted)}",
            hint="yolofs commit keeps what is wanted, and yolofs abort drops the rest; then run the same command again",
        )
    if not os.path.isdir(wanted):
        if root is None:
            raise ConfigError(
                f"the root {display(wanted)} is not a directory", hint="set root in .yolofs.toml, or say --root DIR"
            )
        raise UsageError(f"the root {display(wanted)} is not a directory", hint="yolofs mount --root DIR")
    if may_write:
        write_session_file(
            directory, SessionFile(quote_from_bytes(wanted), quote_from_bytes(configured), quote_from_bytes(project))
        )
    return wanted


def has_root(directory: bytes) -> bool:
    """Tell whether the base directory of a session has been settled."""
    return os.path.exists(_path(directory))


def known_root(directory: bytes) -> bytes | None:
    """Return the base directory that a session was last used with, None if it was not used yet.

    Raises:
        YolofsError: ``session.json`` cannot be read.
    """
    stored = read_session_file(directory)
    return unquote_to_bytes(stored.root) if stored is not None else None


def _path(directory: bytes) -> bytes:
    return os.path.join(directory, b"session.json")


def _absolute(project: bytes, root: str) -> bytes:
    return os.path.realpath(os.path.join(project, os.path.expanduser(os.fsencode(root))))


def read_session_file(directory: bytes) -> SessionFile | None:
    """Return the ``session.json`` of the session in ``directory``, None if it was not used yet.

    Raises:
        YolofsError: it cannot be read.
    """
    path = _path(directory)
    try:
        return msgspec.json.decode(read_plain(path, _MOST_BYTES), type=SessionFile)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise YolofsError(f"{display(path)} cannot be read: {error.strerror}", hint="yolofs doctor") from error
    except msgspec.DecodeError as error:
        raise YolofsError(f"{display(path)} cannot be read: {error}", hint="yolofs doctor") from error


def is_in_line(found: FoundProject) -> bool:
    """Tell whether a session names the present place of its project.  It does not after a move, nor
    if the project came back before all of the session had followed.

    Raises:
        YolofsError: its ``session.json`` cannot be read.
    """
    if found.moved_from is not None:
        return False
    content = read_session_file(found.session)
    return content is None or content.project_path in (b"", found.project)


def write_session_file(directory: bytes, content: SessionFile) -> None:
    """Replace the ``session.json`` of the session in ``directory`` in one step, durably."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_private(fd, b"session.json", msgspec.json.encode(content))
    finally:
        os.close(fd)
