"""Ctrl-C while a disk does not answer: a network filesystem whose server is gone, or one in user
space whose process has stopped.

The kernel ends a wait for such a disk only by a signal that kills.  One that a process handles, as
Ctrl-C is by Python, waits with it.  So a thread looks now and then whether Ctrl-C is pending and
the main thread is in such a wait.  If that lasts, it says which path does not answer and ends the
process, as a kill would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

from yolofs.system import stop_signals

_LOOKS_EVERY_S = 0.5
_PATIENCE_S = 3.0
_PATIENCE_IN_A_STEP_S = 20.0
"""While base is being changed: a slow disk is to have time, as a kill leaves base half way."""
_MOST_PATH_BYTES = 4096
_CWD = 0xFFFFFF9C
_WAITS = "D"


_CALLS = {
    "x86_64": (
        frozenset({257, 258, 262, 263, 264, 265, 267, 268, 269, 280, 316, 332, 437, 439}),
        frozenset({2, 4, 6, 21, 82, 83, 84, 87, 89, 90, 94, 137, 188, 189, 191, 192, 194, 195}),
        frozenset({0, 1, 3, 5, 16, 17, 18, 74, 75, 77, 91, 93, 138, 190, 193, 196, 217, 285, 306, 326}),
    ),
    "aarch64": (
        frozenset({34, 35, 37, 48, 53, 54, 56, 78, 79, 88, 276, 291, 437, 439}),
        frozenset({5, 6, 8, 9, 11, 12, 43}),
        frozenset({7, 10, 13, 29, 44, 46, 47, 52, 55, 57, 61, 63, 64, 67, 68, 80, 82, 83, 267, 285}),
    ),
}
"""Numbers of system calls, by what their first arguments are: an open directory and a name in it, a
path, a descriptor.  No class of its own: the first one with types would take longer to make than
all the rest here.
"""


def watch() -> None:
    """Have Ctrl-C end this process from now on where a disk does not answer; for the main thread.

    Does nothing where it has begun already.
    """
    if threading.current_thread() is threading.main_thread() and _watched.pid != os.getpid():
        _watched.pid = os.getpid()
        threading.Thread(target=_look, args=(threading.get_native_id(),), daemon=True).start()


class _Watched:
    pid = 0


_watched = _Watched()


def _look(thread: int) -> None:
    since = 0.0
    while True:
        time.sleep(_LOOKS_EVERY_S)  # nobody tells that a signal is pending which the main thread does not take
        if not _is_stuck(thread):
            since = 0.0
            continue
        since = since or time.monotonic()
        patience_s = _PATIENCE_IN_A_STEP_S if stop_signals.is_postponed() else _PATIENCE_S
        if time.monotonic() - since >= patience_s:
            _leave(waits_for(thread))


def _is_stuck(thread: int) -> bool:
    """Tell whether Ctrl-C is pending, and a thread is in a wait that it does not end."""
    try:
        with open(f"/proc/self/task/{thread}/status", encoding="ascii", errors="replace") as lines:
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
        pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
        return bool(pending >> signal.SIGINT - 1 & 1) and fields["State"].split()[0] == _WAITS
    except (OSError, ValueError, KeyError):
        return False


def waits_for(thread: int) -> bytes:
    """Return the path that a thread of this process waits for in a system call; empty if that
    cannot be told.
    """
    try:
        with open(f"/proc/self/task/{thread}/syscall", encoding="ascii") as file:
            number, *arguments = (int(word, 0) for word in file.read().split())
        by_directory, by_path, by_descriptor = _CALLS[os.uname().machine]
        if number in by_path:
            return _text_at(arguments[0])
        if number not in by_directory | by_descriptor:
            return b""
        above = b"" if arguments[0] & 0xFFFFFFFF == _CWD else os.readlink(b"/proc/self/fd/%d" % arguments[0])
        return os.path.join(above, _text_at(arguments[1])) if number in by_directory else above
    except (OSError, ValueError, KeyError, IndexError):
        return b""


def _text_at(address: int) -> bytes:
    """Return the text that begins at an address in this process."""
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        page = _MOST_PATH_BYTES - address % _MOST_PATH_BYTES  # the next one may not be there
        text = os.pread(memory, page, address)
        if b"\0" not in text:
            with contextlib.suppress(OSError):
                text += os.pread(memory, _MOST_PATH_BYTES, address + page)
    finally:
        os.close(memory)
    return text.partition(b"\0")[0]


def _leave(path: bytes) -> None:
    from yolofs.paths import display  # by now nobody waits for it

    what = f"{display(path)} does not answer" if path else "a disk does not answer"
    text = f"yolofs: {what}, so this command was ended; nothing is lost\nhint: once it answers again: yolofs status\n"
    with contextlib.suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, text.encode(errors="replace"))
    os._exit(128 + signal.SIGINT)
