"""Patterns of paths, many at once: which of them fits a path, or a directory above it.

A pattern is written as a path.  In a name ``*``, ``?`` and ``[...]`` are wildcards, as ``fnmatch``
has them; ``**`` stands for any number of directories, none included.  What fits a directory fits
all below it, so that ``x/**`` says no more than ``x``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Generic, Self, TypeAlias, TypeVar

import msgspec

from yolofs.text.wildcards import Wildcards

Value = TypeVar("Value")
Pattern: TypeAlias = tuple[bytes, ...]
"""The names of an absolute pattern, wildcards among them, as :func:`parse_pattern` returns them;
no name fits everything.
"""
ANY_DEPTH = b"**"
_START = re.compile(rb"[^*?[]+")
_END = re.compile(rb"[^*?]+\Z")


class FirstNames(msgspec.Struct, frozen=True):
    """What names are like with which patterns may begin anywhere; nearly all others are told from
    them at a glance.
    """

    names: frozenset[bytes]
    starts: tuple[bytes, ...]
    endings: tuple[bytes, ...]

    @classmethod
    def of(cls, names: Iterable[bytes], wild: Iterable[bytes]) -> Self:
        """Take names, and such with wildcards: of these what stands before the first wildcard, or
        else after the last.
        """
        starts, endings = set[bytes](), set[bytes]()
        for pattern in wild:
            start, end = _START.match(pattern), _END.search(pattern)
            if start is not None:
                starts.add(start[0])
            else:
                endings.add(end[0] if end is not None and b"[" not in pattern else b"")
        return cls(frozenset(names), tuple(starts), tuple(endings))

    def __or__(self, other: FirstNames) -> FirstNames:
        """Return those of both."""
        return FirstNames(self.names | other.names, self.starts + other.starts, self.endings + other.endings)

    def may_hold(self, name: bytes) -> bool:
        """Tell whether a name may be one of them."""
        return name in self.names or name.startswith(self.starts) or name.endswith(self.endings)

    def may_be_wild(self, name: bytes) -> bool:
        """Tell whether a name may be one of those with wildcards."""
        return name.startswith(self.starts) or name.endswith(self.endings)


class _Reach:
    """How far patterns have come at a directory."""

    __slots__ = ("_by_name", "_wild", "begun", "found")

    def __init__(self, found: int | None, begun: tuple[tuple[int, int], ...]) -> None:
        self.found = found
        """The number of the first pattern that fits it, or a directory above it."""
        self.begun = begun
        """Patterns whose beginning fits: their numbers, and how many names of them."""
        self._by_name: dict[bytes, list[tuple[int, int]]] | None = None
        self._wild: list[tuple[int, int]] = []

    def going_on(
        self, name: bytes, patterns: list[Pattern]
    ) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
        """Return the patterns that go on with a name, and those that may; wildcards are not matched
        here.
        """
        by_name = self._by_name
        if by_name is None:  # most are asked for nothing below them
            by_name = self._by_name = {}
            for place in self.begun:
                next_name = patterns[place[0]][place[1]]
                if next_name in by_name:  # as nearly all of hundreds below one directory
                    by_name[next_name].append(place)
                elif is_wild(next_name):
                    self._wild.append(place)
                else:
                    by_name[next_name] = [place]
        return by_name.get(name, ()), self._wild


_NOWHERE = _Reach(None, ())


class Patterns(Generic[Value]):
    """Patterns, each with what to say about a path that it fits.  If several fit, the first counts.

    Paths are given without a slash at either end, and are those that the patterns' names lead to
    from ``/``.
    """

    def __init__(self, patterns: Iterable[tuple[Pattern, Value]], *, folds_case: bool = False) -> None:
        """With ``folds_case`` names fit whatever the case of their ASCII letters; then
        :attr:`first_names` are in lower case.
        """
        self._folds_case = folds_case
        self._values: list[Value] = []
        self._names: list[Pattern] = []
        for names, value in patterns:
            self._names.append(_lower(names) if folds_case else names)
            self._values.append(value)
        self._wildcards: dict[bytes, Wildcards] = {}
        self._begin: dict[bytes, list[int]] = {}
        """Patterns that may begin anywhere, by the first name after their ``**``."""
        wild: list[int] = []
        start: list[tuple[int, int]] = []
        found: int | None = None
        for number, names in enumerate(self._names):
            if not names:
                found = number if found is None else found
            elif names[0] != ANY_DEPTH:
                start.append((number, 0))
            elif is_wild(names[1]):
                wild.append(number)
            else:
                self._begin.setdefault(names[1], []).append(number)
        self._begin_wild = wild
        self._any_wild = Wildcards(os.fsdecode(self._names[number][1]) for number in wild)
        self.first_names = FirstNames.of(self._begin, (self._names[number][1] for number in wild))
        """With which names patterns may begin anywhere."""
        self._at: dict[bytes, _Reach] = {b"": _Reach(found, tuple(start))}

    def find(self, path: bytes) -> Value | None:
        """Return what is said of a path, None if no pattern fits it."""
        if self._folds_case:
            path = path.lower()
        directory, _, name = path.rpartition(b"/")
        if self._at.get(directory) is _NOWHERE and not self.first_names.may_hold(name):
            return None  # as at nearly all paths
        found = self._reach(path).found
        return self._values[found] if found is not None else None

    def says_nothing_in(self, directory: bytes) -> bool:
        """Tell whether names in a directory fit only if they are among :attr:`first_names`."""
        return self._reach(self._folded(directory)) is _NOWHERE

    @property
    def values(self) -> tuple[Value, ...]:
        """What is said of what each of the patterns fits, in their order."""
        return tuple(self._values)

    def used_by(self, paths: Iterable[bytes]) -> set[Value]:
        """Return what is said by those patterns of which each fits one of some paths, or a
        directory above.
        """
        left = {number: Patterns([(names, None)]) for number, names in enumerate(self._names)}
        for path in paths:
            for number in [number for number, alone in left.items() if alone.fits(path)]:
                del left[number]
        return {value for number, value in enumerate(self._values) if number not in left}

    def fits(self, path: bytes) -> bool:
        """Tell whether any pattern fits a path."""
        return self._reach(self._folded(path)).found is not None

    def leads_to(self, path: bytes) -> Value | None:
        """Return what is said of things that lie somewhere below a path, by their names; None if
        there are none.
        """
        for number, count in self._reach(self._folded(path)).begun:
            names = self._names[number]
            if count and names[count] != ANY_DEPTH:
                return self._values[number]
        return None

    def _folded(self, path: bytes) -> bytes:
        return path.lower() if self._folds_case else path

    def _reach(self, path: bytes) -> _Reach:
        """Return how far patterns have come at a path; remembered for directories."""
        directory, _, name = path.rpartition(b"/")
        if not name:
            return self._at[b""]
        above = self._at.get(directory)
        if above is None:
            above = self._at[directory] = self._reach(directory)
        return self._step(above, name)

    def _step(self, above: _Reach, name: bytes) -> _Reach:
        if above.found is not None:
            return above
        (going_on, may_go_on), beginning = above.going_on(name, self._names), self._begin.get(name, ())
        may_begin = self.first_names.may_be_wild(name) and self._any_wild.fit(os.fsdecode(name))
        if not (going_on or may_go_on or beginning or may_begin):
            return _NOWHERE
        found: set[int] = set()
        begun: set[tuple[int, int]] = set()
        for number, count in going_on:
            self._note(number, count + 1, found, begun)
        for number, count in may_go_on:
            names = self._names[number]
            if names[count] == ANY_DEPTH:
                begun.add((number, count))
                count += 1
            if self._fits(names[count], name):
                self._note(number, count + 1, found, begun)
        for number in beginning:
            self._note(number, 2, found, begun)
        for number in self._begin_wild if may_begin else ():
            if self._fits(self._names[number][1], name):
                self._note(number, 2, found, begun)
        return _Reach(min(found, default=None), tuple(sorted(begun)))

    def _note(self, number: int, count: int, found: set[int], begun: set[tuple[int, int]]) -> None:
        if count == len(self._names[number]):
            found.add(number)
        else:
            begun.add((number, count))

    def _fits(self, pattern: bytes, name: bytes) -> bool:
        if not is_wild(pattern):
            return pattern == name
        wildcards = self._wildcards.get(pattern)
        if wildcards is None:
            wildcards = self._wildcards[pattern] = Wildcards([os.fsdecode(pattern)])
        return wildcards.fit(os.fsdecode(name))


def is_wild(name: bytes) -> bool:
    """Tell whether a name of a pattern holds a wildcard."""
    return b"*" in name or b"?" in name or b"[" in name  # asked thousands of times


def _lower(names: Pattern) -> Pattern:
    text = b"/".join(names)
    lower = text.lower()
    return names if lower == text else tuple(lower.split(b"/"))  # most have no capitals


def _shortest(names: Iterable[bytes]) -> Pattern:
    """Return a pattern as short as it can be written: no ``**`` at its end, and no two in a row."""
    kept: list[bytes] = []
    for name in names:
        if not (name == ANY_DEPTH and kept and kept[-1] == ANY_DEPTH):
            kept.append(name)
    while kept and kept[-1] == ANY_DEPTH:
        kept.pop()
    return tuple(kept)


def parse_pattern(text: str, directory: bytes, home: bytes) -> Pattern:
    """Return the pattern that a text spells: absolute, below ``~``, beginning with ``**/``, or
    below ``directory``.
    """
    raw = text.encode() if text.isascii() else os.fsencode(text)  # asked for each line of the table
    if raw[:2] in (b"~", b"~/"):
        raw = home + raw[1:]
    elif raw[:1] != b"/" and raw[:3] != b"**/":
        raw = directory + b"/" + raw
    names = raw.lstrip(b"/").split(b"/")
    if b"" in names:
        names = [name for name in names if name]
    if b"." in names or b".." in names:
        names = [name for name in os.path.normpath(raw).split(b"/") if name]
    depths = names.count(ANY_DEPTH)
    if depths == 1 and names[-1] == ANY_DEPTH:
        names.pop()
    return _shortest(names) if depths > 1 else tuple(names)
