"""``yolofs watch``: real processes wait in the mount, and somebody at a real terminal answers."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import READ_MANY, Reader, reader, settings, wait_for_asks
from tests.support.fault_points import points
from tests.support.program import COMMAND, DEADLINE_S, Program, connected, kill, replace_text, stop, wait_until
from tests.support.terminal import Terminal
from tests.support.watching import alone, is_denied, waiting, watched_project
from yolofs.cli.watch.preview import preview
from yolofs.daemon.rpc.ask_messages import AnswerParams

pytestmark = pytest.mark.mount

ARMED = "y allow once"
"""Shown once keys answer."""


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return watched_project(tmp_path_factory.mktemp("w") / "p")  # short enough for one line


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def watch(yolofs: Program, term: str = "xterm") -> Terminal:
    return Terminal(yolofs.project, ["watch"], size=(80, 24), TERM=term)


def test_a_process_blocks_its_ask_appears_a_key_answers_and_the_process_goes_on(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen("1 waiting", ARMED)
        assert re.search(rf"^read +{re.escape(str(yolofs.project))}/secret/a$", joined(terminal), re.MULTILINE)
        assert f"process {blocked.process.pid}" in terminal.screen
        assert 'secretis"ask"(.yolofs.toml:3)' in "".join(terminal.screen.split())  # wherever the line is wrapped
        assert blocked.process.poll() is None
        terminal.type("y")
        assert blocked.end() == ("first line\nsecond line\n", "")
        terminal.wait_for_screen("nothing waits", "allowed by you")
        terminal.type("q")
        assert terminal.wait() == 0


def joined(terminal: Terminal) -> str:
    """Return the screen with its wrapped lines put together again."""
    return re.sub(r"\n {12}", "", terminal.screen)


def test_the_key_n_denies_the_access(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        terminal.type("n")
        assert is_denied(blocked.end())
        terminal.wait_for_screen("denied by you")


def test_an_answer_for_an_ancestor_spares_the_next_hundred_asks(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        terminal.type("s")
        terminal.wait_for_screen("What is the rule about?", "2  all below: ")
        terminal.type("j\r")
        terminal.wait_for_screen("Which state does it get?", "read-only")
        terminal.type("2")
        assert blocked.end()[0]
        for number in range(100):
            assert (view / f"secret/deep/{number}").read_text() == f"{number}\n"
        with pytest.raises(PermissionError):
            (view / "secret/new").touch()
        assert waiting(yolofs) == 0


def test_deny_can_be_picked_for_good_or_the_session_as_well(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        terminal.type("s")
        terminal.wait_for_screen("What is the rule about?")
        terminal.type("\r")
        terminal.wait_for_screen("hidden     as if it did not exist")
        terminal.type("5")
        blocked.end()
        terminal.wait_for_screen("denied by you")
        assert "a" not in os.listdir(view / "secret")


def test_a_group_is_one_card_and_one_key_answers_it(yolofs: Program, view: Path) -> None:
    paths = [view / f"secret/deep/{number}" for number in range(20)]
    with reader(*paths, script=READ_MANY) as blocked, connected(yolofs) as client:
        wait_for_asks(client, 20)  # one that joins when the keys count already would wait for a moment of its own
        with watch(yolofs) as terminal:
            check_group(terminal, blocked)


def check_group(terminal: Terminal, blocked: Reader) -> None:
    terminal.wait_for_screen("20 waiting", "20 paths below", "more; v lists them", "why  ", "waiting     since", ARMED)
    terminal.type("v")
    terminal.wait_for_screen("any other key goes back")
    terminal.type("q")
    terminal.wait_for_screen(ARMED)
    terminal.type("y")
    assert blocked.end() == ("all read\n", "")


def test_the_screen_shows_the_queue_the_look_at_a_file_and_the_help(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as first:
        terminal.wait_for_screen(ARMED)
        with reader(view / "secret/b") as second:
            terminal.wait_for_screen("2 waiting")
            terminal.type("v")
            terminal.wait_for_screen("23 B, changed", "\nfirst line\nsecond line")
            terminal.type(" ")
            terminal.type("x")
            terminal.wait_for_screen(ARMED)
            terminal.type("?")
            terminal.wait_for_screen("make a rule that holds until the mount ends")
            terminal.type("q")
            terminal.wait_for_screen(ARMED)
            terminal.type("l")
            terminal.wait_for_screen("What waits:", "secret/a", "secret/b")
            terminal.type("2")
            terminal.wait_for_screen("secret/b", ARMED, gone="secret/a")
            terminal.type("y")
            assert second.end() == ("b\n", "")
            terminal.wait_for_screen("1 waiting", "secret/a", ARMED)
            terminal.type("n")
            assert is_denied(first.end())


def test_a_look_at_what_is_staged_shows_what_is_staged(yolofs: Program, view: Path) -> None:
    settings(yolofs, ask_default="allow", ask_timeout=0)
    yolofs("unmount")
    with yolofs.mounted() as other:
        (other / "secret/a").write_bytes(b"\x1b[2J\x9b staged \xe2\x80\xae\n")
        yolofs("unmount")
        settings(yolofs)
        yolofs("mount", "--root", ".")
        with watch(yolofs) as terminal, reader(other / "secret/a"):
            terminal.wait_for_screen(ARMED)
            terminal.type("v")
            terminal.wait_for_screen("^[[2J<9b> staged <202e>")


def test_a_look_at_a_binary_file_is_a_hex_dump_of_80_columns(yolofs: Program, view: Path) -> None:
    (yolofs.project / "secret/bytes").write_bytes(bytes(range(256)))
    with watch(yolofs) as terminal, reader(view / "secret/bytes"):
        terminal.wait_for_screen(ARMED)
        terminal.type("v")
        terminal.wait_for_screen(
            "0000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................\n"
            "0010  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f  ................\n"
            "0020  20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f   !\"#$%&'()*+,-./\n",
            "00f0  f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 fa fb fc fd fe ff  ................",
        )


def test_a_card_whose_time_is_up_leaves_the_screen(yolofs: Program) -> None:
    settings(yolofs, ask_timeout=5)
    with yolofs.mounted() as view, watch(yolofs) as terminal:
        terminal.wait_for_screen("nothing waits")
        with reader(view / "secret/a") as first:
            terminal.wait_for_screen(ARMED)
            assert is_denied(first.end())
            terminal.wait_for_screen("nothing waits", "not answered in time")


def test_a_requester_that_is_killed_leaves_the_screen(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        blocked.process.kill()
        terminal.wait_for_screen("nothing waits", "given up by its program")


def test_of_two_watchers_the_first_answers_and_the_other_sees_it(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as one, watch(yolofs) as other, reader(view / "secret/a") as blocked:
        one.wait_for_screen(ARMED)
        other.wait_for_screen(ARMED)
        one.type("y")
        assert blocked.end()[0]
        other.wait_for_screen("nothing waits", f"allowed by yolofs watch, process {one.process.pid}")
        one.wait_for_screen("allowed by you")


def test_a_watcher_that_is_killed_answers_nothing_and_another_one_can(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as blocked:
        with watch(yolofs) as dying:
            dying.wait_for_screen(ARMED)
            dying.type("s")
            dying.wait_for_screen("What is the rule about?")
            dying.process.kill()
            dying.process.wait()
        assert waiting(yolofs) == 1
        with watch(yolofs) as terminal:
            terminal.wait_for_screen(ARMED)
            terminal.type("y")
            assert blocked.end()[0]


MANY = 700
OPEN_MANY = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
def read(number):
    try:
        open(f"{{sys.argv[1]}}/{{number}}").close()
    except OSError:
        pass
with ThreadPoolExecutor(50) as pool:
    list(pool.map(read, range({MANY})))
"""


