"""Long output at a terminal: through a pager, as git does it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from yolofs.cli.options import options
from yolofs.cli.output import emit_bytes, warn
from yolofs.paths import display
from yolofs.system.host_programs import find_program

if TYPE_CHECKING:
    import subprocess

_VARIABLES = ("YOLOFS_PAGER", "PAGER")
_DEFAULT = "less"
_NONE = ("", "cat")
_SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""What less and lv get if the user has not said anything: quit if it fits, show colours, leave it
on the screen.
"""

Write = Callable[[bytes], object]


@contextlib.contextmanager
def paged(*, is_wanted: bool = True) -> Iterator[Write]:
    """Give what takes the output of the block: stdout, or a pager for more than a terminal shows at
    once.

    The pager is what YOLOFS_PAGER, else PAGER, names, else less.  The end waits for it.  If the
    user ends it early, the block ends without an error.  A pager that fails is told: it may have
    shown nothing.
    """
    words = _command() if is_wanted else None
    if words is None:
        yield emit_bytes
        return
    output = _Output(*words)
    try:
        with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
            yield output.write
            output.flush()
    finally:
        output.end()


class _Output:
    """Holds output back until it is more than a terminal shows at once; from then on a pager gets
    it.
    """

    def __init__(self, program: str, words: list[str]) -> None:
        import shutil  # takes a while, as subprocess does, and most output is into a pipe

        self._program = program
        self._words = words
        self._columns, self._rows = shutil.get_terminal_size()
        self._pending: list[bytes] = []
        self._lines = 0
        self._process: subprocess.Popen[bytes] | None = None

    def write(self, data: bytes) -> None:
        """Take some more.

        Raises:
            BrokenPipeError: the pager has ended.
        """
        if self._process is None:
            self._pending.append(data)
            self._lines += data.count(b"\n") + len(data) // self._columns
            if self._lines < self._rows:
                return
            import subprocess

            sys.stdout.flush()
            self._process = subprocess.Popen(
                self._words, executable=self._program, stdin=subprocess.PIPE, env={**_SETTINGS, **os.environ}
            )
            data, self._pending = b"".join(self._pending), []
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def flush(self) -> None:
        """Pass all on.

        Raises:
            BrokenPipeError: the pager has ended.
        """
        if self._process is None:
            emit_bytes(b"".join(self._pending))
        elif self._process.stdin is not None:
            self._process.stdin.flush()

    def end(self) -> None:
        """Wait until the pager has ended, if there is one; Ctrl-C is for it alone meanwhile."""
        if self._process is None or self._process.stdin is None:
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            code = self._process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            ended = f"was ended by signal {-code}" if code < 0 else f"failed (exit code {code})"
            warn(f"the pager {display(os.fsencode(self._words[0]))} {ended}; YOLOFS_PAGER=cat does without")


def _command() -> tuple[str, list[str]] | None:
    """Return the pager's program and words; None if there is to be none.

    A program in a sandbox has none: it would run outside.
    """
    if options().guard is not None or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    import shlex  # takes a while, and whoever pipes the output does without

    text = next((os.environ[name] for name in _VARIABLES if name in os.environ), _DEFAULT)
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without an end
        return None
    if not words or words[0] in _NONE:
        return None
    program = words[0] if "/" in words[0] else find_program(words[0])
    return (program, words) if program is not None and os.access(program, os.X_OK) else None
