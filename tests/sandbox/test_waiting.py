"""A command that waits for an answer is no riddle: stderr says what it waits for, and how to
answer.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import wait_for_asks, wait_for_described_ask
from tests.support.program import COMMAND, Program, connected
from tests.support.started import Running, start
from tests.support.terminal import Terminal
from yolofs.access.answers import Lifetime
from yolofs.daemon.rpc.ask_messages import AnswerParams

pytestmark = pytest.mark.mount


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Program]:
    """Return a session over the machine in which ``secret`` is asked for; for 30 seconds."""
    project = tmp_path / "project"
    (project / "secret").mkdir(parents=True)
    (project / "secret/a").write_text("the secret\n")
    (project / "secret/b").write_text("another\n")
    (project / ".yolofs.toml").write_text('ask_timeout = 30.0\nask_unattended = 30.0\n[rules]\n"secret" = "ask"\n')
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/"):
        yield program


PATIENT = (
    *COMMAND[:-2],
    "-c",
    (
        "import sys; from yolofs.cli import main; from yolofs.cli.run import wait_notice; "
        "wait_notice._GRACE_S = 15.0; sys.exit(main.main(sys.argv[1:]))"
    ),
)
"""For whom an answer comes at once although the machine is busy."""


def patient(asking: Program, *words: str) -> subprocess.Popen[bytes]:
    """Start the same, from cold."""
    return subprocess.Popen(
        [*PATIENT, "run", *words],
        cwd=asking.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def reading(asking: Program, *words: str) -> Running | subprocess.Popen[bytes]:
    """Start a run that reads what is asked for."""
    return start(["run", *words], asking.project)


def test_stderr_says_what_waits_and_the_answer_that_it_names_lets_the_command_go_on(asking: Program) -> None:
    with reading(asking, "cat", "secret/a") as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        assert re.fullmatch(rf"yolofs: run \d+ waits for an answer: read {asking.project}/secret/a\?\n", said)
        how = process.stderr.readline().decode()
        found = re.search(
            r"yolofs answer (\d+) allow\|deny, or yolofs watch; without an answer the wait ends in (\d+) s\n", how
        )
        assert found is not None, how
        assert 20 <= int(found[2]) <= 30
        asking("answer", found[1], "allow")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"the secret\n")
    assert b"waits for an answer" not in err


def test_a_card_says_which_run_has_started_what_asks(asking: Program) -> None:
    asking("run", "true")
    with reading(asking, "cat", "secret/a") as process, connected(asking) as client:
        ask = wait_for_described_ask(client)
        try:
            assert (ask.run, ask.is_started_by_run) == (2, True)
            with Terminal(asking.project, ["watch"]) as watching:
                watching.wait_for("started by")
                assert re.search(r"started by +run 2\b", watching.screen)
                assert "bwrap" not in watching.screen
        finally:
            client.answer(AnswerParams(ask.id, "allow"))
    with reading(asking, "sh", "-c", "cat secret/a; true") as process, connected(asking) as client:
        ask = wait_for_described_ask(client)
        assert (ask.run, ask.is_started_by_run, ask.parent.command[0]) == (3, False, "sh")
        client.answer(AnswerParams(ask.id, "allow"))
        process.communicate(timeout=60)


def test_each_new_wait_of_a_run_is_told_once(asking: Program) -> None:
    with reading(asking, "sh", "-c", "cat secret/a & cat secret/b & wait; cat secret/a") as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        assert re.search(r"secret/[ab]\?( \(and 1 more\))?\n$", said)
        process.stderr.readline().decode()
        with connected(asking) as client:
            asks = wait_for_asks(client, 2)
        for ask in asks:
            asking("answer", str(ask.id), "allow", "--only")
        again = process.stderr.readline().decode()
        assert re.search(r"waits for an answer: read .*/secret/a\?\n$", again), again
        how = process.stderr.readline().decode()
        asking("answer", how.split("yolofs answer ")[1].split()[0], "deny")
        process.communicate(timeout=60)
    assert process.returncode == 1


def test_an_answer_that_comes_at_once_leaves_no_trace(asking: Program) -> None:
    with connected(asking) as client, patient(asking, "cat", "secret/a") as process:
        (ask,) = wait_for_asks(client, 1)
        client.answer(AnswerParams(ask.id, "allow", Lifetime.ALWAYS))  # no command that takes its time to start
        out, err = process.communicate(timeout=60)
    assert out == b"the secret\n"
    assert b"waits for an answer" not in err


def test_without_a_review_stderr_is_the_commands_alone(asking: Program) -> None:
    with reading(asking, "--no-review", "timeout", "4", "cat", "secret/a") as process:
        _, err = process.communicate(timeout=60)
    assert err == b""


def test_a_full_screen_program_is_not_written_into(asking: Program) -> None:
    command = [*COMMAND, "run", "--", "sh", "-c", "stty raw; timeout 4 cat secret/a; stty sane; echo over"]
    with Terminal(asking.project, [], command=["sh", "-c", shlex.join(command)]) as terminal:
        terminal.wait_for("over")
        assert "waits for an answer" not in terminal.screen
        terminal.wait()
