"""The little projects whose ordinary command does damage: each is found and undone in
``yolofs review`` by few keys.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.sandbox.test_hidden_damage import TRAPS, Trap, content_of, laid_out
from tests.support.fault_points import points
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

KEYS = {
    "a cleaner that deletes READMEs": "kd\r",
    "a formatter that rewrites what it should not": "jjd\r",
    "a lint that deletes sources": "kd\r",
    "a config fixer that resets secrets": "d\r",
    "a test teardown that wipes fixtures": "d\r",
    "a build that empties a directory beside the project": "d\r",
    "an installer that edits the shell's start file": "d\r",
    "a script that opens what was closed": "d\r",
    "a migration that renames what others look for": "kd\r",
    "a hook that is replaced": "d\r",
    "a program that puts links where files were": "d\r d\r",
    "a report that empties its own input": "d\r",
    "a script that puts a link where a directory was": "kd\r",
    "a deployment that opens one file among many new ones": "d\r",
}
"""``k`` goes from the first change to the title above it, which stands for all that is below.  A
space is no key: what was typed before it has to be done.
"""
NEW = tuple(f"new{number}" for number in range(1, 31))
STAYS = {
    "a formatter that rewrites what it should not": ("src/a.py",),
    "a build that empties a directory beside the project": ("out/", "a"),
    "a report that empties its own input": (*NEW, *(f"src/{number}" for number in range(1, 31))),
    "a script that puts a link where a directory was": NEW,
    "a deployment that opens one file among many new ones": NEW,
}
"""What the command was meant to change: it stays staged."""


def test_there_are_keys_for_each_project_and_never_more_than_five() -> None:
    assert KEYS.keys() == TRAPS.keys()
    assert max(len(keys.replace(" ", "")) for keys in KEYS.values()) <= 5


@pytest.mark.parametrize("name", points(list(TRAPS), "hidden damage in review", some=3))
def test_the_damage_is_on_the_first_screen_and_undone_within_five_keys(name: str, elsewhere: Path) -> None:
    trap: Trap = TRAPS[name]
    parent = elsewhere / "work"
    yolofs: Program = laid_out(trap, parent)
    before = content_of(parent)
    with yolofs.mounted("--root", "/") as mountpoint:
        yolofs("run", "sh", "-c", trap.command.format(parent=parent))
        with Terminal(yolofs.project, ["review"], size=(120, 30)) as terminal:
            terminal.wait_for_screen("yolofs review: ", "q quit", gone="comparing…")
            for line in trap.damage:
                letter, path = re.split(" +", line.format(parent=parent), maxsplit=2)[:2]
                terminal.wait_for_line(rf"\W*{letter} .*{re.escape(os.path.basename(path.rstrip('/')))}")
            said = None
            for keys in KEYS[name].split(" "):
                terminal.type(keys)
                terminal.wait_for_screen("u takes it back", gone=said)
                (said,) = (line for line in terminal.screen.splitlines() if line.endswith("u takes it back"))
            terminal.type("q")
            assert terminal.wait() == 0
        stays = yolofs("status", "--json").json["changes"]
        assert [os.path.relpath(change["path"], yolofs.project) for change in stays] == sorted(
            path.rstrip("/") if path != "a" else "out/a" for path in STAYS.get(name, ())
        )
        after = content_of(mountpoint / str(parent)[1:])
        if name not in STAYS:
            assert after == before
        assert {path: what for path, what in after.items() if path in before and "src" not in path} == {
            path: what for path, what in before.items() if "src" not in path
        }
    assert content_of(parent) == before
