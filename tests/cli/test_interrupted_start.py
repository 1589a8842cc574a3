"""Ctrl-C while the program is still being imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

STOPPER = Path(__file__).parents[1] / "import_stopper"
AT_A_TERMINAL = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
PROGRAMS = {
    "script": (os.path.join(os.path.dirname(sys.executable), "yolofs"),),
    "module": (sys.executable, "-m", "yolofs.cli.main"),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("module", ["yolofs.cli.command_line", "msgspec", "yolofs.cli.without_click.status"])
def test_ctrl_c_while_a_module_is_imported_ends_it_without_a_word(yolofs: Program, program: str, module: str) -> None:
    command = (*AT_A_TERMINAL, *PROGRAMS[program])
    with Terminal(
        yolofs.project, ["status"], command=command, PYTHONPATH=str(STOPPER), YOLOFS_STOPS_AT=module
    ) as terminal:
        terminal.wait_for("HERE")
        terminal.type("\x03")
        code = terminal.wait()
        assert (code, terminal.text) == (130, "HERE\n^C")
