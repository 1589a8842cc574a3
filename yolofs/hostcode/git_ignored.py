"""Finds what git ignores and tracks, by the real files: staged ones decide nothing here.

An agent may write any ``.gitignore``, ``.git/config`` or index into the view.  So all comes from
base, and git gets no repository at all: only copies of the ignore files that count, in a private
directory.  It runs no hook, no monitor and no filter of the repository, and reads neither its index
nor its settings.  It reads the user's settings, as always.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from yolofs.hostcode import git_index
from yolofs.paths import ROOT, RelPath, is_below, join, split
from yolofs.store.base import Base
from yolofs.system.host_programs import find_program
from yolofs.system.plain_files import read_plain
from yolofs.system.work_directories import work_directory
from yolofs.text.git_commits import parse_ref

_TIMEOUT_S = 10.0
"""How long git may take, for all repositories together."""
_MOST_IGNORE_BYTES = 1 << 20
_MOST_HEAD_BYTES = 1 << 12
_MOST_COPIED_BYTES = 16 << 20
"""How much the ignore files of one repository may have: links to one may lie in thousands of
directories.
"""
_MOST_ASKED = 20_000
_MOST_REPOSITORIES = 16
_GITDIR = b"gitdir:"
_PLAINLY = b"./"
"""Before a path, as git takes one that begins with a colon for a pattern."""


class CheckedPath(msgspec.Struct, frozen=True):
    """A path that may be ignored."""

    path: RelPath
    is_directory: bool


class Tracked:
    """The names that an index has, or is taken to have."""

    def __init__(self, names: Sequence[bytes] | None) -> None:
        """``names`` are sorted; None: they cannot be told, so that all may be tracked."""
        self._names = names

    def has(self, path: bytes) -> bool:
        """Tell whether a path, or anything below it, is tracked; ``path`` is relative to the work
        tree.
        """
        if self._names is None:
            return True
        at = bisect_left(self._names, path)
        if self._names[at : at + 1] == [path]:
            return True
        below = path + b"/"
        at = bisect_left(self._names, below)
        return bool(self._names[at : at + 1]) and self._names[at].startswith(below)


class Repositories:
    """The repositories of base, as far as they matter to some paths."""

    def __init__(self, base: Base, place: bytes) -> None:
        """``place``: a directory to work in, which is this user's alone."""
        self._base = base
        self._place = place
        self._tops: dict[RelPath, RelPath | None] = {}
        """Of each directory the work tree that it lies in."""
        self._tracked: dict[RelPath, Tracked] = {}
        self._bare: dict[RelPath, bool] = {}

    def top(self, directory: RelPath) -> RelPath | None:
        """Return the work tree that a directory lies in, None if it lies in none."""
        passed: list[RelPath] = []
        at, found = directory, None
        while at not in self._tops:  # no recursion: a path may have two thousand names
            passed.append(at)
            if os.path.lexists(self._base.path(join(at, b".git"))):
                found = at
                break
            if not at:
                break
            at = split(at)[0]
        else:
            found = self._tops[at]
        self._tops |= dict.fromkeys(passed, found)
        return found

    def is_tracked(self, path: RelPath) -> bool:
        """Tell whether git tracks a path, or anything below it; so it counts where that cannot be
        told.
        """
        top = self.top(split(path)[0])
        if top is None:
            return False
        if top not in self._tracked:
            self._tracked[top] = Tracked(_read_index(self._git_directory(top)))
        return self._tracked[top].has(_within(path, top))

    def is_bare(self, directory: RelPath) -> bool:
        """Tell whether a directory is a repository by itself that no other one tracks files of."""
        if directory not in self._bare:
            self._bare[directory] = _is_repository(self._base.path(directory)) and not self.is_tracked(directory)
        return self._bare[directory]

    def ignored(self, asked: Iterable[CheckedPath]) -> set[RelPath]:
        """Return those of some paths that git ignores: they fit its patterns, and are not tracked.

        None are where there is no git, and where it fails.

        Blocks while git runs, once for each repository.
        """
        by_top: dict[RelPath, list[CheckedPath]] = {}
        for one in asked:
            if (top := self.top(split(one.path)[0])) is not None:
                by_top.setdefault(top, []).append(one)
        git = find_program("git") if by_top else None
        if git is None:
            return set()
        import subprocess  # this takes long, and most commands ask about nothing

        found: set[RelPath] = set()
        end_s = time.monotonic() + _TIMEOUT_S
        for top, some in list(by_top.items())[:_MOST_REPOSITORIES]:
            if len(some) <= _MOST_ASKED:
                try:
                    found |= self._ignored_in(top, some, git, max(0.0, end_s - time.monotonic()))
                except subprocess.TimeoutExpired:
                    break
        return {path for path in found if not self.is_tracked(path)}

    def _ignored_in(self, top: RelPath, asked: Sequence[CheckedPath], git: str, timeout_s: float) -> set[RelPath]:
        paths = {_within(one.path, top): one.path for one in asked}
        try:
            with work_directory(self._place, "ignored") as directory:
                _make_repository(directory, self._common_directory(top))
                tree = os.path.join(directory, b"tree")
                self._copy_ignore_files(top, {split(path)[0] for path in paths}, tree)
                for one in asked:
                    if one.is_directory:  # a pattern may be for directories alone
                        os.makedirs(os.path.join(tree, _within(one.path, top)), exist_ok=True)
                return {paths[path] for path in _ask(git, directory, paths, timeout_s) if path in paths}
        except OSError:
            return set()

    def _copy_ignore_files(self, top: RelPath, directories: Iterable[bytes], tree: bytes) -> None:
        """Copy what some directories of a work tree, and those above them, have as
        ``.gitignore``.
        """
        known: set[bytes] = set()
        left = _MOST_COPIED_BYTES
        for directory in directories:
            while directory not in known:
                known.add(directory)
                place = RelPath(directory)
                source = self._base.path(join(join(top, place) if place else top, b".gitignore"))
                left -= _copy(source, tree, directory, left)
                directory = split(place)[0]

    def _git_directory(self, top: RelPath) -> bytes:
        """Return the absolute path of a repository; of a linked work tree or a submodule where its
        file leads.
        """
        path = self._base.path(join(top, b".git"))
        if stat.S_ISREG(_mode_of(path)):
            with contextlib.suppress(OSError):
                text = _without_end(read_plain(path, _MOST_IGNORE_BYTES))
                if text.startswith(_GITDIR):
                    return os.path.normpath(os.path.join(os.path.dirname(path), text[len(_GITDIR) :].strip()))
        return path

    def _common_directory(self, top: RelPath) -> bytes:
        git = self._git_directory(top)
        with contextlib.suppress(OSError):
            text = _without_end(read_plain(os.path.join(git, b"commondir"), 1 << 16))
            return os.path.normpath(os.path.join(git, text.strip()))
        return git