def test_a_watcher_that_was_stopped_catches_up(yolofs: Program, view: Path) -> None:
    """Of each ask there are two things to be told, and more than a thousand are shortened."""
    settings(yolofs, ask_timeout=900)  # on a busy machine thousands of answers take a while to be told
    (yolofs.project / "secret/many").mkdir()
    for number in range(MANY):
        (yolofs.project / f"secret/many/{number}").touch()
    with watch(yolofs) as terminal:
        terminal.wait_for_screen("nothing waits")
        stop(terminal.process.pid)
        with (
            alone(yolofs, "--deny-all", stdout=subprocess.DEVNULL),
            reader(view / "secret/many", script=OPEN_MANY) as asking,
        ):
            assert asking.process.wait(100) == 0
            assert len(yolofs("log", "-v").out.splitlines()) == MANY
        with reader(view / "secret/a") as blocked:
            wait_until(lambda: waiting(yolofs) == 1, "asked")
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait_for_screen("1 waiting", "secret/a", ARMED)
            terminal.type("y")
            terminal.wait_for_screen("nothing waits")  # reading on: a full terminal stops who writes to it
            assert blocked.end() == ("first line\nsecond line\n", "")


def test_ctrl_z_gives_the_watchers_terminal_to_the_shell_until_it_goes_on(yolofs: Program, view: Path) -> None:
    command = ["setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]
    with Terminal(yolofs.project, [], command=command, size=(100, 24), PS1="outside> ", HISTFILE="") as shell:
        shell.wait_for("outside> ")
        shell.type(f"{shlex.join(COMMAND)} watch\n")
        shell.wait_for_screen("nothing waits")
        shell.type("\x1a")
        shell.wait_for("Stopped")
        assert shell.seen.rfind("\x1b[?1049l") > shell.seen.rfind("\x1b[?1049h") >= 0
        with reader(view / "secret/a") as blocked:
            wait_until(lambda: waiting(yolofs) == 1, "asked")
            shell.type("fg\n")
            shell.wait_for_screen("1 waiting", "secret/a", ARMED)
            shell.type("y")
            shell.wait_for_screen("nothing waits")
            assert blocked.end() == ("first line\nsecond line\n", "")


@pytest.mark.parametrize("key", ["\x03", "\x04", "q"])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.some(2)
def test_leaving_the_watch_never_allows(yolofs: Program, view: Path, key: str, term: str) -> None:
    with reader(view / "secret/a") as blocked:
        with watch(yolofs, term) as terminal:
            terminal.wait_for_screen(ARMED)
            if key == "\x03" and term == "dumb":  # no controlling terminal here that would send it
                terminal.process.send_signal(signal.SIGINT)
            terminal.type(key)
            assert terminal.wait() == (130 if key == "\x03" else 0)
        assert "Traceback" not in terminal.text
        assert waiting(yolofs) == 1
        assert blocked.process.poll() is None
        yolofs("answer", "1", "deny")
        assert is_denied(blocked.end())


@pytest.mark.parametrize(
    ("number", "term"),
    points(
        list(itertools.product([None, signal.SIGHUP, signal.SIGINT, signal.SIGTERM], ["xterm", "dumb"])),
        "the terminal closes",
        some=4,
    ),
)
def test_closing_the_terminal_never_allows(
    yolofs: Program,
    view: Path,
    number: signal.Signals | None,
    term: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tmp_path / "tracebacks"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    with reader(view / "secret/a") as blocked:
        with watch(yolofs, term) as terminal:
            terminal.wait_for_screen(ARMED)
            if number is None:
                terminal.close()
            else:
                terminal.process.send_signal(number)
            terminal.process.wait(DEADLINE_S)
        assert waiting(yolofs) == 1
        assert blocked.process.poll() is None
    assert not list(kept.glob("*.traceback"))


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_the_end_of_the_mount_ends_the_watch(yolofs: Program, term: str) -> None:
    with yolofs.mounted(), watch(yolofs, term) as terminal:
        terminal.wait_for("nothing waits")
        yolofs("unmount")
        assert terminal.wait() == 0
        assert "the mount has ended" in terminal.text


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_daemon_that_is_killed_ends_it_as_a_failure(yolofs: Program, term: str) -> None:
    with yolofs.mounted(), watch(yolofs, term) as terminal:
        terminal.wait_for("nothing waits")
        kill(yolofs.daemon["pid"])
        assert terminal.wait() == 11
        assert "the daemon has hung up" in terminal.text


def test_the_screen_follows_the_size_of_the_terminal(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        terminal.resize(40, 30)
        terminal.wait_for_screen("y allow once   n deny once\ns for this session   a always")
        terminal.resize(20, 6)
        terminal.wait_for_screen("make")
        terminal.type("y")
        terminal.resize(120, 24)
        terminal.wait_for_screen("y allow once   n deny once   s for this session   a always")
        assert blocked.process.poll() is None
        terminal.type("y")
        assert blocked.end()[0]


def test_a_digit_chooses_nothing_that_is_not_on_the_screen(yolofs: Program, view: Path) -> None:
    with watch(yolofs) as terminal, reader(view / "secret/deep/1") as blocked:
        terminal.wait_for_screen(ARMED)
        terminal.type("s")
        terminal.wait_for_screen("What is the rule about?", "3  all below: ")
        terminal.resize(40, 8)
        terminal.wait_for_screen("> 1  just", gone="3  all below: ")
        terminal.type("3j")
        terminal.wait_for_screen("What is the rule about?", "> 2  all below: ")
        terminal.resize(80, 24)
        terminal.wait_for_screen("3  all below: ")
        terminal.type("3")
        terminal.wait_for_screen("Which state does it get?")
        assert blocked.process.poll() is None


def test_the_watch_has_no_colours_with_no_color(yolofs: Program, view: Path) -> None:
    with (
        Terminal(yolofs.project, ["watch"], size=(80, 24), NO_COLOR="1") as terminal,
        reader(view / "secret/a"),
    ):
        terminal.wait_for_screen(ARMED)
        terminal.type("s\x1b")
        terminal.wait_for_screen(ARMED)
        assert not re.search(r"\x1b\[[0-9;]*(3[0-8]|9[0-7])[;m]", terminal.seen)


def test_a_dumb_terminal_gets_lines(yolofs: Program, view: Path) -> None:
    with watch(yolofs, "dumb") as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for(ARMED)
        terminal.type("s")
        terminal.wait_for("What is the rule about?")
        terminal.type("1")
        terminal.wait_for("Which state does it get?")
        terminal.type("2")
        assert blocked.end()[0]
        terminal.wait_for("allowed by you")
        terminal.type("q")
        assert terminal.wait() == 0
        assert "\x1b" not in terminal.seen


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_unknown_key_sequences_answer_no_ask(yolofs: Program, view: Path, term: str) -> None:
    with watch(yolofs, term) as terminal, reader(view / "secret/a") as blocked:
        terminal.wait_for_screen(ARMED)
        for sequence in ("\x1bOy", "\x1b[?2026;2$y", "\x1b[1;2y", "\x1b[0n", "\x1b[a", "\x1b[Mya ", "\x9b1;2y"):
            terminal.type(sequence)
        terminal.type("\x1b[B")  # known, and does nothing here
        terminal.type_until("l", lambda: "What waits" in terminal.screen)
        assert blocked.process.poll() is None


PATIENT = """
import sys
from yolofs.cli import main
from yolofs.cli.watch import board
board.SEQUENCE_S = 1000.0
sys.exit(main.main(sys.argv[1:]))
"""
"""For whom a sequence may come as slowly as a busy machine types it."""


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_sequence_that_comes_in_pieces_answers_nothing(yolofs: Program, view: Path, term: str) -> None:
    command = (*COMMAND[:-2], "-c", PATIENT)
    with (
        Terminal(yolofs.project, ["watch"], size=(80, 24), command=command, TERM=term) as terminal,
        reader(view / "secret/a") as blocked,
    ):
        terminal.wait_for_screen(ARMED)
        for piece in ("\x1b[", "1;2", "y"):
            terminal.type(piece)
            time.sleep(0.03)  # so that they are read one by one: a terminal on a slow line has them come so
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert waiting(yolofs) == 1
        assert blocked.process.poll() is None


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_rule_file_that_becomes_invalid_is_told_while_watching(yolofs: Program, term: str) -> None:
    toml = yolofs.project / ".yolofs.toml"
    good = toml.read_text()
    with yolofs.mounted(expected_in_log=("not TOML",)) as view, watch(yolofs, term) as terminal:
        terminal.wait_for("nothing waits")
        replace_text(toml, good + "3\n")
        terminal.wait_for("warning: .yolofs.toml:")
        with reader(view / "secret/a") as blocked:
            terminal.wait_for(ARMED)
            terminal.type("y")
            assert blocked.end()[0]
        replace_text(toml, good)
        wait_until(lambda: "stay in force" not in yolofs("status").err, "the mended file")


def test_a_dumb_terminal_tells_what_became_of_one_after_many(yolofs: Program, view: Path) -> None:
    with watch(yolofs, "dumb") as terminal:
        with reader(*(view / f"secret/deep/{number}" for number in range(100)), script=READ_MANY) as many:
            terminal.wait_for("100 paths below")
            with connected(yolofs) as client:
                assert len(client.answer(AnswerParams(1, "deny", by="another")).answered) == 100
            many.end()
            terminal.wait_for("denied by another, process", count=100)
        armed = terminal.text.count(ARMED)
        with reader(view / "secret/a") as one:
            terminal.wait_for("secret/a\n")
            terminal.wait_for(ARMED, count=armed + 1)
            terminal.type("n")
            one.end()
            terminal.wait_for("denied by you: ")


def test_names_and_arguments_cannot_give_the_terminal_commands(yolofs: Program, view: Path) -> None:
    name = "\x1b]0;title\x07\x1b[2J\n\u202e"
    (yolofs.project / "secret" / name).touch()
    for term in ("xterm", "dumb"):
        with watch(yolofs, term) as terminal, reader(view / "secret" / name):
            terminal.wait_for_screen(ARMED)
            terminal.type("l")
            terminal.wait_for_screen("What waits")
            assert "\x1b]0" not in terminal.seen
            assert "\u202e" not in terminal.seen
            assert "\\033]0;title\\a" in terminal.seen.replace("\r\n", "").replace(" ", "") or term == "xterm"


def test_without_a_terminal_watch_names_the_commands_to_use_instead(yolofs: Program, view: Path) -> None:
    assert "yolofs watch --deny-all, --allow-all or --answer-with" in yolofs.refused("watch", code=2)
    assert "exclude each other" in yolofs.refused("watch", "--deny-all", "--allow-all", code=2)


def test_without_a_mount_there_is_nothing_to_watch(yolofs: Program) -> None:
    for words in (["watch", "--deny-all"], ["asks"], ["answer", "1", "allow"]):
        assert "not mounted" in yolofs.refused(*words, code=11)


def test_a_look_at_a_directory_shows_the_names_that_it_has_in_the_view(yolofs: Program) -> None:
    based = yolofs.project / "based"
    based.mkdir()
    for name in ("left", "removed"):
        (based / name).write_text("x")
    with yolofs.mounted() as view:
        (view / "made").mkdir()
        (view / "made/a").write_text("x")
        (view / "made/b c").mkdir()
        (view / "based/removed").unlink()
        (view / "based/added").write_text("x")
        (view / "based").chmod(0o700)
        (view / "based").rename(view / "moved")

        def seen(name: str) -> list[str]:
            first, empty, *names = preview(os.fsencode(yolofs.project), os.fsencode(yolofs.project / name))
            assert (first.partition(", changed")[0], empty) == (f"a directory with {len(names)} names", "")
            return names

        assert seen("made") == ["a", "b c"]
        assert seen("moved") == ["added", "left"]
        assert seen("made/b c") == []
        assert "moved" in seen("")
        assert "based" not in seen("")
        assert ".yolofs" not in seen("")
