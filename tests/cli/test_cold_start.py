"""Each command finds what it needs when Python has just started; most other tests fork one that has
imported all.  By night all of them are started so, else some.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import COMMAND, Program
from yolofs.cli.group import COMMANDS

pytestmark = pytest.mark.mount

ORDINARY = {
    "init": (),
    "mount": ("--root", "/"),
    "run": ("--no-review", "touch", "made"),
    "status": (),
    "diff": (),
    "hunks": (),
    "snapshot": ("first",),
    "timeline": (),
    "log": (),
    "runs": (),
    "blame": ("made",),
    "cat": ("1:made",),
    "ls": ("-l", "1:."),
    "restore": ("--from", "1", "made"),
    "asks": (),
    "feedback": (),
    "answer": ("1", "deny"),
    "rule": ("list",),
    "trust": ("--json",),
    "travel": ("base", "--force"),
    "unmount": (),
    "commit": ("--yes",),
    "commits": (),
    "undo": ("--yes",),
    "gc": (),
    "abort": ("--yes",),
    "sessions": (),
    "doctor": (),
    "hook": ("--help",),
    "completion": ("bash",),
}
"""Words of every command, in an order in which each finds something to do."""
ELSEWHERE = {"review", "shell", "watch"}
"""Those that tests start as they are, in a terminal."""
REFUSED = {"answer": 13, "undo": 1}
"""Exit codes of what finds nothing to do after all."""


def test_every_command_is_started_somewhere() -> None:
    assert ORDINARY.keys() | ELSEWHERE == set(COMMANDS)


@pytest.mark.timeout(300)
def test_commands_start_without_what_others_have_imported(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.yolofs.toml").write_text("scratch = []\n")  # where all of this happens would be some
    warm = Program(tmp_path / "project")
    cold = Program(tmp_path / "project", starts_cold=True)
    drawn = points(list(ORDINARY), "cold starts", some=6)
    for name, words in ORDINARY.items():
        yolofs = cold if name in drawn else warm
        yolofs(name, *words, code=REFUSED.get(name, 0))
        if name == "run":  # inside as well, where the daemon starts a process for the command, too
            assert "A  made\n" in yolofs("run", "--no-review", *COMMAND, "diff", "--list").out