def _without_end(text: bytes) -> bytes:
    """Return what git reads of a file that leads to a directory: a zero byte ends it."""
    return text.partition(b"\0")[0]


def _within(path: RelPath, top: RelPath) -> bytes:
    assert is_below(path, top)
    return path[len(top) :].lstrip(b"/") if top != ROOT else path


def _mode_of(path: bytes) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _is_repository(path: bytes) -> bool:
    """Tell whether git would take a directory for a repository, whatever its name is."""
    try:
        head = read_plain(os.path.join(path, b"HEAD"), _MOST_HEAD_BYTES)
    except OSError:
        return False
    return parse_ref(head) is not None and all(
        stat.S_ISDIR(_mode_of(os.path.join(path, name))) for name in (b"objects", b"refs")
    )


def _read_index(git: bytes) -> list[bytes] | None:
    """Return the names that an index has, sorted; None if they cannot be told."""
    try:
        if any(name.startswith(b"sharedindex.") for name in os.listdir(git)):
            return None  # it has a part of them only
        data = read_plain(os.path.join(git, b"index"), git_index.MOST_BYTES)
    except FileNotFoundError:
        return []
    except OSError:
        return None
    names = git_index.names(data)
    return sorted(name.rstrip(b"/") for name in names) if names is not None else None


def _make_repository(directory: bytes, common: bytes) -> None:
    """Make a repository without anything in it but what another one excludes."""
    git = os.path.join(directory, b"git")
    for name in (b"objects", b"refs", b"info"):
        os.makedirs(os.path.join(git, name))
    os.mkdir(os.path.join(directory, b"tree"))
    with open(os.path.join(git, b"HEAD"), "xb") as file:
        file.write(b"ref: refs/heads/none\n")
    with contextlib.suppress(OSError):
        content = read_plain(os.path.join(common, b"info/exclude"), _MOST_IGNORE_BYTES)
        with open(os.path.join(git, b"info/exclude"), "xb") as file:
            file.write(content)


def _copy(source: bytes, tree: bytes, directory: bytes, most_bytes: int) -> int:
    """Copy an ignore file, if there is one, and return its size.

    Raises:
        OSError: it is larger than ``most_bytes``, or cannot be written.
    """
    try:
        content = read_plain(source, _MOST_IGNORE_BYTES)
    except OSError:  # there is none as a rule; a link git does not follow either
        return 0
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), source)
    place = os.path.join(tree, directory)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, b".gitignore"), "xb") as file:
        file.write(content)
    return len(content)


def _ask(git: str, directory: bytes, paths: Mapping[bytes, RelPath], timeout_s: float) -> list[bytes]:
    """Return those of some paths that git ignores by what lies in a private directory.

    Raises:
        OSError: git cannot be started.
        TimeoutExpired: it takes too long.
    """
    import subprocess

    place = os.fsdecode(directory)
    own = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    done = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", "check-ignore", "--no-index", "--stdin", "-z"],
        executable=git,
        cwd=os.path.join(place, "tree"),
        env={
            **own,
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_DIR": os.path.join(place, "git"),
            "GIT_WORK_TREE": os.path.join(place, "tree"),
            "GIT_OPTIONAL_LOCKS": "0",
        },
        input=b"".join(_PLAINLY + path + b"\0" for path in paths),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
    )
    found = done.stdout.split(b"\0")[:-1] if done.returncode in (0, 1) else []
    return [path.removeprefix(_PLAINLY) for path in found]
