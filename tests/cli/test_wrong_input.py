"""Wrong input: a line with the mistake, a line with the remedy, and the documented exit code."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, wait_until
from yolofs.cli.group import COMMANDS
from yolofs.cli.main import main


@pytest.fixture
def nowhere(tmp_path: Path) -> Program:
    """Return the program in a directory without a session."""
    directory = tmp_path / "nowhere"
    directory.mkdir()
    return Program(directory)


def assert_one_line_and_a_hint(message: str) -> None:
    first, second = message.splitlines()
    assert first.startswith("yolofs: ")
    assert not first.endswith(".")
    assert second.startswith("hint: ")
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["nonsense"], "no such command 'nonsense'", "yolofs --help"),
        (["stauts"], "no such command 'stauts'. Did you mean 'status'?", "yolofs --help"),
        (["help", "commit"], "no such command 'help'", "yolofs --help"),
        (["comit"], "no such command 'comit'. Did you mean 'commit'?", "yolofs --help"),
        (["diff", "--stats"], "no such option '--stats'. Did you mean '--stat'?", "yolofs diff --help"),
        (["rule", "alow", "x"], "no such command 'alow'. Did you mean 'allow'?", "yolofs rule --help"),
        (["sessions", "--rebase"], "requires an argument", "yolofs sessions --help"),
        (["--nonsense"], "no such option", "yolofs --help"),
        (["status", "--nonsense"], "no such option", "yolofs status --help"),
        (["status", "x"], "got unexpected extra argument (x)", "yolofs status --help"),
        (["travel"], "missing argument", "yolofs travel --help"),
        (["answer", "5"], "missing argument 'allow|deny'. Choose from: allow, deny", "yolofs answer --help"),
        (["completion"], "Choose from: bash, fish, zsh", "yolofs completion --help"),
        (["snapshot", "a", "b"], "got unexpected extra argument (b)", "yolofs snapshot --help"),
        (
            ["diff", "base", "2"],
            "2 is no path, and there is a range already: base",
            "two generations: yolofs diff base..2",
        ),
        (["-C", "/does/not/exist", "status"], "does not exist", "yolofs --help"),
        (["mount", "--root", "/does/not/exist"], "does not exist", "yolofs mount --help"),
        (["mount", "--root", "/etc/passwd"], "is a file", "yolofs mount --help"),
        (["review"], "this needs an answer, and there is no terminal to ask at", "yolofs diff"),
        (["review", "0"], "there is no terminal to ask at", "yolofs diff"),
        (["feedback", "x"], "got unexpected extra argument (x)", "yolofs feedback --help"),
        (
            ["hunks", "base", "2"],
            "2 is no path, and there is a range already: base",
            "two generations: yolofs hunks base..2",
        ),
        (["hunks", "--edit", "x"], "x is not a hunk", "yolofs hunks"),
        (
            ["hunks", "--edited", "/dev/null"],
            "--edited gives what has become of a hunk, and needs --edit",
            "yolofs hunks --edit ID",
        ),
        (["commit", "--yes", "--hunk", "\x1b[2J"], "is not a hunk", "yolofs hunks"),
        (["commit", "--yes", "--hunk", "-"], "stdin names no hunk", "yolofs hunks"),
        (["commit", "-p", "--merge"], "hunks are parts of what is staged", "yolofs commit --merge PATH first"),
        (
            ["commit", "--hunk", "0" * 16, "--theirs"],
            "hunks are parts of what is staged",
            "yolofs commit --theirs PATH first",
        ),
        (["commit", "-p", "--script"], "a script takes whole changes only", "yolofs commit --dry-run -p"),
        (["commit", "--hunk", "0" * 16, "--exclude", "x"], "--hunk says exactly what is taken", "leave out --exclude"),
        (["commit", "--hunk", "0" * 16, "--outside"], "--hunk says exactly what is taken", "leave out --outside"),
        (["restore"], "missing argument", "yolofs restore --help"),
        (["snapshot", "-"], "cannot be named -", "use a name with a letter in it"),
        (["snapshot", "12"], "cannot be named 12", "use a name with a letter in it"),
        (["snapshot", "a..b"], "cannot be named a..b", "use a name with a letter in it"),
        (["snapshot", "run 3"], "cannot be named run 3", "use a name with a letter in it"),
        (["ls", "commit 0"], "commit 0 is not kept", "yolofs commits"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(yolofs: Program, words: list[str], said: str, hint: str) -> None:
    message = yolofs.refused(*words, code=2)
    assert_one_line_and_a_hint(message)
    assert said in message
    assert f"hint: {hint}" in message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["travel", "7"], "there is no generation 7: the newest is 1"),
        (["travel", "frist"], "there is no snapshot named frist"),
        (["travel", "-"], "there has been no travel to go back from"),
        (["travel", ""], 'there is no snapshot named ""'),
        (["diff", "0..7"], "there is no generation 7"),
        (["diff", "first...first"], "there is no snapshot named .first"),
        (["log", "\x1b[2J"], 'there is no snapshot named "\\033[2J"'),
    ],
)
def test_a_generation_that_is_not_there_is_refused(yolofs: Program, words: list[str], said: str) -> None:
    yolofs("snapshot", "first")
    message = yolofs.refused(*words, code=7)
    assert_one_line_and_a_hint(message)
    assert said in message


def test_the_nearest_name_of_a_snapshot_is_offered(yolofs: Program) -> None:
    yolofs("snapshot", "tests-pass")
    assert "hint: did you mean tests-pass?" in yolofs.refused("travel", "test-pass", code=7)


WITHOUT_A_SESSION = {"init", "doctor", "hook", "sessions", "completion"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in WITHOUT_A_SESSION])
def test_without_a_session_every_command_says_how_to_start_one(nowhere: Program, command: str) -> None:
    words = [
        command,
        *(
            {
                "travel": ["x"],
                "run": ["true"],
                "blame": ["x"],
                "answer": ["1", "deny"],
                "rule": ["list"],
                "cat": ["1:x"],
                "ls": [":x"],
                "restore": ["x"],
            }.get(command, [])
        ),
    ]
    message = nowhere.refused(*words, code=4)
    assert_one_line_and_a_hint(message)
    assert "there is no session in" in message
    assert "hint: yolofs init" in message


@pytest.mark.parametrize("command", ["mount", "status", "diff", "log", "snapshot", "timeline"])
def test_a_broken_configuration_is_one_line_with_its_place(yolofs: Program, command: str) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[mount]\nspin_su = 3\n")
    message = yolofs.refused(command, code=3)
    assert message.startswith('yolofs: .yolofs.toml:2: mount.spin_su: unknown key; did you mean "spin_us"?')


BROKEN = "[mount]\nspin_su = 3\n"


def check_that_it_can_be_looked_at(yolofs: Program) -> str:
    """Return what status warns of."""
    for command in ("diff", "log", "timeline", "status"):
        done = yolofs(command)
        assert 'warning: .yolofs.toml:2: mount.spin_su: unknown key; did you mean "spin_us"?' in done.err
        assert done.out
    assert "M  a.txt" in done.out
    assert any("spin_su" in warning for warning in yolofs("status", "--json").json["warnings"])
    return done.err


@pytest.mark.mount
def test_a_mount_whose_configuration_broke_is_shown_and_goes_on(yolofs: Program) -> None:
    with yolofs.mounted(expected_in_log=("spin_su",)) as view:
        (view / "a.txt").write_text("changed\n")
        (yolofs.project / ".yolofs.toml").write_text(BROKEN)
        wait_until(lambda: "stay in force" in yolofs("status").err, "the daemon has seen it")
        assert "the rules that it had before stay in force" in check_that_it_can_be_looked_at(yolofs)
        yolofs("snapshot", "kept")


@pytest.mark.mount
def test_what_is_staged_can_be_looked_at_and_not_committed_while_the_configuration_is_broken(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
    (yolofs.project / ".yolofs.toml").write_text(BROKEN)
    check_that_it_can_be_looked_at(yolofs)
    for words in (["mount"], ["commit", "--yes"], ["rule", "list"]):
        assert "yolofs: .yolofs.toml:2: mount.spin_su" in yolofs(*words, code=3).err
    assert ".yolofs.toml:2: mount.spin_su" in yolofs("abort", "--yes").err


@pytest.mark.parametrize("command", ["mount", "status", "diff", "log", "snapshot", "timeline"])
def test_a_damaged_journal_is_one_line_with_its_place(yolofs: Program, command: str) -> None:
    with (yolofs.session / "journal").open("a") as journal:
        journal.write("S nonsense\nD more nonsense\n")
    message = yolofs.refused(command, code=6)
    assert_one_line_and_a_hint(message)
    assert "journal, line 2 (byte 36): " in message
    assert "yolofs doctor --repair" in message


def test_a_file_of_the_session_that_cannot_be_used_is_one_line(yolofs: Program) -> None:
    (yolofs.session / "session.json").write_text("{")
    assert_one_line_and_a_hint(yolofs.refused("status", code=1))


def test_init_is_quick_to_say_that_there_is_a_session_and_touches_nothing(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("# mine\n")
    before = {path: path.stat().st_mtime_ns for path in yolofs.project.rglob("*")}
    done = yolofs("init")
    assert done.out == ""
    assert "already" in done.err
    assert {path: path.stat().st_mtime_ns for path in yolofs.project.rglob("*")} == before


def test_init_makes_a_session_a_config_and_nothing_else(nowhere: Program) -> None:
    done = nowhere("init")
    assert (done.out, done.err.splitlines()[-1]) == ("", "next: yolofs run -- COMMAND, or yolofs mount")
    assert sorted(os.listdir(nowhere.project)) == [".yolofs", ".yolofs.toml"]
    assert nowhere.session.stat().st_mode & 0o777 == 0o700
    assert "no changes" in nowhere("status").out


def test_init_where_nothing_can_be_written_makes_a_session_all_the_same(
    nowhere: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a read-only file system: what is staged lies elsewhere."""
    really_open = os.open

    def refuse(path: Any, *arguments: Any, **named: Any) -> int:
        if os.fsencode(path).endswith(b"/.yolofs.toml"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really_open(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    assert main(["init", str(nowhere.project)]) == 0
    monkeypatch.undo()
    said = capsys.readouterr().err
    assert (
        "warning: .yolofs.toml cannot be written: Read-only file system; without it all settings are the default"
        in said
    )
    assert said.splitlines()[-1] == "next: yolofs run -- COMMAND, or yolofs mount"
    assert "no changes" in nowhere("status").out


def test_init_takes_another_directory_and_refuses_a_missing_one(nowhere: Program, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    nowhere("init", "../there")
    assert (tmp_path / "there/.yolofs").is_dir()
    assert "is not a directory" in nowhere("init", "missing", code=2).err


@pytest.mark.mount
def test_the_config_that_init_writes_is_valid_with_every_line_uncommented(nowhere: Program) -> None:
    nowhere("init")
    path = nowhere.project / ".yolofs.toml"
    lines = [line[1:] if line.startswith("#") and "=" in line else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines))
    assert "config: .yolofs.toml can be used" in nowhere("doctor").out


def test_a_session_is_found_from_below_and_with_minus_c(yolofs: Program, nowhere: Program) -> None:
    assert "no changes" in yolofs("status", cwd=yolofs.project / "dir").out
    assert "no changes" in nowhere("-C", yolofs.project / "dir", "status").out


def test_help_goes_to_stdout_for_the_program_and_for_every_command(nowhere: Program) -> None:
    for words in ([], *([name] for name in COMMANDS)):
        done = nowhere(*words, "--help")
        assert done.out.startswith(f"Usage: yolofs {words[0] if words else '[OPTIONS]'}")
        assert done.err == ""


def test_no_command_at_all_shows_the_help(nowhere: Program) -> None:
    done = nowhere(code=2)
    assert done.out == ""
    assert done.err == nowhere("--help").out


def test_rule_alone_shows_its_help(nowhere: Program) -> None:
    done = nowhere("rule", code=2)
    assert done.err == nowhere("rule", "--help").out


def test_a_session_that_is_not_there_is_not_listed(yolofs: Program) -> None:
    message = yolofs.refused("sessions", "abc", code=4)
    assert_one_line_and_a_hint(message)
    assert "there is no session abc" in message


def test_a_failure_inside_leaves_a_traceback_in_a_file_and_shows_it_on_request(
    nowhere: Program, tmp_path: Path
) -> None:
    broken = tmp_path / "site"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import yolofs.cli.project.which_project\ndef broken(*_): raise ZeroDivisionError('oops')\n"
        "yolofs.cli.project.which_project.find = broken\n"
    )
    path = os.pathsep.join([str(broken), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = nowhere("status", code=1, PYTHONPATH=path, TMPDIR=str(tmp_path))
    first, second = done.err.splitlines()
    assert first == "yolofs: this should not have happened: ZeroDivisionError('oops')"
    assert "ZeroDivisionError: oops" in Path(second.removeprefix("hint: the traceback is in ")).read_text()
    done = nowhere("--traceback", "status", code=1, PYTHONPATH=path, TMPDIR=str(tmp_path))
    assert "Traceback (most recent call last)" in done.err


def test_starting_is_quick_as_nothing_heavy_is_imported(nowhere: Program) -> None:
    import subprocess

    code = "import sys, yolofs.cli.main as m; m.main(['status']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=nowhere.project, capture_output=True, text=True, check=True, env=os.environ
    )
    assert not {"trio", "rich", "pyfuse3", "asyncio", "watchfiles", "prompt_toolkit"} & set(done.stdout.split())


def test_a_root_that_is_no_directory_is_a_mistake_of_the_user_who_named_it(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text('root = "/nonexistent"\n')
    yolofs.trust()
    assert "the root /nonexistent is not a directory" in yolofs.refused("status", code=3)
    assert "'/missing' does not exist" in yolofs.refused("mount", "--root", "/missing", code=2)


def test_a_command_that_is_nearly_one_is_named(yolofs: Program) -> None:
    assert "Did you mean 'status'?" in yolofs.refused("stauts", code=2).replace("did you mean", "Did you mean")


def test_one_version_of_a_file_is_no_range_and_what_to_compare_it_with_is_told(yolofs: Program) -> None:
    yolofs("snapshot", "first")
    said = yolofs.refused("diff", "1:a.txt", code=2)
    assert "1:a.txt is one version of a file, and a comparison takes two" in said
    assert "hint: with the view as it is now: yolofs diff 1:a.txt :a.txt; or what generation 1 changed there" in said
    assert "yolofs diff 1 -- a.txt" in said
    assert yolofs("diff", "1:a.txt", ":a.txt").out == ""


def test_an_empty_word_and_bytes_that_are_no_text_are_shown_as_one_would_type_them(yolofs: Program) -> None:
    assert yolofs.refused("cat", "", code=2).startswith("yolofs: '' names no generation")
    assert yolofs.refused("restore", "--hunk", "", code=2).startswith("yolofs: '' is not a hunk")
    assert yolofs.refused("undo", b"\xff", code=2).startswith("yolofs: $'\\377' is not the number of a commit")
    assert yolofs.refused("undo", "", code=2).startswith("yolofs: '' is not the number of a commit")
    for command in ("watch", "--answer-with"), ("review", "--tool"):
        assert f"{command[1]} names no command" in yolofs.refused(*command, " ", code=2)
