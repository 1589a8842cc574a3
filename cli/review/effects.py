"""Effects: what the review's model wants done by the side with the session."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks, Hunk
from yolofs.changes.picks import LineNumbers
from yolofs.cli.review.change_tree import Key
from yolofs.paths import Generation, RelPath

PickedOrAll: TypeAlias = Mapping[str, LineNumbers | None] | None
"""Hunks by their ids; None: all of a change, as it is now."""


class Load(NamedTuple):
    """Wanted: the hunks of a change, for the right side."""

    change: Change


class Compare(NamedTuple):
    """Wanted: another comparison; up to a generation, or up to the last state."""

    at: Generation | None = None
    is_last: bool = True


class LookStoppedError(Exception):
    """The user does not want to wait for what a commit would do, or for a drop."""


class Stop:
    """Tells from one thread that what another one does is not wanted any more."""

    def __init__(self) -> None:
        self._is_set = threading.Event()

    def set(self) -> None:
        """Have the next :meth:`check` raise."""
        self._is_set.set()

    @property
    def is_set(self) -> bool:
        """Tell whether it is not wanted any more."""
        return self._is_set.is_set()

    def check(self) -> None:
        """Go on.

        Raises:
            LookStoppedError: it is not wanted any more.
        """
        if self.is_set:
            raise LookStoppedError


class Drop(NamedTuple):
    """Wanted: what was picked is dropped."""

    what: Mapping[Key, tuple[Change, PickedOrAll]]
    title: str
    note: str
    is_told: bool
    """Whether the agent is told."""


class Edit(NamedTuple):
    """Wanted: the user's editor."""

    file: FileHunks
    hunk: Hunk


class Prepare(NamedTuple):
    """Wanted: the page before a commit."""

    what: Mapping[Key, tuple[Change, PickedOrAll]]
    named: tuple[RelPath, ...]
    ours: frozenset[RelPath] = frozenset()
    """At these what is staged is to replace what base has."""
    is_on_screen: bool = True
    """Whether keys can settle conflicts, and a list has all that the page folds."""


class ConflictKey(Enum):
    """How a conflict is settled; the value is the key for it."""

    MERGE = "m"
    OURS = "o"
    THEIRS = "t"


class Settle(NamedTuple):
    """Wanted: in the view, conflicts are settled."""

    paths: tuple[RelPath, ...]
    way: ConflictKey


class Commit(NamedTuple):
    """Wanted: the commit of what the page has shown."""

    prepared: object


class Undo(NamedTuple):
    """Wanted: a drop or an edit is taken back."""

    done: DoneInView


class EndReview(NamedTuple):
    """Wanted: the end."""

    is_interrupt: bool = False


class DoneInView(NamedTuple):
    """Something that was done in the view."""

    title: str
    journal: int
    """The key of the journal that it was done in."""
    before: Generation
    """What the view showed before."""
    after: Generation
    paths: tuple[RelPath, ...]
    """Where it has changed something."""
    feedback: int | None = None
    """The number of what the agent is told of it."""
    travels: bool = False
    """Whether only a travel takes it back: it has changed what is known of base."""


class Carried(NamedTuple):
    """A change of which a part was dropped: what its other hunks are called now."""

    change: Change
    ids: Mapping[str, str]
    """The new ids by the old ones."""
    lines: Mapping[str, Mapping[int, tuple[str, int]]]
    """Of a hunk of which some lines were dropped, by its old id: where each other line is now, by
    the new id of its hunk and its number there.
    """
    is_all: bool
    """Whether there are no other hunks."""


class PageChoice(NamedTuple):
    """A line of a page that the cursor can be on."""

    line: int
    """Its number among the lines, from 0."""
    paths: tuple[RelPath, ...]
    """The conflicts that it stands for: one, or all in a directory."""


class Page(NamedTuple):
    """Lines to read, and perhaps to agree to."""

    title: str
    lines: tuple[str, ...]
    question: str = ""
    """What Enter does; empty if there is nothing to agree to."""
    prepared: object = None
    conflicts: tuple[RelPath, ...] = ()
    """Paths at which base has changed, too, and the user has not chosen a side."""
    ways: tuple[ConflictKey, ...] = ()
    """What can be done about these."""
    choices: tuple[PageChoice, ...] = ()
    """The lines that stand for them."""
    marked: frozenset[RelPath] = frozenset()
    """In these stand the marks of a merge."""
    keys: str = ""
    """Which keys there are, if there is no question."""


ReviewEffect: TypeAlias = Load | Compare | Drop | Edit | Prepare | Settle | Commit | Undo | EndReview
