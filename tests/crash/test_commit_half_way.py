"""A commit that can neither be finished nor taken back: the mount stays and shows what it showed
before, and all is well once the cause is fixed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.test_commit_taken_back import commit_failing
from tests.support.every_kind_of_step import prepare
from tests.support.file_flags import flagged
from tests.support.looks import everything_below, exactly, tree_of
from tests.support.program import Program, run_code
from yolofs.commit.select.selection import Selection
from yolofs.paths import RelPath
from yolofs.session import session as session_module
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
FAILED = 12
MAKE_IMMUTABLE = """
        import fcntl, struct
        fcntl.ioctl(os.open(".", os.O_RDONLY), 0x40086602, struct.pack("l", 0x10))"""


def shown(tree: Path) -> dict[str, tuple[object, ...]]:
    return {path: what for path, what in everything_below(str(tree)).items() if not path.startswith(".yolofs")}


def refuse_changes(view: Path) -> None:
    """Check that nothing can be changed, in whatever way."""
    changes: list[Callable[[], object]] = [
        lambda: (view / "more").write_text("x"),
        lambda: (view / "c").write_text("x"),
        lambda: (view / "e/x").chmod(0o644),
        lambda: (view / "a").rename(view / "elsewhere"),
        (view / "b").unlink,
    ]
    for change in changes:
        with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
            change()


@pytest.mark.parametrize(("step", "way"), [(6, "--continue"), (10, "--roll-back")])
def test_the_mount_stays_and_the_commit_goes_on_once_the_cause_is_mended(tmp_path: Path, step: int, way: str) -> None:
    project = tmp_path / "project"
    prepare(project)
    before = exactly(project)
    program = Program(project)
    with program.mounted(expected_in_log=("can neither be finished nor taken back",)) as view:
        expected = shown(view)
        with (view / "c").open("r+b", buffering=0) as fresh:
            with flagged(project, 0):
                done = commit_failing(project, MAKE_IMMUTABLE, step)
                assert done.returncode == FAILED, done.stderr
                assert "could not be taken back either" in done.stderr
                assert exactly(project) != before
                assert shown(view) == expected
                status = program("status")
                assert "mounted at" in status.out
                assert "can neither be finished nor taken back: " in status.err
                assert "yolofs commit --roll-back takes it back" in status.err
                assert "what is staged is listed once that is settled" in status.err
                assert "changed in base, too" not in status.out  # it is the commit that has changed it
                refuse_changes(view)
                with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
                    fresh.write(b"lost?")
                program.refused("snapshot", code=FAILED)
                program("commit", way, code=FAILED)
                assert shown(view) == expected
            program("commit", way)
            fresh.write(b"more")
        assert (view / "c").read_bytes() == b"more" + b"new c"[4:]
        if way == "--roll-back":
            assert exactly(project) == before
        program("commit", "--yes")
        assert shown(view) == shown(project)
        assert shown(project).keys() == expected.keys()


NOT_ENDED = """
import errno, fcntl, os, struct, sys
from yolofs.cli import main
from yolofs.commit.apply.steps import Steps
really = Steps.release_store
def release(self):
    really(self)
    if sys.argv[1:]:
        os._exit(9)
    fcntl.ioctl(os.open(self._parking, os.O_RDONLY), 0x40086602, struct.pack("l", 0x10))
Steps.release_store = release
raise SystemExit(main.main(["commit", "--yes"]))
"""


def test_when_names_in_the_store_are_gone_and_the_end_cannot_be_written_all_is_shown_still(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    with flagged(program.session, 0):
        pass  # such flags can be set here
    with program.mounted(expected_in_log=("can neither be finished nor taken back",)) as view:
        expected = shown(view)
        done = run_code(NOT_ENDED, [], project)
        directory = os.open(program.session / "commits/1", os.O_RDONLY)
        try:
            assert done.returncode == FAILED, done.stderr
            assert "steps of the commit are done, but it could not be closed" in done.stderr
            assert shown(view) == expected
            program("diff")
            refuse_changes(view)
            program("commit", "--continue", code=FAILED)
            assert shown(view) == expected
        finally:
            fcntl.ioctl(directory, 0x40086602, struct.pack("l", 0))
            os.close(directory)
        program("commit", "--continue")
        assert shown(view) == shown(project)
        assert shown(project).keys() == expected.keys()


def test_diff_status_and_log_work_after_a_commit_that_could_not_end(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    assert run_code(NOT_ENDED, ["dies"], project).returncode == 9
    for word in ("diff", "status", "log"):
        program(word)
    assert "missing from the store" not in program("doctor", code=1).out
    program("commit", "--continue")
    assert program("diff").out == ""


NOT_PUT_AWAY = """
import errno, fcntl, os, struct, sys
from yolofs.cli import main
from yolofs.session.session import Session
really = Session.put_away
def put_away(self, archive):
    fcntl.ioctl(os.open(self.directory, os.O_RDONLY), 0x40086602, struct.pack("l", 0x10))
    really(self, archive)
Session.put_away = put_away
raise SystemExit(main.main(["commit", "--yes"]))
"""


def test_a_journal_that_cannot_be_put_away_does_not_end_the_mount(tmp_path: Path) -> None:
    project = tmp_path / "project"
    prepare(project)
    program = Program(project)
    with program.mounted(expected_in_log=("its journal cannot be put away",)) as view:
        expected = shown(view)
        with flagged(program.session, 0):
            done = run_code(NOT_PUT_AWAY, [], project)
            assert done.returncode == 0, done.stderr
            assert "commit 1 done" in done.stderr
            assert "commit 1 is done, but its journal could not be put away: Operation not permitted" in done.stderr
            assert shown(project) == expected
            assert shown(view) == expected
            refuse_changes(view)
            assert "commit 1 is done, but its journal cannot be put away" in program.refused("status", code=FAILED)
            program.refused("commit", "--yes", code=FAILED)
            assert shown(view) == expected
        assert "no changes" in program("status").out
        (view / "more").write_text("x")
        assert shown(view).keys() == expected.keys() | {"more"}
        program("commit", "--yes")
    assert shown(project).keys() == expected.keys() | {"more"}


@pytest.mark.parametrize("selection", ["all", "some"])
@pytest.mark.parametrize("what", ["rename", "begin_journal"])
def test_a_commit_that_is_done_says_so_whatever_fails_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, selection: str
) -> None:
    project = tmp_path / "project"
    expected = prepare(project)
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        path = session.journal.path
        paths = Selection(session.regions, paths=() if selection == "all" else (RelPath(b"c"), RelPath(b"new")))
        with monkeypatch.context() as patch:
            really = os.rename

            def rename(src: bytes, dst: bytes, **fds: int) -> None:
                if src == path:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), src)
                really(src, dst, **fds)

            def begin(_path: bytes, _commit: bytes | None) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            if what == "rename":
                patch.setattr(os, "rename", rename)
            else:
                patch.setattr(session_module, "begin_journal", begin)
            done = commit(session, selection=paths)
    assert done.number == 1
    assert "No space left on device" in done.unfinished
    with Session.open(os.fsencode(project), SessionAccess.WRITE) as session:
        assert session.interrupted_commit() is None
        if selection == "some":
            assert (project / "c").read_text() == "new c"
            assert (project / "a").read_text() == "base a"
        commit(session)
    assert tree_of(project) == expected
