"""``yolofs asks``."""

from __future__ import annotations

import click

from yolofs.cli.options import options
from yolofs.cli.output import emit, emit_json_list, say
from yolofs.cli.project.connection import connected_or_refused
from yolofs.cli.project.project import find_project
from yolofs.cli.show.ask_lines import group_lines
from yolofs.daemon.rpc.ask_fields import ask_fields
from yolofs.daemon.rpc.ask_messages import AskInfo
from yolofs.daemon.rpc.protocol import unquote


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(as_json: bool) -> None:
    """List the asks: accesses that wait for an answer.

    Each ask has a number for `yolofs answer`. The asks of one process below one directory form a
    group, and are answered together.
    """
    with connected_or_refused(find_project()) as client:
        asks = [ask for ask in client.asks(to_user=options().guard is None) if _may_be_shown(ask)]
    if as_json:
        emit_json_list("asks", map(ask_fields, asks))
        return
    if not asks:
        say("nothing waits for an answer")
    for line in group_lines(asks):
        emit(line)


def _may_be_shown(ask: AskInfo) -> bool:
    """Tell whether an ask may be shown: in a sandbox only those of processes in the same one."""
    guard = options().guard
    return guard is None or (guard.may_see(unquote(ask.path)) and guard.may_see_process(ask.process.pid))
