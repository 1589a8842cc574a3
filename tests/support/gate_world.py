"""The model beside a gate: random rules, judged by a naive walk over all of them, and the real
tree, seen by a second overlay without rules.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from tests.support.core_driver import CoreDriver
from tests.support.drawn_rules import LINKS, PROJECT, Drawn
from tests.support.naive_rules import in_force, walk
from tests.support.naive_ways import Way, path_of, way_of, with_places
from yolofs.overlay import Overlay
from yolofs.rules import PathRule, Rule, RuleSet, RuleState
from yolofs.rules.linked_keys import follow_links
from yolofs.session.session import Session

NOTE = b"user.note"
"""The extended attribute that files may have."""


class What(NamedTuple):
    """What is at a path, without what other names of a file, or names in a directory, may
    change.
    """

    kind: str
    """A "dir", "file", "link" or something "other"."""
    mode: int
    xattrs: Any = ()
    time_ns: int = 0
    """When the content changed; 0 for a directory."""
    data: bytes = b""
    """The content or target."""


Shown = dict[bytes, What]


class Seen(NamedTuple):
    """What a look at a path tells."""

    size: int
    nlink: int


class Driver(Protocol):
    """How the machine works on a view through its gate, by paths relative to its root, raising
    OSError.
    """

    session: Session

    def create(self, path: bytes, data: bytes) -> None: ...
    def overwrite(self, path: bytes, data: bytes) -> None: ...
    def append(self, path: bytes, data: bytes) -> None: ...
    def truncate(self, path: bytes, size: int) -> None: ...
    def read(self, path: bytes) -> bytes: ...
    def mkdir(self, path: bytes) -> None: ...
    def mkfifo(self, path: bytes) -> None: ...
    def rmdir(self, path: bytes) -> None: ...
    def unlink(self, path: bytes) -> None: ...
    def rename(self, old: bytes, new: bytes, flags: int) -> None: ...
    def link(self, old: bytes, new: bytes) -> None: ...
    def symlink(self, target: bytes, path: bytes) -> None: ...
    def chmod(self, path: bytes, mode: int) -> None: ...
    def setxattr(self, path: bytes, name: bytes, value: bytes) -> None: ...
    def removexattr(self, path: bytes, name: bytes) -> None: ...
    def stat(self, path: bytes) -> Seen: ...
    def readlink(self, path: bytes) -> bytes: ...
    def listdir(self, path: bytes) -> list[bytes]: ...
    def getxattr(self, path: bytes, name: bytes) -> bytes: ...
    def listxattr(self, path: bytes) -> list[bytes]: ...
    def hold(self, path: bytes) -> Any: ...
    def hold_open(self, path: bytes) -> Any: ...
    def let_go(self, held: Any) -> None: ...
    def look(self, held: Any) -> Seen: ...
    def read_link(self, held: Any) -> bytes: ...
    def read_held(self, held: Any) -> bytes: ...
    def read_note(self, held: Any) -> bytes: ...
    def list_notes(self, held: Any) -> list[bytes]: ...
    def chmod_held(self, held: Any, mode: int) -> None: ...
    def shows_below(self, held: Any, name: bytes) -> bool: ...
    def names_in(self, held: Any) -> list[bytes]: ...
    def path_of(self, held: Any) -> bytes | None: ...
    def verdicts(self) -> dict[bytes, RuleState]: ...
    def answer(self, *, yes: bool) -> None: ...
    def replace_rules(self, *sources: RuleSet) -> None: ...
    def snapshot(self) -> int: ...
    def travel(self, generation: int) -> int: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def populate(base: bytes) -> None:
    """Make the tree that every example starts from; each content is unique."""
    for directory in (b"a/b/a", b"b/a", b"d"):
        os.makedirs(os.path.join(base, directory))
    for path in (b"a/c.x", b"a/b/b", b"a/b/c.x", b"a/b/a/b", b"b/b", b"b/c.x", b"d/a", b"c.x"):
        with open(os.path.join(base, path), "wb") as file:
            file.write(b"base " + path)
    for path in (b"a/b", b"a/c.x", b"b/b", b"b/c.x", b"c.x"):
        os.setxattr(os.path.join(base, path), NOTE, b"note of " + path)
    for path, other in ((b"a/b/b", b"d/b"), (b"b/c.x", b"b/a/b"), (b"d/a", b"a/d")):
        os.link(os.path.join(base, path), os.path.join(base, other))
    for path, target in LINKS.items():
        os.symlink(target, os.path.join(base, path))


class World:
    """What is so, whatever the gate says."""

    def __init__(self, base: bytes, session: Session) -> None:
        self.base = base
        self._session = session
        self.sources: tuple[RuleSet, ...] = ()
        """The rules in force as they are meant, with those for where links lead, nearest source
        first.
        """
        self.ways: list[Way] = []
        """Where their paths lead in base; that stays, as nothing is committed."""
        self._decided: dict[bytes, Rule | None] = {}
        self.kept: Shown = {}
        """What the view shows to one whom no rules bind."""
        self.first_names: dict[bytes, bytes] = {}
        """The first name of the file at each path that is no directory: names of one file have the
        same.
        """
        self.is_granting = False
        """Whether everything that is asked is allowed."""

    def adopt(self, drawn: Sequence[Drawn]) -> tuple[RuleSet, ...]:
        """Take other rules; all else in base is allowed.  Return them as a mount puts them in
        force.

        Those of files are followed.  Answers, which come first, are about the very paths.
        """
        written: list[list[Rule]] = [[], [], [], [PathRule(self.base, RuleState.ALLOW, "test:2")]]
        for one in drawn:
            written[0 if one.kind == "answer" else 1 + one.rank].append(one.made(self.base))
        answers, *files = (tuple(source) for source in written)
        project = self.full(PROJECT)
        self.sources = tuple(
            map(RuleSet, (answers, *(with_places(source, project, self._target_in_base) for source in files)))
        )
        ways = (self.way_in_base(path_of(rule)) for source in files for rule in source)
        self.ways = list(dict.fromkeys(ways))
        self._decided.clear()
        return (
            RuleSet(answers),
            *(follow_links(RuleSet(source), project, self._target_in_base).rules for source in files),
        )

    def look(self) -> Shown:
        """Return what the view shows now, and take note of which paths are names of one file."""
        shadow = object.__new__(CoreDriver)
        shadow._known = {}
        session = self._session
        shadow.overlay = Overlay(
            session.base, session.store, session.journal, session.state(), fresh_from=session.store.next_ino
        )
        try:
            tree = shadow.tree()
        finally:
            shadow.overlay.close()
        self.first_names = {path: what[-1] for path, what in tree.items() if what[0] != "dir"}
        return {path: _what(described) for path, described in tree.items()}

    # ---- rules

    def full(self, path: bytes) -> bytes:
        """Return a path as rules have it."""
        return os.path.join(self.base, path) if path else self.base

    def relative(self, path: bytes) -> bytes:
        """Return the path below base that an absolute one is, another if it is not below base."""
        return path[len(self.base) + 1 :] if is_at_or_below(path, self.base) else path

    def decides(self, path: bytes) -> Rule | None:
        """Return the rule that decides over a path."""
        if path not in self._decided:
            self._decided[path] = walk(self.sources, self.full(path)).rule
        return self._decided[path]

    def state(self, path: bytes) -> RuleState:
        """Return the state of a path."""
        found = self.decides(path)
        return found.state if found is not None else RuleState.ASK

    def path_rules(self) -> Iterator[PathRule]:
        """Yield the rules for paths that are in force."""
        return (found for found in in_force(self.sources) if isinstance(found, PathRule))

    def is_way(self, path: bytes) -> bool:
        """Tell whether a path is hidden and leads to something that is not."""
        above = self.full(path) + b"/"
        leads = any(way.path.startswith(above) and way.state is not RuleState.HIDDEN for way in self.path_rules())
        return leads and self.state(path) is RuleState.HIDDEN

    def is_absent(self, path: bytes) -> bool:
        """Tell whether a path may not be known."""
        return self.state(path) is RuleState.HIDDEN and not self.is_way(path)

    def is_out_of_sight(self, path: bytes) -> bool:
        """Tell whether a path, or one above it, may not be known."""
        return any(self.is_absent(path[:end]) for end in (0, *_ends(path), len(path)))

    def is_fixed(self, path: bytes) -> bool:
        """Tell whether nothing may change a path now."""
        state = self.state(path)
        return not state.may_write and not (self.is_granting and state.asks_to_write)

    def is_free_link(self, path: bytes) -> bool:
        """Tell whether a link may be removed: it may be written, and no rule's path leads on by it
        or through it.
        """
        full = self.full(path)
        held = (link for way in self.ways for link in way.held_links)
        paths = (path_of(found) for found in in_force(self.sources))
        is_led_by = any(is_at_or_below(one, full) for one in held) or any(one.startswith(full + b"/") for one in paths)
        guards = (found for found in in_force(self.sources) if path_of(found) == full)
        is_free = self.state(path).may_write and all(found.state.may_write for found in guards)
        return is_free and not is_led_by and not self.is_out_of_sight(path)

    def may_tell_links(self, path: bytes) -> bool:
        """Tell whether a directory's link count may be told: no rule for a path hides a name in
        it.
        """
        hiding = (
            rule
            for rule in self.path_rules()
            if rule.state is RuleState.HIDDEN and os.path.dirname(rule.path) == self.full(path)
        )
        return not self.is_way(path) and all(self.is_way(rule.path[len(self.base) + 1 :]) for rule in hiding)

    # ---- links

    def way_in_base(self, path: bytes) -> Way:
        """Return where an absolute path leads in base."""
        return way_of(path, self._target_in_base)

    def _target_in_base(self, path: bytes) -> bytes | None:
        try:
            return os.readlink(path)
        except OSError:
            return None

    def _way(self, path: bytes, shown: Shown) -> Way:
        """Return where an absolute path leads among what is shown."""

        def target_of(path: bytes) -> bytes | None:
            what = shown.get(self.relative(path))
            return what.data if what is not None and what.kind == "link" else None

        return way_of(path, target_of)

    def leads_out(self, path: bytes, *, follows: bool) -> bool:
        """Tell whether a path leads out of the view; arguments as for :meth:`real`."""
        what = self.kept.get(path)
        if what is not None and what.kind != "link":
            return False
        return self.base in self._way(self._to_follow(path, follows=follows), self.kept).turns

    def real(self, path: bytes, *, follows: bool = False) -> bytes:
        """Return where a path leads through links; ``follows``: also where its last name leads."""
        place = self.relative(self._way(self._to_follow(path, follows=follows), self.kept).place)
        return place if follows else os.path.join(place, os.path.basename(path))

    def _to_follow(self, path: bytes, *, follows: bool) -> bytes:
        return self.full(path if follows else os.path.dirname(path))

    # ---- what must not have been

    def check_linked(self, path: bytes, before: dict[bytes, bytes]) -> None:
        """Check that a file with one more name may be changed by each of its old ones."""
        for other, first in before.items():
            is_other = first != before[path]
            assert is_other or not self.is_fixed(other), f"{path!r} was linked, which is {other!r} too"

    def check_carried(self, path: bytes, place: bytes) -> None:
        """Check that what a rename carries along is protected by patterns alone, before and after,
        and no less.
        """
        before, after = self.decides(path), self.decides(place)
        if self.is_fixed(path):
            assert not isinstance(before, PathRule), f"{path!r} was moved, which {before} protects"
            assert before is not None, f"{path!r} was moved"
        if self.is_fixed(place):
            assert not isinstance(after, PathRule), f"{place!r} came to where {after} protects"
            assert self.is_fixed(path), f"{path!r} came to {place!r}, where it could not have been made: {after}"
        if not self.is_granting:
            is_weaker = self.state(path).is_stricter_than(self.state(place))
            assert not is_weaker, f"{path!r} is less protected as {place!r}"

    def check_ways(self, now: Shown, why: str) -> None:
        """Check that the paths of rules still lead to their targets, and through no new links."""
        for led in self.ways:
            self._check_way(led, now, why)
        nothing = What("", 0)
        for found in in_force(self.sources):
            written = found.path if isinstance(found, PathRule) else found.scope
            if not written.startswith(self.base + b"/"):
                continue
            written = written[len(self.base) + 1 :]
            for way in above(written) if isinstance(found, PathRule) else (*above(written), written):
                if not found.state.is_stricter_than(self.state(way)):
                    continue
                before, after = self.kept.get(way, nothing), now.get(way, nothing)
                if "link" in (before.kind, after.kind):
                    assert before == after, f"{why} put {after} at {way!r}, on the way of {found}"
                if before.kind == "dir" and way != written:
                    assert after.kind == "dir", f"{why} took {way!r} away, above {found}"

    def _check_way(self, way: Way, now: Shown, why: str) -> None:
        """Check that a rule's path still leads to its target, or has lost a link that the rule
        itself is about, and has no new one.
        """
        nothing = What("", 0)
        for spot in map(self.relative, way.spots):
            for path in (*above(spot), spot):
                before, after = self.kept.get(path, nothing), now.get(path, nothing)
                assert after.kind != "link" or before == after, f"{why} put {after} at {path!r}, on {way}"
        for path in map(self.relative, way.held_links):
            before, after = self.kept.get(path, nothing), now.get(path, nothing)
            assert before.kind != "link" or before == after, f"{why} put {after} at {path!r}, a link of {way}"
        own = self.relative(way.path)
        before = self.kept.get(own, nothing)
        is_own_link_gone = before.kind == "link" and now.get(own) != before
        if not is_own_link_gone and self._way(way.path, self.kept) == way:
            assert self._way(way.path, now) == way, f"{why} made {way} another"

    # ---- paths

    def names_of(self, path: bytes) -> list[bytes]:
        """Return all names of the file at a path; that of a directory is its path."""
        first = self.first_names.get(path)
        return [other for other, of_other in self.first_names.items() if of_other == first] if first else [path]

    def linked(self) -> list[bytes]:
        """Return the names of the files that have several."""
        count = Counter(self.first_names.values())
        return sorted(path for path, first in self.first_names.items() if count[first] > 1)

    def of_kind(self, *kinds: str) -> list[bytes]:
        """Return the paths of what is of some kinds."""
        return sorted(path for path, what in self.kept.items() if what.kind in kinds)

    def names_in(self, path: bytes) -> list[bytes]:
        """Return the paths right below a directory."""
        return [below for below in self.kept if below.rpartition(b"/")[0] == path and below]


def is_at_or_below(path: bytes, top: bytes) -> bool:
    """Tell whether a path is another one or lies below it."""
    return path == top or path.startswith(top + b"/")


def above(path: bytes) -> list[bytes]:
    """Return the directories above a path, the nearest last, without the top."""
    return [path[:end] for end in _ends(path)]


def _ends(path: bytes) -> list[int]:
    return [end for end, char in enumerate(path) if char == ord("/")]


def _what(described: tuple[Any, ...]) -> What:
    """Return what :func:`tests.support.plain_directory.describe` says of a file, by names."""
    match described:
        case ("dir", mode, _, _, _, _, xattrs):
            return What("dir", mode, xattrs)
        case ("file", _, data, xattrs, mode, _, _, time_ns, _, _):
            return What("file", mode, xattrs, time_ns, data)
        case ("link", target, mode, _, _, time_ns, _, _):
            return What("link", mode, (), time_ns, target)
        case ("other", _, mode, _, _, time_ns, _, _):
            return What("other", mode, (), time_ns)
        case _:
            raise AssertionError(f"described otherwise: {described}")
