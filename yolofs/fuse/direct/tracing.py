"""Counting requests by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yolofs.fuse.direct.kernel_protocol import Opcode
from yolofs.fuse.trace import KINDS, Trace

T = TypeVar("T")
_OTHER_NAMES = {Opcode.BATCH_FORGET: "forget", Opcode.READDIRPLUS: "readdir", Opcode.RENAME2: "rename"}


def counted(answers: list[Callable[[int, int], T]], trace: Trace) -> list[Callable[[int, int], T]]:
    """Return a table of what answers requests, by opcode, that has ``trace`` count them.

    What a request waits for is not in its time.
    """
    table = list(answers)
    for opcode in Opcode:
        kind = _OTHER_NAMES.get(opcode, opcode.name.lower())
        if kind in KINDS:
            table[opcode] = trace.counting(kind, answers[opcode])
    return table
