"""Help texts, reference pages and the code say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec
import pytest

from tests.support.program import Program
from yolofs.cli.group import COMMANDS, cli
from yolofs.cli.pages import man_page
from yolofs.cli.pages.reference import render
from yolofs.daemon.control import _Conversation
from yolofs.daemon.rpc import protocol

DOCS = Path(__file__).parents[2] / "docs/reference"


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield name, command
        for below, inner in command.commands.items() if isinstance(command, click.Group) else ():
            yield f"{name} {below}", inner


def test_the_page_of_commands_is_what_the_help_says() -> None:
    page = (DOCS / "commands.md").read_text()
    assert page == render(), "run: python -m yolofs.cli.pages.reference > docs/reference/commands.md"


def test_every_module_with_a_command_is_listed() -> None:
    modules = {
        path.stem for path in (DOCS.parents[1] / "cli/commands").rglob("*.py") if "\ndef command(" in path.read_text()
    }
    assert modules == set(COMMANDS)


@pytest.mark.parametrize(("name", "command"), tuple(commands()))
def test_every_command_and_option_has_help(name: str, command: click.Command) -> None:
    assert command.help
    first = command.help.splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 66  # fits into the list of commands at 80 columns
    assert ".  " not in command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (name, parameter.name)
            assert parameter.help.endswith(".")


def documented_keys(section: str) -> list[str]:
    """Return the keys in the first table of a section of json.md."""
    text = (DOCS / "json.md").read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", text.partition("\n### ")[0], re.MULTILINE)


@pytest.mark.mount
def test_json_documents_have_the_documented_keys(yolofs: Program) -> None:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "new").touch()
        yolofs("snapshot", "x")
        for words in (["status"], ["diff"], ["log"], ["timeline"], ["snapshot"], ["travel", "0"], ["asks"], ["doctor"]):
            assert list(yolofs(*words, "--json").json) == documented_keys(words[0]), f"json.md: {words}"
        for words in (["rule", "list"], ["rule", "explain", "."], ["rule", "test"]):
            assert list(yolofs(*words, "--json").json) == documented_keys(" ".join(words[:2])), f"json.md: {words}"
        assert list(yolofs("commit", "--yes", "--json").json) == documented_keys("commit")


def test_every_command_with_json_is_documented() -> None:
    titles = re.findall(r"^## ([\w ]+)$", (DOCS / "json.md").read_text(), re.MULTILINE)
    with_json = [name for name, command in commands() if any(p.name == "as_json" for p in command.params)]
    assert sorted(titles) == sorted(with_json)


def documented_methods() -> dict[str, str]:
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\|", (DOCS / "rpc.md").read_text(), re.MULTILINE)
    return dict(rows)


def test_every_method_is_documented_with_its_parameters() -> None:
    methods = _Conversation(None, None).methods  # type: ignore[arg-type]  # none is called
    found = documented_methods()
    assert list(found) == list(methods)
    for name, method in methods.items():
        assert re.findall(r"`(\w+)`(?: =|:|,)", found[name]) == list(get_type_hints(method.params)), name


def test_every_error_code_is_documented() -> None:
    codes = sorted(value for value in vars(protocol).values() if type(value) is int and value < 0)
    rows = re.findall(r"^\| (-\d+) \|", (DOCS / "rpc.md").read_text(), re.MULTILINE)
    assert sorted(map(int, rows)) == codes


def test_info_is_documented_field_by_field() -> None:
    row = next(line for line in (DOCS / "rpc.md").read_text().splitlines() if line.startswith("| `info`"))
    fields: list[Any] = [field.name for field in msgspec.structs.fields(protocol.Info)]
    assert re.findall(r"`(\w+)`", row)[1:] == fields


def test_the_manual_page_says_the_same() -> None:
    written = (DOCS.parent / "yolofs.1").read_text()
    assert written == man_page.render(), "run: python -m yolofs.cli.pages.man_page > docs/yolofs.1"
    for name in COMMANDS:
        assert f'.SS "yolofs {name}' in written


def test_the_manual_page_parts_no_word_that_is_typed_as_it_stands() -> None:
    head, _, _ = man_page.render().partition(".SH")
    assert head.splitlines()[-2:] == [".nh", ".ad l"]
