"""A change whose lines cannot be read: the review says so, and its keys go on to work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.review.reviewing import at
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

FAILING = """
from yolofs.cli.main import program
from yolofs.cli.review.worker import Worker

really = Worker.load

def failing(worker, change):
    if change.path.endswith(b"new.txt"):
        raise PermissionError(13, "Permission denied", change.path)
    return really(worker, change)

Worker.load = failing
program()
"""


def test_keys_work_beside_lines_that_cannot_be_read(yolofs: Program, view: Path) -> None:
    command = (sys.executable, "-P", "-W", "error", "-c", FAILING)
    with Terminal(yolofs.project, ["review"], size=(100, 24), command=command) as terminal:
        terminal.wait_for_screen("3 changes", "-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("Permission denied", "cannot be read", gone="…")
        for key in ("l", "\t"):
            terminal.type(key)
            terminal.wait_for_screen("its lines cannot be read")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("q")
        assert terminal.wait() == 0


TWICE_WANTED = """
import os
import threading
import time
from pathlib import Path

from yolofs.cli.main import program
from yolofs.cli.review.screen import _ReviewScreen
from yolofs.cli.review.worker import Worker

compare, load, take = Worker.compare, Worker.load, _ReviewScreen._take
is_loading, is_compared = threading.Event(), threading.Event()

def comparing(worker, effect, parts, *, with_marks):
    known = compare(worker, effect, parts, with_marks=with_marks)
    assert is_loading.wait(60)
    if os.environ["ENDS"] == "after":
        threading.Timer(1, is_compared.set).start()  # by then the screen has taken the comparison
    return known

def taking(*arguments):
    if os.environ["ENDS"] == "meanwhile":
        is_compared.set()
        time.sleep(1)  # the load ends, and nobody can be told before this does
    take(*arguments)

def loading(worker, change):
    if not change.path.endswith(b"new.txt"):
        return load(worker, change)
    with Path(os.environ["LOADS"]).open("a") as file:
        file.write("load\\n")
    is_loading.set()
    assert is_compared.wait(60)
    raise PermissionError(13, "Permission denied", change.path)

Worker.compare, Worker.load, _ReviewScreen._take = comparing, loading, taking
program()
"""


@pytest.mark.parametrize("ends", ["after", "meanwhile"])
def test_lines_that_are_being_read_are_not_read_once_more_for_a_comparison(
    yolofs: Program, view: Path, tmp_path: Path, ends: str
) -> None:
    """The load ends after the comparison was taken, or at the same time."""
    loads = tmp_path / "loads"
    command = (sys.executable, "-P", "-W", "error", "-c", TWICE_WANTED)
    with Terminal(yolofs.project, ["review"], size=(100, 24), command=command, LOADS=str(loads), ENDS=ends) as terminal:
        terminal.wait_for_screen("3 changes", "-precious")
        at(terminal, "new.txt")
        terminal.wait_for_screen("Permission denied", "cannot be read", gone="…")
        assert loads.read_text() == "load\n"  # a second failure would take the place of what a key has said since
        terminal.type("l")
        terminal.wait_for_screen("its lines cannot be read")
        terminal.type("q")
        assert terminal.wait() == 0
