"""All new files of a commit are made, and durable, before base is touched; what fails by then does
no harm.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import prepare
from tests.support.fault_points import points
from tests.support.looks import tree_of
from tests.support.memory_disk import memory_directory
from tests.support.planting import interrupt_commit, session_of
from tests.support.program import Program, run_code
from yolofs.commit.apply import execution, steps
from yolofs.errors import NotPreparedError
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.system import syscalls

pytestmark = pytest.mark.timeout(300)
NOT_PREPARED = 17
COMMIT_THAT_FAILS_PREPARING = """
import errno, os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply import linking
from yolofs.commit.apply import steps
really_make, really_look = steps.Steps._make_file, linking.Linking.look
made = 0
def count():
    global made
    if made == int(sys.argv[1]):
        {act}
    made += 1
def make(self, step, spot):
    count()
    really_make(self, step, spot)
def look(self, step):
    count()
    return really_look(self, step)
if sys.argv[2] == "copied":
    steps.Steps._make_file, linking.Linking.look = make, lambda self, step: None
else:
    linking.Linking.look = look
raise SystemExit(main.main(["commit", "--yes"]))
"""
FAILURES = {
    "no room": "raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))",
    "the disk failed": "raise OSError(errno.EIO, os.strerror(errno.EIO))",
    "forbidden": "raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))",
    "Ctrl-C": "os.kill(os.getpid(), signal.SIGINT)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
}
CODES = {"Ctrl-C": 130, "killed": -signal.SIGKILL}


@pytest.mark.parametrize(
    ("way", "failure", "after"),
    points(list(itertools.product(["copied", "linked"], FAILURES, [0, 2])), "preparation", some=6),
)
def test_whatever_fails_while_files_are_made_leaves_base_alone_and_all_staged(
    tmp_path: Path, failure: str, after: int, way: str
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    before = tree_of(project)
    times = {path: path.lstat().st_mtime_ns for path in project.rglob("*")}
    script = COMMIT_THAT_FAILS_PREPARING.format(act=FAILURES[failure])
    done = run_code(script, [str(after), way], project)
    assert done.returncode == CODES.get(failure, NOT_PREPARED), done.stderr
    if done.returncode == CODES.get("Ctrl-C"):
        assert "the commit was not begun, as it was interrupted; base is as it was, and all stays staged" in done.stderr
    if done.returncode == NOT_PREPARED:
        assert "could not be made: " in done.stderr
        assert "base is as it was, and all stays staged" in done.stderr
    assert tree_of(project) == before
    assert {path: path.lstat().st_mtime_ns for path in project.rglob("*")} == times
    program = Program(project)
    assert "interrupted" not in program("status").err
    program("commit", "--yes")
    assert tree_of(project) == expected
    assert [path.name for path in (session_of(project) / "commits").iterdir() if path.is_dir()] == ["1"]


def test_a_partial_commit_that_could_not_be_prepared_loses_nothing_of_the_rest(tmp_path: Path) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    script = COMMIT_THAT_FAILS_PREPARING.format(act=FAILURES["no room"]).replace('"--yes"', '"--yes", "c"')
    assert run_code(script, ["0", "linked"], project).returncode == NOT_PREPARED
    Program(project)("commit", "--yes", "c")
    assert (project / "c").read_bytes() == b"new c"
    Program(project)("commit", "--yes")
    assert tree_of(project) == expected


def test_new_content_is_durable_before_the_first_step_of_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    prepare(project)
    order: list[str] = []

    def noting(module: object, name: str, text: str) -> None:
        really = getattr(module, name)

        def act(*arguments: object, **options: object) -> object:
            order.append(text)
            return really(*arguments, **options)

        monkeypatch.setattr(module, name, act)

    noting(steps.Steps, "_make_file", "make")
    noting(syscalls, "sync_filesystem", "sync")
    noting(execution, "_do_one", "step")
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)
    first = order.index("step")
    assert "make" in order
    assert "make" not in order[first:]
    assert order[first - 1] == "sync"


def test_a_file_that_the_host_put_where_a_new_one_is_to_go_is_not_taken_for_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    view = CoreDriver(os.fsencode(project))
    view.create(b"x", b"the view's", 0o640)
    view.create(b"y", b"another", 0o640)
    view.close()
    interrupt_commit(project, 0)
    (project / "x").write_text("the host's\n")
    program = Program(project)
    assert "File exists" in program("commit", "--continue", code=12).err
    assert (project / "x").read_text() == "the host's\n"
    (project / "x").unlink()
    program("commit", "--continue")
    assert (project / "x").read_text() == "the view's"
    assert (project / "y").read_text() == "another"


def test_the_hint_of_an_undo_without_room_is_to_repeat_the_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    prepare(project)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), b"a")

    monkeypatch.setattr(steps.Steps, "make", no_room)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        with pytest.raises(NotPreparedError) as raised:
            undo(session, choose_commit(session, None))
        assert raised.value.message.startswith("the undo of commit 1 was not begun: ")
        assert raised.value.hint == (f"make room where {os.fsdecode(session.directory)} lies, then: yolofs undo 1")


def test_a_commit_without_room_for_what_is_in_a_new_directory_names_the_disk_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory_directory() as elsewhere:
        assert elsewhere.stat().st_dev != tmp_path.stat().st_dev
        monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
        project = elsewhere / "project"
        project.mkdir()
        view = CoreDriver(os.fsencode(project))
        view.mkdir(b"new", 0o755)
        view.create(b"new/x", b"much", 0o640)
        view.close()

        def no_room(*_: object) -> None:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), bytes(project / "new/x"))

        monkeypatch.setattr(steps.Steps, "make", no_room)
        with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
            with pytest.raises(NotPreparedError) as raised:
                commit(session)
            assert raised.value.hint == (
                f"make room where {os.fsdecode(session.directory)} or {project} lies, then: yolofs commit"
            )


def test_an_undo_that_cannot_begin_offers_to_undo_other_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    prepare(project)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        commit(session)

    def forbidden(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), b"a")

    monkeypatch.setattr(steps.Steps, "make", forbidden)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        with pytest.raises(NotPreparedError) as raised:
            undo(session, choose_commit(session, None))
        assert raised.value.hint == "fix that, or undo other paths: yolofs undo 1 PATH..."
