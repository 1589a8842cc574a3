"""A plan is carried out only by the user who wrote it, in its session, and unchanged, whatever lies
in a session.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import tree_of
from tests.support.ordinary_user import GID, UID
from tests.support.planting import (
    STEP,
    change_a_byte,
    creating,
    interrupt_commit,
    interrupted,
    plant,
    plant_plan,
    run,
    session_of,
)
from tests.support.program import Program
from yolofs.commit.plan.plan import Create, Duplicate, Link, MakeDirectory, Plan
from yolofs.errors import CommitError, TrustError
from yolofs.journal.journal import Journal
from yolofs.journal.records import Keep
from yolofs.paths import RelPath, StoreIno
from yolofs.registry.seal import KEY, Sealer
from yolofs.registry.state_directory import state_directory
from yolofs.session.archive import CARRIED
from yolofs.session.ending_interrupted import finish_interrupted
from yolofs.session.interrupted import examine
from yolofs.session.session import Session, SessionAccess

pytestmark = pytest.mark.timeout(300)
COMMANDS = (
    ["run", "--", "true"],
    ["mount"],
    ["commit", "--yes"],
    ["commit", "--continue"],
    ["status"],
    ["log"],
    ["diff"],
    ["abort", "--yes"],
    ["snapshot"],
    ["doctor"],
    ["unmount"],
)


def end_mount(project: Path) -> None:
    run(["unmount", "--force"], project)


# ---- planted


@pytest.mark.mount
def test_a_commit_that_a_clone_brings_is_not_carried_out(tmp_path: Path, victim: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    plant(clone / ".yolofs", victim)
    before = tree_of(victim)
    for words in COMMANDS:
        done = run(words, clone)
        assert tree_of(victim) == before, words
        assert "is finished" not in done.stderr
    end_mount(clone)


@pytest.mark.mount
@pytest.mark.parametrize("owner", ["root", "another"])
def test_a_plan_without_a_seal_is_refused_with_the_reason(tmp_path: Path, victim: Path, owner: str) -> None:
    """Root in a directory that an ordinary user has prepared, too, if the command gets so far."""
    project = tmp_path / "project"
    (project / "below").mkdir(parents=True)
    assert run(["init"], project).returncode == 0
    session = session_of(project)
    shutil.rmtree(session / "files")
    os.unlink(session / "journal")
    plant(session, victim)
    if owner == "another":
        for path in (project, project / "below", *session.rglob("*"), session):
            os.chown(path, UID, GID, follow_symlinks=False)
    before = tree_of(victim)
    for words in COMMANDS:
        done = run(words, project / "below")
        assert tree_of(victim) == before, words
        if owner == "root" and words[0] in ("run", "mount", "commit", "abort", "snapshot"):
            assert done.returncode == 15, (words, done)
            assert "it has no seal, so nobody knows who planned it" in done.stderr
            assert "yolofs commit --discard-interrupted" in done.stderr
    end_mount(project)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_plan_that_another_user_has_sealed_is_not_carried_out(tmp_path: Path) -> None:
    """All fits but the key: it is the other's."""
    project = tmp_path / "project"
    prepare(project)
    Sealer.open(os.fsencode(project), make=True)  # we have a key, too
    key = Path(os.fsdecode(state_directory())) / KEY.decode()
    ours = key.read_bytes()
    try:
        key.write_bytes(bytes(32))
        interrupt_commit(project, STEP)
    finally:
        key.write_bytes(ours)
    check_refused(project, "its seal was made with another key than yours")


@pytest.mark.parametrize("name", ["done", "given-up"])
def test_a_planted_end_does_not_put_the_journal_away(tmp_path: Path, name: str) -> None:
    """Else what is staged would leave the view, and what `carried` says would be staged."""
    project = tmp_path / "project"
    expected = prepare(project)
    session = session_of(project)
    commit = plant_plan(session, Plan(os.fsencode(project)))
    (commit / name).write_text("0\n")
    with Journal.create(os.fsencode(commit) + b"/" + CARRIED) as carried:
        carried.append(Keep(1, RelPath(b"a"), source=RelPath(b"b")))
    journal = (session / "journal").read_bytes()
    for words in COMMANDS[4:-1]:
        run(words, project)
        assert (session / "journal").read_bytes() == journal, words
        assert not (commit / "journal").exists()
    assert "it has no seal" in run(["status"], project).stderr
    assert len(expected) > 10


