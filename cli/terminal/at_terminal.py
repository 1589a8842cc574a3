"""Running a program of the user's that has the terminal until it ends: an editor, a diff tool."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence

from yolofs.cli.output import say
from yolofs.paths import display
from yolofs.system.processes import children, is_stopped, pidfd_of

_LOOKS_S = 0.3
"""How often to look whether it has stopped: a shell between us and it does not tell."""


def run_at_terminal(command: str, words: Sequence[bytes], environment: Mapping[str, str] | None = None) -> int:
    """Run a command line of the user's, with some more words at its end; return its exit code, or
    the negative number of the signal that ended it.

    Blocks until it ends.  What was typed meanwhile and the program has not read is lost: it would
    answer a question that nobody has seen.  If the program stops itself, we stop like it, so
    that the shell around has the terminal again and lets both go on.
    """
    with subprocess.Popen(["/bin/sh", "-c", f'{command} "$@"', "sh", *words], env=environment) as process:
        try:
            with pidfd_of(process.pid) as ended:
                while ended is not None and not select.select([ended], [], [], _LOOKS_S)[0]:
                    if stopped := [pid for pid in _its_processes(process.pid) if is_stopped(pid)]:
                        _stop_too(command)
                        for pid in stopped:
                            with contextlib.suppress(OSError):
                                os.kill(pid, signal.SIGCONT)
            code = process.wait()
            _forget_what_was_typed()
            return code
        except BaseException:
            process.kill()
            raise


def _forget_what_was_typed() -> None:
    """Have the terminal drop what nobody has read yet, if stdin is one."""
    with contextlib.suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _its_processes(pid: int) -> Iterator[int]:
    """Yield a process and those that it has started in our process group: what has another one is
    not for us to continue.
    """
    group, todo = os.getpgrp(), [pid]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):
            if os.getpgid(pid) != group:
                continue
            yield pid
            todo += children(pid)


def _stop_too(command: str) -> None:
    """Stop with all of our process group, as Ctrl-Z would; where no shell could let us go on, the
    kernel does not stop us.
    """
    has_shell = os.getsid(os.getppid()) == os.getsid(0)
    and_then = "; fg lets it go on" if has_shell else ", and is told to go on"
    say(f"note: {display(os.fsencode(command))} has stopped{and_then}")
    os.kill(0, signal.SIGTSTP)
