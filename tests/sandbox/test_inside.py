"""``yolofs`` inside a sandbox: looking and travelling, and nothing that is for the user."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.sandbox import forking_shell
from tests.support.program import COMMAND, Done, Program, connected, replace_text, wait_until
from yolofs.cli.group import COMMANDS
from yolofs.daemon.agent_control import COMMANDS_INSIDE
from yolofs.daemon.upkeep.log_limit import MOST_LINES
from yolofs.paths import RelPath
from yolofs.session import feedback

pytestmark = pytest.mark.mount

YOLOFS = shlex.join(COMMAND)
END = "-- the end of one script --"
SHELL = (*COMMAND[: COMMAND.index("-m")], "-c", Path(forking_shell.__file__).read_text())


def inside(yolofs: Program, script: str, code: int = 0) -> Done:
    """Run a shell script in the sandbox, in which ``y`` is yolofs."""
    return yolofs("run", "--no-review", *SHELL, script, code=code)


def each_inside(yolofs: Program, *scripts: str) -> list[Done]:
    """Run shell scripts in one sandbox, one after the other; return what each has said."""
    each = "".join(f"(\n{script}\n)\necho {END} $?; echo {END} >&2\n" for script in scripts)
    done = inside(yolofs, each)
    *errors, _ = done.err.split(f"{END}\n")
    parts = re.split(rf"{END} (\d+)\n", done.out)
    said = zip(parts[:-1:2], parts[1::2], errors, strict=True)
    found = [Done(int(code), out, err) for out, code, err in said]
    assert len(found) == len(scripts)
    return found


COMMANDS_OF_THE_USER = [name for name in COMMANDS if name not in (*COMMANDS_INSIDE, "run", "shell", "hook")]
LOOKS = {
    "status, diff and log": "echo new > file; y status --json | head -1; y diff -- file; y log -v | tail -1",
    "a path": "mkdir -p sub/dir; cd sub/dir; echo x > here; y diff --list -- here",
    "an error": "y travel nowhere",
    "for the user": "\n".join(f'y {command}; echo "{command} $?"' for command in COMMANDS_OF_THE_USER),
    "no command": "y stauts",
}


@pytest.fixture(scope="module")
def looks(shared: Program) -> dict[str, Done]:
    """Return what each of some scripts has said, which were run in one sandbox."""
    (shared.project / "file").write_text("old\n")
    found = each_inside(shared, *LOOKS.values())
    with connected(shared) as client:
        client.travel("base", force=True)
    return dict(zip(LOOKS, found, strict=True))


def test_status_diff_and_log_inside_show_what_is_staged(looks: dict[str, Done]) -> None:
    done = looks["status, diff and log"]
    assert done.out.startswith("{\n")
    assert "-old\n+new\n" in done.out
    assert "stage     file" in done.out


def test_paths_are_those_of_the_directory_inside(looks: dict[str, Done]) -> None:
    assert "A  sub/dir/here" in looks["a path"].out


def test_snapshot_and_travel_work(yolofs: Program) -> None:
    script = (
        "echo one > f; y snapshot first; echo two > f; y travel first; cat f; y travel -; cat f; y timeline | tail -1"
    )
    done = inside(yolofs, script)
    assert "one\n" in done.out
    assert "two\n" in done.out


def test_an_agent_that_is_wholly_inside_is_told_once_of_what_was_dropped(yolofs: Program) -> None:
    yolofs("run", "true")
    feedback.add(bytes(yolofs.session), [feedback.Dropped(RelPath(b"a"), "text")], "keep it English")
    bash = {"tool_name": "Bash", "tool_input": {"command": "echo done; exit 3"}}
    script = f"""
