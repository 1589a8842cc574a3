"""A commit that was interrupted is told, finished only if the user says so, or given up without the
loss of a file.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import tree_of
from tests.support.planting import (
    STEP,
    change_a_byte,
    creating,
    interrupt_commit,
    interrupted,
    plant_plan,
    run,
    session_of,
)
from tests.support.program import Program
from tests.support.terminal import Terminal
from yolofs.commit.plan.plan import Create, Plan

pytestmark = pytest.mark.timeout(300)


# ---- told


def test_status_says_once_what_was_interrupted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, STEP)
    status = Program(project)("status")
    assert status.err.count("interrupted") == 1, status.err
    found = Program(project)("status", "--json").json
    (warning,) = found["warnings"]
    assert "interrupted" in warning
    assert found["interrupted"] == {
        "commit": 1,
        "steps": found["interrupted"]["steps"],
        "done": STEP,
        "way": "forward",
        "why": "it can be finished, as base is what the plan expects",
    }
    assert found["interrupted"]["steps"] > STEP


def test_status_does_not_list_what_base_has_a_part_of(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    assert program("status", "--json").json["interrupted"] is None
    assert "base has a part of it" not in program("status").err
    interrupt_commit(project, STEP)
    status = program("status")
    assert "is listed once that is settled" in status.err
    assert "generation" in status.out
    assert [line for line in status.out.splitlines() if line[1:3] == "  "] == []
    assert program("status", "--json").json["changes"] == []


@pytest.mark.usefixtures("state")
def test_the_list_of_sessions_tells_of_an_interrupted_commit(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    (entry,) = program("sessions", "--json").json["sessions"]
    assert (entry["interrupted"], entry["damage"]) == (None, None)
    interrupt_commit(project, STEP)
    assert f"  commit 1 was interrupted: yolofs -C {project} status\n" in program("sessions").out
    assert program("sessions", "--json").json["sessions"][0]["interrupted"] == 1
    project.rename(tmp_path / "moved")
    assert "  commit 1 was interrupted\n" in Program(tmp_path)("sessions").out


@pytest.mark.mount
def test_the_mount_that_lent_the_session_finishes_it_and_says_so(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("old\n")
    program = Program(project)
    program.start_session()
    with program.mounted(expected_in_log=("was interrupted, as its command ended half way",)) as view:
        for number in range(30):
            (view / f"f{number}").write_text(f"{number}\n")
        interrupt_commit(project, 7)
        assert (view / "f29").read_text() == "29\n"
        assert (project / "f29").read_text() == "29\n"
        said = "commit 1 was interrupted, as its command ended half way; the mount has finished it"
        assert said in program("status").err
        assert said in program("status", "--json").json["warnings"]


# ---- asked


def type_or_interrupt(terminal: Terminal, answer: str) -> None:
    """Type an answer; Ctrl-C as the signal that it is, as this terminal controls no session."""
    if answer == "\x03":
        terminal.process.send_signal(signal.SIGINT)
    else:
        terminal.type(answer)


def test_whoever_agrees_at_the_terminal_has_it_finished_and_is_told_what_it_is(tmp_path: Path) -> None:
    project, expected = interrupted(tmp_path)
    with Terminal(project, ["commit"], size=(200, 40)) as terminal:
        terminal.wait_for("finish it? [y/N]")
        shown = terminal.text
        terminal.type("y\n")
        assert terminal.wait() == 0, terminal.text
    assert "a commit was interrupted: commit 1 of 20" in shown
    assert f"{STEP} of " in shown
    assert f"so base ({project}) is partly what the view was" in shown
    assert "steps that are left:" in shown
    assert str(session_of(project) / "commits/1/replaced") in shown
    assert tree_of(project) == expected


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("\x03", 130), ("\x04", 1)])
@pytest.mark.some(2)
def test_an_interrupted_commit_is_not_finished_unless_the_user_agrees(tmp_path: Path, answer: str, code: int) -> None:
    project, expected = interrupted(tmp_path)
    before, files = tree_of(project), sorted(session_of(project).rglob("*"))
    with Terminal(project, ["commit"], size=(200, 40)) as terminal:
        terminal.wait_for("finish it? [y/N]")
        type_or_interrupt(terminal, answer)
        assert terminal.wait() == code, terminal.text
    assert tree_of(project) == before
    assert sorted(session_of(project).rglob("*")) == files
    assert run(["commit", "--continue"], project).returncode == 0
    assert tree_of(project) == expected


def test_yes_to_a_commit_is_no_yes_to_one_that_was_interrupted(tmp_path: Path) -> None:
    project, _ = interrupted(tmp_path)
    before = tree_of(project)
    with Terminal(project, ["commit", "--yes"], size=(200, 40)) as terminal:
        assert terminal.wait() == 12
        assert (
            "hint: yolofs commit --continue finishes it, yolofs commit --roll-back takes it back (all stays staged)"
            in terminal.text
        )
    assert tree_of(project) == before


def test_a_file_in_the_way_of_an_interrupted_commit_is_named_and_roll_back_offered(tmp_path: Path) -> None:
    project, expected = interrupted(tmp_path)
    before = tree_of(project)
    new = next(
        step.path
        for step in Plan.decode((project / ".yolofs/commits/1/plan.json").read_bytes()).steps[STEP:]
        if isinstance(step, Create) and step.replaced is None and not os.path.lexists(project / os.fsdecode(step.path))
    )
    path = project / os.fsdecode(new)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("the host's\n")
    why = f"it cannot be finished ({path} has been made there meanwhile and is in the way), so it has to be taken back"
    for words in (["commit"], ["mount"], ["status"], ["abort", "--yes"], ["undo", "--yes"]):
        said = run(words, project).stderr
        assert why in said, said
        assert "yolofs commit --roll-back takes it back (all stays staged); or yolofs commit --continue" in said
    found = Program(project)("status", "--json").json["interrupted"]
    assert (found["way"], found["why"]) == ("back", why)
    path.unlink()
    assert tree_of(project) == before
    assert run(["commit", "--continue"], project).returncode == 0
    assert tree_of(project) == expected


@pytest.mark.mount
@pytest.mark.parametrize(
    "words",
    [
        ["commit"],
        ["commit", "--yes"],
        ["commit", "--yes", "--json"],
        ["mount"],
        ["run", "--", "true"],
        ["shell"],
        ["abort", "--yes"],
        ["travel", "0"],
        ["snapshot"],
    ],
    ids=" ".join,
)
@pytest.mark.some(4)
def test_without_a_terminal_other_commands_are_refused_with_the_line_to_run(tmp_path: Path, words: list[str]) -> None:
    project, expected = interrupted(tmp_path)
    before = tree_of(project)
    done = run(words, project)
    assert done.returncode == 12, done
    first, second = done.stderr.splitlines()
    assert first.startswith("yolofs: a commit was interrupted: commit 1 of ")
    assert first.endswith("; it can be finished, as base is what the plan expects")
    assert (
        second
        == "hint: yolofs commit --continue finishes it, yolofs commit --roll-back takes it back (all stays staged)"
    )
    assert tree_of(project) == before
    for looking in (["status"], ["log"], ["diff"], ["unmount"]):
        looked = run(looking, project)
        assert looked.returncode == 0, looked
        assert "a commit was interrupted" in looked.stderr
        assert "yolofs commit --continue" in looked.stderr
    assert "a commit was interrupted" in run(["doctor"], project).stdout
    assert "a commit was interrupted" in run(["status", "--json"], project).stdout
    done = run(["commit", "--continue"], project)
    assert done.returncode == 0
    assert "commit 1, which was interrupted, is finished" in done.stderr
    assert tree_of(project) == expected
    assert "nothing to do" in run(["commit", "--continue"], project).stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--continue", "a"],
        ["--continue", "--discard-interrupted"],
        ["--continue", "--force"],
        ["--discard-interrupted", "--outside"],
        ["--continue", "--json"],
        ["--continue", "--yes", "--json"],
    ],
    ids=" ".join,
)
@pytest.mark.some(3)
def test_continue_and_roll_back_go_with_no_other_option(tmp_path: Path, words: list[str]) -> None:
    project, _ = interrupted(tmp_path)
    before = tree_of(project)
    done = run(["commit", *words], project)
    assert done.returncode == 2
    assert "go with no other option" in done.stderr
    assert tree_of(project) == before


# ---- given up


@pytest.mark.mount
@pytest.mark.parametrize("step", points(range(22), "given up", some=4))
def test_whoever_gives_a_commit_up_loses_no_file(tmp_path: Path, step: int) -> None:
    """All that base or the view had is in base, in the commit's directory, or in the store."""
    project = tmp_path / "project"
    expected = prepare(project)
    base = tree_of(project)
    interrupt_commit(project, step)
    session, commit = session_of(project), session_of(project) / "commits/1"
    change_a_byte(commit / "plan.json")
    half, journal = tree_of(project), (session / "journal").read_bytes()
    done = run(["commit", "--discard-interrupted"], project)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "hint: yolofs commit --discard-interrupted --yes")
    done = run(["commit", "--discard-interrupted", "--yes"], project)
    assert done.returncode == 0, done
    assert str(commit) in done.stderr
    assert tree_of(project) == half
    assert (commit / "journal").read_bytes() == journal
    assert "no changes" in run(["status"], project).stdout
    left = contents_below(project) | contents_below(session)
    assert {what[-1] for what in (*base.values(), *expected.values()) if isinstance(what[-1], bytes)} or left
    for tree in (base, expected):
        for text in texts(tree):
            assert text in left, text
    (project / "later").write_text("x")
    with Program(project).mounted() as view:
        (view / "later").write_text("another commit\n")
    assert run(["commit", "--yes"], project).returncode == 0
    assert (project / "later").read_text() == "another commit\n"
    assert (commit / "journal").read_bytes() == journal
    for text in texts(base):
        assert text in contents_below(project) | contents_below(session)


