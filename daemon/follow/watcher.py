"""A process of its own that watches a directory tree and reports what changes in it.

``python -m yolofs.daemon.follow.watcher --limit N TOP [EXCEPT...]`` writes to its standard output
one record for each change: a letter, the absolute path, a NUL byte.  ``+`` a name came, ``-`` it
went, ``*`` content or attributes changed, ``!`` something happened that cannot be named (without a
path), ``?`` a complaint (in words).  ``.`` comes once everything is watched.  It ends when its
standard input does.

Why a process: walking a large tree and setting up thousands of watches takes long and holds the
interpreter lock, which the daemon that serves a mount cannot spare.  A recursive watch would follow
symbolic links to anywhere.  It would also enter the directories that are left out, and their
traffic would keep it busy.  So each directory is watched for itself, and when new ones come the
watch is made anew, before the old one ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Generator, Iterable, Sequence

from watchfiles import Change, watch
from watchfiles.main import FileChange

_STEP_MS = 100
"""How long a report waits for more of the same."""
_DEBOUNCE_MS = 200
_IDLE_MS = 500
_LETTERS = {Change.added: b"+", Change.deleted: b"-", Change.modified: b"*"}

Changes = Generator[set[FileChange], None, None]


class TooManyDirectoriesError(Exception):
    """There are more directories than may be watched."""


class DirectoryWatcher:
    """Watches what is below ``top`` except for the directories ``excepted``, at most ``limit``
    directories.
    """

    def __init__(self, top: str, excepted: Iterable[str], limit: int) -> None:
        self._excepted = frozenset(excepted)
        self._limit = limit
        self._stop = threading.Event()
        self._directories: set[str] = set()
        if not os.path.isdir(top):
            raise NotADirectoryError(f"{top} is no directory")
        self._take_in(top)

    def run(self) -> None:
        """Report until :meth:`stop`."""
        changes = self._watch()
        if next(changes, None) is None:
            return
        _write(b".")
        while not self._stop.is_set():
            try:
                found = next(changes)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001 - a private class of watchfiles, for names that are not UTF-8
                _complain(f"cannot tell what changed: {error}")
                changes = self._watch()
                next(changes, None)
                _write(b"!")
                continue
            _report(found)
            while new := self._new_directories(found):
                changes, found = self._exchange(changes)
                for path in sorted(new):  # whatever was seen in each while nobody watched may be wrong
                    _write(b"+" + os.fsencode(path))
                found |= {(Change.added, path) for above in new for path in _directories_in(above)}

    def stop(self) -> None:
        """Have :meth:`run` return soon."""
        self._stop.set()

    def _watch(self) -> Changes:
        """Return what yields changes; it yields once, perhaps nothing, when all directories are
        watched.
        """
        self._directories = {path for path in self._directories if os.path.isdir(path)}
        return watch(
            *self._directories,
            watch_filter=None,
            step=_STEP_MS,
            debounce=_DEBOUNCE_MS,
            rust_timeout=_IDLE_MS,
            yield_on_timeout=True,
            recursive=False,
            stop_event=self._stop,
            ignore_permission_denied=True,
        )

    def _exchange(self, old: Changes) -> tuple[Changes, set[FileChange]]:
        """Return a watch of all directories that are known by now, and what was reported meanwhile;
        end the old one once it has nothing to say.
        """
        new = self._watch()
        meanwhile = next(new, set())
        while found := next(old, None):
            meanwhile |= found
        _report(meanwhile)
        old.close()
        return new, meanwhile

    def _new_directories(self, found: set[FileChange]) -> set[str]:
        new: set[str] = set()
        for change, path in found:
            if change is Change.added and path not in self._directories and os.path.isdir(path):
                new |= self._take_in(path)
        return new

    def _take_in(self, top: str) -> set[str]:
        """Find the directories at and below ``top``; return them."""
        found: set[str] = set()
        pending = [top]
        while pending:
            path = pending.pop()
            if path in self._excepted or os.path.islink(path):
                continue
            path.encode()  # watchfiles cannot name what is in there
            self._directories.add(path)
            found.add(path)
            if len(self._directories) > self._limit:
                raise TooManyDirectoriesError(f"there are more than {self._limit} directories")
            pending += _directories_in(path)
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the process and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="yolofs.daemon.follow.watcher", description="Started by the daemon of a mount."
    )
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("top")
    parser.add_argument("excepted", nargs="*")
    options = parser.parse_args(arguments)
    try:
        watcher = DirectoryWatcher(options.top, options.excepted, options.limit)
        threading.Thread(target=_end_with_input, args=(watcher,), daemon=True).start()
        watcher.run()
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - watchfiles has a private class of its own
        with contextlib.suppress(BrokenPipeError):
            _complain(str(error))
        return 1
    return 0


def _directories_in(path: str) -> list[str]:
    """Return the directories in one, none if it cannot be read."""
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _end_with_input(watcher: DirectoryWatcher) -> None:
    while os.read(0, 1024):
        pass
    watcher.stop()


def _report(found: set[FileChange]) -> None:
    for change, path in found:
        _write(_LETTERS[change] + os.fsencode(path))


def _write(record: bytes) -> None:
    data = record + b"\0"
    while data:
        data = data[os.write(1, data) :]


def _complain(text: str) -> None:
    _write(b"?" + text.replace("\0", "").encode(errors="replace"))


if __name__ == "__main__":
    sys.exit(main())
