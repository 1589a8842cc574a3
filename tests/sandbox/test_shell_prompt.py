"""A shell in the view says so in its prompt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.terminal import Terminal
from yolofs.cli.commands.shell import mark_prompt

pytestmark = pytest.mark.mount


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_prompt_begins_with_a_mark_whatever_the_start_files_say(
    yolofs: Program, shell: str, tmp_path: Path
) -> None:
    (tmp_path / ".bashrc").write_text("PS1='mine> '\n")
    program = shutil.which(shell)
    assert program is not None
    with Terminal(yolofs.project, ["shell"], SHELL=program, HOME=str(tmp_path), PS1="mine> ") as terminal:
        terminal.wait_for("(yolofs) mine> ")
        terminal.type("exit\n")
        assert terminal.wait() == 0
        assert "(yolofs) (yolofs)" not in terminal.text


def test_a_mark_is_put_once() -> None:
    environment = {"PROMPT_COMMAND": "date", "PS1": "> "}
    mark_prompt(environment)
    once = dict(environment)
    mark_prompt(environment)
    assert environment == once
    assert environment["PS1"] == "(yolofs) > "
    assert environment["PROMPT_COMMAND"].startswith("date; case $PS1")
