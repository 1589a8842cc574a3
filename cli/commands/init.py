"""``yolofs init``."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem

from yolofs.cli.adopting import adopt, adopt_harmless
from yolofs.cli.agents.guides import AGENTS, install
from yolofs.cli.options import start_directory
from yolofs.cli.output import say, warn
from yolofs.cli.path_types import PATH
from yolofs.cli.run.untrusted_settings import say_what_waits, waiting_or_warned
from yolofs.cli.which_project import check_outside_mounts, unregistered
from yolofs.config.load import FILE_NAME
from yolofs.errors import ConfigError, UsageError
from yolofs.paths import display, in_shell
from yolofs.registry.search import has_earlier_layout, session_above, session_of
from yolofs.session.session import Session

_CONFIG = b"""\
# Settings of yolofs for this project; every value here is the default, and yolofs never writes to this file.
# All of them: docs/reference/config.md, or .yolofs.toml.example in the source.

# The base directory, which the view shows: absolute, below ~, or relative to this file.
#root = "/"

[rules]
# What programs in the view may do with a path: allow, read-only, write-ask, ask, deny or hidden.
# The project is open and credentials are hidden without any rule here: docs/reference/preset.md.
#"vendor"  = "read-only"
#"~/notes" = "allow"
"""


def _agents(_context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer names of agents, after the commas of a list those that are not in it."""
    from yolofs.cli.agents.guides import AGENTS

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
    project gets a .yolofs.toml for settings, and a link .yolofs that leads to the session.

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
    _start(project, os.path.abspath(os.path.join(start_directory(), state)) if state is not None else None, adopted)
    try:
        if _write_config(os.path.join(project, os.fsencode(FILE_NAME))):
            say(f"wrote {FILE_NAME}, for settings and rules of this project; it has none yet")
    except OSError as error:  # a project that one may only read can be worked on in a view all the same
        warn(f"{FILE_NAME} cannot be written: {error.strerror}; without it all settings are the default")
    say_what_waits(len(waiting_or_warned(project)))
    problems: list[ConfigError] = []
    for name in names:
        try:
            for path in install(project, name):
                say(f"{name}: wrote {display(path)}")
        except ConfigError as error:  # the other agents have files of their own
            problems.append(error)
    for problem in problems[:-1]:
        warn(f"{problem.message}; {problem.hint}")
    if problems:
        raise problems[-1]
    say("next: yolofs run -- COMMAND, or yolofs mount")


def _start(project: bytes, state: bytes | None, is_adopted: bool) -> None:
    """Start the session, and say so."""
    place = display(project)
    if has_earlier_layout(project) and session_of(project) is None:
        (adopt if is_adopted else adopt_harmless)(project, state)
        return
    if is_adopted:
        raise UsageError(f"no earlier version has left a session in {place}", hint="yolofs init")
    lost = next((entry for entry in unregistered() if entry.project_path == project), None)
    if lost is not None:
        raise UsageError(
            f"{place} has session {lost.id}, which the registry does not know any more",
            hint=f"yolofs sessions --rebase {in_shell(project)} {lost.id}, or yolofs sessions --forget {lost.id}",
        )
    started = Session.create(project, state)
    if not started.is_new:
        if state is not None:
            raise UsageError(
                f"there is a session in {place} already, which stays where it is",
                hint="--state is for a new one: yolofs sessions --forget removes the old one",
            )
        say(f"there is a session in {place} already; nothing changed")
        return
    say(f"started a session in {place}")
    if started.copies_because:
        say(started.copies_because)
    above = session_above(project)
    if above is not None:
        warn(f"{display(above.project)} above it has a session, too; for what is in {place} this one counts now")
    repository = _repository_above(project)
    if repository is not None:
        say(
            f"note: git's repository is {display(repository)}, outside of the project: git has to ask there;"
            f" yolofs init {in_shell(repository)} starts a session for all of it"
        )


def _repository_above(project: bytes) -> bytes | None:
    """Return the nearest directory above a project that is a git repository, None if none is, or
    the project is one itself.
    """
    at = project
    while not os.path.lexists(os.path.join(at, b".git")):
        if at == b"/":
            return None
        at = os.path.dirname(at)
    return at if at != project else None


def _write_config(path: bytes) -> bool:
    """Write the settings file if there is none; return whether there was none."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    with open(fd, "wb") as file:
        file.write(_CONFIG)
    return True
