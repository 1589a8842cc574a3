"""Looking at what a commit would do may take long, and so may a drop; the user need not wait."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.review.reviewing import review
from tests.support.program import Program, wait_until
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

LOOKING = "looking at what the commit would do"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@contextmanager
def looking(yolofs: Program) -> Iterator[tuple[Terminal, Path]]:
    """Have a review foretell a commit, without end: git waits for a writer of the file that is
    given.
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
@pytest.mark.some(1)
def test_a_key_stops_a_slow_look_and_goes_back_to_the_list(yolofs: Program, view: Path, key: str) -> None:
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


def test_ctrl_c_during_a_slow_look_leaves_the_review_and_commits_nothing(yolofs: Program, view: Path) -> None:
    with looking(yolofs) as (terminal, ignore):
        terminal.type("\x03")
        let_go(ignore)
        assert terminal.wait() == 130
    assert yolofs("status", "--json").json["changes"]


SLOW_DROP = """
import sys, time
from pathlib import Path
from yolofs.cli import main
from yolofs.session.selecting import actions

def keep(self):
    Path("{reached}").touch()
    while not Path("{goes_on}").exists():
        time.sleep(0.01)  # between two looks; the test ends it in time
    really(self)

def take_back(*words, check, **more):
    Path("{reached}").touch()
    while not Path("{goes_on}").exists():
        check()
        time.sleep(0.01)  # between two looks; the test ends it in time
    return really(*words, check=check, **more)

{which}
sys.argv[0] = "yolofs"
main.program()
"""
BEFORE = "really, actions.take_hunks_back = actions.take_hunks_back, take_back"
TOO_LATE = """
from yolofs.session.journal_copy import JournalCopy
really, JournalCopy.keep = JournalCopy.keep, keep
"""


@contextmanager
def dropping(yolofs: Program, tmp_path: Path, which: str) -> Iterator[tuple[Terminal, Path]]:
    """Drop a deletion, and wait in that until the file that is given exists."""
    reached, goes_on = tmp_path / "reached", tmp_path / "goes_on"
    code = SLOW_DROP.format(reached=reached, goes_on=goes_on, which=which)
    command = (sys.executable, "-P", "-c", code)
    with Terminal(yolofs.project, ["review"], size=(100, 24), command=command) as terminal:
        terminal.wait_for_screen("-precious", gone="comparing")
        terminal.type("/gone.txt\r")
        terminal.type("d")
        terminal.wait_for_screen("drop gone.txt?")
        terminal.type("\r")
        terminal.wait_for_screen("dropping gone.txt; q stops that")
        wait_until(reached.exists, "the drop has begun")
        yield terminal, goes_on


@pytest.mark.parametrize("key", ["q", "\x1b", "\x04", "\x03"])
@pytest.mark.some(2)
def test_a_drop_is_stopped_and_nothing_is_dropped(yolofs: Program, view: Path, tmp_path: Path, key: str) -> None:
    with dropping(yolofs, tmp_path, BEFORE) as (terminal, _):
        terminal.type(key)
        terminal.wait_for_screen("stopped, nothing is dropped")
        terminal.type("/new.txt\r")
        terminal.wait_for_screen("+first")
        assert not (view / "gone.txt").exists()
        assert "dropped" not in yolofs("timeline").out


def test_a_drop_that_is_stopped_too_late_is_said_to_be_done(yolofs: Program, view: Path, tmp_path: Path) -> None:
    with dropping(yolofs, tmp_path, TOO_LATE) as (terminal, goes_on):
        terminal.type("q")
        terminal.wait_for_screen("dropping: stopping")
        goes_on.touch()
        terminal.wait_for_screen("dropped gone.txt; u takes it back")
    assert (view / "gone.txt").read_text() == "precious\n"
