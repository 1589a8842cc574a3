"""What is asked when no rule settles an access, what can be answered, and who is asked.

The gate in front of the view makes a :class:`Question`; the ask broker of the daemon is the :class:`Asker`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

import msgspec

from yolofs.rules import Rule, RuleState


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
    """One access that has to be answered, or (:meth:`Asker.refused`) was refused."""

    path: bytes
    """Absolute, as base has it: raw bytes."""
    operation: Operation
    state: RuleState
    """The state in force at ``path``."""
    rule: Rule | None
    """The rule that led to it, None where there is none."""
    size: int | None = None
    """For a change, the bytes that the file has now; None if there is none, or it is no regular file."""

    @property
    def key(self) -> tuple[bytes, bool]:
        """What a permission is about: the path, and whether it is to be changed."""
        return self.path, self.operation.is_change


class Decision(enum.Enum):
    """How a question ends."""

    ALLOW = "allow"
    """This access may go on, once."""
    DENY = "deny"
    """It fails with EACCES."""
    AGAIN = "again"
    """The rules have changed: judge it anew."""
    INTERRUPTED = "interrupted"
    """Whoever asked was interrupted or killed: it fails with EINTR."""


class Asker(Protocol):
    """Where the gate turns to.  Both methods are called on the device loop and must not wait."""

    def ask(self, question: Question, pid: int, answer: Callable[[Decision], None]) -> None:
        """Have a question of the process (or thread) ``pid`` answered.

        ``answer`` is called once, from any thread, with what was decided; every question is answered in the end.
        """

    def refused(self, question: Question, pid: int) -> None:
        """Note that a rule refused an access."""
