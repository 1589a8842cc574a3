"""``yolofs``: where the program begins and ends.

Nothing is imported here that takes long.  So Ctrl-C ends the program without a traceback from the
very beginning, and not only when all is imported.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yolofs.cli.options import GlobalOptions

GARBAGE_THRESHOLD = 50_000
"""Garbage is looked for after this many new objects: more than a short command makes."""
_BECOMES_ANOTHER = frozenset({"run", "shell"})
"""Commands that start another program, which hears Ctrl-C itself."""
_KEPT = frozenset({"status", "diff"})
"""Commands whose bytecode is kept in one file.  What `snapshot` and `run` import before they do
something is so little that to read the file takes as long.
"""


def program() -> NoReturn:
    """Run the command line of this process, and end it.

    It skips what Python does at exit, and garbage collection while importing: together a fifth of
    the time of a short command.
    """
    _leave_on_interrupt()
    _open_closed_streams()
    gc.set_threshold(GARBAGE_THRESHOLD)
    if not _BECOMES_ANOTHER.intersection(sys.argv[1:2]):
        from yolofs.system import silent_disks

        silent_disks.watch()
    kept = None
    if sys.argv[1:2] and sys.argv[1] in _KEPT and "YOLOFS_SOCKET" not in os.environ:
        from yolofs.cli.kept_bytecode import KeptBytecode

        kept = KeptBytecode()
        kept.use()
    code = _run(sys.argv[1:], None)
    import contextlib  # which others have imported by now

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    if kept is not None:
        kept.keep()
    os._exit(code)


def main(arguments: Sequence[str] | None = None, options: GlobalOptions | None = None) -> int:
    """Run a command line and return the exit code; ``options`` stand for those before the
    command.
    """
    from yolofs.system import stop_signals

    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments), options)
    finally:
        stop_signals.restore()


def _run(words: list[str], options: GlobalOptions | None) -> int:
    """Carry a command line out; Ctrl-C is not heard before all of it is imported, and not after
    it.
    """
    from yolofs.cli.lean_msgspec import import_msgspec

    import_msgspec()
    from yolofs.cli.command_line import run

    is_quiet = signal.getsignal(signal.SIGINT) == _leave
    try:
        if is_quiet:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(words, options)
        if is_quiet:
            _leave_on_interrupt()
        return code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _leave_on_interrupt() -> None:
    """Have Ctrl-C end the process at once, unless it does something else already."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    os._exit(128 + number)


def _open_closed_streams() -> None:
    """Have ``/dev/null`` in the place of stdin, stdout and stderr, as far as they are closed
    (``>&-``).

    Else the next file that is opened gets the number of one, and a program that is started prints
    into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(fd, True)
            setattr(sys, name, open(fd, mode, encoding="utf-8"))  # noqa: SIM115  # stays open until the end


if __name__ == "__main__":
    _leave_on_interrupt()
    _open_closed_streams()
    sys.exit(main())