hook() {{ echo {shlex.quote(json.dumps(bash))} | y hook claude; }}
hook
y run -- sh -c 'echo done; exit 3' 2>told; echo $? $(grep -c 'the user says: keep it English' told)
y run -- sh -c 'echo again; exit 4' 2>told; echo $? $(wc -c <told)
hook
"""
    wrapped, *others, last = inside(yolofs, script).out.splitlines()
    command = json.loads(wrapped)["hookSpecificOutput"]["updatedInput"]["command"]
    assert shlex.split(command)[:3] == ["yolofs", "run", "--"]
    assert others == ["done", "3 1", "again", "4 0"]
    assert last == "{}"  # nothing new: the command is run as it is


def test_a_command_inside_has_the_error_and_exit_code_of_one_outside(looks: dict[str, Done]) -> None:
    done = looks["an error"]
    assert done.code == 7
    assert "yolofs: there is no snapshot named nowhere" in done.err


def test_commands_for_the_user_are_refused_inside_a_sandbox(looks: dict[str, Done]) -> None:
    done = looks["for the user"]
    assert done.out.splitlines() == [f"{command} 2" for command in COMMANDS_OF_THE_USER]
    for command in COMMANDS_OF_THE_USER:
        assert f"yolofs {command} is for the user" in done.err


SEND = """
import json, os, socket
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(os.environ["YOLOFS_SOCKET"])
    for words, directory in ([["status"], "/%00"], [["diff", "a%00b"], "/"]):
        call = {"jsonrpc": "2.0", "id": 1, "method": "look", "params": {"words": words, "directory": directory}}
        sock.sendall(json.dumps(call).encode() + b"\\n")
        print(json.loads(sock.recv(65536))["error"]["message"])
"""


def test_an_argument_that_no_program_could_get_is_refused(yolofs: Program) -> None:
    done = inside(yolofs, f"/usr/bin/python3 -c {shlex.quote(SEND)}")
    assert done.out == "a word or a path holds a NUL byte\n" * 2


CROWD = """
import os, select, socket
for _ in range(5):
    held = []
    for _ in range(200):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].connect(os.environ["YOLOFS_SOCKET"])
    select.select(held, [], [])  # until one is hung up on: a busy daemon may take none before all are closed
    for sock in held:
        sock.close()
