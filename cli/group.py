"""The commands as click knows them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from yolofs import __version__
from yolofs.cli import output
from yolofs.cli.completion.completing import COMPLETION_VARIABLE
from yolofs.cli.options import INTERRUPTED, WRONG_USAGE, GlobalOptions, set_options, start_directory
from yolofs.cli.owner import FLAG, become_owner
from yolofs.cli.path_types import ExistingDirectory

_GROUPS = {
    "Work": ("init", "mount", "unmount", "run", "shell"),
    "Look": ("status", "diff", "review", "hunks", "log", "runs", "blame", "timeline", "cat", "ls", "feedback"),
    "Keep": ("snapshot", "travel", "restore", "commit", "commits", "undo", "abort", "gc"),
    "Rules": ("watch", "asks", "answer", "rule", "trust"),
    "Machine": ("sessions", "doctor", "hook", "completion"),
}
"""In the order in which one meets them."""
COMMANDS = tuple(name for group in _GROUPS.values() for name in group)
"""Each is ``command`` in the module of its name."""
_NEAR = 0.7
"""How near a word has to be to a command to be taken for it: "help" is none for "shell"."""


class _Commands(click.Group):
    """Imports a command only when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands group by group."""
        width = max(map(len, COMMANDS))
        for title, names in _GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(formatter.width - width))
                        for name, command in commands
                        if command is not None
                    ]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"yolofs.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith(
            "-"
        ):  # click would compare it with commands that it has imported
            raise click.UsageError(near_command(name), ctx)
        return super().resolve_command(ctx, args)


def near_command(name: str) -> str:
    """Return what is said of a word that is no command, with the nearest one."""
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1, _NEAR)
    return f"no such command {name!r}" + (f". Did you mean {near[0]!r}?" if near else "")


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
    type=ExistingDirectory(),
    help="Start from this directory instead of the current one.",
)
@click.option(
    FLAG,
    "as_owner",
    is_flag=True,
    help="As root: work with the rights of the user who owns the directory and its session.",
)
@click.option("--traceback", is_flag=True, expose_value=False, help="Show where an error came from.")
@click.pass_context
def cli(context: click.Context, start: bytes, as_owner: bool) -> None:
    """Work on files through a view in which nothing is real until you commit it.

    A session stages every change, and can go back to any snapshot. Only a commit changes the real
    files.
    """
    if not isinstance(context.obj, GlobalOptions):
        context.obj = GlobalOptions(start)
    set_options(context.obj)
    if as_owner:
        from yolofs.cli.project.which_project import check_outside_mounts  # few commands need it

        check_outside_mounts(start_directory())
        become_owner(start_directory(), _for_the_owner(sys.argv[1:]))
    if context.invoked_subcommand is None:
        output.say(context.get_help())
        raise click.exceptions.Exit(WRONG_USAGE)


def _for_the_owner(words: Sequence[str]) -> list[str]:
    """Return the words of a command line that starts in the directory itself, without :data:`FLAG`
    and ``-C``.

    Both stand before the command.
    """
    rest, kept = list(words), []
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "-C":
            del rest[0]
        elif word != FLAG and not word.startswith("-C"):
            kept.append(word)
    return [*kept, *rest]


def carry_out(words: Sequence[str], options: GlobalOptions | None) -> int:
    """Carry out a command line and return the exit code; ``options`` stand for those before the
    command.
    """
    try:
        instruction = os.environ.get(COMPLETION_VARIABLE)
        if instruction is not None and not words and options is None:
            from yolofs.cli.completion.completing_shells import answer

            return answer(cli, instruction)
        # Not cli.main(), which has ideas of its own about errors.
        with cli.make_context("yolofs", list(words), obj=options) as context:
            cli.invoke(context)
        return 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:  # a group of commands alone
        output.say(error.ctx.get_help())
        return WRONG_USAGE
    except click.ClickException as error:
        sys.stdout.flush()
        output.fail(_sentence(error), _usage_hint(error, words))
        return WRONG_USAGE


def _sentence(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        del error.possibilities[1:]  # the nearest; click would name them all, sorted
    message = error.format_message().replace("\n\t", " ").rstrip(".")  # choices come line by line
    return message[:1].lower() + message[1:]


def _usage_hint(error: click.ClickException, words: Sequence[str]) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        return f"{context.command_path} --help"
    name = next(
        (word for word in words if word in COMMANDS), None
    )  # click does not tell of an option without its value
    return f"yolofs {name} --help" if name is not None else "yolofs --help"
