"""``[RANGE] [-- PATH…]``, as diff and log take it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from yolofs.cli.completing import PATHS_KEY, staged_paths
from yolofs.cli.options import start_directory
from yolofs.errors import GenerationError
from yolofs.journal.timeline import Timeline
from yolofs.paths import Generation

_OF_BEFORE = ("-:", "-..")
_DISGUISE = "\0"
"""No argument of a program can have it."""


class GenerationsCommand(click.Command):
    """A command that takes ``-:PATH`` and ``-..``, whose ``-`` is a generation, for no options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Disguise them while click looks for options."""
        left = super().parse_args(ctx, [_DISGUISE + word if word.startswith(_OF_BEFORE) else word for word in args])
        for name, value in ctx.params.items():
            ctx.params[name] = tuple(map(_undisguised, value)) if isinstance(value, tuple) else _undisguised(value)
        return left


def _undisguised(value: object) -> object:
    return value.removeprefix(_DISGUISE) if isinstance(value, str) else value


class PathsCommand(GenerationsCommand):
    """A command whose arguments after ``--`` are paths; :func:`paths_given` has them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the paths apart before click looks at the rest."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[PATHS_KEY] = tuple(map(os.fsencode, args[at + 1 :]))
            args = args[:at]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what may stand at the end of a command line: after ``--`` a path."""
        if PATHS_KEY in ctx.meta:
            return staged_paths(ctx, self.params[0], incomplete)
        return super().shell_complete(ctx, incomplete)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- PATH...]"]


def paths_given() -> Sequence[bytes]:
    """Return the paths after ``--`` of the command that runs."""
    paths: Sequence[bytes] = click.get_current_context().meta.get(PATHS_KEY, ())
    return paths


def parse_range(timeline: Timeline, text: str) -> tuple[Generation, Generation | None]:
    """Return the two states that a RANGE means.

    Raises:
        GenerationError: it names no generation; the hint says so if it is a path instead.
    """
    try:
        return timeline.parse_range(text)
    except GenerationError as error:
        if os.path.lexists(os.path.join(start_directory(), os.fsencode(text))):
            command = click.get_current_context().command_path
            raise GenerationError(error.message, hint=f"for a path: {command} -- {text}") from None
        raise
