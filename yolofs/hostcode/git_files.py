"""Finds the code in a repository: hooks, settings that run something, and links from there to other
hooks and settings.

A repository is each directory called ``.git``, and each that git would take for one: it has
``HEAD``, and either ``objects`` and ``refs`` or ``commondir``.  So are bare repositories, and what
lies in ``.git/modules``.  Such a directory may come about piece by piece, and by renames: what is
there after all changes counts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import Protocol

from yolofs.changes.changes import Change, Side
from yolofs.hostcode import git_index
from yolofs.hostcode.git_config import MOST_BYTES, ConfigLine, hash_bytes_of, parse_config
from yolofs.hostcode.git_settings import is_harmless_change, local_repositories
from yolofs.paths import RelPath, join, split

_GIT = b".git"
_SETTINGS = frozenset({b"config", b"config.worktree"})
_MAKE_A_REPOSITORY = frozenset({b"head", b"objects", b"refs", b"commondir"})
"""What makes a directory a repository; in lower case, as are all names here that a path's are
compared with: some disks find a file by its name in any case.
"""
_INDEX = b"index"
SHARED_INDEX = b"sharedindex."
"""What the name of a part of a split index begins with."""
GIT_NAMES = _SETTINGS | _MAKE_A_REPOSITORY | {b"hooks", _GIT, _INDEX}
"""The names that count outside of ``.git``, too."""
_INNER = (b"/.git/", b"/hooks/", b"/worktrees/", b"/rebase-merge/", b"/sequencer/", b"/remotes/", b"/branches/")
"""What code of git's lies in, too, if a repository is called otherwise (bare, or apart from its
work tree)."""
_RUN = (b"rebase-merge", b"sequencer/opts", b"remotes", b"branches")
"""What git goes by in a repository: ``exec`` lines and strategies of what is to go on, and
addresses of remotes.
"""
_OPEN = (b"hooks", b"modules", b"worktrees")
_SAMPLE = b".sample"


class StateAfterwards(Protocol):
    """What there is after all changes."""

    def has(self, path: RelPath) -> bool:
        """Tell whether something is at a path, or may be."""
        ...

    def had(self, path: RelPath) -> bool:
        """Tell whether something is there now."""
        ...

    def leads_unseen(self, path: RelPath, target: bytes) -> bool:
        """Tell whether what leads to ``target`` from a path leads to where no commit looks."""
        ...

    def is_in_mount(self, path: bytes) -> bool:
        """Tell whether an absolute path, as it is written, lies in a mount of yolofs's."""
        ...

    def is_by_links(self, path: RelPath) -> bool:
        """Tell whether a link is at a path or on the way there, or may be."""
        ...

    def names(self, path: RelPath) -> list[bytes] | None:
        """Return the names in a directory that is there already; None if it cannot be read, or is
        none.
        """
        ...

    def read(self, side: Side, most: int) -> bytes | None:
        """Return the content of a regular file; None if it is longer than that, or cannot be
        read.
        """
        ...

    def read_at(self, path: RelPath, most: int) -> bytes | None:
        """Return the content of a file that is there already, as :meth:`read`."""
        ...

    def read_after(self, path: RelPath, most: int) -> bytes | None:
        """Return the content of a repository's settings after all changes, as :meth:`read`."""
        ...


