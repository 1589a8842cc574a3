"""The paths that an operation changes, with the verdicts over them, and whether one is refused."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple

from yolofs.access.questions import Operation, Question
from yolofs.access.refusals import RefusedError
from yolofs.rules import Verdict


class Touch(NamedTuple):
    """One path that an operation changes."""

    path: bytes
    verdict: Verdict
    operation: Operation
    size: Callable[[], int | None]
    """Tells how many bytes are at stake."""


def refuse(touches: Sequence[Touch], number: int = errno.EACCES) -> None:
    """Raise if a path may not be changed, whoever would be asked.

    ``number`` is the errno of a refusal: to create what is hidden is EACCES, whether something is
    there or not.

    Raises:
        RefusedError: the rules forbid it.
    """
    for path, verdict, operation, _ in touches:
        if not (verdict.may_write or verdict.asks_to_write):
            raise RefusedError(number, Question(path, operation, verdict.state, verdict.rule))


def errno_of_refusal(names: Sequence[tuple[bytes, Verdict] | Touch]) -> int:
    """Return the errno with which a file is refused that has these names: ENOENT if none of them
    may be known.
    """
    return errno.ENOENT if all(name[1].seems_absent for name in names) else errno.EACCES
