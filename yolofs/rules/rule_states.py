"""The six states of a path: what each settles, refuses and asks."""

from __future__ import annotations

import enum


class RuleState(enum.Enum):
    """The state of a path; the value is its spelling in TOML.

    ``may_…`` says that the access is allowed, ``asks_to_…`` that somebody has to answer.  If both
    are false, it is refused: with ENOENT where :attr:`is_hidden`, and with EACCES elsewhere.
    """

    ALLOW = "allow"
    READ_ONLY = "read-only"
    WRITE_ASK = "write-ask"
    ASK = "ask"
    DENY = "deny"
    HIDDEN = "hidden"

    __hash__ = object.__hash__  # that of enums is written in Python, and rules are looked up by their states

    @property
    def is_hidden(self) -> bool:
        """Whether the path seems not to exist."""
        return self is RuleState.HIDDEN

    @property
    def may_stat(self) -> bool:
        """Whether attributes and the target of a link may be read; never asked."""
        return self is not RuleState.HIDDEN

    @property
    def may_list(self) -> bool:
        """Whether a directory's names may be read; never asked."""
        return self not in (RuleState.DENY, RuleState.HIDDEN)

    @property
    def may_read(self) -> bool:
        """Whether a file may be opened for reading or executed."""
        return self in (RuleState.ALLOW, RuleState.READ_ONLY, RuleState.WRITE_ASK)

    @property
    def asks_to_read(self) -> bool:
        """Whether opening for reading or executing asks."""
        return self is RuleState.ASK

    @property
    def may_write(self) -> bool:
        """Whether the path may be changed: content, name, attributes."""
        return self is RuleState.ALLOW

    @property
    def asks_to_write(self) -> bool:
        """Whether changing the path asks."""
        return self in (RuleState.WRITE_ASK, RuleState.ASK)

    @property
    def read_rank(self) -> int:
        """How strict it is with reading: 0 free, 1 asks, 2 refused, 3 hidden."""
        return _READ_RANKS[self]

    @property
    def write_rank(self) -> int:
        """How strict it is with changing: 0 free, 1 asks, 2 refused, 3 hidden."""
        return _WRITE_RANKS[self]

    def is_stricter_than(self, other: RuleState) -> bool:
        """Tell whether this state lets less through than ``other`` in any way."""
        return self.read_rank > other.read_rank or self.write_rank > other.write_rank

    @property
    def may_ask(self) -> bool:
        """Whether any access to the path asks."""
        return self.asks_to_read or self.asks_to_write


_READ_RANKS = {
    RuleState.ALLOW: 0,
    RuleState.READ_ONLY: 0,
    RuleState.WRITE_ASK: 0,
    RuleState.ASK: 1,
    RuleState.DENY: 2,
    RuleState.HIDDEN: 3,
}
_WRITE_RANKS = {
    RuleState.ALLOW: 0,
    RuleState.WRITE_ASK: 1,
    RuleState.ASK: 1,
    RuleState.READ_ONLY: 2,
    RuleState.DENY: 2,
    RuleState.HIDDEN: 3,
}
