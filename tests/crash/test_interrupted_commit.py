"""A commit killed anywhere is finished at the user's word, or by the mount that lent it the
session: base is then the view.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.crash.test_kill import Project
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import everything_below
from tests.support.model_steps import how_many
from tests.support.planting import interrupt_commit, run, session_of
from tests.support.program import DEADLINE_S, run_program
from tests.support.seed import dice
from tests.support.terminal import Terminal, start
from yolofs.session.archive import CARRIED, interrupted_commit
from yolofs.session.opening.lock import session_locked

pytestmark = [pytest.mark.mount, pytest.mark.timeout(300)]

WORK = """
set -e
perl -e 'rename "moved/f$_", "kept/m$_" or die for 1..40'     # parked
mv chain/a chain/x; mv chain/b chain/a; mv chain/x chain/b    # swapped
rm -r gone; mkdir gone; echo new > gone/file                  # deleted and recreated
sed -i s/1/one/ kept/f1*                                      # replaced
for i in $(seq 1 20); do echo new$i > kept/new$i; done        # created
mkdir -p made/below; ln kept/new1 made/below/hard; ln -s x made/soft
mv directory made/directory; rm made/directory/f2; chmod 700 made
chmod 600 kept/f5
rm type; mkdir type; touch type/f
"""


def populate(project: Path) -> None:
    for directory in ("moved", "kept", "chain", "gone/sub", "directory"):
        (project / directory).mkdir(parents=True)
    for number in range(1, 41):
        (project / f"moved/f{number}").write_text(f"moved {number}\n")
        (project / f"kept/f{number}").write_text(f"kept {number}\n")
    for number in range(5):
        (project / f"gone/sub/f{number}").write_text("gone")
        (project / f"directory/f{number}").write_text("stays")
    for name in ("chain/a", "chain/b", "type"):
        (project / name).write_text(name)


def stop_commit_after(project: Project, lines: int, *paths: str) -> bool:
    """Start a commit and kill it once its log has that many lines; return whether it was still at
    work.
    """
    null = os.open(os.devnull, os.O_RDWR)
    commit = start(["commit", "--yes", *paths], project.directory, dict(os.environ), (null, null, null))
    os.close(null)
    log = project.directory / ".yolofs/commits/1/progress"
    while commit.poll() is None:
        try:
            if log.read_bytes().count(b"\n") >= lines:
                break
        except FileNotFoundError:
            pass
        time.sleep(0.0002)  # between two looks, as a step takes longer; the commit needs the processor, too
    commit.send_signal(signal.SIGKILL)
    commit.wait(DEADLINE_S)
    return commit.returncode == -signal.SIGKILL and not (log.parent / "done").exists()


def agree_to_finish(project: Project) -> None:
    """Have the next commit finish the one that was interrupted, if it was, by agreeing at the
    terminal.
    """
    is_interrupted = interrupted_commit(bytes(project.directory / ".yolofs")) is not None
    with Terminal(project.directory, ["commit"]) as terminal:
        if is_interrupted:
            terminal.wait_for("finish it? [y/N]")
            terminal.type("y\n")
        terminal.type("n\n")  # to what else is staged
        terminal.wait()
        assert ("is finished" in terminal.text) is is_interrupted, terminal.text


def refuses_to_mount(project: Project) -> None:
    """Check that no mount finishes the commit by itself; then have it finished."""
    before = everything_below(str(project.directory))
    is_interrupted = interrupted_commit(bytes(project.directory / ".yolofs")) is not None
    if is_interrupted:
        done = run_program(["mount"], project.directory)
        ways = "yolofs commit --continue finishes it, yolofs commit --roll-back takes it back (all stays staged)"
        if (project.directory / ".yolofs/commits/1/settled").exists():
            ways = "yolofs commit --continue"
        assert (done.returncode, done.stderr.splitlines()[-1]) == (12, f"hint: {ways}")
        assert without_settings(everything_below(str(project.directory))) == without_settings(before)
    project.run("commit", "--continue")


def without_settings(found: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {path: what for path, what in found.items() if not path.startswith(".yolofs")}


@pytest.mark.parametrize("point", range(how_many(ci=1, nightly=30)))
@pytest.mark.parametrize("finisher", ["commit", "mount", "daemon"])
@pytest.mark.some(2)
def test_a_commit_killed_half_way_is_finished_and_base_is_the_view(tmp_path: Path, finisher: str, point: int) -> None:
    directory = tmp_path / "project"
    project = Project(directory)
    populate(directory)
    project.run("mount", "--root", ".")
    subprocess.run(["sh", "-c", WORK], cwd=project.view, check=True)
    expected = without_settings(everything_below(str(project.view)))
    assert without_settings(everything_below(str(directory))) != expected
    if finisher != "daemon":
        project.run("unmount")
    stop_commit_after(project, dice("all", finisher, point).randrange(0, 190))
    if finisher == "commit":
        agree_to_finish(project)
    else:
        if finisher == "mount":
            refuses_to_mount(project)
        project.run("mount")
        assert without_settings(everything_below(str(project.view))) == expected
    assert without_settings(everything_below(str(directory))) == expected
    assert "no changes" in project.run("status")
    if finisher != "commit":
        project.run("unmount")
    assert (directory / ".yolofs/commits/1/done").exists()
    assert not list((directory / ".yolofs/commits/1/parked").iterdir())


@pytest.mark.parametrize("point", range(how_many(ci=1, nightly=30)))
@pytest.mark.parametrize("finisher", ["commit", "mount", "daemon"])
@pytest.mark.some(2)
def test_after_an_interrupted_commit_of_some_paths_the_rest_stays_staged(
    tmp_path: Path, finisher: str, point: int
) -> None:
    directory = tmp_path / "project"
    project = Project(directory)
    populate(directory)
    project.run("mount", "--root", ".")
    subprocess.run(["sh", "-c", WORK], cwd=project.view, check=True)
    expected = without_settings(everything_below(str(project.view)))
    if finisher != "daemon":
        project.run("unmount")
    some = ("moved", "kept", "chain")
    stop_commit_after(project, dice("some", finisher, point).randrange(0, 120), *some)
    if finisher == "commit":
        agree_to_finish(project)
    elif finisher == "mount":
        refuses_to_mount(project)
    project.run("mount")
    assert without_settings(everything_below(str(project.view))) == expected
    project.run("commit", "--yes", *some, code=1)  # all that can go has gone
    assert (directory / "chain/a").read_text() == "chain/b"
    assert (directory / "gone/sub/f1").read_text() == "gone"
    assert (directory / "directory").is_dir()
    assert without_settings(everything_below(str(project.view))) == expected
    project.run("commit", "--yes")
    assert without_settings(everything_below(str(directory))) == expected
    project.run("unmount")


def test_no_command_changes_the_session_before_an_interrupted_commit_is_finished(tmp_path: Path) -> None:
    directory = tmp_path / "project"
    project = Project(directory)
    populate(directory)
    project.run("mount", "--root", ".")
    subprocess.run(["sh", "-c", WORK], cwd=project.view, check=True)
    project.run("unmount")
    interrupt_commit(project.directory, 60)
    for words in (["abort", "--yes"], ["travel", "0"], ["snapshot"]):
        done = run_program(words, directory)
        assert done.returncode == 12
        assert "a commit was interrupted" in done.stderr
        assert (
            "hint: yolofs commit --continue finishes it, yolofs commit --roll-back takes it back (all stays staged)"
            in done.stderr
        )
    project.run("commit", "--continue")


def two_staged(directory: Path) -> Project:
    """Make a project of which one file was changed in the view, and one made."""
    project = Project(directory)
    (directory / "kept").write_text("kept\n")
    project.run("mount", "--root", ".")
    (project.view / "made").write_text("made\n")
    (project.view / "kept").write_text("other\n")
    project.run("unmount")
    return project


@pytest.mark.parametrize(
    ("words", "leaves"),
    points(
        list(
            itertools.product(
                [("status",), ("log",), ("commit", "--yes"), ("abort", "--yes"), ("mount",)], ["nothing", "something"]
            )
        ),
        "between two journals",
        some=5,
    ),
)
def test_a_commit_that_died_between_two_journals_is_done(tmp_path: Path, words: tuple[str, ...], leaves: str) -> None:
    """The old journal is away and the next one not yet there: whoever comes next, to look only,
    makes it.
    """
    directory = tmp_path / "project"
    project = two_staged(directory)
    project.run("commit", "--yes", *(["made"] if leaves == "something" else []))
    journal, commit = directory / ".yolofs/journal", directory / ".yolofs/commits/1"
    if leaves == "something":
        journal.rename(commit / CARRIED.decode())
    else:
        journal.unlink()
    project.run(*words)
    assert journal.exists()
    if words == ("mount",):
        assert (project.view / "kept").read_text() == "other\n"
        project.run("unmount")
    assert (directory / "made").read_text() == "made\n"
    is_left = leaves == "something" and words[0] not in ("commit", "abort")
    assert ("1 modified" in project.run("status")) is is_left


@pytest.mark.parametrize("words", [("status",), ("diff",), ("commit", "--yes"), ("mount",)])
@pytest.mark.some(2)
def test_a_commit_that_died_before_its_journal_was_put_away_is_done(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Whoever looks puts it away as well: what the old journal says is no change of base any
    more.
    """
    directory = tmp_path / "project"
    project = two_staged(directory)
    project.run("commit", "--yes")
    journal, archive = directory / ".yolofs/journal", directory / ".yolofs/commits/1/journal"
    ended = archive.read_bytes()
    archive.rename(journal)
    assert "made" not in project.run(*words)
    assert archive.read_bytes() == ended
    assert "no changes" in project.run("status")
    if words == ("mount",):
        project.run("unmount")