@pytest.mark.parametrize("tampered", ["done", CARRIED.decode(), "seal", "plan.json"])
def test_an_end_that_was_changed_does_not_put_the_journal_away(tmp_path: Path, tampered: str) -> None:
    """Killed when all was done, and before the journal was put away."""
    project = tmp_path / "project"
    prepare(project)
    session = session_of(project)
    before = (session / "journal").read_bytes()
    assert run(["commit", "--yes", "a", "b", "c"], project).returncode == 0
    commit = session / "commits/1"
    os.rename(session / "journal", commit / CARRIED.decode())
    os.rename(commit / "journal", session / "journal")
    assert (session / "journal").read_bytes() == before
    change_a_byte(commit / tampered)
    for words in (["status"], ["abort", "--yes"], ["commit", "--yes"], ["snapshot"]):
        done = run(words, project)
        assert "a commit was interrupted" in done.stderr
        assert (session / "journal").read_bytes() == before
        assert not (commit / "journal").exists()


# ---- interrupted here, and changed since


def check_refused(project: Path, *reasons: str, base: Path | None = None) -> None:
    """Check that no command finishes a project's commit; each leaves base alone, and says why."""
    base = base or project
    before = tree_of(base)
    for words in (["run", "--", "true"], ["mount"], ["commit", "--yes"], ["commit", "--continue"], ["abort", "--yes"]):
        done = run(words, project)
        assert tree_of(base) == before, words
        assert done.returncode == 15, (words, done)
        first, second = done.stderr.splitlines()
        for reason in reasons:
            assert reason in first, done.stderr
        assert "yolofs commit --discard-interrupted" in second
        assert str(session_of(project) / "commits/1/replaced") in second
    for words in (["status"], ["log"], ["diff"], ["unmount"]):
        done = run(words, project)
        assert done.returncode == 0, (words, done)
        assert reasons[0] in done.stderr
    assert reasons[0] in run(["doctor"], project).stdout
    assert tree_of(base) == before


def add(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def other_session(project: Path) -> Path:
    other = project.with_name("other")
    prepare(other)
    interrupt_commit(other, STEP)
    return session_of(other) / "commits/1"


def plan_of_another_session(project: Path) -> None:
    other = other_session(project)
    for name in ("plan.json", "seal"):
        shutil.copy(other / name, session_of(project) / "commits/1" / name)


def another_key(_: Path) -> None:
    os.rename(key_path(), key_path().with_name("kept"))
    key_path().write_bytes(os.urandom(32))
    key_path().chmod(0o600)


def no_key(_: Path) -> None:
    os.rename(key_path(), key_path().with_name("kept"))


def key_path() -> Path:
    return Path(os.fsdecode(os.path.join(state_directory(), KEY)))


TAMPERINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "one_byte_of_the_plan": (
        lambda project: change_a_byte(session_of(project) / "commits/1/plan.json"),
        "its plan was changed",
    ),
    "a_byte_more": (
        lambda project: add(session_of(project) / "commits/1/plan.json", b" "),
        "its plan was changed",
    ),
    "one_byte_of_the_seal": (lambda project: change_a_byte(session_of(project) / "commits/1/seal"), "its seal "),
    "no_seal": (lambda project: (session_of(project) / "commits/1/seal").unlink(), "it has no seal"),
    "a_seal_that_is_a_link": (
        lambda project: link_to_itself(session_of(project) / "commits/1/seal"),
        "it has no seal",
    ),
    "carried": (
        lambda project: add(session_of(project) / "commits/1/carried", b"yolofs-journal 1\n"),
        "the journal that is to follow it (carried) was changed",
    ),
    "another_sessions_plan": (
        plan_of_another_session,
        "it belongs to another session, or this one lay elsewhere",
    ),
    "another_number": (
        lambda project: os.rename(session_of(project) / "commits/1", session_of(project) / "commits/2"),
        "it was commit 1",
    ),
    "another_key": (another_key, "its seal was made with another key than yours"),
    "no_key": (no_key, "there is no key of yours"),
    "the_end_is_written": (
        lambda project: add(session_of(project) / "commits/1/done", b"20\n"),
        "the note that it is done was changed",
    ),
}


