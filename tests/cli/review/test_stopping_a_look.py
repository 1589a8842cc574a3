"""Looking at what a commit would do may take long; the user need not wait for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.review.reviewing import review
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.mount

LOOKING = "looking at what the commit would do"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@contextmanager
def looking(yolofs: Program) -> Iterator[tuple[Terminal, Path]]:
    """Have a review look at what a commit would do, and never end: what git is asked by then waits
    for a writer of the file that is given.
    """
    ignore = Path(os.environ["HOME"]) / "ignore"
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(f"[core]\n\texcludesFile = {ignore}\n")
    subprocess.run(["git", "init", "-q"], cwd=yolofs.project, check=True)
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious", gone="comparing")
        terminal.type("a")
        terminal.wait_for_screen("accepted")
        os.mkfifo(ignore)
        terminal.type("\r")
        terminal.wait_for_screen(LOOKING, "q stops that")
        try:
            yield terminal, ignore
        finally:
            let_go(ignore)


def let_go(ignore: Path) -> None:
    """Have git go on, if it waits."""
    os.close(os.open(ignore, os.O_RDWR))  # opens for reading too, so it waits for nobody


@pytest.mark.parametrize("key", ["q", "\x1b", "\x04"])
def test_a_key_goes_back_to_the_list_at_once(yolofs: Program, view: Path, key: str) -> None:
    with looking(yolofs) as (terminal, ignore):
        terminal.type(key)
        terminal.wait_for_screen("stopped looking, nothing is committed", gone=LOOKING)
        terminal.type("/new.txt\r")
        terminal.wait_for_screen("+first")
        terminal.type("\r")  # waits until the look before has ended
        terminal.wait_for_screen(LOOKING)
        os.rename(ignore, f"{ignore} away")
        let_go(Path(f"{ignore} away"))
        ignore.write_text("")
        terminal.wait_for_screen("this commit would apply 3 changes", "enter commits")
    assert (yolofs.project / "gone.txt").exists()


def test_the_page_of_a_look_that_was_stopped_does_not_come_up(yolofs: Program, view: Path) -> None:
    with looking(yolofs) as (terminal, ignore):
        terminal.type("q")
        terminal.wait_for_screen("stopped looking")
        let_go(ignore)
        yolofs("snapshot", "mark")  # waits until the view is given back
        terminal.type("?")
        terminal.wait_for_screen("walk the generations")
        terminal.type("x")
        terminal.wait_for_screen("3 accepted", gone="enter commits")


def test_ctrl_c_leaves_at_once(yolofs: Program, view: Path) -> None:
    with looking(yolofs) as (terminal, ignore):
        terminal.type("\x03")
        let_go(ignore)
        assert terminal.wait() == 130
    assert yolofs("status", "--json").json["changes"]
