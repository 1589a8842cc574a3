"""What is asked where nobody watches does not hold a run up for long, and says how it is allowed
the next time.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.asking import reader, wait_for_asks
from tests.support.program import Program, connected, replace_text, stop, wait_until
from tests.support.started import start
from tests.support.terminal import Terminal
from yolofs.daemon.rpc.ask_messages import AnswerParams
from yolofs.daemon.rpc.client import Client

pytestmark = pytest.mark.mount

SETTINGS = "ask_timeout = 600.0\nask_unattended = {}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home directory for the user's own settings."""
    home = tmp_path / "home"
    (home / ".config/yolofs").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def asking(tmp_path: Path, home: Path) -> Iterator[Program]:
    with session(tmp_path) as program:
        yield program


@contextmanager
def session(tmp_path: Path, *expected_in_log: str) -> Iterator[Program]:
    """Mount a session over the machine in which ``secret`` is asked for."""
    project = tmp_path / "project"
    (project / "secret").mkdir(parents=True)
    (project / "secret/a").write_text("the secret\n")
    (project / "secret/b b").write_text("another\n")
    (project / ".yolofs.toml").write_text(SETTINGS.format(0.2) + '[rules]\n"secret" = "ask"\n')
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/", expected_in_log=expected_in_log):
        yield program


def wait_unattended(program: Program, calls: Client, seconds: float) -> None:
    """Have asks that nobody watches wait for so long from now on."""
    path = program.project / ".yolofs.toml"
    replace_text(path, path.read_text().replace("ask_unattended = 0.2", f"ask_unattended = {seconds}"))
    calls.reload_rules()


def asks_in(program: Program) -> list[tuple[str, str]]:
    audit = program.session / "audit.jsonl"
    notes = map(json.loads, audit.read_text().splitlines() if audit.exists() else ())
    return [(note["outcome"], note["by"]) for note in notes if note["kind"] == "ask"]


def test_an_ask_gets_the_default_soon_once_for_a_path_and_the_summary_says_what_allows_it(asking: Program) -> None:
    done = asking("run", "sh", "-c", "cat secret/a; cat secret/a; cat 'secret/b b'; echo x > secret/new; true")
    assert done.out == ""
    assert asks_in(asking) == [("timeout", "nobody, as nobody watches")] * 3
    lines = done.err.splitlines()
    at = lines.index("nobody watches, so 3 asks had no answer; to allow them next time:")
    commands = lines[at + 1 :]
    assert commands == [
        f"  yolofs rule read-only {asking.project}/secret/a",
        f"  yolofs rule read-only '{asking.project}/secret/b b'",
        f"  yolofs rule allow {asking.project}/secret/new",
    ]
    for command in commands:
        asking(*shlex.split(command)[1:])
    assert asking("run", "sh", "-c", "cat secret/a 'secret/b b'; echo x > secret/new").out == "the secret\nanother\n"


def test_what_allows_a_path_allows_too_what_was_refused_there_after_the_ask(asking: Program) -> None:
    done = asking("run", "sh", "-c", "cat secret/a; echo x >> secret/a; true")
    command = done.err.splitlines()[-1]
    assert command == f"  yolofs rule allow {asking.project}/secret/a"
    asking(*shlex.split(command)[1:])
    assert asking("run", "sh", "-c", "cat secret/a; echo x >> secret/a; cat secret/a").out == (
        "the secret\nthe secret\nx\n"
    )


def test_what_the_default_allowed_is_said_to_be_and_no_offered_rule_refuses_what_was_done(
    asking: Program,
) -> None:
    path = asking.project / ".yolofs.toml"
    replace_text(path, 'ask_default = "allow"\n' + path.read_text())
    asking.trust()
    script = "cat secret/a; echo x >> secret/a; cat 'secret/b b'; echo x > secret/new"
    done = asking("run", "sh", "-c", script)
    lines = done.err.splitlines()
    at = lines.index(
        "nobody watches, so 3 asks had no answer and were allowed (ask_default); "
        "to allow them without an ask next time:"
    )
    commands = lines[at + 1 :]
    assert commands == [
        f"  yolofs rule write-ask {asking.project}/secret/a",
        f"  yolofs rule write-ask '{asking.project}/secret/b b'",
        f"  yolofs rule allow {asking.project}/secret/new",
    ]
    assert f"read {asking.project}/secret/a, cat" in done.err
    assert done.err.count(": not answered, as nobody watches, so allowed (0.2 s)") == 3
    for command in commands:
        asking(*shlex.split(command)[1:])
    done = asking("run", "sh", "-c", script)
    assert done.out == "the secret\nx\nanother\n"
    assert done.err.splitlines()[-1] == f"  yolofs rule allow {asking.project}/secret/a"  # one ask is left: to write
    asking("rule", "allow", asking.project / "secret/a")
    assert "asked or refused" not in asking("run", "sh", "-c", script).err


