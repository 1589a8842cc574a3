"""Which changes make files that something on the host executes or goes by: by their paths, and of
git's by content.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from yolofs.changes.changes import Aspect, Change, Side
from yolofs.hostcode.git_files import GIT_NAMES, SHARED_INDEX, GitFiles, may_be_code
from yolofs.hostcode.mark import Mark
from yolofs.hostcode.table import GIT_ROWS, PUBLISHED, rows
from yolofs.hostcode.table_links import Links
from yolofs.hostcode.unseen_places import UnseenPlaces
from yolofs.paths import RelPath, is_below, join, split
from yolofs.store.base import Base
from yolofs.store.base_opening import read_link
from yolofs.store.interfaces import StoreFiles
from yolofs.text.path_patterns import ANY_DEPTH, FirstNames, Pattern, Patterns, parse_pattern

_HOMES: tuple[Pattern, ...] = ((b"root",), (b"home", b"*"))
"""Where home directories are."""
_SETTINGS = "~/.config/"
_JJ_REPOSITORY = b"/.jj/repo"
"""A directory as a rule; a file or link in its place leads to another repository's settings."""
_GIT_SETTINGS = ("~/.gitconfig", "~/.config/git/config", "/etc/gitconfig")


class CodeFileTable:
    """The table as it is for a user and a project: the built-in one, and what settings add."""

    def __init__(
        self,
        base: Base,
        project: bytes,
        home: bytes,
        more: Iterable[str],
        mountpoint: bytes | None,
        own: Iterable[bytes] = (),
        states: Iterable[bytes] = (),
    ) -> None:
        """``more``: patterns of settings, relative ones from ``project`` on.  ``own``: where
        yolofs has its mounts, and ``states`` where it has its sessions.  Looks at links of base.
        """
        self.own = (*own, mountpoint) if mountpoint is not None else tuple(own)
        self.states = tuple(states)
        self._base = base
        self._project = base.relative(project)
        self._links = Links(base, project, home, mountpoint)
        table = built_in(home, os.environ.get("XDG_CONFIG_HOME", ""))
        listed = [(parse_pattern(text, project, home), Mark.LISTED) for text in more]
        self._anywhere = [*table.anywhere, *((names[1:], mark) for names, mark in listed if _is_anywhere(names))]
        self._fixed = [*table.fixed, *listed]
        self._fixed += self._links.fixed(self._fixed)
        self._homes = OtherHomes(home, table.below_homes)
        self._git_settings = [b"/" + b"/".join(parse_pattern(text, b"/", home)) for text in _GIT_SETTINGS]
        self._named_by_git: list[tuple[Pattern, Mark]] = []
        for settings in self._git_settings:
            self._named_by_git += self._links.named_by_git(settings, base.root)
        self.anywhere = patterns_anywhere()
        """The built-in patterns that are about paths anywhere, absolute."""

    def fixed(self, paths: Iterable[RelPath], directories: Iterable[RelPath]) -> Patterns[Mark]:
        """Return all other patterns that may be about ``paths``; ``directories`` of base may hold
        repositories, whose links count, too.
        """
        tops = [self._project] if self._project is not None else []
        inside = dict.fromkeys([*tops, *directories])
        more = self._links.of_directories(inside, tops, self._anywhere, self._git_settings)
        homes = self._homes.patterns(map(self._base.path, paths))
        return Patterns([*self._fixed, *homes, *self._named_by_git, *more], folds_case=True)

    def is_exempt(self, path: RelPath) -> bool:
        """Tell whether :attr:`anywhere` does not count at a path."""
        inner: bytes = path
        if self._project is not None and is_below(path, self._project):
            inner = path[len(self._project) :]
        return not PUBLISHED.isdisjoint(inner.split(b"/")[:-1])


class OtherHomes:
    """The table for other users' home directories: root commits what is theirs, too."""

    def __init__(self, own: bytes, below: Iterable[tuple[Pattern, Mark]]) -> None:
        """``own``: the user's own, whose patterns are there in any case; ``below``: relative to
        each.
        """
        is_one_of_them = os.path.dirname(own) == b"/home" or own == b"/root"
        self._own = own + b"/" if is_one_of_them else None
        self._below = below

    def patterns(self, paths: Iterable[bytes]) -> Iterable[tuple[Pattern, Mark]]:
        """Return those that may be about absolute paths, or what lies below them: none, if all of
        them are in the user's own, or in no such directory.
        """
        tops = {b"", *(names[0] for names in _HOMES)}
        for path in paths:
            is_own = self._own is not None and path.startswith(self._own)
            if not is_own and path.lower().split(b"/", 2)[1] in tops:
                return [(top + names, mark) for names, mark in self._below for top in _HOMES]
        return ()


