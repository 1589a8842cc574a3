"""Why a path is allowed, asked or refused: the rule that decides, its place, and the rules that it
precedes.
"""

from __future__ import annotations

import enum
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from yolofs.access.questions import Operation, opens_all_names
from yolofs.rules import Rule, RuleBook, RuleSet, RuleState, Verdict, subject


class AccessOutcome(enum.Enum):
    """What becomes of an access; the value is its name in JSON."""

    ALLOWED = "allowed"
    ASKS = "asks"
    REFUSED = "refused"
    """It fails with EACCES."""
    ABSENT = "absent"
    """It fails with ENOENT."""


_REACHING_ALL_NAMES = (Operation.WRITE, Operation.METADATA, Operation.LINK)
_READING = (Operation.READ, Operation.EXECUTE)


THROUGH_LINKS = (Operation.READ, Operation.WRITE, Operation.EXECUTE, Operation.LIST)
"""What is never done to a symbolic link, but to what it leads to."""


@dataclass(frozen=True, slots=True)
class OtherName:
    """Another name (hard link) of a file, which a change of the file reaches."""

    path: bytes
    state: RuleState
    rule: Rule | None
    is_staged: bool
    """Whether the view has noted this name: reads of the file are judged by it, too, else once it
    was looked at.
    """


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the rules say of a path."""

    path: bytes
    """Absolute."""
    state: RuleState
    rule: Rule | None
    """The rule that decides, None where there is none."""
    place: bytes
    """The path or the directory above it that the rule is about; the root where there is none."""
    is_way: bool
    """Whether this is a hidden directory that can be passed and listed, as something below it is
    open.
    """
    overridden: tuple[Rule, ...]
    """Rules about the same as :attr:`rule` from sources that come after it, nearest first."""
    closed: Rule | None = None
    """The rule that hides a directory above, so that nothing leads here (patterns open no way);
    None if none does.
    """
    kept_by: Rule | None = None
    """The rule whose path goes on from here, so that no directory or symbolic link here goes away;
    None if none.
    """
    others: tuple[OtherName, ...] = ()
    """The other names of the file by which not all changes are allowed."""
    link: bytes | None = None
    """Where a symbolic link here leads, absolute: what is done through it is judged there."""
    has_more: bool = False
    """Whether the file has names that were not found, and no rule for just the file says that this
    does not matter.
    """

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be done at the path itself."""
        return tuple(one for one in Operation if self.link is None or one not in THROUGH_LINKS)

    def outcome(self, operation: Operation) -> AccessOutcome:
        """Return what becomes of an access to the path."""
        if self.closed is not None:
            return AccessOutcome.ABSENT
        if self.is_way:
            return AccessOutcome.ALLOWED if operation is Operation.LIST else AccessOutcome.REFUSED
        if self.kept_by is not None and operation in (Operation.RENAME, Operation.DELETE):
            return AccessOutcome.ABSENT if self.state.is_hidden else AccessOutcome.REFUSED
        own = outcome(self.state, operation)
        if own not in (AccessOutcome.ALLOWED, AccessOutcome.ASKS):
            return own
        if operation in _READING:
            states = [other.state for other in self.others if other.is_staged]
            if any(not (state.may_read or state.asks_to_read) for state in states):
                return AccessOutcome.REFUSED
            if any(state.asks_to_read for state in states):
                return AccessOutcome.ASKS
        if operation in _REACHING_ALL_NAMES:
            if any(not other.state.asks_to_write for other in self.others):
                return AccessOutcome.REFUSED
            if self.others or self.has_more:
                return AccessOutcome.ASKS
        return own


def explain(
    book: RuleBook,
    path: bytes,
    kind: int = stat.S_IFREG,
    *,
    link: bytes | None = None,
    staged_names: Sequence[bytes] = (),
    names: Sequence[bytes] = (),
    more_names_of: bytes | None = None,
) -> Explanation:
    """Return what the rules say of an absolute path; ``kind`` is the type of what is there, as
    ``stat.S_IFMT``.

    ``staged_names`` are other names of the file, absolute too, that the view has noted, ``names``
    those that base has.  ``link`` is where a symbolic link there leads.  ``more_names_of`` is where
    base has the file, if it has names that were not found.
    """
    verdict, place, closed = find_deciding(book, path)
    kept_by = verdict.astray_by_link() if kind == stat.S_IFLNK else None
    if kind == stat.S_IFDIR:
        kept_by = verdict.stricter_below()
    overridden = _overridden(book.sources, verdict.rule)
    others = (*_others(book, staged_names, is_staged=True), *_others(book, names, is_staged=False))
    home = more_names_of
    has_more = home is not None and not opens_all_names(book.at(home).rule, home)
    return Explanation(
        path, verdict.state, verdict.rule, place, verdict.is_way, overridden, closed, kept_by, others, link, has_more
    )


def find_deciding(book: RuleBook, path: bytes) -> tuple[Verdict, bytes, Rule | None]:
    """Return the verdict over an absolute path, the place it comes from, and the rule that hides a
    directory above.

    The place is the path itself or a directory above it; the root where there is no rule.
    """
    verdict = book.at(b"/")
    place = passed = b"/"
    closed = None
    for name in path.split(b"/"):
        if name:
            if closed is None and verdict.seems_absent:
                closed = verdict.rule
            passed = passed.rstrip(b"/") + b"/" + name
            below = book.below(verdict, name)
            if below.rule is not verdict.rule:
                place = passed
            verdict = below
    return verdict, place, closed


def outcome(state: RuleState, operation: Operation) -> AccessOutcome:
    """Return the outcome of an operation under a state."""
    if state.is_hidden:
        return AccessOutcome.REFUSED if operation is Operation.CREATE else AccessOutcome.ABSENT
    if operation is Operation.LIST:
        return AccessOutcome.ALLOWED if state.may_list else AccessOutcome.REFUSED
    may, asks = (state.may_write, state.asks_to_write) if operation.is_change else (state.may_read, state.asks_to_read)
    return AccessOutcome.ALLOWED if may else AccessOutcome.ASKS if asks else AccessOutcome.REFUSED


def _others(book: RuleBook, names: Sequence[bytes], *, is_staged: bool) -> list[OtherName]:
    verdicts = [(name, book.at(name)) for name in names]
    return [OtherName(name, at.state, at.rule, is_staged) for name, at in verdicts if not at.may_write]


def _overridden(sources: Sequence[RuleSet], rule: Rule | None) -> tuple[Rule, ...]:
    if rule is None:
        return ()
    same = (one for source in sources for one in source.rules if subject(one) == subject(rule))
    return tuple(one for one in same if one is not rule)
