"""Writes pages of ``docs/reference`` from what the code says.

``commands.md`` from the commands' own help: ``python -m yolofs.cli.pages.reference``;
``preset.md`` from the built-in rules: ``python -m yolofs.cli.pages.reference preset``.
"""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import click

from yolofs.cli.group import COMMANDS, cli
from yolofs.hostcode.row import Row, Topic
from yolofs.hostcode.table import TOPICS
from yolofs.rules.preset_table import SECTIONS, PresetRule, PresetSection

_WIDTH = 80
_HEAD = """\
# Commands

This page has what `yolofs --help` and `yolofs COMMAND --help` print; `python -m
yolofs.cli.pages.reference` writes it.

Data goes to stdout, messages to stderr. Without a terminal no command asks a question, shows
colours or draws a progress bar; `NO_COLOR` turns colours off at a terminal too. `--json` prints one
document, described in [JSON](json.md). [Exit codes](exit-codes.md) says what exit codes mean.
"""
_PROSE_WIDTH = 100
_PRESET_HEAD = """\
# Built-in rules

These rules say what programs in a view may do before you write any rule. On the same path, your own
rules come first. `preset = "none"` ([settings](config.md)) switches the built-in rules off: yolofs
then asks about every access that no other rule settles. `yolofs rule explain PATH` says which rule
decides over a path.

`python -m yolofs.cli.pages.reference preset` writes this page from the code.

The order does not matter, with one exception: of two lines about the same path the first counts
(the project may be your home directory). `~` is the home directory of the user who mounts. If
`~/.ssh` is a link, the place that it leads to is hidden too.

Names in these rules (`**/*.pem`) do not count below directories called `.git`, `dist-packages`,
`node_modules` and `site-packages`: branches may be called `fix.key`, and published packages bring
certificates. Names in your rules do.

If a file is hidden or denied by its name, a rule for its path opens it (`yolofs rule allow
tests/server.key`). So does a rule for everything in a directory (`yolofs rule allow
'tests/certs/**'`).
"""
_HOST_CODE_HEAD = """\
# What becomes code on the host

The host runs or obeys some files by itself. Programs may change them in a view as the rules above
say. But `yolofs commit` takes them only if you name them, or with `--trusted`, and `status` and
`commit` list them apart. The same holds for setuid and setgid files, file capabilities,
devices, commands in a directory of `PATH`, links into the view, a run's own `/tmp` or `/proc/PID`,
and renamed directories that nobody can look into.

The table holds what takes effect by itself (when you enter a directory, open it, commit, log in),
or in programs that have nothing to do with the project. It does not hold what the project is made
of and what runs when you build, test or start it: `Makefile`, `package.json`, `.npmrc`,
`conftest.py`, `.vscode/launch.json`, CI's workflows. Nor does it hold texts that agents read
(`AGENTS.md`). These files change with ordinary work, and nobody reads a warning that comes with
each commit. A deleted file is not code, so it needs no naming either.

`**/` stands for any directory. Below `dist-packages`, `node_modules` and `site-packages` it counts
only for git's files. A pattern that fits a directory fits everything in it. A pattern that begins
with `~/` also counts for the home directories of others (`/root`, `/home/*`), and for the places
that links of base lead to from there: if `~/.bashrc` is a link to `dotfiles/bashrc`, that file has
to be named. The setting [`host_code`](config.md) adds patterns; nothing removes any.
"""


def render() -> str:
    """Return the page of commands."""
    settings: dict[str, Any] = {**cli.context_settings, "terminal_width": _WIDTH}
    top = click.Context(cli, info_name="yolofs", **settings)
    sections = [_HEAD, _section("yolofs", cli.get_help(top))]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=top)
        sections.append(_section(f"yolofs {name}", command.get_help(context)))
        for below, inner in command.commands.items() if isinstance(command, click.Group) else ():
            inner_context = click.Context(inner, info_name=below, parent=context)
            sections.append(_section(f"yolofs {name} {below}", inner.get_help(inner_context)))
    return "\n".join(sections)


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text}\n```\n"


def render_preset() -> str:
    """Return the page of built-in rules."""
    return "\n".join([_PRESET_HEAD, *map(_preset_section, SECTIONS), _HOST_CODE_HEAD, *map(_host_code_topic, TOPICS)])


def _preset_section(section: PresetSection) -> str:
    state = section.rules[0].state.value
    lines = [f"## {section.title}", "", _wrapped(f"**{state}**" + (f": {section.reason}" if section.reason else ""))]
    return "\n".join([*lines, "", _wrapped(", ".join(map(_preset_rule, section.rules))), ""])


def _preset_rule(rule: PresetRule) -> str:
    return f"`{rule.key}`" + (f" ({rule.reason})" if rule.reason else "")


def _host_code_topic(topic: Topic) -> str:
    lines = [f"### {topic.title}", "", _wrapped(topic.reason), "", _wrapped(", ".join(map(_row, topic.rows))), ""]
    return "\n".join(lines)


def _row(row: Row) -> str:
    return f"`{row.pattern}`" + (f" ({row.reason})" if row.reason else "")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(render_preset() if sys.argv[1:] == ["preset"] else render())