class GitFiles:
    """Tells which changes make code in repositories."""

    def __init__(self, look: StateAfterwards) -> None:
        self._look = look
        self._known: dict[tuple[RelPath, bool], bool] = {}

    def is_code(self, change: Change) -> bool:
        """Tell whether a change of a file or link gives git something to run or to go by."""
        assert change.new is not None
        path, new = change.path, change.new
        if not may_be_code(path):
            return False

        def settings() -> bool:
            old = change.old if change.old is not None and change.old_path is None else None
            return self._is_harmless_config(path, new, old)

        def index() -> bytes | None:
            return self._look.read(new, git_index.MOST_BYTES) if new.type == stat.S_IFREG else None

        return self._is_code(path, new.type == stat.S_IFLNK, lambda: self._text(new), settings, index)

    def is_code_at(self, path: RelPath, *, is_link: bool) -> bool:
        """Tell the same of a file of base that a renamed directory brings to ``path``."""
        if not may_be_code(path):
            return False

        def settings() -> bool:
            return self._is_harmless_text(path, self._look.read_at(path, MOST_BYTES), None)

        def index() -> bytes | None:
            return self._look.read_at(path, git_index.MOST_BYTES)

        return self._is_code(path, is_link, lambda: self._look.read_at(path, MOST_BYTES), settings, index)

    def holds_code(self, path: RelPath) -> bool:
        """Tell whether a directory is a repository, or one in it where whoever may write gives git
        something to run.
        """
        return self._is_repository(path) or any(self._is_in(join(path, b"x"), name) for name in _OPEN)

    def _is_code(
        self,
        path: RelPath,
        is_link: bool,
        read: Callable[[], bytes | None],
        settings: Callable[[], bool],
        index: Callable[[], bytes | None],
    ) -> bool:
        directory, name = split(path)
        name = name.lower()
        if name == _GIT:
            return is_link or not self._leads_to_own(directory, read())
        if is_link and b"/.git/" in b"/" + path.lower():
            return True  # git makes none there, and what it leads to is not looked at
        if name in _SETTINGS and self._is_repository(directory):
            return is_link or not settings()
        if name == b"commondir" and self._is_repository(directory):
            return is_link or not self._is_worktree(directory, read())
        if is_link and name == b"hooks":
            return self._is_repository(directory)
        if self._is_in(path, b"hooks"):
            return is_link or not name.endswith(_SAMPLE)
        if any(self._is_in(path, inner) for inner in _RUN):
            return True
        if (name == _INDEX or name.startswith(SHARED_INDEX)) and self._is_repository(directory):
            return not self._is_harmless_index(directory, index())
        return self.makes_repository(path)

    def _is_in(self, path: RelPath, name: bytes) -> bool:
        """Tell whether a path lies in the directory ``name`` of a repository, or is the file of
        that name.
        """
        full, inner = b"/" + path + b"/", b"/" + name + b"/"
        folded = full.lower()
        at = folded.find(inner)
        while at >= 0:
            if self._is_repository(RelPath(full[1:at])):
                return True
            at = folded.find(inner, at + 1)
        return False

    def _is_repository(self, directory: RelPath) -> bool:
        return directory.rpartition(b"/")[2].lower() == _GIT or self._looks_like_one(directory, before=False)

    def _looks_like_one(self, directory: RelPath, *, before: bool) -> bool:
        key = directory, before
        if key not in self._known:
            has = self._look.had if before else self._look.has
            self._known[key] = has(join(directory, b"HEAD")) and (
                has(join(directory, b"commondir"))
                or (has(join(directory, b"objects")) and has(join(directory, b"refs")))
            )
        return self._known[key]

    def makes_repository(self, path: RelPath) -> bool:
        """Tell whether by what comes to a path its directory becomes a repository with something to
        run in it.
        """
        directory, name = split(path)
        if (
            name.lower() not in _MAKE_A_REPOSITORY
            or not self._is_repository(directory)
            or self._looks_like_one(directory, before=True)
        ):
            return False
        if directory.rpartition(b"/")[2].lower() == _GIT:
            return False  # it counted as one before
        return self._had_code(directory)

    def _had_code(self, directory: RelPath) -> bool:
        """Tell whether base has something in a directory that git would run or go by if it is a
        repository.
        """
        for name in _SETTINGS:
            path = join(directory, name)
            text = self._look.read_at(path, MOST_BYTES) if self._look.had(path) else b""
            if not self._is_harmless_text(path, text, None):
                return True
        if any(self._look.had(join(directory, name)) for name in (b"rebase-merge", b"sequencer")):
            return True
        index = join(directory, _INDEX)
        if self._look.had(index):
            data = self._look.read_at(index, git_index.MOST_BYTES)
            if not self._is_harmless_index(directory, data):
                return True
        shared, hooks = join(directory, b"commondir"), join(directory, b"hooks")
        if self._look.had(shared) and not self._is_worktree(directory, self._look.read_at(shared, MOST_BYTES)):
            return True
        names = self._look.names(hooks) if self._look.had(hooks) else []
        return names is None or any(not name.endswith(_SAMPLE) for name in names)

    # ---- content

    def _text(self, side: Side) -> bytes | None:
        return self._look.read(side, MOST_BYTES) if side.type == stat.S_IFREG else None

    def _is_harmless_config(self, path: RelPath, new: Side, old: Side | None) -> bool:
        if new.mode & stat.S_IWOTH:
            return False
        before = None
        if old is not None and old.type == stat.S_IFREG:
            before = parse_config(self._text(old) or b"")
        return self._is_harmless_text(path, self._text(new), before)

    def _is_harmless_index(self, directory: RelPath, data: bytes | None) -> bool:
        """Tell whether ``git checkout`` writes what an index names into the work tree alone."""
        above, name = split(split(directory)[0])
        main = above if name == b"worktrees" else directory
        text = self._look.read_after(join(main, b"config"), MOST_BYTES)
        return data is not None and git_index.is_harmless(data, hash_bytes_of(parse_config(text or b"") or ()))

    def _is_harmless_text(self, path: RelPath, text: bytes | None, before: list[ConfigLine] | None) -> bool:
        entries = parse_config(text) if text is not None else None
        is_new = before is None and not self._look.had(path)
        is_other = hash_bytes_of(entries or ()) != hash_bytes_of(())
        if is_new and is_other and self._look.had(join(split(path)[0], _INDEX)):
            return False  # the index that is there was looked at as one with other hashes
        if self._has_unseen_repository(path, before or (), entries or (), is_new=is_new):
            return False
        return is_harmless_change(before, entries, is_own_worktree=lambda value: self._is_submodules(path, value))

    def _has_unseen_repository(
        self, path: RelPath, before: Sequence[ConfigLine], entries: Sequence[ConfigLine], *, is_new: bool
    ) -> bool:
        """Tell whether settings name a repository to fetch from, or to push to, of which no commit
        looks at the hooks.  What is cloned in the view by the mount's own paths names one there.
        """
        directory = split(path)[0]
        return any(
            place.startswith(b"~") or any(self._look.leads_unseen(one, place) for one in (path, directory))
            for entry, place in local_repositories(entries)
            if entry not in before and not (is_new and self._look.is_in_mount(place))
        )

    def _leads_to_own(self, directory: RelPath, text: bytes | None) -> bool:
        """Tell whether a file ``.git`` leads to a directory that git keeps for a submodule or a
        worktree.

        What is in there counts by itself, unless no commit looks there.  So it does in a directory
        that is made in the view, be it a repository (``git init --separate-git-dir``) or a worktree
        of a bare one, if that one has nothing to run either.
        """
        if text is None or not text.startswith(b"gitdir: ") or b"\0" in text:  # to git it ends there
            return False
        target = text.removeprefix(b"gitdir: ").rstrip(b"\r\n")
        if os.path.normpath(target) != target:
            return False  # git writes no such path, and by a link it leads elsewhere
        if self._look.leads_unseen(join(directory, _GIT), target):
            return False
        place = RelPath(_normal(directory, target)[1:])
        names = place.split(b"/")
        if any(
            names[at] == _GIT and names[at + 1] in (b"modules", b"worktrees") and len(names) > at + 2
            for at in range(len(names) - 1)
        ):
            return True
        if self._look.had(place) or not self._is_repository(place):
            return False
        above, name = split(split(place)[0])
        is_worktree = name == b"worktrees" and self._look.has(join(place, b"commondir"))
        return not is_worktree or (self._is_repository(above) and not self._had_code(above))

    def _is_submodules(self, path: RelPath, value: str) -> bool:
        """Tell whether ``core.worktree`` leads from a submodule's settings into the directory that
        has the submodule, and through no link.
        """
        top, in_modules, _ = (b"/" + path).partition(b"/.git/modules/")
        if not in_modules or value.startswith("/") or os.path.normpath(value) != value:
            return False
        place = _normal(split(path)[0], os.fsencode(value))
        is_inside = place.startswith(top + b"/") and b"/.git" not in place
        return is_inside and not self._look.is_by_links(RelPath(place[1:]))

    def _is_worktree(self, directory: RelPath, text: bytes | None) -> bool:
        """Tell whether ``commondir`` leads from a worktree's directory to the repository that it
        lies in.
        """
        above, name = split(split(directory)[0])
        is_own = name == b"worktrees" and self._is_repository(above)
        return is_own and text is not None and text.rstrip(b"\r\n") == b"../.."


def may_be_code(path: RelPath) -> bool:
    """Tell cheaply of most paths that nothing at them is code of git's, whatever it is and lies
    in.
    """
    full = b"/" + path.lower()
    name = full.rpartition(b"/")[2]
    return name in GIT_NAMES or name.startswith(SHARED_INDEX) or any(inner in full for inner in _INNER)


def _normal(directory: RelPath, target: bytes) -> bytes:
    return os.path.normpath(os.path.join(b"/" + directory, target))
