"""The timeline: which generations there are, what each is built from, and how users name them.

Pure: it is told the markers and looks at nothing else.  Marker i starts generation i, and segment i
holds the records before it, back to marker i - 1::

    state(0) = base
    state(i) = state(i - 1) + segment i     for a snapshot (P)
    state(i) = state(g)                     for a travel (T) to g

So every state is base plus the segments of a chain of snapshots.  Segment i of a travel belongs to
no state: a travel first snapshots, which leaves its segment empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import islice

import msgspec

from yolofs.errors import GenerationError, JournalError
from yolofs.journal.records import Marker, Snapshot, Travel
from yolofs.paths import Generation, display, in_shell

BASE = Generation(0)
_BASE_NAME = "base"
_ALL = "all"
BACK = "-"
"""Where one was before the last travel."""
_TO = ".."
_NAMES_COMPARED = 1000
"""How many of the newest names are searched for similar ones; comparing 100,000 would take
seconds.
"""


class GenerationKind(Enum):
    """What a generation came from."""

    BASE = "base"
    SNAPSHOT = "snapshot"
    TRAVEL = "travel"


class GenerationInfo(msgspec.Struct, frozen=True):
    """One node of the graph of generations."""

    number: Generation
    kind: GenerationKind
    name: bytes
    """Of the snapshot, or what the user typed to travel; empty for base."""
    time_ns: int
    """0 for base, which has no time."""
    parent: Generation | None
    """The one before it in time; None for base."""
    base: Generation | None
    """For a snapshot the snapshot (or base) it was built on, for a travel the one it shows; None
    for base.
    """
    target: Generation | None
    """Where a travel went, as recorded; None for the others."""
    is_anew: bool
    """A travel only by its form: the state before it is written anew."""
    is_live: bool
    """The present view has come from it."""
    is_present: bool
    """It is the newest."""
    record_count: int | None
    """How many records its segment holds, if that is known; 0 for base."""


class Timeline:
    """The generations that a list of markers makes, from 0, which is base, to :attr:`present`."""

    def __init__(self, markers: Iterable[Marker] = ()) -> None:
        """Take in ``markers``, oldest first.

        Raises:
            JournalError: a travel goes to a generation that did not exist yet.
        """
        self._markers: list[Marker] = []
        self._shown = [BASE]  # for each generation, the snapshot (or base) that has the same state
        self._newest: dict[bytes, Generation] = {}  # by name, in the order in which the names last occurred
        self._last_travel = BASE  # its generation, base if there was none
        for marker in markers:
            self.add(marker)

    def add(self, marker: Marker) -> Generation:
        """Take in one more marker and return the generation that it starts.

        Raises:
            JournalError: it is a travel to a generation that does not exist yet.
        """
        number = Generation(len(self._shown))
        if isinstance(marker, Snapshot):
            self._shown.append(number)
            if marker.name:
                self._newest.pop(marker.name, None)
                self._newest[marker.name] = number
        else:
            if marker.generation >= number:
                raise JournalError(
                    f"generation {number} travels to generation {marker.generation}, which is not older",
                    hint="yolofs doctor --repair",
                )
            self._shown.append(self._shown[marker.generation])
            if not marker.is_anew:
                self._last_travel = number
        self._markers.append(marker)
        return number

    @property
    def present(self) -> Generation:
        """The newest generation; records after its marker build on it."""
        return Generation(len(self._markers))

    # --- what a state is built from ---

    def shown_by(self, generation: int) -> Generation:
        """Return the snapshot, or base, whose state ``generation`` has: itself unless it is a
        travel.
        """
        return self._shown[self._checked(generation)]

    def parent(self, generation: int) -> Generation | None:
        """Return the generation just before in time, None for base."""
        number = self._checked(generation)
        return Generation(number - 1) if number else None

    def base_of(self, generation: int) -> Generation | None:
        """Return the snapshot, or base, that a snapshot was built on or that a travel shows; None
        for base.
        """
        number = self._checked(generation)
        if not number:
            return None
        shown = self._shown[number]
        return self._shown[number - 1] if shown == number else shown

    def segments_of(self, generation: int) -> tuple[int, ...]:
        """Return the numbers of the segments that make up the state of ``generation``, oldest
        first.
        """
        segments = []
        snapshot = self.shown_by(generation)
        while snapshot:
            segments.append(snapshot)
            snapshot = self._shown[snapshot - 1]
        return tuple(reversed(segments))

    def way_to(self, generation: int) -> tuple[Generation, ...]:
        """Return the snapshots that led to ``generation``, oldest first.  If its state was written
        anew, those before that are included.
        """
        return tuple(number for number in reversed(self._way_back(generation)) if self._shown[number] == number)

    @property
    def live_segments(self) -> tuple[int, ...]:
        """The segments that the present view is built from, with the one after the last marker."""
        return (*self.segments_of(self.present), self.present + 1)

    # --- names ---

    def resolve(self, text: str) -> Generation:
        """Return the generation that a user means.

        A number; ``base``; ``-`` for where one was before the last travel; or the name of a
        snapshot, of which the newest counts.  Where all is written anew, nothing is there yet: that
        number means the generation before it, which the view showed then.

        Raises:
            GenerationError: there is none; the hint lists names that are alike.
        """
        if text == BACK:
            if not self._last_travel:
                raise GenerationError("there has been no travel to go back from", hint="yolofs timeline")
            return Generation(self._last_travel - 1)
        if text == _BASE_NAME:
            return BASE
        is_number = text.isascii() and text.isdigit() and len(text) < 20
        if is_number and int(text) <= self.present:
            return self._seen_at(int(text))
        named = self._newest_named(text)
        if named is not None:
            return named
        if is_number:
            raise _no_generation(text, self.present)
        raise GenerationError(f"there is no snapshot named {_shown(text)}", hint=self._names_like(text))

    def parse_range(self, text: str) -> tuple[Generation, Generation | None]:
        """Return the two states that a RANGE compares; None stands for now, unsnapshotted records
        included.

        ========  ==================================================
        ``N``     what N changed: from the generation before it to N
        ``A..B``  from A to B
        ``A..``   from A to now
        ``..B``   from base to B
        ``all``   from base to now; ``..`` too
        ========  ==================================================

        N, A and B are anything that :meth:`resolve` takes.  A whole text that names a snapshot is
        N.

        Raises:
            GenerationError: a generation in it does not exist.
        """
        if text == _ALL:
            return BASE, None
        if _TO in text and self._newest_named(text) is None:
            first, _, last = text.partition(_TO)
            return self.resolve(first) if first else BASE, self.resolve(last) if last else None
        number = self.resolve(text)
        return self._seen_at(max(number - 1, 0)), number

    def _seen_at(self, number: int) -> Generation:
        """Return the newest generation up to ``number`` at which nothing is about to be written
        anew.
        """
        while number and isinstance(marker := self._markers[number - 1], Travel) and marker.is_anew:
            number -= 1
        return Generation(number)

    def _newest_named(self, text: str) -> Generation | None:
        try:
            return self._newest.get(os.fsencode(text))
        except UnicodeEncodeError:  # a lone surrogate, which no name from a terminal holds
            return None

    def _names_like(self, text: str) -> str:
        newest = islice(reversed(self._newest), _NAMES_COMPARED)
        import difflib  # takes long, and only a mistake needs it

        alike = difflib.get_close_matches(text, [os.fsdecode(name) for name in newest])
        if not alike:
            return "yolofs timeline"
        return "did you mean " + " or ".join(in_shell(os.fsencode(name)) for name in alike) + "?"

    # --- the graph ---

    def nodes(self, record_counts: Sequence[int] | None = None) -> list[GenerationInfo]:
        """Return all generations, base first.

        ``record_counts`` tells how many records each segment holds, from segment 1 on, as
        ``Journal.segment_counts`` does.
        """
        live = self._live_generations()
        numbers = range(self.present + 1)
        return [self._node(Generation(number), number in live, record_counts) for number in numbers]

    def _node(self, number: Generation, is_live: bool, record_counts: Sequence[int] | None) -> GenerationInfo:
        marker = self._markers[number - 1] if number else None
        kind = (
            GenerationKind.BASE
            if marker is None
            else GenerationKind.SNAPSHOT
            if isinstance(marker, Snapshot)
            else GenerationKind.TRAVEL
        )
        count = 0 if marker is None else record_counts[number - 1] if record_counts is not None else None
        return GenerationInfo(
            number=number,
            kind=kind,
            name=marker.name if marker is not None else b"",
            time_ns=marker.time_ns if marker is not None else 0,
            parent=self.parent(number),
            base=self.base_of(number),
            target=marker.generation if isinstance(marker, Travel) else None,
            is_anew=isinstance(marker, Travel) and marker.is_anew,
            is_live=is_live,
            is_present=number == self.present,
            record_count=count,
        )

    def _live_generations(self) -> set[int]:
        """Return the generations on the way from the present back to base, travels along it
        included, and what was written anew along it.
        """
        return {0, *self._way_back(self.present)}

    def _way_back(self, generation: int) -> list[Generation]:
        """Return the generations from one back to base, without base."""
        way = []
        number = self._checked(generation)
        while number:
            way.append(number)
            marker = self._markers[number - 1]
            if isinstance(marker, Travel) and not marker.is_anew:
                number = marker.generation
            else:
                number = Generation(number - 1)
        return way

    def _checked(self, generation: int) -> Generation:
        if not 0 <= generation <= self.present:
            raise _no_generation(generation, self.present)
        return Generation(generation)


def _no_generation(wanted: int | str, present: Generation) -> GenerationError:
    return GenerationError(
        f"there is no generation {wanted}: the newest is {present}",
        hint="yolofs timeline; numbers begin anew after each commit",
    )


def _shown(name: str) -> str:
    """Return a name for a message, in quotes where it would be invisible or ambiguous."""
    try:
        return display(os.fsencode(name)) or '""'
    except UnicodeEncodeError:
        return ascii(name)
