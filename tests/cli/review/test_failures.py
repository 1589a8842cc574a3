"""An unforeseen failure in ``yolofs review``: it ends, gives the terminal back, and says so; all
stays staged.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

FAILING = """
import itertools, sys
from importlib import import_module
from yolofs.cli.main import program

module, _, name = {where!r}.partition(":")
owner = import_module(module)
*above, name = name.split(".")
for one in above:
    owner = getattr(owner, one)
really, calls = getattr(owner, name), itertools.count()

def failing(*args, **options):
    if next(calls) >= {count}:
        raise LookupError("of the test")
    return really(*args, **options)

setattr(owner, name, failing)
program()
"""
REVIEW = "yolofs.cli.review"


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    project = tmp_path_factory.mktemp("r") / "p"
    project.mkdir()
    (project / "a").write_text("one\ntwo\n")
    program = Program(project)
    program.start_session()
    with program.mounted() as view:
        (view / "a").write_text("one\n2\n")
        (view / "new").write_text("new\n")
    return program


def command(where: str, count: int) -> tuple[str, ...]:
    return (sys.executable, "-P", "-W", "error", "-c", FAILING.format(where=where, count=count))


def wait_for_more(terminal: Terminal, shown: int) -> None:
    """Wait until more than so many characters are shown, or the program fails."""
    if FAILS not in terminal.text:
        terminal.type_until("", lambda: len(terminal.seen) > shown)


FAILS = "this should not have happened: LookupError('of the test')"
FAILURES = [
    (f"{REVIEW}.drawing:draw_review", 0, ""),
    (f"{REVIEW}.drawing:draw_review", 1, ""),
    (f"{REVIEW}.drawing:draw_review", 3, "jkjkjk"),
    (f"{REVIEW}.screen:_ReviewScreen._carry_out", 0, ""),
    (f"{REVIEW}.keys:ReviewModel.key", 0, "j"),
    (f"{REVIEW}.painter:Painter.want", 0, "j"),
    (f"{REVIEW}.worker:Worker.compare", 0, ""),
    (f"{REVIEW}.worker:Worker.load", 1, "j"),
    (f"{REVIEW}.worker:Worker.prepare", 0, " \r"),
    (f"{REVIEW}.worker:Worker.drop", 0, "d\r"),
    (f"{REVIEW}.worker:Worker.texts", 0, "le"),
    (f"{REVIEW}.worker:Worker.edit", 0, "le"),
    (f"{REVIEW}.review_state:ReviewState.prepared", 0, " \r"),
    (f"{REVIEW}.review_state:ReviewState.done", 0, "d\r"),
    (f"{REVIEW}.committing:commit_prepared", 0, " \r\r"),
]
"""Which call fails, how many of it do not, and the keys that lead there."""


@pytest.mark.parametrize(("where", "count", "keys"), points(FAILURES, "review fails", some=3))
def test_a_failing_review_ends_with_a_message_and_gives_the_terminal_back(
    yolofs: Program, tmp_path: Path, where: str, count: int, keys: str
) -> None:
    before = yolofs("status", "--json").json["changes"]
    with Terminal(
        yolofs.project, ["review"], size=(100, 24), command=command(where, count), TMPDIR=str(tmp_path)
    ) as terminal:
        modes = terminal.modes
        if keys:
            terminal.wait_for_screen("yolofs review: 2 changes", "-two")
        for key in keys:
            shown = len(terminal.seen)
            terminal.type(key)
            if where.endswith(":draw_review"):  # keys that come together are drawn together
                wait_for_more(terminal, shown)
            if key == "\r" and keys.endswith("\r\r"):
                terminal.wait_for_screen("enter commits")
        assert terminal.wait() == 1
        assert FAILS in terminal.text
        assert len(list(tmp_path.glob("yolofs-*.traceback"))) == 1
        assert terminal.modes == modes
        assert terminal.seen.rfind("\x1b[?1049l") >= terminal.seen.rfind("\x1b[?1049h")
        assert terminal.seen.rfind("\x1b[?25h") >= terminal.seen.rfind("\x1b[?25l")
    if "done" not in where:  # dropped it was
        assert yolofs("status", "--json").json["changes"] == before
    assert (yolofs.project / "a").read_text() == "one\ntwo\n"


def test_a_failing_watch_ends_with_a_message_and_gives_the_terminal_back(yolofs: Program, tmp_path: Path) -> None:
    words = command("yolofs.cli.watch.screen:draw_board", 0)
    with (
        yolofs.mounted(),
        Terminal(yolofs.project, ["watch"], size=(100, 24), command=words, TMPDIR=str(tmp_path)) as terminal,
    ):
        modes = terminal.modes
        assert terminal.wait() == 1
        assert "this should not have happened: LookupError('of the test')" in terminal.text
        assert terminal.modes == modes
        assert terminal.seen.rfind("\x1b[?1049l") >= terminal.seen.rfind("\x1b[?1049h")
