"""What somebody at a terminal sees and is asked."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "a.txt").write_text("one\nTWO\n")
        (mountpoint / "new.txt").write_text("new\n")
        yield mountpoint


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n"])
def test_commit_shows_what_it_will_do_and_does_it_after_a_yes(yolofs: Program, view: Path, answer: str) -> None:
    with Terminal(yolofs.project, ["commit"]) as terminal:
        terminal.wait_for("apply 2 changes: 1 added, 1 modified? [y/N] ")
        assert "M  a.txt" in terminal.text
        assert "A  new.txt" in terminal.text
        assert (yolofs.project / "a.txt").read_text() == "one\ntwo\n"
        terminal.type(answer)
        assert terminal.wait() == 0
        assert "commit 1 done" in terminal.text
    assert (yolofs.project / "a.txt").read_text() == "one\nTWO\n"


@pytest.mark.parametrize("answer", ["n\n", "\n", "x\n", "\x04"])
@pytest.mark.some(2)
def test_an_answer_that_is_no_yes_changes_nothing(yolofs: Program, view: Path, answer: str) -> None:
    for command, said in (("commit", "nothing committed"), ("abort", "nothing dropped")):
        with Terminal(yolofs.project, [command]) as terminal:
            terminal.wait_for("[y/N] ")
            terminal.type(answer)
            assert terminal.wait() == 1
            assert said in terminal.text
    assert (yolofs.project / "a.txt").read_text() == "one\ntwo\n"
    assert (view / "a.txt").read_text() == "one\nTWO\n"


def test_ctrl_c_at_the_question_changes_nothing(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["commit"]) as terminal:
        terminal.wait_for("[y/N] ")
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.text
    assert (yolofs.project / "a.txt").read_text() == "one\ntwo\n"
    assert (view / "a.txt").read_text() == "one\nTWO\n"


def test_a_change_during_the_question_of_a_commit_is_shown_and_asked_again(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["commit"]) as terminal:
        terminal.wait_for("[y/N] ")
        (view / "later.txt").write_text("later\n")
        terminal.type("y\n")
        terminal.wait_for("something of it has changed meanwhile, here or in base; look again")
        terminal.wait_for("apply 3 changes: 2 added, 1 modified? [y/N] ")
        (view / "later.txt").write_text("LATER\n")  # in place: not a record, and still not what was shown
        terminal.type("y\n")
        terminal.wait_for("[y/N] ", 3)
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.project / "later.txt").read_text() == "LATER\n"


def test_abort_asks_and_drops(yolofs: Program, view: Path) -> None:
    yolofs("snapshot")
    with Terminal(yolofs.project, ["abort"]) as terminal:
        terminal.wait_for("drop 2 changes: 1 added, 1 modified and 1 generation, for good? [y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (view / "a.txt").read_text() == "one\ntwo\n"


def test_there_are_colours_on_a_terminal_and_none_with_no_color(yolofs: Program, view: Path) -> None:
    for command in (["status"], ["diff"], ["timeline"], ["doctor"]):
        with Terminal(yolofs.project, command) as terminal:
            assert terminal.wait() == 0
            assert "\x1b[" in terminal.seen
        with Terminal(yolofs.project, command, NO_COLOR="1") as terminal:
            assert terminal.wait() == 0
            assert "\x1b" not in terminal.seen


def test_the_content_of_a_file_cannot_give_the_terminal_commands(yolofs: Program, view: Path) -> None:
    (view / "new.txt").write_bytes(b"\x1b]0;title\x07 \xc2\x9b31m \r\x08hidden\n")
    with Terminal(yolofs.project, ["diff", "--", "new.txt"]) as terminal:
        assert terminal.wait() == 0
        assert "+^[]0;title^G" in terminal.text
        assert "<9b>31m ^M^Hhidden" in terminal.text
        assert "\x1b]" not in terminal.seen


def test_long_work_shows_a_progress_bar_on_the_terminal_and_not_in_the_data(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    for number in range(1500):
        (view / f"f{number}").write_text("x")
    with (tmp_path / "out").open("w+b") as out:
        with Terminal(yolofs.project, ["commit", "--yes", "--json"], stdout=out.fileno()) as terminal:
            assert terminal.wait() == 0
            assert "committing" in terminal.text
            assert "/1502" in terminal.text or "/150" in terminal.text
        out.seek(0)
        assert out.read().startswith(b'{\n  "commit": 1,')


def test_without_a_terminal_there_is_no_progress_bar(yolofs: Program, view: Path) -> None:
    for number in range(300):
        (view / f"f{number}").write_text("x")
    assert "committing" not in yolofs("commit", "--yes").err


@pytest.mark.parametrize(
    ("command", "said"), [("snapshot", "snapshot 1"), ("travel", "generation 2 shows generation 0")]
)
def test_at_a_terminal_the_generation_is_said_once(yolofs: Program, view: Path, command: str, said: str) -> None:
    """Into a pipe it is alone on stdout, for programs."""
    with Terminal(yolofs.project, [command, *(["0"] if command == "travel" else [])]) as terminal:
        terminal.wait()
        assert terminal.text.splitlines() == [terminal.text.strip()]
        assert terminal.text.startswith(said)
    assert yolofs("snapshot", "piped").out.strip().isdigit()
