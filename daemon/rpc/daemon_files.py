"""The files by which others find a daemon: ``daemon.json``, the link ``mnt`` and the log."""

import contextlib
import os

import msgspec

from yolofs import __version__
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.daemon.rpc.revision import REVISION, difference, is_this_version, other_version_error
from yolofs.errors import TrustError
from yolofs.registry.private import read_private, write_private

_JSON_NAME = b"daemon.json"
_LINK_NAME = b"mnt"
_LOG_NAME = b"daemon.log"
_MAX_LOG_BYTES = 1 << 20


class DaemonFile(msgspec.Struct, frozen=True):
    """``daemon.json``.  It outlives a daemon that was killed: only connecting to the socket tells
    whether one is there.

    Paths are percent-encoded bytes; use :func:`socket_path` and :func:`mountpoint_path`.
    """

    pid: int
    started_ns: int
    socket: str
    mountpoint: str
    root: str
    version: str
    revision: int = 0
    """See :data:`yolofs.daemon.rpc.revision.REVISION`."""


def describe(pid: int, started_ns: int, socket: bytes, mountpoint: bytes, root: bytes) -> DaemonFile:
    """Return the content of a ``daemon.json`` of this version."""
    return DaemonFile(pid, started_ns, quote(socket), quote(mountpoint), quote(root), __version__, REVISION)


def read_daemon_file(directory: bytes) -> DaemonFile | None:
    """Return the ``daemon.json`` of the session in ``directory``, None if there is no usable
    one.
    """
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return msgspec.json.decode(read_private(fd, _JSON_NAME), type=DaemonFile)
    except (OSError, TrustError, msgspec.DecodeError):
        return None
    finally:
        os.close(fd)


def other_version(described: DaemonFile | None) -> str:
    """Return which version serves the mount, and which this is; "" if they are the same, as far as
    is known.
    """
    if described is None or is_this_version(described.version, described.revision):
        return ""
    return difference(described.version, described.revision)


def check_version(described: DaemonFile | None) -> None:
    """Check that a daemon is of this version, as far as is known.

    Raises:
        DaemonError: it is of another one, and each could misread what the other writes.
    """
    if described is not None and other_version(described):
        raise other_version_error(described.version, described.revision)


def socket_path(described: DaemonFile) -> bytes:
    """Return the path of the control socket."""
    return unquote(described.socket)


def mountpoint_path(described: DaemonFile) -> bytes:
    """Return the path of the mountpoint."""
    return unquote(described.mountpoint)


def root_path(described: DaemonFile) -> bytes:
    """Return the path of the base directory."""
    return unquote(described.root)


def publish(directory: bytes, described: DaemonFile) -> None:
    """Write ``daemon.json`` and the link to the mountpoint, each replaced in one step."""
    link = os.path.join(directory, _LINK_NAME)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link + b".new")
    os.symlink(unquote(described.mountpoint), link + b".new")
    os.rename(link + b".new", link)
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_private(fd, _JSON_NAME, msgspec.json.encode(described), durable=False)
    finally:
        os.close(fd)


def withdraw(directory: bytes) -> None:
    """Remove what :func:`publish` wrote."""
    for name in (_JSON_NAME, _LINK_NAME):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, name))


def open_log(directory: bytes) -> int:
    """Open ``daemon.log`` for appending and return its descriptor; a long one is put aside as
    ``daemon.log.1``.
    """
    path = log_path(directory)
    with contextlib.suppress(FileNotFoundError):
        if os.stat(path).st_size > _MAX_LOG_BYTES:
            os.rename(path, path + b".1")
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def log_path(directory: bytes) -> bytes:
    """Return the path of the log."""
    return os.path.join(directory, _LOG_NAME)