def link_to_itself(path: Path) -> None:
    os.rename(path, path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("what", points(list(TAMPERINGS), "tamperings", some=3))
def test_a_plan_that_was_changed_after_the_interruption_is_not_carried_out(tmp_path: Path, what: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, STEP)
    tamper, reason = TAMPERINGS[what]
    tamper(project)
    if what == "another_number":
        os.symlink("2", session_of(project) / "commits/1")  # of which the hint speaks; a link is no commit
        assert "it was commit 1" in run(["commit", "--continue"], project).stderr
        return
    check_refused(project, reason)


def test_a_changed_byte_in_the_journal_that_is_to_follow_breaks_the_seal(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, 2, "a", "b", "c")
    assert (session_of(project) / "commits/1/carried").exists()
    change_a_byte(session_of(project) / "commits/1/carried")
    check_refused(project, "the journal that is to follow it (carried) was changed")


def test_a_machine_that_was_set_up_anew_does_not_finish_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, STEP)
    before = tree_of(project)
    other = tmp_path / "machine-id"
    other.write_text("0123456789abcdef0123456789abcdef\n")
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        with pytest.raises(TrustError, match="it began on another machine, or this one was set up anew") as caught:
            finish_interrupted(session, machine_files=[os.fsencode(other)])
        assert "yolofs commit --discard-interrupted" in caught.value.hint
        assert tree_of(project) == before
        finished = finish_interrupted(session)
    assert finished is not None


def test_another_directory_in_the_place_of_base_is_left_alone(tmp_path: Path) -> None:
    """It has no session: that belongs to the old directory, and goes on once this is back."""
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, STEP)
    moved = tmp_path / "moved away"
    os.rename(project, moved)
    project.mkdir()
    (project / "a").write_text("of somebody else\n")
    assert run(["commit", "--continue"], project).returncode == 4
    assert "a commit was interrupted when the project was" in run(["commit", "--continue"], moved).stderr
    assert sorted(os.listdir(project)) == ["a"]
    shutil.rmtree(project)
    os.rename(moved, project)
    assert run(["commit", "--continue"], project).returncode == 0


@pytest.mark.parametrize("directory", ["e", "new", "g"])
def test_a_directory_of_base_that_became_a_link_out_of_it_is_not_followed(
    tmp_path: Path, victim: Path, directory: str
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    interrupt_commit(project, STEP)
    was = project / directory
    if was.exists():
        os.rename(was, tmp_path / "was")
    was.symlink_to(victim)
    before, base = tree_of(victim), tree_of(project)
    done = run(["commit", "--continue"], project)
    assert done.returncode in (12, 15), done
    assert tree_of(victim) == before
    if directory != "new":  # which the plan itself is to make, so that something may lie there for a while
        assert f"a symbolic link lies at {was}, on the way to {directory}/" in done.stderr
        assert tree_of(project) == base
    was.unlink()
    if (tmp_path / "was").exists():
        os.rename(tmp_path / "was", was)
    assert run(["commit", "--continue"], project).returncode == 0
    assert tree_of(project) == expected


def seal_anew(project: Path, plan: Plan) -> None:
    """Put another plan in the place of an interrupted one, with a seal that fits: what only we
    could do.
    """
    from yolofs.session.interrupted import CommitSeals

    directory = os.fsencode(session_of(project))
    commit = os.path.join(directory, b"commits/1")
    seals = CommitSeals(Sealer.open(directory), 1, os.fsencode(project), commit)
    Path(os.fsdecode(commit), "seal").write_bytes(seals.of_plan(plan.encode()))
    Path(os.fsdecode(commit), "plan.json").write_bytes(plan.encode())
    Path(os.fsdecode(commit), "progress").write_bytes(b"")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (creating(b"../victim/x"), "not a path relative to base"),
        (creating(b"e/../../victim/x"), "not a path relative to base"),
        (creating(b"/etc/x"), "not a path relative to base"),
        (creating(b"e//x"), "not a path relative to base"),
        (creating(b"e/\0"), "NUL"),
        (creating(b""), "Create of base itself"),
        (creating(b".yolofs/rules.toml"), "where no view and no commit may do anything"),
        (creating(b"e/nowhere/.yolofs-no/x"), ""),
        (Link(RelPath(b"e/l"), RelPath(b"../victim/precious"), 1), "not a path relative to base"),
        (Link(RelPath(b"e/l"), RelPath(b"out/precious"), 1), "a symbolic link lies at"),
        (Duplicate(RelPath(b"e/l"), RelPath(b"/etc/shadow"), StoreIno(1), 1), "not a path relative to base"),
        (Create(RelPath(b"e/x"), StoreIno(99999), 1, 1, 1), "the content of e/x is missing from the store"),
        (Create(RelPath(b"e/x"), StoreIno(-1), 1, 1, 1), "is no number of a store inode"),
        (Create(RelPath(b"e/x"), StoreIno(1), -1, 1, 1), "is no number of a slot"),
        (MakeDirectory(RelPath(b"out/made"), StoreIno(1)), "a symbolic link lies at"),
        (creating(b"out/x"), "a symbolic link lies at"),
    ],
)
def test_the_paths_of_a_plan_are_looked_at_again(
    tmp_path: Path, victim: Path, step: Create | Link | Duplicate | MakeDirectory, reason: str
) -> None:
    """Also of one with a seal that fits."""
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, 0)
    (project / "out").symlink_to(victim)
    seal_anew(project, Plan(os.fsencode(project), (step,)))
    before, base = tree_of(victim), tree_of(project)
    done = run(["commit", "--continue"], project)
    assert done.returncode == (15 if reason else 12), done
    assert reason in done.stderr
    assert (tree_of(victim), tree_of(project)) == (before, base)