class FileMarkFinder:
    """Tells the marks of files by the table, for all changes from one state to another."""

    def __init__(self, table: CodeFileTable, base: Base, store: StoreFiles, changes: Sequence[Change]) -> None:
        self._table = table
        self._base = base
        self._store = store
        self._prefix = base.root.strip(b"/") + b"/" if base.root != b"/" else b""
        self._new = {change.path.lower() for change in changes if change.new is not None}
        self._new_links = {
            change.path.lower() for change in changes if change.new is not None and change.new.type == stat.S_IFLNK
        }
        self._settings = {
            change.path: change.new
            for change in changes
            if change.new is not None and change.new.type == stat.S_IFREG and split(change.path)[1] == b"config"
        }
        self._moved = {
            change.path: change.old_path for change in changes if change.is_subtree and change.old_path is not None
        }
        self._gone = {change.paths[0] for change in changes if change.old is not None}
        self._changes = changes
        self._unseen: UnseenPlaces | None = None
        self._git = GitFiles(self)
        self._plain: dict[bytes, bool] = {}
        """Whether nothing is said of names in a directory but by what fits anywhere."""
        self._fixed = table.fixed((change.path for change in changes), _directories(changes))
        of_git = FirstNames(GIT_NAMES, (SHARED_INDEX,), ())
        self._anywhere = self._fixed.first_names | table.anywhere.first_names | of_git
        """Of what something may be said wherever it lies."""

    def mark(self, change: Change) -> Mark | None:
        """Return the mark of a change, None if it makes no such file."""
        new = change.new
        if new is None:
            return None
        if new.type == stat.S_IFDIR:
            return self._of_directory(change, new)
        if new.type == stat.S_IFREG and self._is_plain(change.path):
            return None
        is_link = new.type == stat.S_IFLNK
        mark = self._by_path(change.path, is_link=is_link)
        if mark is None and self._git.is_code(change):
            return Mark.GIT
        return Mark.UNSEEN if mark is None and is_link and self._leads_unseen(change.path, new.target) else mark

    def _is_plain(self, path: RelPath) -> bool:
        """Tell whether the directory and the name alone show that no row is about a file, as of
        most.
        """
        directory, _, name = path.rpartition(b"/")
        if directory not in self._plain:
            full = self._prefix + directory if directory else self._prefix.rstrip(b"/")
            are_nowhere = self._fixed.says_nothing_in(full) and self._table.anywhere.says_nothing_in(full)
            self._plain[directory] = are_nowhere and not may_be_code(RelPath(directory + b"/x"))
        return self._plain[directory] and not self._anywhere.may_hold(name.lower())

    def mark_in(self, path: RelPath, *, is_link: bool) -> Mark | None:
        """Return the mark of a file of base that a renamed directory brings to a path."""
        mark = self._by_path(path, is_link=is_link)
        if mark is None and self._git.is_code_at(path, is_link=is_link):
            return Mark.GIT
        is_unseen = is_link and self._leads_unseen(path, lambda: read_link(self._base.path(self._place(path))))
        return Mark.UNSEEN if mark is None and is_unseen else mark

    def _unseen_places(self) -> UnseenPlaces:
        if self._unseen is not None:
            return self._unseen
        links: dict[bytes, bytes] = {}
        for change in self._changes:
            if change.new is not None and change.new.type == stat.S_IFLNK:
                with contextlib.suppress(OSError):
                    links[b"/" + self._prefix + change.path] = change.new.target()
        own = (*self._table.own, *self._table.states)
        self._unseen = UnseenPlaces(own, links, also_own=self._table.states)
        return self._unseen

    def _leads_unseen(self, path: RelPath, target: Callable[[], bytes]) -> bool:
        """Tell whether a link at a path leads to where no commit looks."""
        try:
            return self.leads_unseen(path, target())
        except OSError:
            return False  # the host has taken it away

    def _of_directory(self, change: Change, new: Side) -> Mark | None:
        """Return the mark of a directory: others may write to it, or it makes a repository of its
        content.
        """
        if new.mode & stat.S_IWOTH and (change.old is None or Aspect.MODE in change.metadata):
            mark = self._by_path(change.path, is_link=False)
            return Mark.GIT if mark is None and self._git.holds_code(change.path) else mark
        return Mark.GIT if self._git.makes_repository(change.path) else None

    def _by_path(self, path: RelPath, *, is_link: bool) -> Mark | None:
        full = self._prefix + path
        if full.lower().endswith(_JJ_REPOSITORY):
            return Mark.GIT
        for patterns in (self._fixed, self._table.anywhere):
            mark = patterns.find(full)
            if mark is None and is_link:
                mark = patterns.leads_to(full)
            if mark is not None and not (patterns is self._table.anywhere and self._table.is_exempt(path)):
                return mark
        return None

    # ---- what there is (:class:`yolofs.hostcode.git_files.StateAfterwards`)

    def has(self, path: RelPath) -> bool:
        """Tell whether something is at a path after all changes; perhaps, where more than one of
        them touches it.
        """
        return path.lower() in self._new or (path not in self._gone and self.had(path))

    def had(self, path: RelPath) -> bool:
        """Tell whether base has something at a path, or in what a rename brings there; perhaps,
        where this user may not look.
        """
        return self._base.may_have(self._place(path))

    def is_in_mount(self, path: bytes) -> bool:
        """Tell whether an absolute path, as it is written, lies in a mount of yolofs's."""
        return any(is_below(os.path.normpath(path), own) for own in self._table.own)

    def is_by_links(self, path: RelPath) -> bool:
        """Tell whether a link is at a path or on the way there, or may be: base's or a new one."""
        while path:
            if path.lower() in self._new_links or self._may_be_link(self._place(path)):
                return True
            path = split(path)[0]
        return False

    def _may_be_link(self, place: RelPath) -> bool:
        try:
            read_link(self._base.path(place))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass  # this user may not look
        return True

    def names(self, path: RelPath) -> list[bytes] | None:
        """Return the names that base has in a directory, or in what a rename brings there; None if
        it is none.
        """
        try:
            return self._base.names(self._place(path))
        except OSError:
            return None

    def leads_unseen(self, path: RelPath, target: bytes) -> bool:
        """Tell whether what leads to ``target`` from a path leads to where no commit looks."""
        return self._unseen_places().has_target(b"/" + self._prefix + path, target)

    def read(self, side: Side, most: int) -> bytes | None:
        """Return the content of a regular file; None if it is longer than ``most``, or cannot be
        read.
        """
        return _read(lambda: side.open(self._store), most) if side.size <= most else None

    def read_at(self, path: RelPath, most: int) -> bytes | None:
        """Return the content of a file of base, as :meth:`read`."""
        return _read(lambda: self._base.open(self._place(path)), most)

    def read_after(self, path: RelPath, most: int) -> bytes | None:
        """Return the content of a repository's settings after all changes, as :meth:`read`."""
        side = self._settings.get(path)
        return self.read_at(path, most) if side is None else self.read(side, most)

    def _place(self, path: RelPath) -> RelPath:
        """Return the base path of what is at a path after renames of directories."""
        above, rest = path, b""
        while self._moved and above:
            source = self._moved.get(above)
            if source is not None:
                return join(source, rest) if rest else source
            above, name = split(above)
            rest = join(name, rest) if rest else name
        return path