def texts(tree: dict[bytes, tuple[object, ...]]) -> set[bytes]:
    return {part for what in tree.values() for part in what if isinstance(part, bytes) and b" " in part}


def contents_below(directory: Path) -> set[bytes]:
    return {path.read_bytes() for path in directory.rglob("*") if path.is_file() and not path.is_symlink()}


def test_giving_a_commit_up_lists_what_each_kept_file_was(tmp_path: Path) -> None:
    project, _ = interrupted(tmp_path)
    commit = session_of(project) / "commits/1"
    assert run(["commit", "--discard-interrupted", "--yes"], project).returncode == 0
    lines = (commit / "contents").read_text().splitlines()
    kept = [*(commit / "replaced").iterdir(), *(commit / "parked").iterdir()]
    assert kept
    of_base = [line for line in lines if not line.startswith("/")]
    assert sorted(line.split("\t")[0] for line in of_base) == sorted(str(path.relative_to(commit)) for path in kept)
    (stored,) = [line.split("\t")[0] for line in lines if line.endswith(f"was staged as {project}/new/file")]
    assert Path(stored).read_text() == "made"
    assert any(f"was {project}/a, and was to become {project}/b" in line for line in lines), lines


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\x03", 130), ("y\n", 0)])
def test_giving_up_an_interrupted_commit_asks_first(tmp_path: Path, answer: str, code: int) -> None:
    project, _ = interrupted(tmp_path)
    with Terminal(project, ["commit", "--discard-interrupted"], size=(200, 40)) as terminal:
        terminal.wait_for("give it up? [y/N]")
        type_or_interrupt(terminal, answer)
        assert terminal.wait() == code, terminal.text
    is_left = "a commit was interrupted" in run(["status"], project).stderr
    assert is_left is (code != 0)


def test_a_planted_plan_can_be_given_up_without_anything_done(tmp_path: Path, victim: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    session = session_of(project)
    commit = plant_plan(session, Plan(os.fsencode(victim), (creating(b"x"),)))
    (commit / "contents").symlink_to(victim / "precious")
    (commit / "given-up").symlink_to(victim / "precious")
    (commit / "given-up.new").symlink_to(victim / "made")
    before = tree_of(victim)
    run(["commit", "--discard-interrupted", "--yes"], project)
    assert tree_of(victim) == before


def test_whoever_opens_the_session_next_puts_the_journal_away_if_giving_up_was_killed(tmp_path: Path) -> None:
    project, _ = interrupted(tmp_path)
    session, commit = session_of(project), session_of(project) / "commits/1"
    journal = (session / "journal").read_bytes()
    assert run(["commit", "--discard-interrupted", "--yes"], project).returncode == 0
    os.rename(commit / "journal", session / "journal")  # as it was just before
    assert run(["snapshot"], project).returncode == 0
    assert (commit / "journal").read_bytes() == journal
    assert "no changes" in run(["status"], project).stdout
