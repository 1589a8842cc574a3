"""Writes ``docs/reference/commands.md`` from the commands' own help: ``python -m yolofs.cli.reference``."""

from __future__ import annotations

import sys
from typing import Any

import click

from yolofs.cli.main import COMMANDS, cli

_WIDTH = 80
_HEAD = """\
# Commands

This page is what `yolofs --help` and `yolofs COMMAND --help` say; `python -m yolofs.cli.reference` writes it.

Data goes to stdout, talk to stderr. Without a terminal nothing asks a question, and there are no colours and no
progress bars; `NO_COLOR` turns colours off on a terminal too. `--json` prints one document, described in
[JSON](json.md). What exit codes mean is in [Exit codes](exit-codes.md).
"""


def render() -> str:
    """Return the page."""
    settings: dict[str, Any] = {**cli.context_settings, "terminal_width": _WIDTH}
    top = click.Context(cli, info_name="yolofs", **settings)
    parts = [_HEAD, _section("yolofs", cli.get_help(top))]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        parts.append(_section(f"yolofs {name}", command.get_help(context)))
    return "\n".join(parts)


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(render())