class BuiltIn(msgspec.Struct, frozen=True):
    """The patterns of the built-in table for one home directory."""

    anywhere: tuple[tuple[Pattern, Mark], ...]
    """Those that may begin anywhere, without their ``**``; those of git's files first."""
    fixed: tuple[tuple[Pattern, Mark], ...]
    """Those that begin at ``/``."""
    below_homes: tuple[tuple[Pattern, Mark], ...]
    """Those of home directories, relative to each."""


@functools.cache
def built_in(home: bytes, configured: str) -> BuiltIn:
    """Return the built-in table; ``configured``: where the user has settings, empty if not
    elsewhere.
    """
    fixed: list[tuple[Pattern, Mark]] = []
    below_homes: list[tuple[Pattern, Mark]] = []
    top = parse_pattern("~", b"/", home)
    has_settings_elsewhere = configured.startswith("/")
    for row in rows():
        first, *names = row.names
        if first == ANY_DEPTH:
            continue
        below = tuple(names)
        fixed.append((top + below if first == b"~" else below, row.mark))
        if first == b"~":
            below_homes.append((below, row.mark))
        if has_settings_elsewhere and row.pattern.startswith(_SETTINGS):
            fixed.append((parse_pattern(configured + "/" + row.pattern.removeprefix(_SETTINGS), b"/", home), row.mark))
    git = [(tuple(row.names[1:]), row.mark) for row in GIT_ROWS if row.pattern != "**/.git"]
    anywhere = [(names[1:], mark) for names, mark in _rows_anywhere()]
    return BuiltIn((*git, *anywhere), tuple(fixed), tuple(below_homes))


@functools.cache
def _rows_anywhere() -> tuple[tuple[Pattern, Mark], ...]:
    """Return the built-in patterns that may begin anywhere; git's are not among them."""
    return tuple((tuple(row.names), row.mark) for row in rows() if row.pattern.startswith("**/"))


def _is_anywhere(names: Pattern) -> bool:
    return names[:1] == (ANY_DEPTH,)


@functools.cache
def patterns_anywhere() -> Patterns[Mark]:
    """Return the built-in patterns that are about paths anywhere, absolute; git's are not among
    them.
    """
    return Patterns(_rows_anywhere(), folds_case=True)


def _directories(changes: Iterable[Change]) -> Iterator[RelPath]:
    """Yield the directories that changes lie in, and all above them, except for new ones."""
    seen = {change.path for change in changes if change.old is None}
    for change in changes:
        path = change.path
        while path:
            path = split(path)[0]
            if path in seen:
                break
            seen.add(path)
            yield path


def _read(opened: Callable[[], int], most: int) -> bytes | None:
    try:
        with open(opened(), "rb") as file:
            st = os.fstat(file.fileno())
            return file.read(most + 1) if stat.S_ISREG(st.st_mode) and st.st_size <= most else None
    except OSError:
        return None
