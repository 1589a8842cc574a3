"""``yolofs hook``."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from yolofs.cli.agents.hook_answers import AGENTS_WITH_HOOKS, answer_to
from yolofs.cli.output import emit_json_line, say

_REFUSED = 2
"""The exit code on which agents do not run a command."""


@click.command()
@click.argument("agent", type=click.Choice(AGENTS_WITH_HOOKS))
def command(agent: str) -> None:
    """Answer an agent that is about to run a shell command.

    It reads on stdin what the agent's hook gets, and answers that `yolofs run` is to run the
    command. `yolofs init --agents` makes agents call this. It refuses what it does not understand.
    Inside a sandbox a command runs as it is. If the user has dropped something that the agent does
    not know of yet, the command runs by `yolofs run` there, too, which tells the agent at its end.
    """
    from yolofs.cli.run.around_a_run import is_in_sandbox
    from yolofs.cli.run.feedback_inside import has_news

    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, Any])
        answer = answer_to(agent, request) if not is_in_sandbox() or has_news() else {}
    except (msgspec.DecodeError, ValueError) as error:
        say(f"yolofs: not run, as the hook's input makes no sense: {error}")
        raise click.exceptions.Exit(_REFUSED) from None
    if isinstance(answer, str):
        say(f"yolofs: not run: {answer}")
        raise click.exceptions.Exit(_REFUSED)
    emit_json_line(answer)
