"""``yolofs``: the command line.  Finds the command, and is the one place that prints errors."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

import click

from yolofs import __version__
from yolofs.cli import output
from yolofs.cli.options import Options
from yolofs.errors import BusyFilesError, ConflictError, YolofsError
from yolofs.paths import display

COMMANDS = (
    "init",
    "mount",
    "unmount",
    "run",
    "shell",
    "status",
    "diff",
    "log",
    "runs",
    "blame",
    "snapshot",
    "travel",
    "timeline",
    "commit",
    "abort",
    "watch",
    "asks",
    "answer",
    "rule",
    "doctor",
    "hook",
)
"""In the order in which one meets them; each is ``command`` in the module of its name."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""
BROKEN_PIPE = 141
"""The exit code when nobody reads stdout any more, as shells have it."""
_SHOWN_USERS = 10


class _Commands(click.Group):
    """Imports a command only when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"yolofs.cli.{cmd_name}").command
        return command


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="yolofs", message="%(prog)s %(version)s")
@click.option(
    "-C",
    "start",
    metavar="DIR",
    default=b".",
    type=click.Path(exists=True, file_okay=False, path_type=bytes),
    help="Start from this directory instead of the current one.",
)
@click.option("--traceback", is_flag=True, expose_value=False, help="Show where an error came from.")
@click.pass_context
def cli(context: click.Context, start: bytes) -> None:
    """Work on files through a view in which nothing is real until you commit it.

    A session stages every change, can go back to any snapshot, and leaves the real files alone until a commit.
    """
    if not isinstance(context.obj, Options):
        context.obj = Options(start)
    if context.invoked_subcommand is None:
        output.say(context.get_help())
        raise click.exceptions.Exit(2)


def main(arguments: Sequence[str] | None = None, options: Options | None = None) -> int:
    """Run a command line and return the exit code; ``options`` stand for those before the command."""
    output.prepare()
    words = list(sys.argv[1:] if arguments is None else arguments)
    socket_path = os.environ.get("YOLOFS_SOCKET")
    if socket_path is not None and options is None:
        code = _inside(words, socket_path)
        if code is not None:
            return code
    try:
        with cli.make_context(
            "yolofs", list(words), obj=options
        ) as context:  # not cli.main(), which has ideas of its own about errors
            cli.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.ClickException as error:
        _flush()
        output.fail(_sentence(error), _usage_hint(error))
        return 2
    except Exception as error:  # noqa: BLE001 - the one place where every error ends
        _flush()
        if _wants_traceback(words):
            traceback.print_exc()
        return _report(error)


def _inside(words: Sequence[str], socket_path: str) -> int | None:
    """Have a command line carried out by the daemon, if we are in a sandbox; None if it is to be done here."""
    from yolofs.cli.inside import LOCAL
    from yolofs.cli.inside import main as carry_out
    from yolofs.cli.running import is_in_sandbox

    if not words or words[0] in LOCAL or words[0].startswith("-") or not is_in_sandbox():
        return None
    return carry_out(words, socket_path)


def _report(error: Exception) -> int:
    """Print an error and return its exit code."""
    match error:
        case YolofsError():
            output.fail(error.message, error.hint)
            for line in _details(error):
                output.say(f"  {line}")
            return error.exit_code
        case OSError(strerror=str(reason)):
            names = [os.fsencode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
            output.fail(": ".join([*map(display, names), reason]), "")
            return 1
        case _:
            output.fail(f"this should not have happened: {error!r}", f"the traceback is in {_keep_traceback(error)}")
            return 1


def _details(error: YolofsError) -> list[str]:
    match error:
        case BusyFilesError():
            lines = list(error.users)
        case ConflictError():
            lines = [display(b"/" + path) for path in error.paths]
        case _:
            lines = []
    more = len(lines) - _SHOWN_USERS
    return lines if more <= 0 else [*lines[:_SHOWN_USERS], f"… and {more} more"]


def _sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{context.command_path if context is not None else 'yolofs'} --help"


def _wants_traceback(words: Sequence[str]) -> bool:
    return "--traceback" in words[: words.index("--") if "--" in words else None]


def _keep_traceback(error: Exception) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="yolofs-", suffix=".traceback", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return file.name


def _flush() -> None:
    with contextlib.suppress(OSError):
        sys.stdout.flush()


def _forget_stdout() -> None:
    """Keep Python from complaining at exit that it cannot write what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
