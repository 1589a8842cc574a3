"""Notes stand in the log where they belong among the records: before what they allowed, and in no
other journal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import CREATE, Reader, reader, settings, wait_for_asks
from tests.support.program import Program, connected, wait_until
from tests.support.watching import alone
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.rules import PathRule, RuleState
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.mount

CREATE_MANY = """
import sys
for number in range(int(sys.argv[2])):
    open(f"{sys.argv[1]}/{number}", "x").close()
"""
TRY_ON_AND_ON = """
import itertools, os, sys
print(flush=True)
for number in itertools.count():
    try:
        os.close(os.open(sys.argv[1].replace("N", str(number % 5)).replace("M", str(number)), os.O_WRONLY | os.O_CREAT))
    except OSError:
        pass
"""


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Make a project with what is asked about, and with five directories that are closed."""
    project = tmp_path / "p"
    for name in ("secret", *(f"closed{number}" for number in range(5))):
        (project / name).mkdir(parents=True)
    program = Program(project)
    program.start_session()
    settings(program)
    with (project / ".yolofs.toml").open("a") as file:
        file.writelines(f'"closed{number}" = "deny"\n' for number in range(5))
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


@contextmanager
def trying(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process open ``path`` for writing on and on; an N in it counts to five, an M goes on
    counting.
    """
    with subprocess.Popen([sys.executable, "-c", TRY_ON_AND_ON, path], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextmanager
def lent(yolofs: Program) -> Iterator[Session]:
    """Borrow the session for a commit."""
    project = os.fsencode(yolofs.project)
    with (
        connected(yolofs) as client,
        client.lend(LoanKind.COMMIT),
        Session.open(project, SessionAccess.LENT) as session,
    ):
        yield session


def create(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def wait_for_more(directory: Path, count: int) -> int:
    """Wait until there are more than ``count`` files, and return how many there are."""
    wait_until(lambda: len(os.listdir(directory)) > count, f"more than {count} files")
    return len(os.listdir(directory))


def logged(yolofs: Program) -> list[dict[str, Any]]:
    """Return what is logged since the last commit."""
    records: list[dict[str, Any]] = yolofs("log", "--json").json["records"]
    return [record for record in records if "commit" not in record]


def kinds_of(records: list[dict[str, Any]]) -> list[str]:
    return [record["kind"] for record in records]


def test_what_was_refused_just_before_a_commit_is_noted_with_the_journal_that_it_ends(
    yolofs: Program, view: Path
) -> None:
    create(view, "one", "two")
    with trying(view / "closedN/new") as process:
        wait_until(lambda: (yolofs.session / "audit.jsonl").exists(), "refusals")
        with lent(yolofs) as session:
            process.kill()  # its last request is not served any more
            process.wait()
            commit(session)
    create(view, "three", "four", "five", "six")
    assert kinds_of(logged(yolofs)) == ["stage"] * 4


def test_what_is_noted_while_a_commit_ends_the_journal_stands_before_all_records_of_the_next_one(
    yolofs: Program, view: Path
) -> None:
    create(view, "one", "two")
    with reader(view / "secret/new", script=CREATE) as blocked, connected(yolofs) as client:
        wait_for_asks(client, 1)
        with lent(yolofs) as session:
            commit(session)
            yolofs("answer", "1", "deny")
            yolofs("rule", "deny", "other")
        blocked.end()
    create(view, "three", "four", "five", "six")
    assert kinds_of(logged(yolofs)) == ["ask", "rule", *["stage"] * 4]


def test_after_a_loan_notes_have_their_place_among_the_records_again(yolofs: Program, view: Path) -> None:
    create(view, "one", "two")
    with lent(yolofs):
        pass
    create(view, "three")
    yolofs("rule", "deny", "other")
    yolofs("commit", "--yes")
    create(view, "four")
    yolofs("rule", "deny", "more")
    audit = map(json.loads, (yolofs.session / "audit.jsonl").read_bytes().splitlines())
    assert [note.get("records") for note in audit] == [3, None, 1]


def test_the_log_has_each_ask_before_the_record_that_it_allowed(yolofs: Program, view: Path) -> None:
    with alone(yolofs, "--allow-all"):
        assert Reader(view / "secret", Path("200"), script=CREATE_MANY).end() == ("", "")
        wait_until(lambda: len(logged(yolofs)) == 400, "the last note")
    paths = [(record["kind"], record["path"]) for record in logged(yolofs)]
    expected = [str(yolofs.project / f"secret/{number}") for number in range(200)]
    assert paths == [(kind, path) for path in expected for kind in ("ask", "stage")]


def test_a_rule_stands_between_what_it_refused_and_what_it_allowed(yolofs: Program, view: Path) -> None:
    key = bytes(yolofs.project / "closed0")
    made = -1
    with trying(view / "closed0/M"), connected(yolofs) as client:
        for _ in range(10):
            client.set_rule(PathRule(key, RuleState.ALLOW, ""), lasting=False)
            made = wait_for_more(view / "closed0", made)
            client.set_rule(PathRule(key, RuleState.DENY, ""), lasting=False)
    states: list[str] = []
    for record in logged(yolofs):
        if record["kind"] == "rule":
            states.append(record["state"])
        elif record["kind"] == "stage":
            assert states[-1:] == ["allow"]
    assert states == ["allow", "deny"] * 10


def test_a_clock_that_was_set_back_does_not_move_what_was_noted(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for number in range(4):
            create(view, str(number))
            yolofs("rule", "deny", f"other{number}")
    path = yolofs.session / "audit.jsonl"
    notes = [json.loads(line) for line in path.read_bytes().splitlines()]
    for note in notes[2:]:
        note["time_ns"] -= 3600 * 10**9
    path.write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    assert kinds_of(logged(yolofs)) == ["stage", "rule"] * 4
