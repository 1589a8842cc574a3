"""Where this user may not enter a directory, its path is told, the reason and the next command."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.support.killed_command import as_user
from yolofs.cli import group, main
from yolofs.cli.commands import init
from yolofs.cli.without_click import status

IMPORTED = (group, init, status)
"""The ordinary user may not read where Python lies."""


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("status",), ""),
        (("-C", ".", "status"), ""),
        (("-C", "sub", "status"), "sub"),
        (("-C", "{}", "status"), ""),
        (("-C", "{}/sub", "status"), "sub"),
        (("-C", "{}/sub", "init"), "sub"),
    ],
)
def test_a_command_names_the_closed_directory_that_it_starts_in(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], what: str
) -> None:
    def check(place: Path) -> None:
        closed = place / "home/closed"
        (closed / "sub").mkdir(parents=True)
        os.chdir(closed)
        closed.chmod(0)
        said = place / "home/said"
        with said.open("w") as file, contextlib.redirect_stderr(file):
            assert main.main([word.format(closed) for word in words]) == 1
        assert said.read_text() == (
            f"yolofs: {closed / what} may not be entered: Permission denied\n"
            "hint: cd to a directory that you may enter, or: yolofs -C DIR ...\n"
        )

    as_user(check, monkeypatch, is_root=False)
