"""Asks of a real daemon: real processes block in the mount, and clients of the control socket
answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import CREATE, READ, READ_MANY, asked_project, reader, settings, wait_for_asks
from tests.support.program import DEADLINE_S, Program, connected, kill, wait_until
from yolofs.access.answers import Lifetime
from yolofs.daemon.rpc.ask_messages import AnswerParams, AnswerResult, AskInfo, EndedInfo
from yolofs.daemon.rpc.protocol import Done, LendParams, LoanKind
from yolofs.errors import AskError, DaemonError, UsageError
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount

KINDS = [pytest.param("secret/a", READ, id="read"), pytest.param("secret/new", CREATE, id="create")]


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    return asked_project(tmp_path)


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def test_an_answer_from_a_script_lets_the_process_go_on(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as waiting, connected(yolofs) as client:
        (ask,) = wait_for_asks(client, 1)
        listed = yolofs("asks").out
        assert f"   1  read {yolofs.project}/secret/a" in listed
        assert f"process {waiting.process.pid}" in listed
        assert f'asked, as {yolofs.project}/secret is "ask" (.yolofs.toml:3)' in listed
        (described,) = yolofs("asks", "--json").json["asks"]
        assert described["path"] == str(yolofs.project / "secret/a")
        assert described["process"]["command"][-1] == str(view / "secret/a")
        assert (described["operation"], described["state"], described["size"]) == ("read", "ask", None)
        assert described["parent"]["pid"] == os.getpid()
        assert described["parent"]["name"] == Path("/proc/self/comm").read_text().rstrip("\n")
        assert yolofs("answer", str(ask.id), "allow").err == "allowed 1\n"
        assert waiting.end() == ("a\n", "")
        assert client.asks() == []
        assert "ask 1 has ended: allowed by yolofs answer" in yolofs.refused("answer", "1", "deny", code=13)


def test_a_denied_access_fails_with_permission_denied(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as waiting, connected(yolofs) as client:
        (ask,) = wait_for_asks(client, 1)
        yolofs("answer", str(ask.id), "deny")
        out, error = waiting.end()
        assert (out, error.partition(": '")[0]) == ("", "PermissionError: [Errno 13] Permission denied")


def test_an_answer_for_once_counts_for_one_access(yolofs: Program, view: Path) -> None:
    with connected(yolofs) as client:
        for number in (1, 2):
            with reader(view / "secret/a") as waiting:
                wait_for_asks(client, 1)
                client.answer(AnswerParams(number, "allow"))
                assert waiting.end() == ("a\n", "")


def test_after_an_answer_for_a_directory_nothing_below_it_is_asked(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/deep/0") as waiting, connected(yolofs) as client:
        (ask,) = wait_for_asks(client, 1)
        yolofs("answer", str(ask.id), "allow", "--session", "--scope", "secret", "--state", "read-only")
        assert waiting.end() == ("0\n", "")
        for number in range(100):
            assert (view / f"secret/deep/{number}").read_text() == f"{number}\n"
        with pytest.raises(PermissionError):
            (view / "secret/a").write_text("")
        assert client.asks() == []


@pytest.mark.parametrize("path", ["secret/deep/{}", "secret/{}/file"])
def test_one_answer_ends_all_asks_of_a_group(yolofs: Program, view: Path, path: str) -> None:
    """In one directory, and in several below the one that the rule is about."""
    paths = [view / path.format(number) for number in range(20)]
    for one in paths:
        beside = yolofs.project / one.relative_to(view)
        beside.parent.mkdir(exist_ok=True)
        beside.touch()
    with reader(*paths, script=READ_MANY) as waiting, connected(yolofs) as client:
        asks = wait_for_asks(client, 20)
        assert {ask.group for ask in asks} == {1}
        assert {ask.process.pid for ask in asks} == {waiting.process.pid}
        assert len(client.answer(AnswerParams(7, "allow")).answered) == 20
        assert waiting.end() == ("all read\n", "")


def test_an_answer_is_for_those_of_a_group_that_were_listed(yolofs: Program, view: Path) -> None:
    """What has joined since nobody has seen."""
    paths = [view / f"secret/deep/{number}" for number in range(4)]
    with reader(*paths, script=READ_MANY) as waiting, connected(yolofs) as client:
        assert {ask.group for ask in wait_for_asks(client, 4)} == {1}
        said = yolofs("answer", "3", "allow").err
        assert said == "allowed 3\nof its group 1, 2, 4 came up since, and still wait: yolofs asks\n"
        yolofs("asks")
        assert yolofs("answer", "4", "allow").err == "allowed 1, 2, 4\n"
        assert waiting.end() == ("all read\n", "")


def test_an_ask_that_a_rule_settles_ends_with_that_rule(yolofs: Program, view: Path) -> None:
    for number, state in enumerate(("deny", "allow"), 1):
        with reader(view / "secret/a") as waiting, connected(yolofs) as client:
            wait_for_asks(client, 1)
            yolofs("rule", state, "secret/a")
            assert (waiting.end()[0] == "a\n") is (state == "allow")
            yolofs("rule", "unset", "secret/a")
        ended = [note for note in notes(yolofs) if note["kind"] == "ask"][-1]
        assert (ended["id"], ended["outcome"]) == (number, "rule")
        by = f"the rule {yolofs.project}/secret/a = {state} (.yolofs/rules.toml:"
        assert ended["by"].startswith(by)


def test_nobody_answers_and_the_default_is_given(yolofs: Program) -> None:
    settings(yolofs, ask_timeout=0.2)
    with yolofs.mounted() as view, reader(view / "secret/a") as waiting:
        assert "PermissionError" in waiting.end()[1]
    settings(yolofs, ask_timeout=0.2, ask_default="allow")
    with yolofs.mounted() as view, reader(view / "secret/a") as waiting:
        assert waiting.end() == ("a\n", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("path", "script"), KINDS)
@pytest.mark.some(2)
def test_a_requester_that_is_killed_goes_and_so_does_its_ask(
    yolofs: Program, view: Path, number: signal.Signals, path: str, script: str
) -> None:
    with reader(view / path, script=script) as waiting, connected(yolofs) as client:
        wait_for_asks(client, 1)
        waiting.process.send_signal(number)
        waiting.end()
        assert waiting.process.returncode in (-number, 1)
        wait_for_asks(client, 0)
        assert "given up by its program" in yolofs.refused("answer", "1", "allow", code=13)


def test_a_thread_can_be_asked_about_and_its_process_killed(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a", view / "secret/deep/1", script=READ_MANY) as waiting, connected(yolofs) as client:
        wait_for_asks(client, 2)
        waiting.process.kill()
        waiting.end()
        wait_for_asks(client, 0)


@pytest.mark.parametrize("options", [(), ("--force",)])
@pytest.mark.parametrize(("path", "script"), KINDS)
@pytest.mark.some(2)
def test_unmounting_answers_all_asks_first(yolofs: Program, path: str, script: str, options: tuple[str, ...]) -> None:
    with yolofs.mounted() as view, reader(view / path, script=script) as waiting:
        with connected(yolofs) as client:
            wait_for_asks(client, 1)
        yolofs("unmount", *options)
        assert "PermissionError" in waiting.end()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize(("path", "script"), KINDS)
@pytest.mark.some(2)
def test_a_daemon_that_is_told_to_end_answers_all_asks_first(
    yolofs: Program, path: str, script: str, number: signal.Signals
) -> None:
    with yolofs.mounted() as view, reader(view / path, script=script) as waiting:
        with connected(yolofs) as client:
            wait_for_asks(client, 1)
        kill(yolofs.daemon["pid"], number)
        assert "PermissionError" in waiting.end()[1]
        assert not os.path.ismount(view)


def test_watchers_hear_of_everything_and_the_first_answer_wins(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as waiting, connected(yolofs) as early, connected(yolofs) as late:
        early.watch()
        seen = early.next_event()
        late.watch()
        assert isinstance(seen, AskInfo)
        late_seen = late.next_event()
        assert isinstance(late_seen, AskInfo)
        assert (late_seen.id, late_seen.path) == (seen.id, seen.path)
        with connected(yolofs) as client:
            assert client.answer(AnswerParams(seen.id, "allow", by="one")).answered == (seen.id,)
            with pytest.raises(AskError, match="ask 1 has ended: allowed by one"):
                client.answer(AnswerParams(seen.id, "deny", by="two"))
        assert waiting.end() == ("a\n", "")
        for watcher in (early, late):
            ended = watcher.next_event()
            assert isinstance(ended, EndedInfo)
            assert (ended.id, ended.outcome, ended.by) == (1, "allowed", f"one, process {os.getpid()}")


def test_two_watchers_that_answer_at_the_same_time_are_both_told(yolofs: Program, view: Path) -> None:
    results: dict[str, object] = {}

    def answer(decision: str, barrier: threading.Barrier) -> None:
        with connected(yolofs) as client:
            barrier.wait(DEADLINE_S)
            try:
                results[decision] = client.answer(AnswerParams(number, decision))
            except AskError as error:
                results[decision] = error

    for number in range(1, 6):
        results.clear()
        barrier = threading.Barrier(2)
        with reader(view / "secret/a") as waiting, connected(yolofs) as client:
            wait_for_asks(client, 1)
            threads = [threading.Thread(target=answer, args=(word, barrier)) for word in ("allow", "deny")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            out, _ = waiting.end()
        assert results["allow" if out else "deny"] == AnswerResult((number,))
        assert isinstance(results["deny" if out else "allow"], AskError)


def test_a_watcher_that_dies_in_the_middle_of_an_answer_changes_nothing(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a") as waiting, connected(yolofs) as client:
        wait_for_asks(client, 1)
        with connected(yolofs) as dying:
            dying.watch()
            dying._socket.sendall(b'{"jsonrpc":"2.0","id":2,"method":"answer","params":{"id":1,"decision":"allow"}}')
        assert len(client.asks()) == 1
        assert waiting.process.poll() is None
        client.answer(AnswerParams(1, "deny"))
        assert "PermissionError" in waiting.end()[1]


def test_watchers_that_go_away_in_the_middle_of_everything_are_nothing_to_worry_about(
    yolofs: Program, view: Path
) -> None:
    watch = b'{"jsonrpc":"2.0","id":1,"method":"watch"}\n'
    for start in range(0, 100, 20):
        paths = [view / f"secret/deep/{number}" for number in range(start, start + 20)]
        with reader(*paths, script=READ_MANY) as waiting, connected(yolofs) as client:
            leavers = [connected(yolofs) for _ in range(10)]
            for number, leaver in enumerate(leavers):
                with leaver as leaving:
                    leaving._socket.sendall(watch * (number + 1))
                    answers = (b'{"jsonrpc":"2.0","id":3,"method":"asks"}\n', watch, watch[:-9])
                    leaving._socket.sendall(answers[number % 3])
            while waiting.process.poll() is None:
                for ask in client.asks():
                    with contextlib.suppress(AskError):
                        client.answer(AnswerParams(ask.id, "allow", only=True))
            assert waiting.end() == ("all read\n", "")


def test_a_watcher_hears_of_the_end(yolofs: Program) -> None:
    with yolofs.mounted(), connected(yolofs) as client:
        client.watch()
        yolofs("unmount")
        with pytest.raises(DaemonError):
            client.next_event()


def test_an_answer_that_makes_no_sense_is_refused(yolofs: Program, view: Path) -> None:
    with reader(view / "secret/a"), connected(yolofs) as client:
        wait_for_asks(client, 1)
        for params in (
            AnswerParams(1, "yes"),
            AnswerParams(1, "allow", scope="/"),
            AnswerParams(1, "allow", Lifetime.SESSION, "secret"),
            AnswerParams(1, "allow", Lifetime.SESSION, "/a/../b"),
            AnswerParams(1, "allow", Lifetime.SESSION, "/etc"),
            AnswerParams(1, "allow", Lifetime.SESSION, None, RuleState.DENY),
        ):
            with pytest.raises(UsageError):
                client.answer(params)
        with pytest.raises(AskError):
            client.answer(AnswerParams(2, "allow"))
        message = yolofs.refused("answer", "1", "allow", "--session", "--scope", "", code=2)
        assert "an empty path means nothing" in message
        assert len(client.asks()) == 1
    assert "exclude each other" in yolofs.refused("answer", "1", "allow", "--session", "--always", code=2)


HOLD = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, b"held")
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["ask", "deny"])
def test_a_snapshot_asks_nothing_about_what_is_open_and_is_refused_nothing(
    yolofs: Program, view: Path, state: str
) -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", HOLD, view / "secret/a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder,
        connected(yolofs) as client,
    ):
        try:
            wait_for_asks(client, 1)
            client.answer(AnswerParams(1, "allow"))
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"open\n"
            if state == "deny":
                with reader(view / "secret/a") as waiting:
                    wait_for_asks(client, 1)
                    client.answer(AnswerParams(2, "deny", Lifetime.SESSION))
                    waiting.end()
            client.snapshot(b"meanwhile", if_changed=False)
            assert client.asks() == []
            assert not [note for note in notes(yolofs) if note["process"]["pid"] == client.pid]
        finally:
            holder.kill()


def test_while_the_session_is_lent_an_answer_changes_nothing(yolofs: Program, view: Path) -> None:
    journal = yolofs.session / "journal"
    with reader(view / "secret/new", script="import sys; open(sys.argv[1], 'x').close()") as waiting:
        with connected(yolofs) as client, connected(yolofs) as borrower:
            wait_for_asks(client, 1)
            before = journal.read_bytes()
            with borrower.lend(LoanKind.COMMIT):
                client.answer(AnswerParams(1, "allow"))
                with pytest.raises(subprocess.TimeoutExpired):
                    waiting.process.wait(0.5)
                assert journal.read_bytes() == before
        assert waiting.end() == ("", "")
    assert (view / "secret/new").exists()


def test_a_mount_can_end_while_the_session_is_lent_and_somebody_has_been_answered(yolofs: Program) -> None:
    with yolofs.mounted() as view, reader(view / "secret/a") as waiting, connected(yolofs) as client:
        wait_for_asks(client, 1)
        with connected(yolofs) as borrower:
            borrower._call("lend", LendParams(LoanKind.COMMIT), Done)
            client.answer(AnswerParams(1, "allow"))
            os.kill(yolofs.daemon["pid"], signal.SIGTERM)
        waiting.end()
        wait_until(lambda: not os.path.ismount(view), "unmounted")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may abort a mount that is in use")
def test_an_answer_that_nobody_waits_for_any_more_is_nothing_to_worry_about(yolofs: Program) -> None:
    """The kernel takes its requests back when a mount ends; ``mounted`` fails if the log has more
    than information.
    """
    with yolofs.mounted() as view, reader(view / "secret/a") as waiting, connected(yolofs) as client:
        wait_for_asks(client, 1)
        subprocess.run(["umount", "-f", view], stderr=subprocess.DEVNULL, check=False)  # aborts; EBUSY
        assert "Software caused connection abort" in waiting.end()[1]
        wait_until(lambda: " INFO yolofs.daemon: ended" in yolofs.log, "the end")


def test_the_number_of_an_ask_never_means_another_one(yolofs: Program) -> None:
    """Also after the view was mounted anew: an answer that comes late is to no question."""
    for number in (1, 2):
        with yolofs.mounted() as view, reader(view / "secret/a") as waiting, connected(yolofs) as client:
            (ask,) = wait_for_asks(client, 1)
            assert ask.id == number
            if number == 2:
                assert "there is no ask 1" in yolofs.refused("answer", "1", "allow", code=13)
            yolofs("unmount", "--force")
            waiting.end()


def notes(yolofs: Program) -> list[dict[str, Any]]:
    """Return what the audit says of asks and refusals."""
    found = map(json.loads, (yolofs.session / "audit.jsonl").read_bytes().splitlines())
    return [note for note in found if note["kind"] in ("ask", "refusal")]


def test_names_that_are_no_text_can_be_asked_about_and_answered(yolofs: Program, view: Path) -> None:
    name = b"\xff\x1b[2J\n"
    (yolofs.project / "secret" / os.fsdecode(name)).write_text("odd\n")
    with reader(view / "secret" / os.fsdecode(name)) as waiting:
        with connected(yolofs) as client:
            wait_for_asks(client, 1)
        listed = yolofs("asks").out
        assert f'read "{yolofs.project}/secret/\\377\\033[2J\\n"' in listed
        assert "\x1b" not in listed
        yolofs("answer", "1", "allow", "--session", "--scope", os.path.join(b"secret", name))
        assert waiting.end() == ("odd\n", "")


def test_a_scope_that_is_a_link_is_what_it_leads_to(yolofs: Program, view: Path) -> None:
    (yolofs.project / "way").symlink_to("secret")
    (yolofs.project / "elsewhere").symlink_to("free")
    with reader(view / "secret/a") as waiting:
        with connected(yolofs) as client:
            wait_for_asks(client, 1)
        yolofs("asks")
        said = yolofs.refused("answer", "1", "allow", "--session", "--scope", "elsewhere", code=2)
        assert f"{yolofs.project}/free is neither {yolofs.project}/secret/a nor above it" in said
        yolofs("answer", "1", "allow", "--session", "--scope", "way")
        assert waiting.end() == ("a\n", "")
    assert yolofs("rule", "explain", "secret", "--json").json["rule"]["source"] == "an answer in this session"


def test_an_answer_that_hides_what_is_beside_the_asked_path_ends_the_ask(yolofs: Program, view: Path) -> None:
    for name in ("secret/a", "secret/deep/7"):
        os.stat(view / name)
    with reader(view / "secret/new", script=CREATE) as waiting, connected(yolofs) as client:
        wait_for_asks(client, 1)
        yolofs("answer", "1", "deny", "--session", "--scope", "secret", "--state", "hidden")
        waiting.end()
        assert client.asks() == []
    assert not (view / "secret").exists()


APPEND = "import sys; open(sys.argv[1], 'a').write('more\\n')"


def test_whoever_changes_a_file_with_names_that_are_not_found_is_asked_once(yolofs: Program, tmp_path: Path) -> None:
    """The file's own rule lets it, so it settles nothing."""
    os.link(yolofs.project / "free", tmp_path / "outside")
    with yolofs.mounted() as view, connected(yolofs) as client:
        for decision, content in (("deny", "free\n"), ("allow", "free\nmore\n")):
            with reader(view / "free", script=APPEND) as waiting:
                (ask,) = wait_for_asks(client, 1)
                assert "other names (hard links)" in yolofs("asks").out
                yolofs("rule", "deny", "elsewhere")  # everything that waits is judged anew, and stays open
                assert [one.id for one in client.asks()] == [ask.id]
                yolofs("answer", str(ask.id), decision)
                assert waiting.end()[1].startswith("PermissionError" if decision == "deny" else "")
                assert client.asks() == []
            assert (view / "free").read_text() == content