def test_a_plan_for_another_root_is_refused(tmp_path: Path, victim: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    interrupt_commit(project, 0)
    seal_anew(project, Plan(os.fsencode(victim), (creating(b"x"),)))
    check_refused(project, f"its plan is for the base {victim}, and the session's is {project}")
    assert os.listdir(victim) == ["precious"]


# ---- what is not to be in the way


def test_a_commit_seals_before_it_plans_and_with_a_key_of_its_users_own(tmp_path: Path) -> None:
    project, _ = interrupted(tmp_path)
    commit = session_of(project) / "commits/1"
    for path in (commit / "seal", key_path()):
        assert path.stat().st_mode & 0o7777 == 0o600
    assert len(key_path().read_bytes()) == 32
    assert key_path().read_bytes().hex() not in (commit / "seal").read_text()
    machine = Path("/etc/machine-id")
    if machine.exists() and machine.read_text().strip():
        assert machine.read_text().strip() not in (commit / "seal").read_text()
    assert (commit / "seal").stat().st_mtime_ns <= (commit / "plan.json").stat().st_mtime_ns


def test_a_state_directory_that_others_may_write_to_stops_a_commit_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    prepare(project)
    (tmp_path / "open/yolofs").mkdir(parents=True, mode=0o700)
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "open"))
    before = tree_of(project)
    done = run(["commit", "--yes"], project)
    assert done.returncode == 15, done
    assert "others may write to" in done.stderr
    assert tree_of(project) == before
    assert not (session_of(project) / "commits").exists()


def test_examining_an_interrupted_commit_changes_nothing(tmp_path: Path) -> None:
    project, _ = interrupted(tmp_path)
    before = {path: path.lstat().st_mtime_ns for path in project.rglob("*")}
    with Session.open(os.fsencode(project), SessionAccess.READ) as session:
        found = examine(session.directory, session.base, session.store)
        assert found is not None
        assert isinstance(found.error, CommitError)
        assert (found.done, found.problems) == (STEP, ())
    assert {path: path.lstat().st_mtime_ns for path in project.rglob("*")} == before


def test_a_deep_path_is_no_reason_to_stop(tmp_path: Path) -> None:
    """As deep as paths may be."""
    from yolofs.commit.plan.recheck import find_obstacle, find_problem
    from yolofs.store.base import Base
    from yolofs.store.store import Store

    path = RelPath(b"/".join([b"d"] * 2000))
    plan = Plan(os.fsencode(tmp_path), (creating(path),))
    store = Store(os.fsencode(tmp_path / "files"))
    store.create_file(0o600)
    plan, base = Plan.decode(plan.encode()), Base(os.fsencode(tmp_path))
    assert find_problem(plan, base) == find_obstacle(plan, base, store, done=0) == ""


@pytest.mark.mount
def test_the_mount_that_lent_the_session_does_not_go_by_what_was_planted_before(tmp_path: Path, victim: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    program.start_session()
    with program.mounted() as view:
        (view / "f").write_text("staged\n")
        plant_plan(session_of(project), Plan(os.fsencode(victim), (creating(b"x"),)))
        done = run(["commit", "--yes"], project)
        assert done.returncode == 15
        assert "it has no seal" in done.stderr
        assert (view / "f").read_text() == "staged\n"
        assert subprocess.run(["ls", victim], capture_output=True, text=True, check=True).stdout == "precious\n"
        assert not (project / "f").exists()
        assert run(["commit", "--discard-interrupted", "--yes"], project).returncode == 0
        assert not (view / "f").exists()
