"""Other places where files of the table lie: links in base lead there, or git's settings name them.

Whoever writes to ``dotfiles/bashrc`` writes to ``~/.bashrc`` if that is a link to it.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from yolofs.hostcode.git_config import MOST_BYTES, ConfigLine, parse_config
from yolofs.hostcode.git_settings import words_of_program
from yolofs.hostcode.mark import Mark
from yolofs.paths import RelPath, join
from yolofs.store.base import Base
from yolofs.system.plain_files import read_plain
from yolofs.system.symlinks import Follower, HostLinks, follow
from yolofs.text.path_patterns import ANY_DEPTH, Pattern, is_wild
from yolofs.text.wildcards import Wildcards

MarkedPatterns = Iterable[tuple[Pattern, Mark]]
_MOST_REPOSITORIES = 100
_HOOKS = (
    b"applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg"
    b" post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive"
    b" post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate"
    b" fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
).split()
"""All that git runs by itself (githooks(5))."""
_MOST_INCLUDES = 5
"""How deep settings may include others."""
_IN_WORK_TREE = (b".git", b"hooks")
"""What counts by itself in each work tree."""
_MOST_NAMES = 1_000
"""How many names of a directory are looked at."""
_WORTH_LISTING = 20
"""Where at least so many patterns name something in one directory, a listing takes less time than a
look at each.
"""


class Links:
    """Follows links of the host; not in the mount."""

    def __init__(self, base: Base, project: bytes, home: bytes, mountpoint: bytes | None) -> None:
        self._base = base
        self._project = tuple(_names(project))
        self._home = home
        self._top = tuple(_names(home))
        self._mountpoint = mountpoint
        self._links = HostLinks()
        self._follow = Follower(self._target).follow

    def fixed(self, lines: MarkedPatterns) -> Iterator[tuple[Pattern, Mark]]:
        """Yield the other places of files under absolute patterns, and the targets of links in
        their directories.
        """
        fixed = [line for line in lines if line[0][:1] != (ANY_DEPTH,)]
        known = self._known_names(Counter([names[:-1] for names, _ in fixed]))
        for names, mark in fixed:
            if _is_absent(names, known[names[:-1]]):
                continue  # as most of hundreds: nothing is there, and no link leads on
            looks_in = names[: len(self._top)] == self._top or mark is Mark.LISTED  # the system's own are many
            yield from self._elsewhere(names, mark, looks_in=looks_in)

    def _known_names(self, asked: Mapping[Pattern, int]) -> dict[Pattern, frozenset[bytes] | None]:
        """Return the names in directories, each ``asked`` for by so many patterns: of those with
        many, and none of those that are missing by what the others hold.  None stands for names
        that are not known, or that a link leads to.
        """
        known = {names: self._names_in(names) for names, count in asked.items() if count >= _WORTH_LISTING}
        known.setdefault((), None)
        for directory in asked:
            for length in range(1, len(directory) + 1):
                names = directory[:length]
                if names not in known:
                    known[names] = frozenset() if _is_absent(names, known[names[:-1]]) else None
        return known

    def _names_in(self, directory: Pattern) -> frozenset[bytes] | None:
        """Return the names in a directory, in lower case, as some disks find them in any; None if a
        link leads to it, or there are too many.
        """
        path = b"/" + b"/".join(directory)
        if is_wild(path) or self._follow(path).links:
            return None
        if path in self._links.missing:
            return frozenset()
        try:
            with os.scandir(path) as entries:
                names = [entry.name.lower() for entry in itertools.islice(entries, _MOST_NAMES + 1)]
        except OSError:
            return None
        return frozenset(names) if len(names) <= _MOST_NAMES else None

    def of_directories(
        self,
        directories: Iterable[RelPath],
        projects: Iterable[RelPath],
        lines: MarkedPatterns,
        settings_for_all: Sequence[bytes],
    ) -> Iterator[tuple[Pattern, Mark]]:
        """Yield the other places of files under these patterns, in projects and in directories that
        are repositories.

        ``directories`` and ``projects`` are relative to base, ``lines`` to each of them, and so is
        what git's ``settings_for_all`` repositories name.
        """
        tops = dict.fromkeys(projects)
        tops.update(dict.fromkeys(itertools.islice(filter(self._is_repository, directories), _MOST_REPOSITORIES)))
        for directory in tops:
            top = tuple(_names(self._base.path(directory)))
            there = self._names_in(top)
            for names, mark in lines:
                if there is None or names[0].lower() in there or is_wild(names[0]):  # as few of hundreds
                    yield from self._elsewhere((*top, *names), mark)
            git = b"/".join((b"", *top, b".git"))
            for settings in (
                git + b"/config",
                git + b"/config.worktree",
                *self._settings_elsewhere(git),
                *settings_for_all,
            ):
                yield from self.named_by_git(self._place(settings), self._base.path(directory))
            yield from self._work_trees(git + b"/modules")

    def _is_repository(self, directory: RelPath) -> bool:
        return self._base.may_have(join(directory, b".git"))

    def _settings_elsewhere(self, path: bytes) -> list[bytes]:
        """Return where the settings are of a submodule or worktree, whose ``.git`` is a file."""
        try:
            text = read_plain(path, MOST_BYTES).partition(b"\0")[0]  # to git it ends there
        except OSError:
            return []
        target = os.path.join(os.path.dirname(path), text.removeprefix(b"gitdir: ").rstrip(b"\r\n"))
        return [os.path.normpath(os.path.join(target, name)) for name in (b"config", b"../../config")]

    def _work_trees(self, modules: bytes) -> Iterator[tuple[Pattern, Mark]]:
        """Yield rows for links in the place of a submodule's work tree, or of a directory above it:
        git would write to where such a link leads.
        """
        todo = [modules]
        for _ in range(_MOST_REPOSITORIES):
            if not todo:
                return
            directory = todo.pop()
            for name in self._directories_in(directory):
                path = os.path.join(directory, name)
                lines = list(self._git_settings(path + b"/config"))
                for line in lines:
                    if line.name == ("core", None, "worktree") and line.value is not None:
                        yield (*self._written(line.value, path), *_IN_WORK_TREE), Mark.GIT
                todo.append(path + b"/modules" if lines else path)  # names of submodules may hold slashes

    def _directories_in(self, directory: bytes) -> list[bytes]:
        try:
            with os.scandir(directory) as entries:
                some = itertools.islice(entries, _MOST_NAMES)
                return [entry.name for entry in some if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def named_by_git(self, path: bytes, directory: bytes, depth: int = 0) -> Iterator[tuple[Pattern, Mark]]:
        """Yield the hooks, programs and settings that settings of git's at ``path`` name; hooks and
        programs relative to ``directory``.
        """
        for line in self._git_settings(path):
            section, key, value = line.section, line.key, line.value
            if value is None:
                continue
            if (section, key) == ("core", "hookspath"):
                yield from self._hooks_in(self._written(value, directory))
            elif section in ("include", "includeif") and key == "path":
                names = self._written(value, os.path.dirname(path))
                if not self._holds_project(names):  # it is a directory, and no settings
                    yield names, Mark.GIT
                    yield from self._elsewhere(names, Mark.GIT)
                    if depth < _MOST_INCLUDES:
                        yield from self.named_by_git(self._place(b"/" + b"/".join(names)), directory, depth + 1)
            elif (section, key) == ("init", "templatedir"):
                yield from self._hooks_in((*self._written(value, directory), b"hooks"))
            else:
                for word in words_of_program(line):
                    yield from self._program(self._written(word, directory))

    def _program(self, names: Pattern) -> Iterator[tuple[Pattern, Mark]]:
        place = self._place(b"/" + b"/".join(names))
        if not os.path.isdir(place):  # else all in it would be one
            yield names, Mark.GIT
            yield tuple(_names(place)), Mark.GIT

    def _git_settings(self, path: bytes) -> Iterable[ConfigLine]:
        try:
            return parse_config(read_plain(path, MOST_BYTES)) or ()
        except OSError:
            return ()

    def _written(self, value: str, directory: bytes) -> Pattern:
        raw = os.fsencode(value)
        if raw.startswith(b"~/"):
            raw = self._home + raw[1:]
        return tuple(_names(os.path.normpath(os.path.join(directory, raw))))

    def _hooks_in(self, names: Pattern) -> Iterator[tuple[Pattern, Mark]]:
        places = (names, tuple(_names(self._place(b"/" + b"/".join(names)))))
        for place in dict.fromkeys(places):
            if self._holds_project(place):  # not all of the project is hooks for that
                yield from (((*place, hook), Mark.GIT) for hook in _HOOKS)
            else:
                yield place, Mark.GIT
                yield from self._elsewhere(place, Mark.GIT)

    def _holds_project(self, place: Pattern) -> bool:
        return self._project[: len(place)] == place

    def _elsewhere(self, names: Pattern, mark: Mark, *, looks_in: bool = True) -> Iterator[tuple[Pattern, Mark]]:
        """Yield the patterns that one comes to by links, and what links in its directory lead to.

        But for what would hold all of the project: a tree could have a link to itself.
        """
        start: bytes = b"/" + b"/".join(names)
        rest: Pattern = ()
        if is_wild(start):
            head = next(at for at, name in enumerate(names) if is_wild(name))
            start, rest = b"/" + b"/".join(names[:head]), names[head:]
        way = self._follow(start)
        for place in (*way.links, way.place) if way.links else ():
            found = (*_names(place), *rest)
            if not self._holds_project(found):
                yield found, mark
        if not looks_in or way.is_circle or rest[:1] == (ANY_DEPTH,) or way.place in self._links.missing:
            return
        for link in self._links_in(way.place):
            if not rest or Wildcards([os.fsdecode(rest[0])]).fit(os.fsdecode(os.path.basename(link))):
                found = (*_names(self._place(link)), *rest[1:])
                if not self._holds_project(found):
                    yield found, mark

    def _links_in(self, directory: bytes) -> list[bytes]:
        try:
            with os.scandir(directory) as entries:
                return [entry.path for _, entry in zip(range(_MOST_NAMES), entries, strict=False) if entry.is_symlink()]
        except OSError:
            return []

    def _place(self, path: bytes) -> bytes:
        return follow(path, self._target).place

    def _target(self, path: bytes) -> bytes | None:
        """Return what the host's link at a path holds; the mount stands for base, and is not
        touched.
        """
        return self._base.root if path == self._mountpoint else self._links.target(path)


def _is_absent(names: Pattern, there: frozenset[bytes] | None) -> bool:
    """Tell whether nothing is at a pattern, by the names in its directory; None: not known."""
    return there is not None and (not there or (names[-1].lower() not in there and not is_wild(names[-1])))


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]