def test_a_journal_that_is_to_follow_waits_until_the_key_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nobody can tell that this is the journal to follow; an empty one in its place
    would lose it.
    """
    state = tmp_path / "state"
    monkeypatch.setenv("YOLOFS_STATE", str(state))
    directory = tmp_path / "project"
    project = two_staged(directory)
    project.run("commit", "--yes", "made")
    session = (directory / ".yolofs").resolve()
    (session / "journal").rename(session / "commits/1" / CARRIED.decode())
    for words in (["status"], ["abort", "--yes"], ["mount"], ["snapshot"]):
        state.chmod(0o777)
        done = run_program(words, directory)
        assert done.returncode != 0, done
        assert f"chmod go-w {state}" in done.stderr, done.stderr
        assert not (session / "journal").exists()
        state.chmod(0o700)
    assert "1 modified" in project.run("status")
    project.run("commit", "--yes")
    assert (directory / "kept").read_text() == "other\n"


def test_looking_waits_for_a_process_that_is_between_two_journals(tmp_path: Path) -> None:
    directory = tmp_path / "project"
    Project(directory)
    journal = directory / ".yolofs/journal"
    with session_locked(bytes(directory / ".yolofs")):
        journal.rename(directory / "away")
        command = [sys.executable, "-m", "yolofs.cli.main", "status"]
        with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as status:
            with pytest.raises(subprocess.TimeoutExpired):
                status.wait(1)
            (directory / "away").rename(journal)
            assert status.wait(60) == 0


def test_a_commit_that_was_interrupted_after_its_last_step_is_told_as_that(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, 3)
    (commit,) = (session_of(project) / "commits").iterdir()
    steps = len(msgspec.json.decode((commit / "plan.json").read_bytes())["steps"])
    (commit / "progress").write_text("".join(f"{number}\n" for number in range(steps)))
    said = run(["status"], project).stderr
    assert "all steps done but not ended" in said
    assert f"{steps} of {steps}" not in said
