"""The private ``/tmp`` and ``/var/tmp`` of a session's runs: two directories of the session,
straight on disk (``docs/design/private-tmp.md``).

Programs in a sandbox may be at work in them whenever this looks at them, without the daemon, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping

from yolofs.system.busy_trees import Measured, empty, measure, remove_tree
from yolofs.system.plain_files import open_plain, read_plain
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

NAMES: Mapping[bytes, bytes] = {b"/tmp": b"tmp", b"/var/tmp": b"var-tmp"}
"""The directories that are private, and what they are called in the session."""
_TOP = b"run-tmp"
_WAYS = b"ways"
"""The directories that runs need in there, as something is mounted on them: a path a line,
percent-encoded.
"""
_MOST_WAYS_BYTES = 1 << 20
_MODE = 0o1777
"""Of both, as of the usual ones; nobody else can enter the directory above them."""
_MOST_NAMES = 3_000
"""How many names are looked at to tell the size: some 10 ms."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def top_of(session: bytes) -> bytes:
    """Return the directory that holds both."""
    return os.path.join(session, _TOP)


def make(session: bytes, ways: Collection[bytes]) -> dict[bytes, bytes]:
    """Make what is missing of them, and return where each lies.

    ``ways``: directories in ``/tmp`` and ``/var/tmp`` that a run needs there; :func:`clear` leaves
    them alone, up to some tens of thousands.

    Raises:
        OSError: the disk is full, or fails.
    """
    top = top_of(session)
    for path in (top, *(os.path.join(top, name) for name in NAMES.values())):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        if path != top:
            _open_to_all(path)
    known = _known_ways(session)
    new = sorted(set(ways) - known)
    if new:
        text = b"".join(quote_from_bytes(path).encode() + b"\n" for path in new)
        fd = open_plain(os.path.join(top, _WAYS), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            if os.fstat(fd).st_size + len(text) <= _MOST_WAYS_BYTES:  # each run may name another TMPDIR
                os.write(fd, text)
        finally:
            os.close(fd)
    return {path: os.path.join(top, name) for path, name in NAMES.items()}


def size(session: bytes) -> Measured:
    """Return how much of the disk they take, without ways.  If there are very many names, that is a
    lower bound.
    """
    ways = _known_ways(session)
    found = [measure(fd, _MOST_NAMES, without=_inside(ways, path)) for path, fd in _opened(session)]
    return Measured(sum(one.size_bytes for one in found), any(one.is_more for one in found))


def clear(session: bytes) -> None:
    """Empty them, also while runs go on: what these are mounted on stays.

    Raises:
        OSError: something cannot be removed.
    """
    ways = _known_ways(session)
    for path, fd in _opened(session):
        os.fchmod(fd, _MODE)  # a run may have closed it to changes
        empty(fd, _inside(ways, path))


def remove(session: bytes) -> None:
    """Remove them, with all that is in them.

    Raises:
        OSError: something cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        remove_tree(top_of(session))


def _open_to_all(directory: bytes) -> None:
    """Give one of them the mode of the usual ones, whatever a run has made of it."""
    fd = os.open(directory, _DIRECTORY | os.O_PATH)
    try:
        os.chmod(b"/proc/self/fd/%d" % fd, _MODE)
    finally:
        os.close(fd)


def _inside(ways: Collection[bytes], directory: bytes) -> list[bytes]:
    return [way[len(directory) + 1 :] for way in ways if way.startswith(directory + b"/")]


def _opened(session: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each by its path in a sandbox, with a descriptor, which is closed after that."""
    for path, name in NAMES.items():
        place = os.path.join(top_of(session), name)
        try:
            fd = os.open(place, _DIRECTORY)
        except FileNotFoundError:
            continue
        except PermissionError:  # a run has closed it
            _open_to_all(place)
            fd = os.open(place, _DIRECTORY)
        try:
            yield path, fd
        finally:
            os.close(fd)


def _known_ways(session: bytes) -> set[bytes]:
    try:
        text = read_plain(os.path.join(top_of(session), _WAYS), _MOST_WAYS_BYTES)
    except FileNotFoundError:
        return set()
    return {unquote_to_bytes(line.decode(errors="replace")) for line in text.splitlines()}
