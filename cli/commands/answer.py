"""``yolofs answer``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
import msgspec

from yolofs.access.answers import Lifetime
from yolofs.cli.completion.completing import asks
from yolofs.cli.output import say
from yolofs.cli.path_types import PATH
from yolofs.cli.project.connection import connected_or_refused
from yolofs.cli.project.project import absolute_path, find_project
from yolofs.daemon.rpc.ask_messages import AnswerParams, AnswerResult
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.errors import UsageError
from yolofs.rules import RuleState


@click.command()
@click.argument("ask_id", metavar="ID", type=int, shell_complete=asks)
@click.argument("decision", metavar="allow|deny", type=click.Choice(["allow", "deny"]))
@click.option("--session", "for_session", is_flag=True, help="Make it a rule until the mount ends.")
@click.option("--always", is_flag=True, help="Make it a rule for good, in .yolofs/rules.toml.")
@click.option(
    "--scope",
    metavar="PATH",
    type=PATH,
    help="What the rule covers: the asked path, or a directory above it with all that it holds.",
)
@click.option(
    "--state",
    type=click.Choice([state.value for state in RuleState if state is not RuleState.ASK]),
    help="The state that the rule gives; without it, one that settles no more than what was asked.",
)
@click.option("--only", is_flag=True, help="Answer only ID; the other asks of its group go on waiting.")
def command(
    ask_id: int,
    decision: str,
    for_session: bool,
    always: bool,
    scope: bytes | None,
    state: str | None,
    only: bool,
) -> None:
    """Answer an ask.

    ID is a number that `yolofs asks` shows. The answer is also for the other asks of its group that
    were shown. It holds once, unless --session or --always makes it a rule.
    """
    if for_session and always:
        raise UsageError("--session and --always exclude each other", hint="yolofs answer --help")
    lifetime = Lifetime.ALWAYS if always else Lifetime.SESSION if for_session else Lifetime.ONCE
    project = find_project()
    params = AnswerParams(
        ask_id,
        decision,
        lifetime,
        quote(absolute_path(project, scope)) if scope is not None else None,
        RuleState(state) if state is not None else None,
        listed=True,
        only=only,
        by="yolofs answer",
    )
    with connected_or_refused(project) as client:
        result = _answer(client, params)
    word = "allowed" if decision == "allow" else "denied"
    say(f"{word} {_numbers(result.answered)}")
    if result.left:
        say(f"of these, {_numbers(result.left)} only once: nearer rules, or other names of the file, still ask")
    if result.unseen:
        say(f"of its group {_numbers(result.unseen)} came up since, and still wait: yolofs asks")


def _answer(client: Client, params: AnswerParams) -> AnswerResult:
    """Answer with the scope as it was typed; if that is refused and the scope is a link, with what
    it leads to.
    """
    try:
        return client.answer(params)
    except UsageError:
        led_to = quote(os.path.realpath(unquote(params.scope))) if params.scope is not None else None
        if led_to == params.scope:
            raise
        return client.answer(msgspec.structs.replace(params, scope=led_to))


def _numbers(asks: Sequence[int]) -> str:
    """Return ascending numbers as text; a run without a gap by its first and last number."""
    runs: list[list[int]] = []
    for ask in asks:
        if runs and runs[-1][-1] == ask - 1:
            runs[-1].append(ask)
        else:
            runs.append([ask])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
