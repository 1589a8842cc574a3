"""What ``yolofs review`` shows at terminals of any size, and how it leaves them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.review.reviewing import at, review
from tests.support.program import COMMAND, DEADLINE_S, Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


def test_the_first_screen_has_deletions_first_and_the_lines_of_what_the_cursor_is_on(
    yolofs: Program, view: Path
) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("yolofs review: 3 changes", "deleted (1)", "-precious")
        rows = [line.partition("│")[0].strip() for line in terminal.screen.splitlines()[1:7]]
        assert rows == ["deleted (1)", "D gone.txt", "in the project (2)", "src/", "M a.py", "A new.txt"]
        terminal.type("q")
        assert terminal.wait() == 0


def test_enter_that_was_typed_before_the_screen_was_there_counts(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.type("/new.txt\r")  # the terminal, which is not raw yet, makes a line feed of it
        terminal.wait_for_screen("+first", gone="/new.txt")


def test_question_mark_shows_all_keys(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("?")
        terminal.wait_for_screen("walk the generations", "any other key goes back")
        terminal.type("x")
        terminal.wait_for_screen("-precious")


def test_git_directories_and_ignored_files_are_a_closed_line_in_list_and_page(yolofs: Program, view: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "gc.auto=0"]
    (yolofs.project / ".gitignore").write_text("*.log\nout/\n")
    subprocess.run([*git, "init", "-q"], cwd=yolofs.project, check=True)
    subprocess.run([*git, "add", "."], cwd=yolofs.project, check=True)
    subprocess.run([*git, "commit", "-qm", "one"], cwd=yolofs.project, check=True)
    subprocess.run([*git, "commit", "-qam", "two"], cwd=view, check=True)
    for name in ("out/a", "src/x.log", "src/y.log"):
        (view / name).parent.mkdir(exist_ok=True)
        (view / name).write_text("x\n")
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious", "+git: 1 commit on m", "+ignored by git (4)", gone="comparing")
        rows = [line.partition("│")[0].strip() for line in terminal.screen.splitlines()[1:-2]]
        assert [row for row in rows if row][:6] == [
            "deleted (1)", "D gone.txt", "in the project (2)", "src/", "M a.py", "A new.txt"
        ]  # fmt: skip
        assert len([row for row in rows if row]) == 8
        terminal.type("a")
        terminal.wait_for_screen("x +ignored by git (4)")
        terminal.type("\r")
        terminal.wait_for_screen("enter commits")
        lines = terminal.screen.splitlines()
        assert [line[:20] for line in lines[2:5]] == ["D  gone.txt", "M  src/a.py", "A  src/new.txt"]
        assert lines[5].startswith("-  git: 1 commit on m")
        assert lines[6].startswith("-  ignored by git: out/, src/x.log, src/y.log  (4 changes; ")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done", "nothing is staged")
    assert (yolofs.project / "out/a").exists()


def test_help_and_pages_can_be_read_to_their_end_at_60_by_15(yolofs: Program, view: Path) -> None:
    for number in range(40):
        (view / f"new {number:02}").write_text("x\n")
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("43 changes")
        terminal.type("?")
        terminal.wait_for_screen("more lines: j, k scroll", "any other key goes back")
        terminal.type("G")
        terminal.wait_for_screen("is to be looked at again.", gone="more lines")
        terminal.type("xa\r")
        terminal.wait_for_screen("this commit would apply 43 changes", "more lines: j, k scroll", "enter commits")
        assert all(len(line) <= 60 for line in terminal.screen.splitlines())
        terminal.type(" ")
        terminal.wait_for_screen("new 16")
        terminal.type("\x1b[F")
        terminal.wait_for_screen("new 39", "nothing else is staged", "enter commits", gone="more lines")


def test_the_review_stays_usable_at_60_by_15(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(60, 15)) as terminal:
        terminal.wait_for_screen("yolofs review: 3 changes", "-precious", "q quit")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.type("l ")
        terminal.wait_for_screen("x┃+line two")
        assert all(len(line) <= 60 for line in terminal.screen.splitlines())


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP])
def test_a_review_that_others_have_stopped_is_drawn_again_as_it_was(
    yolofs: Program, view: Path, number: signal.Signals
) -> None:
    """And it hears keys at once, though the shell has had the terminal meanwhile."""
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="") as shell:
        shell.wait_for("outside> ")
        shell.type(f"{shlex.join(COMMAND)} review\n")
        shell.wait_for_screen("yolofs review: 3 changes", "-precious", "q quit")
        at(shell, "a.py")
        shell.wait_for_screen("+line two")
        before = shell.screen
        for _ in range(2):
            os.killpg(shell.foreground, number)
            shell.wait_for_screen("Stopped")
            shell.type("stty sane; echo between=$((40 + 2))\n")
            shell.wait_for_screen("between=42")
            shell.type("fg\n")
            shell.wait_for_screen(before)
        shell.type("l")
        shell.wait_for_screen("┃+line two")


def test_a_review_that_others_ask_to_stop_gives_the_shell_its_screen_first(yolofs: Program, view: Path) -> None:
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="") as shell:
        shell.wait_for("outside> ")
        shell.type(f"{shlex.join(COMMAND)} review\n")
        shell.wait_for_screen("yolofs review: 3 changes", "-precious", "q quit")
        shell.type("j")
        shell.wait_for_screen("2 changes")
        for _ in range(2):
            os.killpg(shell.foreground, signal.SIGTSTP)
            shell.wait_for_screen("Stopped")
            assert shell.seen.rfind("\x1b[?1049l") > shell.seen.rfind("\x1b[?1049h") >= 0
            assert shell.seen.rfind("\x1b[?25h") > shell.seen.rfind("\x1b[?25l")
            shell.type("fg\n")
            shell.wait_for_screen("yolofs review: 3 changes", "2 changes")
            assert shell.seen.rfind("\x1b[?1049h") > shell.seen.rfind("\x1b[?1049l")


def test_an_editor_that_is_stopped_gives_the_terminal_back_to_the_shell(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nkill -TSTP $$\nsed -i s/two/TWO/ "$1"\n')
    editor.chmod(0o755)
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, PS1="outside> ", HISTFILE="", EDITOR=str(editor)) as shell:
        shell.wait_for("outside> ")
        shell.type(f"{shlex.join(COMMAND)} review\n")
        shell.wait_for_screen("yolofs review: 3 changes", "-precious", "q quit")
        at(shell, "a.py")
        shell.wait_for_screen("+line two")
        shell.type("le")
        shell.wait_for("has stopped; fg lets it go on")
        shell.wait_for("Stopped")
        shell.type("echo between=$((40 + 2))\n")
        shell.wait_for("between=42")
        shell.type("fg\n")
        shell.wait_for_screen("+line TWO", "u takes it back")


@pytest.mark.parametrize(("how", "code"), [("q", 0), ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.some(2)
def test_at_every_end_the_terminal_is_given_back_as_it_was(
    yolofs: Program, view: Path, how: str | signal.Signals, code: int
) -> None:
    with review(yolofs) as terminal:
        before = terminal.modes
        terminal.wait_for_screen("-precious")
        terminal.type("j")
        terminal.wait_for_screen("2 changes")
        assert terminal.modes != before
        if isinstance(how, str):
            terminal.type(how)
        else:
            os.kill(terminal.process.pid, how)
        assert terminal.wait() == code
        assert terminal.modes == before
        assert terminal.seen.rfind("\x1b[?1049l") > terminal.seen.rfind("\x1b[?1049h") >= 0
        assert terminal.seen.rfind("\x1b[?25h") > terminal.seen.rfind("\x1b[?25l")


def test_closing_the_terminal_ends_the_review_with_exit_code_129(yolofs: Program, view: Path) -> None:
    program = (sys.executable, "-P", "-c", "from yolofs.cli.main import program; program()")  # as it is installed
    with Terminal(yolofs.project, ["review"], size=(100, 24), command=program) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.type("j")
        terminal.wait_for_screen("2 changes")
        terminal.close()
        assert terminal.process.wait(DEADLINE_S) == 129


def test_a_terminal_of_another_size_is_drawn_anew(yolofs: Program, view: Path) -> None:
    with review(yolofs, size=(120, 30)) as terminal:
        terminal.wait_for_screen("-precious", "? keys  q quit")
        terminal.resize(60, 15)
        terminal.wait_for_screen("? all keys   q quit", "D gone.txt")
        at(terminal, "a.py")
        terminal.wait_for_screen("+line two")
        terminal.resize(120, 30)
        terminal.wait_for_screen("? keys  q quit", "+line twenty")


def test_a_terminal_that_has_become_too_small_says_so_until_it_is_large_again(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.resize(20, 5)
        terminal.wait_for_screen("40x8; Ctrl-C leaves", gone="-precious")
        terminal.type(" d")
        terminal.resize(100, 24)
        terminal.wait_for_screen("-precious", "3 changes", gone="accepted")


def test_a_terminal_that_has_the_size_of_before_again_at_once_is_drawn_anew(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:  # which is told of no size: the terminal is not that of its session
        terminal.wait_for_screen("-precious")
        for _ in range(3):
            terminal.resize(20, 5)
            terminal.wait_for_screen("40x8; Ctrl-C leaves")
            terminal.resize(100, 24)
            terminal.type("g")
            terminal.wait_for_screen("? keys  q quit")
            terminal.resize(20, 5)
            terminal.wait_for_screen("40x8; Ctrl-C leaves")


def test_ctrl_c_leaves_a_review_on_a_terminal_that_has_become_too_small(yolofs: Program, view: Path) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("-precious")
        terminal.resize(20, 5)
        terminal.wait_for_screen("Ctrl-C leaves")
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_an_added_file_has_its_size_in_good_english(yolofs: Program, view: Path) -> None:
    (view / "one").write_text("x")
    (view / "two").write_text("xy")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("5 changes")
        for name, size in (("one", "1 byte"), ("two", "2 bytes")):
            at(terminal, name)
            terminal.wait_for_line(rf".*added: file of {size}$")


def test_the_terminal_gets_no_control_character_of_a_file_or_name(yolofs: Program, view: Path) -> None:
    (view / "\x1b]0;evil\x07").write_text("\x1b[2J\x1b]0;owned\x07" + "y" * 5000 + "\u202e\n")
    with review(yolofs) as terminal:
        terminal.wait_for_screen("4 changes")
        at(terminal, "evil")
        terminal.wait_for_screen("+^[[2J^[]0;owned^G")
        terminal.type("q")
        assert terminal.wait() == 0
        assert "]0;evil" not in terminal.seen.replace("\\033]0;evil", "")
        assert "\x1b]0;owned" not in terminal.seen
        assert "\u202e" not in terminal.seen


def test_s_says_why_nothing_is_split(yolofs: Program) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("nothing is staged")
        terminal.type("s")
        terminal.wait_for_screen("there is nothing to split")
    with yolofs.mounted() as view:
        (view / "src/b.py").write_text("b = 2\n")
        with review(yolofs) as terminal:
            terminal.wait_for_screen("+b = 2")
            terminal.type("gs")
            terminal.wait_for_screen("only a file can be split: go to one")


def test_a_path_at_which_there_is_nothing_is_misspelt_and_another_one_has_not_changed(
    yolofs: Program, view: Path
) -> None:
    with Terminal(yolofs.project, ["review", "--", "src/a.yp"]) as terminal:
        assert terminal.wait() == 2
        assert "did you mean src/a.py?" in terminal.text
    with Terminal(yolofs.project, ["review", "--tool", "true", "--", "src/a.yp"]) as terminal:
        assert terminal.wait() == 2
    with Terminal(yolofs.project, ["review", "--", "src/b.py"]) as terminal:
        terminal.wait_for_screen("nothing has changed there")
        terminal.type("q")
        assert terminal.wait() == 0
    with Terminal(yolofs.project, ["review", "--", "gone.txt"]) as terminal:
        terminal.wait_for_screen("precious")
        terminal.type("q")
        assert terminal.wait() == 0


def test_a_symlink_shows_where_it_leads(yolofs: Program, view: Path) -> None:
    (view / "link").symlink_to("/etc/\x1bshadow")
    (view / "src/a.py").unlink()
    (view / "src/a.py").symlink_to("elsewhere")
    with review(yolofs, size=(120, 24)) as terminal:
        terminal.type("/link\r")
        terminal.wait_for_screen('added: symlink -> "/etc/\\033shadow"')
        terminal.type("/a.py\r")
        terminal.wait_for_screen("-> symlink -> elsewhere")


def test_the_end_of_a_long_line_can_be_read(yolofs: Program, view: Path) -> None:
    (view / "src/long").write_text("begin" + "x" * 10_000 + "end\n")
    with review(yolofs, "src/long", size=(60, 15)) as terminal:
        terminal.wait_for_screen("+beginxxx")
        terminal.type("LL")
        terminal.wait_for_screen("+…xxx")
        terminal.type("L" * 600)
        terminal.wait_for_screen("xxxend")
        terminal.type("H" * 600)
        terminal.wait_for_screen("+beginxxx")