def test_a_refusal_because_of_names_that_are_not_known_says_so(asking: Program, tmp_path: Path) -> None:
    """And not that the rule of the path allows it."""
    for number in range(6_000):  # more than are looked at for other names
        (asking.project / f"{number}").touch()
    (tmp_path / "elsewhere").mkdir()
    linked = asking.project / "z/linked"
    linked.parent.mkdir()
    linked.write_text("x\n")
    (tmp_path / "elsewhere/name").hardlink_to(linked)
    done = asking("run", "sh", "-c", "echo 1 > z/linked; echo 2 > z/linked; true")
    (line,) = [line for line in done.err.splitlines() if line.startswith("  refusal  ")]
    assert line.startswith(f"  refusal  write {linked}, sh ")
    assert line.endswith(": the file has other names (hard links) that were not found, and rules may be about these")
    asking("rule", "allow", linked)
    asking("run", "sh", "-c", "echo 3 > z/linked")
    assert linked.read_text() == "x\n"
    assert "+3" in asking("diff", "--", "z/linked").out


def test_what_is_said_leads_to_a_link_in_a_directory_that_is_asked_about(asking: Program) -> None:
    """A rule for its very path does not: the rule would follow the link."""
    script = "ln -s a secret/link"
    for code in (1, 1, 0):
        told = asking("run", "sh", "-c", script, code=code).err
        for line in told.splitlines():
            for command in line.split(" && ") if line.startswith("  yolofs rule ") else ():
                asking(*shlex.split(command)[1:])
    assert Path(f"{asking.daemon['mountpoint']}{asking.project}/secret/link").readlink() == Path("a")


def test_no_rule_for_a_directory_outside_the_project_is_offered_for_a_link(asking: Program) -> None:
    """It may be all of somebody's home."""
    outside = asking.project.parent / "outside"
    outside.mkdir()
    asking("rule", "allow", str(outside / "link"))
    told = asking("run", "ln", "-s", "a", str(outside / "link"), code=1).err
    assert f"a rule for its directory allows it:\n  {outside}/link\n" in told
    assert f"rule allow {outside}\n" not in told


def test_what_somebody_did_not_answer_in_time_is_told_with_what_allows_it(asking: Program) -> None:
    path = asking.project / ".yolofs.toml"
    replace_text(path, path.read_text().replace("ask_timeout = 600.0", "ask_timeout = 0.3"))
    with connected(asking) as watching:
        watching.reload_rules()
        watching.watch()
        done = asking("run", "cat", "secret/a", code=1)
    assert asks_in(asking) == [("timeout", "nobody")]
    allow = f"  yolofs rule read-only {asking.project}/secret/a"
    assert done.err.splitlines()[-2:] == ["1 ask had no answer in time; to allow it next time:", allow]


def test_no_note_has_the_command_line_of_what_makes_the_sandbox(asking: Program) -> None:
    said = json.loads(asking("run", "--json", "cat", "secret/a", code=1).err.splitlines()[-1])
    (note,) = said["notes"]
    assert note["process"]["command"] == ["cat", "secret/a"]
    assert (note["parent"]["command"], note["process"]["run"]) == ([], said["run"])
    asking("run", "sh", "-c", "cat secret/a; true")
    notes = (asking.session / "audit.jsonl").read_text()
    assert "--unshare" not in notes
    (inside,) = [note for note in map(json.loads, notes.splitlines()) if note["kind"] == "ask" and note["id"] == 2]
    assert inside["process"]["parent_command"][0] == "sh"


def test_the_same_access_in_another_run_is_asked_about_again(asking: Program) -> None:
    for _ in range(2):
        asking("run", "cat", "secret/a", code=1)
    assert len(asks_in(asking)) == 2


def test_where_somebody_watches_a_run_waits_for_the_answer(asking: Program) -> None:
    words = ["run", "cat", "secret/a"]
    with connected(asking) as watching, connected(asking) as calls:
        watching.watch()
        with start(words, asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            assert ask.left_ms > 500_000
            calls.answer(AnswerParams(ask.id, "allow"))
            out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"the secret\n")


