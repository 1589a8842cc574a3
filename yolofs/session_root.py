"""Which directory is the base of a session: noted in ``session.json``, as the journal's paths are relative to it."""

from __future__ import annotations

import os
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from yolofs.errors import NoSessionError, UsageError, YolofsError
from yolofs.paths import display

DIRECTORY_NAME = b".yolofs"


class Identity(msgspec.Struct, frozen=True):
    """``session.json``: what a session's paths are relative to.  Both paths are percent-encoded bytes."""

    root: str
    configured: str
    """What the configuration said then: once it says something else, that counts again."""
    version: int = 1


def find_project(start: bytes) -> bytes:
    """Return the project that ``start`` lies in: the nearest directory upwards that holds ``.yolofs/``.

    Raises:
        NoSessionError: there is none.
    """
    directory = os.path.realpath(start)
    while True:
        if os.path.isdir(os.path.join(directory, DIRECTORY_NAME)):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            raise NoSessionError(f"there is no session in {display(start)} or above it", hint="yolofs init")
        directory = parent


def settle_root(project: bytes, configured_root: str, root: bytes | None, *, is_empty: bool, may_write: bool) -> bytes:
    """Return the base directory of a session, and note it so that every later command uses the same.

    ``root`` is what the user asks for now, ``configured_root`` what the configuration says; ``is_empty``: nothing is
    staged, so that it may change.

    Raises:
        UsageError: the root cannot change now, or is no directory.
        YolofsError: ``session.json`` cannot be read.
    """
    path = _identity_path(project)
    stored = _read_identity(path)
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
            f"what is staged is relative to {display(old)}, so the root cannot become {display(wanted)} now",
            hint="yolofs commit or yolofs abort first",
        )
    if not os.path.isdir(wanted):
        raise UsageError(f"the root {display(wanted)} is not a directory", hint="set root in .yolofs.toml, or --root")
    if may_write:
        _write_identity(path, Identity(quote_from_bytes(wanted), quote_from_bytes(configured)))
    return wanted


def has_root(project: bytes) -> bool:
    """Tell whether the base directory of a session has been settled."""
    return os.path.exists(_identity_path(project))


def known_root(project: bytes) -> bytes | None:
    """Return the base directory that a session was last used with, None if it was not used yet.

    Raises:
        YolofsError: ``session.json`` cannot be read.
    """
    stored = _read_identity(_identity_path(project))
    return unquote_to_bytes(stored.root) if stored is not None else None


def _identity_path(project: bytes) -> bytes:
    return os.path.join(project, DIRECTORY_NAME, b"session.json")


def _absolute(project: bytes, root: str) -> bytes:
    return os.path.realpath(os.path.join(project, os.path.expanduser(os.fsencode(root))))


def _read_identity(path: bytes) -> Identity | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Identity)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise YolofsError(f"{display(path)} cannot be read: {error}", hint="yolofs doctor") from error


def _write_identity(path: bytes, identity: Identity) -> None:
    temporary = path + b".new"
    with open(temporary, "wb") as file:
        file.write(msgspec.json.encode(identity))
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