"""


def test_whoever_connects_again_and_again_does_not_fill_the_log(tmp_path: Path) -> None:
    yolofs = Program(tmp_path)
    yolofs.start_session()
    with yolofs.mounted("--root", "/", expected_in_log=("hung up on process",)):
        inside(yolofs, f"/usr/bin/python3 -c {shlex.quote(CROWD)}; y status")
        assert 0 < sum("hung up on process" in line for line in yolofs.log.splitlines()) <= MOST_LINES


def test_no_other_socket_or_project_lets_a_command_inside_abort(yolofs: Program) -> None:
    scripts = (
        "YOLOFS_SOCKET= y abort --yes",
        f"y -C {yolofs.project} abort --yes",
        "unset YOLOFS_SOCKET; y abort --yes",
    )
    each = "; ".join(f"echo x > kept; {script}; echo end >&2; cat kept" for script in scripts)
    done = yolofs("run", "--no-review", "bash", "-c", f'y() {{ {YOLOFS} "$@"; }}; {each}')
    assert ["yolofs: " in err for err in done.err.split("end\n")] == [True, True, True, False]
    assert done.out == "x\n" * 3
    assert yolofs("run", "--no-review", "cat", "kept").out == "x\n"


def test_commands_inside_show_no_hidden_path_and_print_no_closed_file(yolofs: Program) -> None:
    for name in ("concealed", "denied", "open"):
        (yolofs.project / name).write_text("old\n")
    yolofs(
        "run",
        "--no-review",
        "--name",
        "made",
        "sh",
        "-c",
        "for f in concealed denied open; do echo secret-$f > $f; done; mv concealed hid2",
    )
    yolofs("rule", "hidden", "concealed", "hid2")
    yolofs("rule", "deny", "denied")
    try:
        done, hunks = each_inside(
            yolofs,
            "y status; y diff; y log; y log -v; y diff --json; y status --json; y status --hidden; y diff --hidden",
            "y hunks; y hunks --json; y hunks --hidden --list",
        )
    finally:
        for name in ("concealed", "hid2", "denied"):
            yolofs("rule", "unset", name)
    assert "hid2" not in done.out + done.err
    assert "concealed" not in done.out + done.err
    assert "paths that the rules hide" not in done.out + done.err
    assert done.out.count('"hidden_left_out": 0') == 2
    assert "secret-denied" not in done.out
    assert "secret-open" in done.out
    assert "M  denied" in done.out
    assert "note: 1 file that may not be read is left out" in done.err
    for word in ("concealed", "hid2", "secret-denied", "paths that the rules hide"):
        assert word not in hunks.out + hunks.err
    assert "secret-open" in hunks.out
    assert "note: 1 file that may not be read is left out" in hunks.err


def test_an_option_that_names_a_file_does_not_tell_whether_there_is_one_outside(yolofs: Program) -> None:
    (yolofs.project / "there").write_text("x\n")
    os.mkfifo(yolofs.project / "fifo")
    yolofs("rule", "hidden", "there")
    try:
        script = "for f in there absent fifo; do y hunks --edit 0123456789abcdef --edited $PWD/$f; done; true"
        done = inside(yolofs, script)
    finally:
        yolofs("rule", "unset", "there")
        (yolofs.project / "fifo").unlink()
    refused = [line for line in done.err.splitlines() if line.startswith("yolofs: hunks")]
    assert refused == ["yolofs: hunks are edited by the user, outside of the sandbox"] * 3


def test_two_versions_of_what_is_hidden_or_may_not_be_read_are_not_shown(yolofs: Program) -> None:
    for name in ("concealed", "denied", "shown"):
        (yolofs.project / name).write_text(f"secret-old-{name}\n")
    yolofs("run", "--no-review", "sh", "-c", "for f in concealed denied shown; do echo secret-new-$f > $f; done")
    for name, state in (("concealed", "hidden"), ("denied", "deny")):
        yolofs("rule", state, name)
    try:
        done, absent = each_inside(
            yolofs,
            "; ".join(f"y diff base:{name} :{name}" for name in ("concealed", "denied", "shown")),
            "y diff base:absent-one :absent-one",
        )
    finally:
        for name in ("concealed", "denied"):
            yolofs("rule", "unset", name)
    shown = done.out + done.err
    assert "+secret-new-shown" in shown
    for secret in ("secret-old-concealed", "secret-new-concealed", "secret-old-denied", "secret-new-denied"):
        assert secret not in shown
    hidden = next(line for line in done.err.splitlines() if "concealed" in line)
    assert hidden.replace("concealed", "absent-one") in absent.err, "what is hidden is told as what is not there"


def test_records_of_what_is_hidden_are_not_counted(yolofs: Program) -> None:
    for name in ("kept-from-it", "after"):
        script = f"mkdir concealed.{name}; echo 1 > concealed.{name}/a; echo 2 > open.{name}"
        yolofs("run", "--no-review", "--no-snapshot", "sh", "-c", script)
        if name == "kept-from-it":
            yolofs("snapshot", "counted")
    outside = yolofs("timeline", "--json").json
    assert (outside["generations"][-1]["records"], outside["records_since"]) == (3, 3)
    concealed = [f"concealed.{name}" for name in ("kept-from-it", "after")]
    yolofs("rule", "hidden", *concealed)
    try:
        script = "y timeline --json > t.json; y timeline > t; y status > s; cat t.json t s; rm t.json t s"
        done = yolofs("run", "--no-review", "--no-snapshot", *SHELL, script)
    finally:
        for name in concealed:
            yolofs("rule", "unset", name)
    timeline, end = json.JSONDecoder().raw_decode(done.out)
    # what the script itself has made until then: t.json
    assert (timeline["generations"][-1]["records"], timeline["records_since"]) == (1, 2)
    assert "counted, 1 record" in done.out[end:]
    assert "and 3 records since, not snapshotted yet" in done.out[end:]
    assert "(counted) and 4 records since" in done.out[end:]


def test_asks_are_listed_but_not_those_of_others(yolofs: Program) -> None:
    for name in ("asked", "asked-too"):
        (yolofs.project / name).touch()  # to make one would keep others from making names beside it
    path = yolofs.project / ".yolofs.toml"
    before = path.read_text()
    replace_text(path, f"ask_timeout = 600.0\nask_unattended = 600.0\n{before}")  # on a busy machine it takes a while
    with connected(yolofs) as daemon:
        daemon.reload_rules()
    yolofs("rule", "write-ask", "asked")
    others = subprocess.Popen([*COMMAND, "run", "touch", "asked"], cwd=yolofs.project, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(yolofs("asks", "--json").json["asks"]) == 1, "another run asks")
        script = "touch asked-too & until y asks --json | grep -q asked-too; do sleep 0.1; done; y asks --json; kill %1"
        yolofs("rule", "write-ask", "asked-too")
        done = inside(yolofs, script)
        shown = [ask["path"] for ask in done.json["asks"]]
        assert shown == [f"{yolofs.project}/asked-too"]
        assert [ask["path"] for ask in yolofs("asks", "--json").json["asks"]] == [f"{yolofs.project}/asked"]
    finally:
        others.terminate()
        others.wait()
        for name in ("asked", "asked-too"):
            yolofs("rule", "unset", name)
        replace_text(path, before)


def test_older_versions_runs_and_origins_are_seen_but_nothing_that_is_hidden(yolofs: Program) -> None:
    for name in ("concealed", "denied", "shown"):
        (yolofs.project / name).write_text(f"old-{name}\n")
    (yolofs.project / "closed").mkdir()
    (yolofs.project / "closed/below").write_text("x\n")
    yolofs("run", "--no-review", "--name", "called so", "sh", "-c", "echo new > shown # with a secret")
    yolofs("rule", "hidden", "concealed")
    yolofs("rule", "deny", "denied", "closed")
    try:
        done, refused = each_inside(
            yolofs,
            "y cat base:shown; y ls base:.; y ls -R :.; y blame shown; y runs; y runs --json",
            "for w in 'cat :denied' 'cat :concealed' 'ls :closed' 'blame concealed'; do y $w; echo $?; done",
        )
    finally:
        for name in ("concealed", "denied", "closed"):
            yolofs("rule", "unset", name)
    shown = done.out + done.err + refused.err
    assert "old-shown\n" in done.out
    assert "called so" in done.out
    assert "shown: written, " in done.out
    assert "closed/\n" in done.out
    for word in ("with a secret", "concealed\n", "below", "old-denied", "old-concealed"):
        assert word not in shown
    assert refused.out == "2\n2\n2\n2\n"
    assert ":denied may not be read in the sandbox" in refused.err


def test_a_path_that_is_hidden_is_told_as_one_that_is_nowhere(yolofs: Program) -> None:
    """Also what is offered instead tells neither the hidden name, nor that there is one."""
    for directory in ("hiding", "hidinh"):
        (yolofs.project / directory).mkdir(exist_ok=True)
        (yolofs.project / directory / "file").write_text("x\n")
    yolofs("rule", "hidden", "hiding")
    try:
        scripts = (
            f"for c in 'diff --' 'log --' blame; do y $c {name}/file; y $c {name}; done"
            for name in ("hiding", "hidinb")
        )
        hidden, nowhere = each_inside(yolofs, *scripts)
    finally:
        yolofs("rule", "unset", "hiding")
    assert (hidden.code, nowhere.code) == (2, 2)
    assert hidden.err.replace("hiding", "NAME") == nowhere.err.replace("hidinb", "NAME")
    assert "did you mean hidinh/file?" in hidden.err
    assert "did you mean hiding" not in hidden.err


def test_a_word_that_is_no_command_is_told_so_inside_too(looks: dict[str, Done]) -> None:
    done = looks["no command"]
    assert done.code == 2
    assert "yolofs: no such command 'stauts'. Did you mean 'status'?" in done.err


def test_nobody_inside_is_told_which_programs_of_the_host_have_a_file_open(yolofs: Program) -> None:
    name = shlex.quote(f"{yolofs.project}/being-written")
    done = inside(yolofs, f"exec 3> {name}; y status --json")
    document = json.loads(done.out)
    assert [change["path"] for change in document["changes"]] == [f"{yolofs.project}/being-written"]
    assert document["open_files"] == []