def test_an_ask_waits_for_a_person_at_the_terminal_of_the_run_whose_title_says_so(asking: Program) -> None:
    full_screen = (
        "import sys, termios, tty; before = termios.tcgetattr(0); tty.setraw(0); "
        "text = open('secret/a').read(); termios.tcsetattr(0, termios.TCSANOW, before); print('got', text)"
    )
    with Terminal(asking.project, ["run", sys.executable, "-c", full_screen]) as terminal, connected(asking) as calls:
        (ask,) = wait_for_asks(calls, 1)
        assert ask.left_ms > 500_000
        terminal.wait_for("yolofs: 1 question\x07")
        assert "\x1b[22;0t\x1b]0;yolofs: 1 question\x07" in terminal.seen
        assert "waits for an answer" not in terminal.seen
        calls.answer(AnswerParams(ask.id, "allow"))
        terminal.wait_for("got the secret")
        assert terminal.wait() == 0
        assert "\x1b]0;\x07\x1b[23;0t" in terminal.seen


@pytest.mark.parametrize("terminal_type", ["xterm", "dumb"])
def test_a_watcher_that_is_stopped_counts_as_nobody_until_it_goes_on(asking: Program, terminal_type: str) -> None:
    with Terminal(asking.project, ["watch"], TERM=terminal_type) as terminal, connected(asking) as calls:
        terminal.wait_for("nothing waits")
        stop(terminal.process.pid)
        done = asking("run", "cat", "secret/a", code=1)
        assert asks_in(asking) == [("timeout", "nobody, as nobody watches")]
        assert "nobody watches, so 1 ask had no answer" in done.err
        asking("run", "cat", "secret/a", code=1)  # it does not wait for the stopped one again
        wait_unattended(asking, calls, 300.0)  # for as long as the watcher may take to go on
        with start(["run", "cat", "secret/b b"], asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            assert ask.left_ms <= 300_000
            os.kill(terminal.process.pid, signal.SIGCONT)
            wait_until(lambda: calls.asks()[0].left_ms > 500_000, "it is seen")
            calls.answer(AnswerParams(ask.id, "allow"))
            assert process.communicate(timeout=60)[0] == b"another\n"


def test_a_watcher_that_comes_gives_an_ask_its_full_time_until_it_leaves(asking: Program) -> None:
    words = ["run", "cat", "secret/a"]
    with connected(asking) as calls:
        wait_unattended(asking, calls, 300.0)
        with start(words, asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            assert ask.left_ms <= 300_000
            with connected(asking) as watching:
                watching.watch(run=7)  # which is another run
                assert wait_for_asks(calls, 1)[0].left_ms <= 300_000
                watching.watch()
                assert wait_for_asks(calls, 1)[0].left_ms > 300_000
            wait_until(lambda: wait_for_asks(calls, 1)[0].left_ms <= 300_000, "the watcher has gone")
            calls.answer(AnswerParams(ask.id, "deny"))
            process.communicate(timeout=60)


def test_an_ask_outside_of_runs_has_its_full_time(asking: Program) -> None:
    view = Path(asking.daemon["mountpoint"]) / str(asking.project)[1:]
    with subprocess.Popen(["cat", view / "secret/a"], stdout=subprocess.PIPE) as process, connected(asking) as calls:
        (ask,) = wait_for_asks(calls, 1)
        assert ask.left_ms > 500_000
        calls.answer(AnswerParams(ask.id, "allow"))
        assert process.communicate(timeout=60)[0] == b"the secret\n"


def test_the_watch_rings_the_bell(asking: Program) -> None:
    for term in ("xterm", "dumb"):
        with Terminal(asking.project, ["watch"], TERM=term) as terminal:
            wait_until(lambda: asking("asks", "--json").json is not None, "the daemon answers")
            with start(["run", "cat", "secret/a"], asking.project) as process:
                terminal.wait_for("secret/a")
                assert "\x07" in terminal.seen
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


def test_notify_gets_the_ask_as_json_and_gives_time_to_answer(asking: Program, home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = f'cat > {told}.new; echo "$YOLOFS_ASK" > {told}.text; mv {told}.new {told}'
    replace_text(home / ".config/yolofs/config.toml", f"notify = '''{command}'''\n")
    with connected(asking) as calls:
        calls.reload_rules()
        with start(["run", "cat", "secret/a"], asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            wait_until(told.exists, "the command has been run")
            assert ask.left_ms > 500_000
            document = json.loads(told.read_text())
            assert document["id"] == ask.id
            assert document["path"] == f"{asking.project}/secret/a"
            assert document["text"] == f"read {asking.project}/secret/a?"
            assert document["run"] == 1
            assert (tmp_path / "told.text").read_text() == f"read {asking.project}/secret/a?\n"
            words = shlex.split(document["answer"].replace("allow|deny", "allow"))
            asking(*words[1:])
            assert process.communicate(timeout=60)[0] == b"the secret\n"


def test_a_command_that_was_just_replaced_is_not_run_any_more(asking: Program, home: Path, tmp_path: Path) -> None:
    """Also if an ask comes before the daemon has heard of the change."""
    told, config = tmp_path / "told", home / ".config/yolofs/config.toml"
    view = Path(asking.daemon["mountpoint"]) / str(asking.project)[1:]
    expected = []
    replace_text(config, "notify = 'true'\n")
    with connected(asking) as calls:
        calls.reload_rules()
    for number in range(10):
        replace_text(config, f"notify = 'echo {number} >> {told}'\n")
        with reader(view / "secret/a") as blocked, connected(asking) as calls:
            (ask,) = wait_for_asks(calls, 1)
            expected.append(str(number))
            wait_until(lambda: told.exists() and len(told.read_text().split()) >= len(expected), "it has been run")
            assert told.read_text().split() == expected
            calls.answer(AnswerParams(ask.id, "deny"))
            blocked.end()


def test_whoever_was_notified_and_did_not_answer_holds_a_run_up_once_until_an_answer_comes(
    asking: Program, home: Path
) -> None:
    settings = asking.project / ".yolofs.toml"

    def wait_for_answers(timeout_s: float, unattended_s: float) -> None:
        old = settings.read_text().partition("[rules]")
        settings.write_text(f"ask_timeout = {timeout_s}\nask_unattended = {unattended_s}\n[rules]{old[2]}")

    replace_text(home / ".config/yolofs/config.toml", "notify = 'true'\n")
    wait_for_answers(1.0, 0.2)
    for_go = "while ! [ -e go ]; do sleep 0.05; done"
    script = f"cat secret/a; cat secret/a; echo x > secret/x; {for_go}; cat 'secret/b b'; cat secret/a"
    with connected(asking) as calls:
        calls.reload_rules()
        with start(["run", "sh", "-c", script], asking.project) as process:
            wait_until(lambda: len(asks_in(asking)) == 2, "nobody has answered")
            assert asks_in(asking) == [("timeout", "nobody"), ("timeout", "nobody, as nobody watches")]
            wait_for_answers(600.0, 300.0)
            calls.reload_rules()
            (asking.project / "go").touch()
            (ask,) = wait_for_asks(calls, 1)
            assert ask.path.endswith("/b%20b")
            assert ask.left_ms <= 300_000
            calls.answer(AnswerParams(ask.id, "allow"))
            wait_until(lambda: any(ask.path.endswith("/a") for ask in calls.asks()), "it is asked about again")
            (ask,) = calls.asks()
            assert ask.left_ms > 500_000
            calls.answer(AnswerParams(ask.id, "allow"))
            assert process.communicate(timeout=60)[0] == b"another\nthe secret\n"
    other = start(["run", "cat", "secret/a"], asking.project)
    with other as process, connected(asking) as calls:
        (ask,) = wait_for_asks(calls, 1)
        assert ask.left_ms > 500_000
        calls.answer(AnswerParams(ask.id, "deny"))
        process.communicate(timeout=60)


def test_a_command_that_fails_has_told_nobody(home: Path, tmp_path: Path) -> None:
    config, mended = home / ".config/yolofs/config.toml", tmp_path / "mended"
    replace_text(config, f"notify = 'test -e {mended}'\n")
    problem = "notify: the command ended with exit code 1, so nobody is told of asks"
    with session(tmp_path, problem) as asking, connected(asking) as calls:
        done = asking("run", "sh", "-c", "cat secret/a; cat 'secret/b b'; true")  # which would be twenty minutes
        assert asks_in(asking) == [("timeout", "nobody, as nobody watches")] * 2
        assert "nobody watches, so 2 asks had no answer" in done.err
        assert problem in asking("status").err
        mended.touch()
        settings = asking.project / ".yolofs.toml"
        replace_text(settings, settings.read_text().replace("ask_unattended = 0.2", "ask_unattended = 300.0"))
        calls.reload_rules()
        with start(["run", "cat", "secret/a"], asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            wait_until(lambda: calls.asks()[0].left_ms > 500_000, "somebody is told again")
            calls.answer(AnswerParams(ask.id, "allow"))
            assert process.communicate(timeout=60)[0] == b"the secret\n"
        assert "notify" not in asking("status").err


@pytest.mark.parametrize(("number", "name"), [("KILL", "SIGKILL"), ("40", "signal 40")])
def test_a_command_that_a_signal_ends_is_told_with_the_signals_name(
    home: Path, tmp_path: Path, number: str, name: str
) -> None:
    replace_text(home / ".config/yolofs/config.toml", f"notify = 'kill -{number} $$'\n")
    problem = f"notify: the command was ended by {name}, so nobody is told of asks"
    with session(tmp_path, problem) as asking:
        asking("run", "cat", "secret/a", code=1)
        assert problem in asking("status").err


def test_a_run_is_told_how_long_it_waits_still_where_the_command_fails_that_tells_somebody(
    home: Path, tmp_path: Path
) -> None:
    replace_text(home / ".config/yolofs/config.toml", "notify = 'false'\n")
    problem = "notify: the command ended with exit code 1, so nobody is told of asks"
    with session(tmp_path, problem) as asking, connected(asking) as calls:
        wait_unattended(asking, calls, 50.0)
        with start(["run", "cat", "secret/a"], asking.project) as process:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, b"")
            line = next(line for line in lines if b"the wait ends in" in line)
            (ask,) = calls.asks()
            calls.answer(AnswerParams(ask.id, "deny"))
            process.communicate(timeout=60)
    assert int(line.split()[-2]) <= 50


def test_a_run_is_never_told_of_a_wait_of_no_seconds(home: Path, tmp_path: Path) -> None:
    with session(tmp_path) as asking, connected(asking) as calls:
        said = ""
        wait_unattended(asking, calls, 1.9)  # the run is told after a second and a half
        for _ in range(5):
            said = asking("run", "cat", "secret/a", code=1).err
            if "the wait ends in" in said:  # a slow machine tells too late, and so nothing
                break
    assert "without an answer the wait ends in 1 s\n" in said


def test_what_the_command_has_started_ends_with_it(home: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    replace_text(home / ".config/yolofs/config.toml", f"notify = 'sleep 1000 & echo $! > {started}; wait'\n")
    with session(tmp_path) as asking, start(["run", "cat", "secret/a"], asking.project) as process:
        wait_until(lambda: started.exists() and started.read_text().endswith("\n"), "the command is at work")
        with connected(asking) as calls:
            (ask,) = wait_for_asks(calls, 1)
            calls.answer(AnswerParams(ask.id, "deny"))
        process.communicate(timeout=60)
    wait_until(lambda: not Path(f"/proc/{started.read_text().strip()}").exists(), "it has ended with the daemon")


def test_what_the_command_has_left_in_the_background_ends_with_the_daemon(home: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = f"sh -c 'sleep 1000 & echo $! >> {started}; exec sleep 1001' & sleep 0.2; echo $! >> {started}"
    replace_text(home / ".config/yolofs/config.toml", f'notify = "{command}"\n')
    with session(tmp_path) as asking:
        for file in ("a", "b b"):
            with start(["run", "cat", f"secret/{file}"], asking.project) as process:
                with connected(asking) as calls:
                    (ask,) = wait_for_asks(calls, 1)
                    wait_until(lambda: started.exists() and started.read_text().count("\n") in (2, 4), "it has ended")
                    calls.answer(AnswerParams(ask.id, "deny"))
                process.communicate(timeout=60)
        left = [int(word) for word in started.read_text().split()]
        assert all(map(lives, left))
    wait_until(lambda: not any(map(lives, left)), "all of it has ended with the daemon")


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_path_cannot_become_a_part_of_the_command(asking: Program, home: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    name = f"$(touch {trap.name}); touch {trap.name} #'\"`touch {trap.name}`".replace("/", "_")
    (asking.project / "secret" / name).write_text("x")
    told = tmp_path / "told"
    replace_text(home / ".config/yolofs/config.toml", f"notify = '''cd {tmp_path}; echo \"$YOLOFS_ASK\" > {told}'''\n")
    with connected(asking) as calls:
        calls.reload_rules()
        with start(["run", "cat", f"secret/{name}"], asking.project) as process:
            (ask,) = wait_for_asks(calls, 1)
            wait_until(told.exists, "the command has been run")
            calls.answer(AnswerParams(ask.id, "deny"))
            process.communicate(timeout=60)
    assert not trap.exists()


def test_a_project_cannot_say_what_notifies(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text(f"notify = 'touch {tmp_path}/trap'\n")
    program = Program(project)
    program.start_session()
    assert "notify: unknown key" in program.refused("run", "true", code=3)
