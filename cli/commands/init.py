"""``yolofs init``."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem

from yolofs.cli.agents.guides import AGENTS, install_each
from yolofs.cli.options import start_directory
from yolofs.cli.output import say
from yolofs.cli.path_types import PATH
from yolofs.cli.project.which_project import check_outside_mounts
from yolofs.cli.rules.hidden_tracked import tracked_lines
from yolofs.cli.rules.untrusted_settings import say_what_waits, waiting_or_warned
from yolofs.cli.sessions.starting import offer_settings, start
from yolofs.errors import UsageError


def _agents(_context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer names of agents, after the commas of a list those that are not in it."""
    before, comma, begun = incomplete.rpartition(",")
    known = before.split(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in AGENTS if name.startswith(begun) and name not in known]


@click.command()
@click.argument("directory", metavar="[DIR]", required=False, type=PATH)
@click.option(
    "--agents",
    metavar="LIST",
    default="",
    shell_complete=_agents,
    help="Have these agents run shell commands through yolofs run; see below.",
)
@click.option(
    "--state",
    metavar="DIR",
    type=PATH,
    help="Keep the session in DIR: a directory that is new or empty, or holds sessions of yours already.",
)
@click.option(
    "--adopt", "adopted", is_flag=True, help="Take over the session that an earlier version left in DIR/.yolofs/."
)
def command(directory: bytes | None, agents: str, state: bytes | None, adopted: bool) -> None:
    """Start a session in DIR (or here).

    The session holds everything that is staged. It lies in ~/.local/state/yolofs, or at the top of
    the disk that the project is on, where programs that work in the project cannot reach it. The
    project gets a .yolofs.toml for settings, and a link .yolofs that leads to the session. In a git
    repository, two lines in .git/info/exclude have git ignore them.

    LIST is one or more of claude, codex, gemini, copilot, cursor and opencode, with commas between
    them. For each agent, init adds a hook to the agent's settings in DIR, and a marked block with a
    guide to the file that the agent reads (CLAUDE.md, AGENTS.md and so on). It replaces nothing
    that is there.
    """
    names = [name.strip() for name in agents.split(",") if name.strip()]
    for name in names:
        if name not in AGENTS:
            raise UsageError(f"there is no agent {name!r} that yolofs knows", hint=f"known: {', '.join(AGENTS)}")
    place = os.path.join(start_directory(), directory or b".")
    check_outside_mounts(place)
    project = os.path.realpath(place)
    start(project, os.path.abspath(os.path.join(start_directory(), state)) if state is not None else None, adopted)
    offer_settings(project)
    say_what_waits(len(waiting_or_warned(project)))
    for line in tracked_lines(project):
        say(line)
    install_each(project, names)
    say("next: yolofs run -- COMMAND, or yolofs mount")
