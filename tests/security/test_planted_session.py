"""A ``.yolofs/`` in the tree: an earlier version's goes on in the state directory, a planted one
does not.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.earlier_session import add_records, put_earlier_session, sealed
from tests.support.program import Program, run_code
from tests.support.terminal import Terminal
from yolofs.errors import SessionBusyError
from yolofs.journal.journal import Journal
from yolofs.journal.records import Rename
from yolofs.paths import RelPath, StoreIno
from yolofs.session.opening.earlier_versions import earlier_session, move_into_state
from yolofs.state import checkpoint
from yolofs.state.tree import Tree

STAGED = {("M", "a.txt"), ("R", "moved"), ("A", "moved/new.txt"), ("D", "old.txt")}


@pytest.fixture
def project(tmp_path: Path, state: Path, home: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def staged(program: Program) -> set[tuple[str, str]]:
    changes = program("status", "--json").json["changes"]
    return {(change["kind"], os.path.relpath(change["path"], program.project)) for change in changes}


def check_untouched(session: Path, state: Path) -> None:
    assert session.is_dir()
    assert not session.is_symlink()
    assert not list(state.glob("sessions/*"))


@pytest.mark.mount
def test_a_stored_session_of_an_earlier_version_goes_on_in_the_state_directory(project: Path, state: Path) -> None:
    put_earlier_session(project)
    program = Program(project)
    said = program("status").err
    (session,) = (state / "sessions").iterdir()
    assert f"moved the session of {project} from .yolofs/ to {session}" in said
    assert os.readlink(project / ".yolofs") == str(session)
    assert "moved" not in program("status").err
    assert staged(program) == STAGED
    assert "vendor" in program("rule", "list").out
    assert program("runs").out.count("exit 0") == 3
    assert program("run", "--", "cat", "a.txt", "moved/new.txt").out == "one\ntwo\nthree\nfour\nnew\n"
    program("travel", "1")
    assert staged(program) == STAGED - {("D", "old.txt")}
    program("commit", "--yes", "--force")
    program("unmount")
    assert (project / "moved/new.txt").read_text() == "new\n"
    assert (project / "moved/b.txt").read_text() == "b\n"
    assert (session / "commits/2/done").exists()


def test_init_takes_over_a_harmless_session_too(project: Path, state: Path) -> None:
    put_earlier_session(project)
    assert "moved the session" in Program(project)("init").err
    assert staged(Program(project)) == STAGED


def test_a_session_that_git_brought_is_not_the_users(project: Path, state: Path) -> None:
    session = put_earlier_session(project)
    session.chmod(0o755)  # git keeps no other mode
    for words in (("status",), ("run", "--", "true"), ("init",)):
        said = Program(project).refused(*words, code=15)
        assert f"{session} has mode 0755, and not 0700" in said
        assert "remove or rename it; then: yolofs init" in said
    check_untouched(session, state)


@pytest.mark.parametrize(
    ("name", "target"),
    [("journal", "journal.real"), ("rules.toml", "../rules"), ("files", "../files"), ("files/00", "../mail")],
)
def test_a_session_with_links_in_it_is_not_the_users(project: Path, state: Path, name: str, target: str) -> None:
    session = put_earlier_session(project)
    (session / name).rename((session / name).parent / target)
    (session / name).symlink_to(target)
    assert f"{session / name} is a symbolic link" in Program(project).refused("status", code=15)
    check_untouched(session, state)


@pytest.mark.parametrize(
    "name", ["daemon.json.new", "daemon.json", "daemon.log", "commits/1", "commits/1/new", "anything"]
)
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_a_session_with_anything_else_in_it_is_not_the_users(
    project: Path, state: Path, tmp_path: Path, name: str, kind: str
) -> None:
    session = put_earlier_session(project)
    target = tmp_path / "precious"
    target.write_text("mine")
    place = session / name
    if place.is_dir():
        place.rename(tmp_path / "away")
    place.unlink(missing_ok=True)
    place.symlink_to(target) if kind == "link" else os.mkfifo(place, 0o600)
    said = Program(project).refused("run", "--", "true", code=15)
    assert f"{place} is" in said
    assert target.read_text() == "mine"
    check_untouched(session, state)


@pytest.mark.mount
def test_a_checkpoint_that_was_planted_beside_a_harmless_journal_says_nothing(
    project: Path, state: Path, tmp_path: Path
) -> None:
    """It would stand for the journal: an earlier one of this very journal, with another tree, fits
    by its checksum.
    """
    session = put_earlier_session(project)
    records = Journal.open(os.fsencode(session / "journal"), read_only=True)
    tree = Tree()
    tree.apply(Rename(1, RelPath(b"etc/hostname"), RelPath(bytes(project)[1:] + b"/leak")))
    planted = checkpoint.make(records.known(), tree, live=(1, 2, 3), fresh_from=StoreIno(9), numbers={2, 3})
    checkpoint.write(os.fsencode(session), planted)
    records.close()
    assert (session / "checkpoint").exists()
    program = Program(project)
    assert staged(program) == STAGED
    assert not list(state.glob("sessions/*/checkpoint"))


def test_a_session_whose_journal_has_another_name_is_not_the_users(project: Path, state: Path) -> None:
    session = put_earlier_session(project)
    os.link(session / "journal", project / "second-name")
    assert "is no plain file of its own" in Program(project).refused("status", code=15)
    check_untouched(session, state)


def planted_commit(session: Path) -> None:
    for name in ("done", "journal"):  # which comes there at the end
        (session / "commits/1" / name).unlink()


def planted_rule(session: Path) -> None:
    (session / "rules.toml").write_text('[rules]\n"~/.ssh" = "allow"\n')


def planted_outside(session: Path) -> None:
    add_records(session, "S 1795422235602618241 etc/profile 3")


def planted_source(session: Path) -> None:
    add_records(session, f"S 1795422235602618241 {str(session.parent)[1:]}/x 3 from=etc/shadow base=1:1:1")


def planted_rename(session: Path) -> None:
    add_records(session, f"R 1795422235602618241 etc/shadow {str(session.parent)[1:]}/x")


def planted_second_journal(session: Path) -> None:
    (session / "session.json").write_text('{"root":"/","configured":"/","version":1,"has_moved_journal":true}')
    (session / "journal").rename(session / "journal.moved")
    (session / "journal").write_text("yolofs-journal 1\n")
    lines = (session / "journal.moved").read_text()
    (session / "journal.moved").write_text(lines + sealed("R 1795422235602618241 etc/hostname etc/leak"))


def planted_root(session: Path) -> None:
    up = "/".join([".."] * len(session.parent.parts[1:]))
    root = f"{session.parent}/{up}"
    (session / "session.json").write_text(json.dumps({"root": root, "configured": root, "version": 1}))
    add_records(session, "R 1795422235602618241 etc/hostname etc/leak")


def planted_link(session: Path) -> None:
    (session.parent / "way").symlink_to("/")
    inside = str(session.parent)[1:]
    add_records(session, f"R 1795422235602618241 {inside}/way/etc/hostname {inside}/leak")


PLANTED: dict[Callable[[Path], None], str] = {
    planted_commit: "a commit was interrupted",
    planted_rule: "its rules open something: ~/.ssh = allow",
    planted_outside: "it stages changes outside of the project: /etc/profile",
    planted_source: "it stages changes outside of the project: /etc/shadow",
    planted_root: "it stages changes outside of the project: /etc/hostname",
    planted_link: "it stages changes outside of the project: /etc/hostname",
    planted_rename: "it stages changes outside of the project: /etc/shadow",
}


def test_a_session_with_a_second_journal_is_not_the_users(project: Path, state: Path) -> None:
    session = put_earlier_session(project)
    planted_second_journal(session)
    assert "journal.moved is not what an earlier version made" in Program(project).refused("status", code=15)
    (session / "journal.moved").unlink()  # the flag alone
    assert "its session.json names another journal" in Program(project)("status", code=15).err
    check_untouched(session, state)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_session_that_could_do_harm_is_not_used_unasked(
    project: Path, state: Path, plant: Callable[[Path], None]
) -> None:
    session = put_earlier_session(project)
    plant(session)
    for words in (("status",), ("run", "--", "true"), ("commit", "--yes"), ("init",)):
        done = Program(project)(*words, code=15)
        assert PLANTED[plant] in done.err
        assert f"yolofs init --adopt {project}" in done.err
        assert done.out == ""
    check_untouched(session, state)
    assert "moved the session" in Program(project)("init", "--adopt").err
    assert (project / ".yolofs").is_symlink()


@pytest.mark.parametrize(("answer", "is_used"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_at_a_terminal_the_user_is_asked(project: Path, state: Path, answer: str, is_used: bool) -> None:
    session = put_earlier_session(project)
    planted_rule(session)
    with Terminal(project, ["status"]) as terminal:
        terminal.wait_for("did you make it yourself, and is it to be used? [y/N]")
        terminal.type(answer)
        assert terminal.wait() == (0 if is_used else 15)
    if is_used:
        assert staged(Program(project)) == STAGED
    else:
        check_untouched(session, state)


def test_a_session_whose_daemon_still_runs_is_left_alone(project: Path, state: Path) -> None:
    session = put_earlier_session(project)
    with (session / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "is at work on this session" in Program(project).refused("status", code=5)
    check_untouched(session, state)
    assert staged(Program(project)) == STAGED


def test_a_move_that_was_killed_before_the_directory_moved_is_done_again(project: Path, state: Path) -> None:
    """As registering comes before renaming, the registry knows of a session that is not there
    yet.
    """
    session = put_earlier_session(project)
    code = (
        "import os; from yolofs.session.opening import earlier_versions as m\n"
        "register = m.register\n"
        "def killed(*words): register(*words); os._exit(9)\n"
        "m.register = killed\n"
        f"with m.earlier_session({os.fsencode(project)!r}) as earlier: m.move_into_state(earlier)\n"
    )
    assert run_code(code, [], project).returncode == 9
    assert session.is_dir()
    assert list((state / "registry").iterdir())
    assert staged(Program(project)) == STAGED
    assert len(list((state / "registry").iterdir())) == 1


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_session_exchanged_during_its_move_loses_nothing(project: Path, state: Path, kind: str) -> None:
    """Whoever may write to a shared directory may exchange what is in it between any two steps of
    the move.
    """
    session = put_earlier_session(project)
    other = project.parent / "other"
    other.mkdir()
    (other / "precious").write_text("mine\n")
    exchange = f"os.symlink({str(other)!r}, s)" if kind == "link" else f"os.rename({str(other)!r}, s)"
    code = (
        "import os; from yolofs.session.opening import earlier_versions as m; from yolofs.errors import YolofsError\n"
        f"s = {str(session)!r}; choose_state = m.choose_state\n"
        f"def exchanged(*words): os.rename(s, s + '-away'); {exchange}; return choose_state(*words)\n"
        "m.choose_state = exchanged\n"
        "try:\n"
        f"    with m.earlier_session({os.fsencode(project)!r}) as earlier: m.move_into_state(earlier)\n"
        "except (OSError, YolofsError) as error: print(error)\n"
    )
    done = run_code(code, [], project)
    assert done.returncode == 0, done.stderr
    found = next(state.glob("sessions/*/precious"), None) if kind == "directory" else other / "precious"
    assert found is not None
    assert found.read_text() == "mine\n"
    if kind == "directory":
        assert f"somebody has put something else in the place of {session}" in done.stdout
        assert str(found.parent) in done.stdout
    else:
        assert not list((state / "registry").iterdir())
    assert (project / ".yolofs-away/journal").exists()
    assert sorted(path.name for path in (project / ".yolofs-away/files").iterdir())


@pytest.mark.parametrize(("name", "code"), [("journal", 6), ("session.json", 1)])
def test_what_is_damaged_in_it_is_named_by_its_path(project: Path, state: Path, name: str, code: int) -> None:
    session = put_earlier_session(project)
    (session / name).write_text("{")
    (session / name).chmod(0o600)
    assert str(session / name) in Program(project).refused("status", code=code)
    check_untouched(session, state)


def test_of_two_commands_that_move_a_session_at_once_one_does(project: Path, state: Path) -> None:
    put_earlier_session(project)
    with earlier_session(os.fsencode(project)) as earlier:
        assert staged(Program(project)) == STAGED  # moves it
        with pytest.raises(SessionBusyError):
            move_into_state(earlier)
    assert staged(Program(project)) == STAGED
    assert len(list((state / "registry").iterdir())) == 1


def test_of_two_commands_that_start_a_session_at_once_one_does(project: Path, state: Path) -> None:
    """The other one starts when the first has seen that there is none."""
    code = (
        "import os, sys; from yolofs.registry import start as m; from tests.support.program import Program\n"
        "from pathlib import Path\n"
        "choose_state = m.choose_state\n"
        f"def slow(*words): Program(Path({str(project)!r}))('init'); return choose_state(*words)\n"
        "m.choose_state = slow\n"
        f"print(m.start({os.fsencode(project)!r}).is_new)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root)
    assert done.stdout == "False\n"
    assert len(list((state / "registry").iterdir())) == len(list((state / "sessions").iterdir())) == 1
