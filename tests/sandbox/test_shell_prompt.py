"""A shell in the view says so in its prompt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal
from yolofs.cli.run.prompt_mark import mark_prompt

pytestmark = pytest.mark.mount


START_FILES = {
    "bash": {".bashrc": "PS1='mine> '\n"},
    "sh": {},
    "zsh": {
        ".zshenv": "ZDOTDIR=$HOME/theirs; STARTED=yes\n",
        "theirs/.zshrc": "PS1='mine> '; ASKED=$STARTED,$ZDOTDIR\n",
    },
    "fish": {".config/fish/config.fish": "function fish_prompt; echo 'mine> '; end; set ASKED yes,$HOME/theirs\n"},
}


@pytest.mark.parametrize("shell", START_FILES)
@pytest.mark.some(2)
def test_the_prompt_begins_with_a_mark_whatever_the_start_files_say(
    yolofs: Program, shell: str, tmp_path: Path
) -> None:
    for name, content in START_FILES[shell].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    program = shutil.which(shell)
    assert program is not None, f"{shell} is missing: scripts/setup.sh installs it"
    command = ["setsid", "--ctty", "--wait", *yolofs.command]  # fish wants a terminal of its own
    with Terminal(
        yolofs.project,
        ["shell"],
        command=command,
        SHELL=program,
        HOME=str(tmp_path),
        XDG_CONFIG_HOME=str(tmp_path / ".config"),
        PS1="mine> ",
    ) as terminal:
        terminal.wait_for("(yolofs) mine> ")
        if shell in ("zsh", "fish"):  # the user's files were read, and find what they expect
            terminal.type('echo "asked $ASKED"\n')
            terminal.wait_for(f"asked yes,{tmp_path}/theirs")
        terminal.type("exit\n")
        assert terminal.wait() == 0
        assert "(yolofs) (yolofs)" not in terminal.text
    assert yolofs("runs", "--json").json["runs"][-1]["command"] == [program]


def test_a_shell_whose_last_command_was_interrupted_ends_by_no_signal(yolofs: Program) -> None:
    command = ["setsid", "--ctty", "--wait", *yolofs.command]  # else no signal comes from the terminal
    with Terminal(yolofs.project, ["shell", "--no-review"], command=command, SHELL="/bin/sh") as terminal:
        terminal.wait_for("(yolofs) ")
        # what says so is what gets the signal: the terminal's foreground is it by then
        terminal.type("""sh -c "echo sle''eps; exec sleep 1000"\n""")
        terminal.wait_for("sleeps")
        terminal.type("\x03")
        terminal.wait_for("(yolofs) ", count=2)
        terminal.type("exit\n")
        assert terminal.wait() == 130  # its own exit code, and no signal


def test_the_mark_is_put_into_the_prompt_only_once() -> None:
    environment = {"PROMPT_COMMAND": "date", "PS1": "> ", "ZDOTDIR": "/theirs"}
    for shell in (b"/bin/bash", b"zsh"):
        mark_prompt(shell, environment)
        once = dict(environment)
        mark_prompt(shell, environment)
        assert environment == once
    assert environment["PS1"] == "(yolofs) > "
    assert environment["PROMPT_COMMAND"].startswith("date; case $PS1")
    assert environment["YOLOFS_ZDOTDIR"] == "/theirs"
