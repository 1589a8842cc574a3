"""``yolofs travel``."""

from __future__ import annotations

import os
import re

import click

from yolofs.cli.completion.completing import generations, staged_paths
from yolofs.cli.output import emit_json, emit_number
from yolofs.cli.path_types import PATH
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import find_project, reading, writing
from yolofs.errors import GenerationError, UsageError, YolofsError
from yolofs.paths import Generation, in_shell

_RUN = re.compile(r"run[ :]\d+")


class _Command(click.Command):
    """Takes several paths after one ``--only``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, _with_paths_apart(args))
        if rest and not ctx.resilient_parsing:
            words = [in_shell(os.fsencode(word)) for word in (ctx.params["target"], "--only", *rest)]
            hint = f"paths alone: yolofs travel {' '.join(words)}"
            raise UsageError(f"travel takes one generation, and then there is {words[2]}", hint=hint)
        return rest


@click.command(cls=_Command, context_settings={"allow_extra_args": True})
@click.argument("target", metavar="GENERATION|NAME|-", shell_complete=generations)
@click.option(
    "--force",
    is_flag=True,
    help="Travel even while files are open for writing; what is written to them afterwards is lost.",
)
@click.option(
    "--only",
    "only",
    metavar="PATH...",
    multiple=True,
    type=PATH,
    shell_complete=staged_paths,
    help="Bring back only these paths, as `yolofs restore` does; the generation may follow them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(target: str, force: bool, only: tuple[bytes, ...], as_json: bool) -> None:
    """Show another generation, earlier or later.

    Generation 0 is base. travel first takes a snapshot of what has none yet, so you can always come
    back: `yolofs travel -`. Running programs see the other state at once. It refuses while programs
    have files open for writing.
    """
    if only:
        from yolofs.cli.history.restoring import bring_back

        bring_back(target, only, as_json=as_json)
        return
    shown, started = _travel(find_project(), target, force=force)
    if as_json:
        emit_json({"target": shown, "generation": started})
    else:
        emit_number(started, f"generation {started} shows generation {shown}; back again: yolofs travel -")


def _with_paths_apart(words: list[str]) -> list[str]:
    """Return a command line with ``--only`` before each path.  Without a word before the first
    ``--only``, the last one is the generation.
    """
    end = words.index("--") if "--" in words else len(words)
    others: list[str] = []
    paths: list[str] = []
    is_path = has_target = False
    for word in words[:end]:
        is_option = word.startswith("-") and word != "-"
        is_path = word == "--only" or (is_path and not is_option)
        has_target = has_target or not (is_path or is_option)
        if word != "--only":
            (paths if is_path else others).append(word)
    if not paths:
        return words
    if not has_target and len(paths) > 1 and end == len(words):
        others.append(paths.pop())
    return [*(f"--only={path}" for path in paths), *others, *words[end:]]


def _travel(project: bytes, text: str, *, force: bool) -> tuple[Generation, Generation]:
    try:
        return _travel_to(project, text, force=force)
    except GenerationError as error:
        if _RUN.fullmatch(text) is None:
            _check_not_ended(project, text)
            raise
        hint = f"yolofs runs tells which generation it made; a part of it: yolofs restore --from '{text}' PATH"
        raise GenerationError(error.message, hint=hint) from None


def _check_not_ended(project: bytes, text: str) -> None:
    """Raise if a name without a generation is one that a commit has ended.

    Raises:
        GenerationError: it is; the hint is how to bring back a part of it.
    """
    from yolofs.session.history.named_states import named_state  # takes a while, and a travel does without

    with reading(project) as session:
        try:
            named = named_state(session, text).named
        except YolofsError:
            return
    raise GenerationError(
        f"a travel cannot go back beyond a commit: to {named}",
        hint=f"a part of it comes back by: yolofs restore --from {in_shell(os.fsencode(text))} PATH",
    )


def _travel_to(project: bytes, text: str, *, force: bool) -> tuple[Generation, Generation]:
    with connected(project) as client:
        if client is not None:
            return client.travel(text, force=force)
    with writing(project) as session:
        session.state(session.timeline.resolve(text))  # may fail, so before the marker
        return session.travel(text)
