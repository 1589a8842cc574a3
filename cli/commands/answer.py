"""``yolofs answer``."""

from __future__ import annotations

import os

import click
import msgspec

from yolofs.access.answers import Lifetime
from yolofs.cli.completion.completing import asks
from yolofs.cli.output import say
from yolofs.cli.path_types import PATH
from yolofs.cli.project.connection import connected_or_refused
from yolofs.cli.project.project import absolute_path, find_project
from yolofs.cli.show.ask_lines import answer_lines
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
    for line in answer_lines(decision, result):
        say(line)


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
