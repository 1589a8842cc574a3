"""Why a path is allowed, asked or refused: which rule decides, where it is written, and what it comes before."""

from __future__ import annotations

import enum
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from yolofs.questions import Operation, opens_all_names
from yolofs.rules import Rule, RuleBook, RuleSet, RuleState, subject


class Outcome(enum.Enum):
    """What becomes of an access; the value is its name in JSON."""

    ALLOWED = "allowed"
    ASKS = "asks"
    REFUSED = "refused"
    """It fails with EACCES."""
    ABSENT = "absent"
    """It fails with ENOENT."""


_REACHING_ALL_NAMES = (Operation.WRITE, Operation.METADATA, Operation.LINK)


@dataclass(frozen=True, slots=True)
class OtherName:
    """Another name (hard link) of a file, which a change of the file reaches."""

    path: bytes
    state: RuleState
    rule: Rule | None


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
    """Whether this is a hidden directory that can be passed and listed, as something below it is open."""
    overridden: tuple[Rule, ...]
    """Rules about the same as :attr:`rule` from sources that come after it, nearest first."""
    closed: Rule | None = None
    """The rule that hides a directory above, so that nothing leads here (patterns open no way); None if none does."""
    held: Rule | None = None
    """The rule for a path below that keeps a directory or symbolic link here from going away; None if none does."""
    others: tuple[OtherName, ...] = ()
    """The other names of the file by which not all changes are allowed."""
    has_more: bool = False
    """Whether the file has names that were not found, and no rule for just this path says that this does not matter."""

    def outcome(self, operation: Operation) -> Outcome:
        """Return what becomes of an access to the path."""
        if self.closed is not None:
            return Outcome.ABSENT
        if self.is_way:
            return Outcome.ALLOWED if operation is Operation.LIST else Outcome.REFUSED
        if self.held is not None and operation in (Operation.RENAME, Operation.DELETE):
            return Outcome.ABSENT if self.state.is_hidden else Outcome.REFUSED
        own = outcome(self.state, operation)
        if operation in _REACHING_ALL_NAMES and own in (Outcome.ALLOWED, Outcome.ASKS):
            if any(not other.state.asks_to_write for other in self.others):
                return Outcome.REFUSED
            if self.others or self.has_more:
                return Outcome.ASKS
        return own


def explain(
    book: RuleBook, path: bytes, kind: int = stat.S_IFREG, names: Sequence[bytes] = (), *, has_more_names: bool = False
) -> Explanation:
    """Return what the rules say of an absolute path; ``kind`` is the type of what is there, as ``stat.S_IFMT``.

    ``names`` are other names of the file, absolute too; ``has_more_names`` if some were not found.
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
    held = verdict.astray_by_link() if kind == stat.S_IFLNK else None
    if kind == stat.S_IFDIR:
        held = verdict.stricter_below()
    overridden = _overridden(book.sources, verdict.rule)
    others = tuple(OtherName(name, at.state, at.rule) for name in names if not (at := book.at(name)).may_write)
    has_more = has_more_names and not opens_all_names(verdict.rule, path)
    return Explanation(
        path, verdict.state, verdict.rule, place, verdict.is_way, overridden, closed, held, others, has_more
    )


def outcome(state: RuleState, operation: Operation) -> Outcome:
    """Return what a state makes of an operation."""
    if state.is_hidden:
        return Outcome.REFUSED if operation is Operation.CREATE else Outcome.ABSENT
    if operation is Operation.LIST:
        return Outcome.ALLOWED if state.may_list else Outcome.REFUSED
    may, asks = (state.may_write, state.asks_to_write) if operation.is_change else (state.may_read, state.asks_to_read)
    return Outcome.ALLOWED if may else Outcome.ASKS if asks else Outcome.REFUSED


def _overridden(sources: Sequence[RuleSet], rule: Rule | None) -> tuple[Rule, ...]:
    if rule is None:
        return ()
    same = (one for source in sources for one in source.rules if subject(one) == subject(rule))
    return tuple(one for one in same if one is not rule)
