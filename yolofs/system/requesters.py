"""Who asks: what ``/proc`` tells of the process or thread behind a request, whether it still wants
an answer, and whether it may keep the bits that lend rights.

While its request waits, a thread can neither end nor be replaced by another of its number, so what
is read here is about the right one.  ``status`` and ``comm`` never wait.  ``cmdline`` takes a lock
that the process itself can hold: :func:`read_commands` belongs into a worker thread.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

COMMAND_BYTES = 1000
"""How much of a command line is kept."""
CUT = "…".encode()
"""Stands behind an argument that was cut, or in the place of those that were left out."""

_field = re.compile(rb"^(Tgid|PPid|SigPnd|ShdPnd|SigBlk|SigIgn):\s*(\w+)", re.MULTILINE)
_numbers = re.compile(rb"^NSpid:((?:\s+\d+)+)$", re.MULTILINE)
_capabilities = re.compile(rb"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
_CAP_FSETID = 4
_STATUS_BYTES = 16384


class Requester(NamedTuple):
    """A process that waits for an answer; what ``/proc`` does not show is 0 or empty."""

    thread: int
    """The number of the thread whose request waits: what the kernel calls the request's pid."""
    pid: int = 0
    name: bytes = b""
    """The process' name, as it has it itself: raw bytes."""
    parent: int = 0
    run: int = 0
    """The run that it belongs to, 0 for none."""


class Commands(NamedTuple):
    """The command lines of a process and its parent, argument by argument; empty where they cannot
    be read.
    """

    own: tuple[bytes, ...] = ()
    parent: tuple[bytes, ...] = ()
    parent_name: bytes = b""
    """As :attr:`Requester.name`."""
    is_started_by_run: bool = False
    """Whether the parent is the first process of the run's sandbox: what the user has started is
    the run.
    """


def read_requester(thread: int) -> Requester:
    """Return what is known of the process of a thread; never waits, never fails."""
    fields = _fields(_read(b"/proc/%d/status" % thread, _STATUS_BYTES)) if thread > 0 else {}
    if not fields:
        return Requester(thread)
    pid = int(fields[b"Tgid"])
    return Requester(thread, pid, _read_name(pid), int(fields[b"PPid"]))


def read_commands(requester: Requester) -> Commands:
    """Return the command lines of a requester and its parent; may wait.

    The first process of a sandbox has a long one, which is of our making and tells nobody anything.
    """
    parent = requester.parent
    is_started_by_run = bool(requester.run) and _is_first(parent)
    above = () if is_started_by_run else _read_command(parent)
    return Commands(_read_command(requester.pid), above, _read_name(parent), is_started_by_run)


def wants_no_answer(thread: int) -> bool:
    """Tell whether a thread that could be seen is gone, or has a signal that it neither blocks nor
    ignores.

    A signal for the whole process counts although another thread may be about to take it: ask
    twice.
    """
    raw = _read(b"/proc/%d/status" % thread, _STATUS_BYTES)
    fields = _fields(raw)
    if not fields:
        return not raw
    pending = int(fields[b"SigPnd"], 16) | int(fields[b"ShdPnd"], 16)
    return bool(pending & ~int(fields[b"SigBlk"], 16) & ~int(fields[b"SigIgn"], 16))


def may_keep_setuid(thread: int) -> bool:
    """Tell whether a thread may change a file and leave setuid and setgid bits on it: it has
    ``CAP_FSETID``, and not only in a user namespace of its own.  One that cannot be seen may not.
    """
    found = _capabilities.search(_read(b"/proc/%d/status" % thread, _STATUS_BYTES)) if thread > 0 else None
    if found is None or not int(found[1], 16) & 1 << _CAP_FSETID:
        return False
    try:
        return os.readlink(f"/proc/{thread}/ns/user") == os.readlink("/proc/self/ns/user")
    except OSError:
        return False


def _fields(status: bytes) -> dict[bytes, bytes]:
    """Return the fields that are of use here; none unless all are there."""
    found = dict(_field.findall(status))
    return found if len(found) == 6 else {}


def _is_first(pid: int) -> bool:
    """Tell whether a process is the first one of a pid namespace below ours."""
    found = _numbers.search(_read(b"/proc/%d/status" % pid, _STATUS_BYTES)) if pid > 0 else None
    numbers = found[1].split() if found is not None else []
    return len(numbers) > 1 and numbers[-1] == b"1"


def _read_name(pid: int) -> bytes:
    return _read(b"/proc/%d/comm" % pid, 64).removesuffix(b"\n") if pid > 0 else b""


def _read_command(pid: int) -> tuple[bytes, ...]:
    if pid <= 0:
        return ()
    raw = _read(b"/proc/%d/cmdline" % pid, COMMAND_BYTES + 1)
    if not raw:
        return ()
    words = raw[:COMMAND_BYTES].removesuffix(b"\0").split(b"\0")
    if len(raw) > COMMAND_BYTES:
        words[-1] += CUT
    return tuple(words)


def _read(path: bytes, size: int) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(size) or b""
    except OSError:
        return b""
