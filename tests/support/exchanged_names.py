"""Somebody on the host who exchanges a name in base for a symbolic link just before one of the
calls of a commit, and may put it back right after that call.

Python tells of its calls by audit events.  A hook stays for good, so there is one for all tests.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from yolofs.system import syscalls

_CALLS = frozenset(
    {
        *("open", "os.chmod", "os.chown", "os.utime", "os.setxattr", "os.getxattr", "os.listxattr"),
        *("os.removexattr", "os.listdir", "os.scandir", "os.remove", "os.rmdir", "os.mkdir", "os.rename"),
        *("os.link", "os.symlink", "os.truncate"),
    }
)
SECRET = b"no byte of this may be read or written"

_now: list[Callable[[], None]] = []
_is_hooked: list[bool] = []


def _heard(event: str, _arguments: tuple[object, ...]) -> None:
    if _now and event in _CALLS:
        hear = _now.pop()  # what is done there is not heard
        try:
            hear()
        finally:
            _now.append(hear)


@contextlib.contextmanager
def heard(hear: Callable[[], None]) -> Iterator[None]:
    """Call ``hear`` just before each call in the block that opens, lists or changes anything."""
    if not _is_hooked:
        sys.addaudithook(_heard)
        _is_hooked.append(True)
    _now.append(hear)
    try:
        yield
    finally:
        _now.remove(hear)


def calls_of(act: Callable[[], object]) -> int:
    """Return how many calls are heard while something is done."""
    count = 0

    def hear() -> None:
        nonlocal count
        count += 1

    with heard(hear):
        act()
    return count


class Exchanger:
    """Somebody with directories of base open who puts a link in the place of a name.

    ``outside`` has something for each path of base, which nobody may touch.
    """

    def __init__(self, base: Path, outside: Path, path: str, target: str | None = None) -> None:
        """``path``: what is exchanged, relative to base; with a ``*`` at its end the first name
        that begins so.  The link leads to ``target``, relative to what lies outside, or to the same
        path there.
        """
        above, self._name = os.path.split(os.fsencode(path))
        self._above = os.open(os.path.join(bytes(base), above), os.O_RDONLY | os.O_DIRECTORY)
        self._target = bytes(outside / (target or path.replace("*", "")))
        self._done: bytes | None = None

    def exchange(self) -> None:
        """Put a link to what lies outside at the name, and what is there aside."""
        name = self._found()
        if name is None:
            return
        os.symlink(self._target, b"link", dir_fd=self._above)
        if self._is_swapped(name):
            self._done = name

    def put_back(self) -> None:
        """Do the reverse, if that is possible still."""
        if self._done is not None and self._is_swapped(self._done):
            os.unlink(b"link", dir_fd=self._above)
            self._done = None

    def close(self) -> None:
        os.close(self._above)

    @contextlib.contextmanager
    def before_call(self, at: int, *, is_short: bool) -> Iterator[None]:
        """Exchange before the ``at``-th call in the block, from 1; if ``is_short``, put back before
        the next.
        """
        count = 0

        def hear() -> None:
            nonlocal count
            count += 1
            if count == at:
                self.exchange()
            elif count > at and is_short:
                self.put_back()

        with heard(hear):
            yield

    def _found(self) -> bytes | None:
        names = os.listdir(self._above)
        start = os.fsdecode(self._name.rstrip(b"*"))
        fits = [name for name in names if name == start or (self._name.endswith(b"*") and name.startswith(start))]
        return os.fsencode(fits[0]) if fits else None

    def _is_swapped(self, name: bytes) -> bool:
        try:
            return syscalls.rename_exchange(self._above, name, self._above, b"link")
        except FileNotFoundError:
            return False


def state_of(top: Path) -> dict[str, tuple[object, ...]]:
    """Return all that can be seen of what lies outside, times of reading left out."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (top, *sorted(top.rglob("*"))):
        st = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (st.st_ino, st.st_mode, st.st_uid, st.st_mtime_ns, st.st_ctime_ns, st.st_nlink, content)
    return found


def holders_of_secret(*tops: Path) -> list[Path]:
    """Return the files in directories that have something of what lies outside."""
    files = (path for top in tops for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if SECRET in path.read_bytes()]