def test_a_rule_for_the_very_file_is_an_answer_for_names_that_are_not_found(yolofs: Program, tmp_path: Path) -> None:
    os.link(yolofs.project / "free", tmp_path / "outside")
    with yolofs.mounted() as view, connected(yolofs) as client:
        with reader(view / "free", script=APPEND) as waiting:
            (ask,) = wait_for_asks(client, 1)
            yolofs("answer", str(ask.id), "allow", "--always")
            assert waiting.end() == ("", "")
        yolofs("abort", "--yes")
        with reader(view / "free", script=APPEND) as waiting:
            assert waiting.end() == ("", "")
        assert client.asks() == []


def test_a_thousand_asks_do_not_hold_up_other_files(yolofs: Program, view: Path) -> None:
    for number in range(1000):
        (yolofs.project / f"secret/{number}").touch()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(connected(yolofs))
        for start in range(0, 1000, 250):
            paths = [view / f"secret/{number}" for number in range(start, start + 250)]
            stack.enter_context(reader(*paths, script=READ_MANY))
        wait_for_asks(client, 1000)
        for number in range(200):
            (view / f"new{number}").write_text("x")
            assert (view / "free").read_text() == "free\n"
        assert len(client.asks()) == 1000
        groups = {ask.group for ask in client.asks()}
        answered = [client.answer(AnswerParams(group, "allow")).answered for group in groups]
        assert sum(map(len, answered)) == 1000
