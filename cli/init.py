"""``yolofs init``."""

from __future__ import annotations

import os

import click

from yolofs.cli.agents import AGENTS, install
from yolofs.cli.options import start_directory
from yolofs.cli.output import say, warn
from yolofs.config.load import FILE_NAME
from yolofs.errors import ConfigError, UsageError
from yolofs.paths import display
from yolofs.session import Session

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


@click.command()
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=bytes))
@click.option(
    "--agents", metavar="LIST", default="", help="Have these agents run shell commands through yolofs run; see below."
)
def command(directory: bytes | None, agents: str) -> None:
    """Start a session in DIR (or here).

    Makes .yolofs/, which holds everything that is staged, and a .yolofs.toml to put settings in, unless they are
    there already.

    LIST is one or more of claude, codex, gemini, copilot, cursor and opencode, with commas between them. For each a
    hook is added to its settings in DIR, and a marked block with a guide to the file that it reads (CLAUDE.md,
    AGENTS.md and so on); nothing that is there is replaced.
    """
    names = [name.strip() for name in agents.split(",") if name.strip()]
    for name in names:
        if name not in AGENTS:
            raise UsageError(f"there is no agent {name!r} that yolofs knows", hint=f"known: {', '.join(AGENTS)}")
    project = os.path.realpath(os.path.join(start_directory(), directory or b"."))
    is_new = Session.create(project)
    _write_config(os.path.join(project, os.fsencode(FILE_NAME)))
    place = display(project)
    say(f"started a session in {place}" if is_new else f"there is a session in {place} already; nothing changed")
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
    say("next: yolofs mount")


def _write_config(path: bytes) -> None:
    """Write the settings file if there is none."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return
    with open(fd, "wb") as file:
        file.write(_CONFIG)
