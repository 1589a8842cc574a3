"""Carries a command line out: finds the command, and is the one place that prints errors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from yolofs.cli import output
from yolofs.cli.options import GlobalOptions
from yolofs.errors import BusyFilesError, ConflictError, UsageError, YolofsError
from yolofs.paths import display
from yolofs.system import stop_signals

BROKEN_PIPE = 141
"""The exit code when nobody reads stdout any more, as shells have it."""
_SHOWN_USERS = 10


def run(words: list[str], options: GlobalOptions | None) -> int:
    """Carry a command line out and return its exit code; ``options`` stand for those before the
    command.
    """
    output.prepare()
    socket_path = os.environ.get("YOLOFS_SOCKET")
    if socket_path is not None and options is None:
        code = _inside(words, socket_path)
        if code is not None:
            return code
    try:
        code = _run_plainly(words) if options is None else None
        if code is None:
            from yolofs.cli.group import carry_out

            code = carry_out(words, options)
        output.flush()
        return code
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt as stopped:
        return stop_signals.exit_code_of(stopped)
    except Exception as error:  # noqa: BLE001 - the one place where every error ends
        if not _flush():
            _forget_stdout()
        if _wants_traceback(words):
            import traceback  # what only a mistake of ours needs

            traceback.print_exc()
        return _report(error)


def _run_plainly(words: Sequence[str]) -> int | None:
    """Carry out a short command without options and return its exit code; None if it is something
    else.

    Agents start all their commands by a `yolofs run`, and look at the view all the time: they need
    not wait until click is imported, which takes as long as the sandbox.
    """
    match words:
        case ["run", _, *_]:
            return _run_command(words)
        case ["status"]:
            from yolofs.cli.without_click.status import show_status

            show_status()
        case ["diff"]:
            from yolofs.cli.without_click import diff

            diff.show_diff()
        case ["snapshot"]:
            _snapshot("")
        case ["snapshot", name] if not name.startswith("-"):
            _snapshot(name)
        case _:
            return None
    return 0


def _snapshot(name: str) -> None:
    from yolofs.cli.without_click.snapshot import snapshot

    snapshot(os.fsencode(name))


def _run_command(words: Sequence[str]) -> int | None:
    command = words[2:] if words[1] == "--" else words[1:]
    if not command or (words[1] != "--" and words[1].startswith("-")):
        return None
    from yolofs.cli.run.around_a_run import RunManner, passed_on, run_command

    return passed_on(run_command([os.fsencode(word) for word in command], RunManner()))


def _inside(words: Sequence[str], socket_path: str) -> int | None:
    """Have a command line carried out by the daemon, if we are in a sandbox; None if it is to be
    done here.
    """
    from yolofs.cli.run.around_a_run import is_in_sandbox
    from yolofs.cli.run.inside_a_sandbox import LOCAL
    from yolofs.cli.run.inside_a_sandbox import main as carry_out

    if not words or words[0] in LOCAL or words[0].startswith("-") or not is_in_sandbox():
        return None
    return carry_out(words, socket_path, _check_is_command)


def _check_is_command(name: str) -> None:
    """Check that a word is the name of a command.

    Raises:
        UsageError: it is not.
    """
    from yolofs.cli.group import COMMANDS, near_command  # takes long, and only a refused command comes here

    if name not in COMMANDS:
        raise UsageError(near_command(name), hint="yolofs --help")


def _report(error: Exception) -> int:
    """Print an error and return its exit code."""
    match error:
        case YolofsError():
            with contextlib.suppress(OSError):  # a terminal that was closed
                output.fail(error.message, error.hint, _details(error))
            return error.exit_code
        case OSError(strerror=str()):
            from yolofs.os_errors import explain_os_error

            output.fail(*explain_os_error(error))
            return 1
        case _:
            output.fail(f"this should not have happened: {error!r}", f"the traceback is in {_keep_traceback(error)}")
            return 1


def _details(error: YolofsError) -> list[str]:
    match error:
        case BusyFilesError():
            lines = list(error.users)
        case ConflictError():
            lines = [display(os.path.join(error.root, path)) for path in error.paths]
        case _:
            lines = []
    more = len(lines) - _SHOWN_USERS
    return lines if more <= 0 else [*lines[:_SHOWN_USERS], f"… and {more} more"]


def _wants_traceback(words: Sequence[str]) -> bool:
    return "--traceback" in words[: words.index("--") if "--" in words else None]


def _keep_traceback(error: Exception) -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="yolofs-", suffix=".traceback", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return file.name


def _flush() -> bool:
    """Write what waits to be written to stdout, and tell whether that worked."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _forget_stdout() -> None:
    """Keep Python from complaining at exit that it cannot write what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
