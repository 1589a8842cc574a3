"""The manual page, from the commands' own help.

``python -m yolofs.cli.pages.man_page > docs/yolofs.1`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from yolofs import __version__
from yolofs.cli.group import COMMANDS, cli

# No word is parted, and no space is widened: most of these words are typed as they stand.
_HEAD = rf""".\" Written by: python -m yolofs.cli.pages.man_page
.TH YOLOFS 1 "" "yolofs {__version__}" "User Commands"
.nh
.ad l
.SH NAME
yolofs \- work on files through a view in which nothing is real until you commit it
.SH SYNOPSIS
.B yolofs
[\fIOPTION\fR]... \fICOMMAND\fR [\fIARG\fR]...
.SH DESCRIPTION
"""
_TAIL = r""".SH EXIT STATUS
0 if it is done; 1 and above as the page exit-codes.md of the documentation lists. \fByolofs run\fR and
\fByolofs shell\fR end with the exit code of their command.
.SH FILES
.TP
\fI.yolofs.toml\fR
Settings and rules of a project.
.TP
\fI~/.config/yolofs/config.toml\fR
Your own settings and rules.
.TP
\fI~/.local/state/yolofs\fR
Sessions: what is staged, and what commits keep.
"""


def render() -> str:
    """Return the page, in roff."""
    top = click.Context(cli, info_name="yolofs", **cli.context_settings)
    lines = [*_paragraphs(cli.help or ""), ".SH OPTIONS", *_options(cli, top), ".SH COMMANDS"]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        lines += _command(command, click.Context(command, info_name=name, parent=top))
    return _HEAD + "".join(f"{line}\n" for line in lines) + _TAIL


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_quoted(f'{context.command_path} {usage}'.strip())}"
    yield from _paragraphs(command.help or "")
    yield from _options(command, context)
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from _command(inner, click.Context(inner, info_name=name, parent=context))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            yield ".TP"
            yield rf"\fB{_escaped(record[0])}\fR"
            yield _escaped(record[1])


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', r"\(dq") + '"'


def _escaped(text: str) -> str:
    """Return a text that roff takes as it is; its hyphens can be copied into a shell."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("\n", " ").replace("`", r"\(ga").replace("~", r"\(ti")
    text = "".join(letter if letter.isascii() else rf"\[u{ord(letter):04X}]" for letter in text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    sys.stdout.write(render())
