"""A question, for an access that no rule settles; its answers; and whoever answers it.

The gate in front of the view makes a :class:`Question`; the ask broker of the daemon is the
:class:`Asker`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

import msgspec

from yolofs.rules import PathRule, Rule, RuleState, Verdict


class Operation(enum.Enum):
    """What a process wants to do; the value is its name in prompts, JSON and the audit."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"
    LINK = "link"
    METADATA = "metadata"
    EXECUTE = "execute"
    LIST = "list"

    @property
    def is_change(self) -> bool:
        """Whether it changes what it is about: judged by the "write" column of the states."""
        return self not in (Operation.READ, Operation.EXECUTE, Operation.LIST)


class Question(msgspec.Struct, frozen=True):
    """One access that waits to be allowed or denied, or was refused (:meth:`Asker.refused`)."""

    path: bytes
    """Absolute, as base has it: raw bytes."""
    operation: Operation
    state: RuleState
    """The state in force at ``path``."""
    rule: Rule | None
    """The rule that led to it, None where there is none."""
    size: int | None = None
    """For a change, the bytes that the file has now; None if there is none, or it is not a regular
    file.
    """

    @property
    def key(self) -> tuple[bytes, bool]:
        """What a permission is about: the path, and whether it is to be changed."""
        return self.path, self.operation.is_change

    @property
    def is_about_other_names(self) -> bool:
        """Whether the path's rule allows it, and it is asked only because the file has names that
        are not known.
        """
        return self.operation.is_change and self.rule is not None and self.rule.state.may_write

    def is_still_asked_under(self, verdict: Verdict) -> bool:
        """Tell whether it has to be asked where ``verdict`` is in force at the path."""
        if not self.operation.is_change:
            return verdict.asks_to_read
        if verdict.may_write and self.is_about_other_names:
            return not opens_all_names(verdict.rule, self.path)
        return verdict.asks_to_write


def opens_all_names(rule: Rule | None, path: bytes) -> bool:
    """Tell whether a rule is about the very file at ``path`` and lets it be changed, by whichever
    names it has.
    """
    return isinstance(rule, PathRule) and rule.path == path and rule.state.may_write


class Decision(enum.Enum):
    """How a question ends."""

    ALLOW = "allow"
    """This access may go on, once."""
    DENY = "deny"
    """It fails with EACCES."""
    AGAIN = "again"
    """The rules have changed: judge it anew."""
    INTERRUPTED = "interrupted"
    """The process was interrupted or killed: the access fails with EINTR."""


class Asker(Protocol):
    """Where the gate turns to.  All methods are called on the device loop and must not wait."""

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        """Have a question of the process (or thread) ``pid`` answered.

        ``answer`` is called once, from any thread, with what was decided; every question is
        answered in the end.
        """

    def withdraw(self, answer: Callable[[Decision], None]) -> None:
        """End the question that ``answer`` was to answer with ``INTERRUPTED``: nobody wants an
        answer any more.  Nothing happens if it has been answered.
        """

    def refused(self, question: Question, pid: int) -> None:
        """Note that a rule refused an access."""
