"""``[RANGE] [--] [PATH…]``, as diff and log take it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain

import click
from click.shell_completion import CompletionItem

from yolofs.cli.completion.completing import PATHS_KEY, ranges, staged_paths, without_needless_files
from yolofs.cli.options import start_directory
from yolofs.cli.output import say
from yolofs.cli.project.project import relative_paths
from yolofs.errors import GenerationError, UsageError
from yolofs.paths import display, in_shell
from yolofs.session.session import Session

ALL = "all"
"""The range of everything that a commit would apply."""
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
        return [*super().collect_usage_pieces(ctx), "[[--] PATH...]"]


def paths_given() -> Sequence[bytes]:
    """Return the paths after ``--`` of the command that runs."""
    paths: Sequence[bytes] = click.get_current_context().meta.get(PATHS_KEY, ())
    return paths


def ranges_and_paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer generations and staged paths; after ``--`` these alone."""
    if PATHS_KEY in context.meta:
        return staged_paths(context, parameter, incomplete)
    found = ranges(context, parameter, incomplete), staged_paths(context, parameter, incomplete)
    return without_needless_files(chain.from_iterable(found))


def range_and_paths(session: Session, words: Sequence[str], typed: Sequence[bytes]) -> tuple[str, tuple[bytes, ...]]:
    """Return the RANGE and all paths of a command line: of the ``words`` before ``--``, and of the
    paths that were ``typed`` after it.

    The first word is a path if it is no range, and there is or was one; further words are paths.
    What is both is a range, which is said.

    Raises:
        GenerationError: the first word is neither.
        UsageError: a further word is no path, or a path lies outside base.
    """
    if not words:
        return ALL, tuple(typed)
    first, *more = words
    try:
        session.timeline.parse_range(first)
    except GenerationError as error:
        _check_is_path(session, first, error)
        first, more = ALL, list(words)
    else:
        _tell_if_path(first)
    for word in more:
        _check_is_further_path(session, word, words[0] if first != ALL else "")
    return first, (*map(os.fsencode, more), *typed)


def _check_is_path(session: Session, word: str, error: GenerationError) -> None:
    """Check that a word that is no range is a path.

    Raises:
        GenerationError: it is none; the hint has the path that it is most like, if there is one.
    """
    from yolofs.cli.history.missing_paths import is_somewhere, path_meant

    typed = os.fsencode(word)
    try:
        (path,) = relative_paths(session, [typed])
    except UsageError:
        raise error from None
    if not is_somewhere(session, path):
        if _is_range_alone(word):
            raise error from None
        is_snapshot_near = error.hint.startswith("did you mean")
        hint = error.hint if is_snapshot_near else path_meant(session, path, typed) or error.hint
        raise GenerationError(f"{error.message}, and no such path", hint=hint) from None


def _is_range_alone(word: str) -> bool:
    """Tell whether a word that names no generation looks like a number or a range all the same."""
    return word.isdigit() or ".." in word.replace("../", "") or ":" in word


def _check_is_further_path(session: Session, word: str, range_text: str) -> None:
    from yolofs.cli.history.missing_paths import is_somewhere, nothing_at

    typed = os.fsencode(word)
    (path,) = relative_paths(session, [typed])
    if is_somewhere(session, path):
        return
    if not range_text:
        raise nothing_at(session, path, typed, ", in the view or in base, and nothing is known to have been")
    command = click.get_current_context().command_path
    between = in_shell(os.fsencode(f"{range_text}..{word}"))
    raise UsageError(
        f"{display(typed)} is no path, and there is a range already: {display(os.fsencode(range_text))}",
        hint=f"two generations: {command} {between}",
    )


def _tell_if_path(word: str) -> None:
    """Say so if what is taken for a range is a path, too."""
    typed = os.fsencode(word)
    if word != ALL and os.path.lexists(os.path.join(start_directory(), typed)):
        command = click.get_current_context().command_path
        say(f"note: {in_shell(typed)} is a generation here; for the path: {command} -- {in_shell(typed)}")
