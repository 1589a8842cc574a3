"""``yolofs watch``."""

from __future__ import annotations

import os

import click

from yolofs.cli.output import check_can_ask, say
from yolofs.cli.project.connection import connected_or_refused
from yolofs.cli.project.project import find_project, session_directory
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.daemon_files import read_daemon_file
from yolofs.errors import DaemonError, UsageError


@click.command()
@click.option("--allow-all", is_flag=True, help="Allow every ask, once, as it comes; this needs no terminal.")
@click.option("--deny-all", is_flag=True, help="Deny every ask, once, as it comes.")
@click.option(
    "--answer-with",
    metavar="CMD",
    help="Run a shell command for each ask: it reads the ask as JSON on stdin, and prints the answer.",
)
def command(allow_all: bool, deny_all: bool, answer_with: str | None) -> None:
    """Answer asks at a terminal, as they come.

    It shows each waiting program, its access, and the rule that asks, and rings the terminal's
    bell. A key answers; ? explains the keys. Several people may watch: the first answer counts.
    Leaving answers nothing.
    """
    if sum((allow_all, deny_all, answer_with is not None)) > 1:
        raise UsageError("--allow-all, --deny-all and --answer-with exclude each other", hint="yolofs watch --help")
    if answer_with is not None and not answer_with.strip():
        raise UsageError("--answer-with names no command", hint="yolofs watch --help")
    project = find_project()
    with connected_or_refused(project) as events, connected_or_refused(project) as calls:
        try:
            calls.info()  # the daemon hangs up on a client that says nothing for long
            _watch(project, events, calls, allow_all=allow_all, deny_all=deny_all, answer_with=answer_with)
        except DaemonError:
            if read_daemon_file(session_directory(project)) is not None:
                raise  # a daemon that ends as it should removes that file before it hangs up
            say("the mount has ended")


def _watch(
    project: bytes, events: Client, calls: Client, *, allow_all: bool, deny_all: bool, answer_with: str | None
) -> None:
    """Answer until whoever is at it leaves.

    Raises:
        DaemonError: the daemon has gone.
    """
    if allow_all or deny_all or answer_with is not None:
        from yolofs.cli.watch.unattended import answer_alone

        decide = "allow" if allow_all else "deny" if deny_all else None
        answer_alone(events, calls, decide, answer_with or "")
        return
    check_can_ask(instead="yolofs watch --deny-all, --allow-all or --answer-with CMD; yolofs answer")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        from yolofs.cli.watch.plain import watch_plain as watch
    else:
        from yolofs.cli.watch.screen import watch_screen as watch
    left = watch(project, events, calls)
    if left:
        say(f"{left} ask{'s' if left > 1 else ''} still waiting; yolofs asks lists them")
