"""Every key of ``yolofs review`` does what it says, and is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.review import every_key
from tests.cli.review.reviewing import review
from tests.support.program import Program
from yolofs.cli.review.effects import ConflictKey
from yolofs.cli.review.help import HELP
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.moving import MOVES

pytestmark = pytest.mark.mount

BYTES = {
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "enter": "\r", "escape": "\x1b", "tab": "\t", "c-d": "\x04",
}  # fmt: skip


def test_every_key_of_the_review_does_what_the_help_says(yolofs: Program, view: Path) -> None:
    every_key.prepare(yolofs, view)
    with review(yolofs, editor=every_key.EDITOR) as terminal:
        terminal.wait_for_screen("-precious", "3 changes", gone="comparing")
        for step in every_key.STEPS:
            for key in step.keys:
                terminal.type(key.removeprefix("text:") if key.startswith("text:") else BYTES.get(key, key))
                if key == "escape":  # what comes at once would be taken for one key with it
                    break
            terminal.wait_for_screen(*step.shown, gone=step.gone)
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_each_key_of_the_tables_has_a_step_and_a_line_of_the_help() -> None:
    """Ctrl-C ends the steps above; Ctrl-Z is pressed in tmux, where a shell brings it back."""
    assert every_key.KEYS - {"c-d"} == {*ReviewModel().actions(), *MOVES}
    named = {word for line in HELP.splitlines() for word in re.split("  +", line)[0].split()}
    aliases = {" ": "space", "<": "j", ">": "j", "g": "j", "G": "j", "right": "l", "left": "h", "escape": "h"}
    moves = {"up", "down", "home", "end", "pageup", "pagedown"}
    assert {aliases.get(key, key) for key in every_key.KEYS} - moves - {"c-d"} <= named
    assert {way.value for way in ConflictKey} | {way.value.upper() for way in ConflictKey} <= {
        *HELP.split(),
        *re.findall(r"\w", HELP),
    }
