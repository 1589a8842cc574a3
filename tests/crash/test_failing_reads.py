"""A disk that fails to read is never taken for an empty one: each read before an irrevocable step
fails once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.injected_faults import Faults
from tests.support.looks import exactly
from tests.support.memory_disk import memory_directory
from yolofs.commit.apply import execution, kept_copies, other_devices, step_log
from yolofs.commit.apply.recovery.found_files import place_for
from yolofs.commit.plan.last_check import check_names
from yolofs.commit.plan.plan import Remove
from yolofs.commit.plan.planner import plan_commit
from yolofs.errors import CommitError, NoSessionError, YolofsError
from yolofs.paths import RelPath, StoreIno
from yolofs.registry.seal import digest_of_file, read_plainly
from yolofs.registry.search import find
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, prepare_undo
from yolofs.session.undo_notes import read_undoes
from yolofs.state.link_names import find_name_near, find_names, find_names_at
from yolofs.state.tree import Staged
from yolofs.store import restored
from yolofs.store.base import Base
from yolofs.store.scratch_store import scratch_store
from yolofs.system.plain_files import is_there, make_directory, read_note

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for project and sessions, in memory if there is one."""
    with memory_directory() as directory:
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        yield directory


def each_read_fails(place: Path, act: Callable[[], object]) -> Iterator[BaseException | None]:
    """Do something again and again, and have one read after another fail; yield what comes of it.

    It ends when there is no further read to fail, and so with one time at which none did.
    """
    for call in range(100_000):
        faults = Faults(errno.EIO, range(call, call + 1), within=os.fsencode(place))
        with faults.at_work():
            try:
                act()
            except (OSError, YolofsError) as error:
                failure: BaseException | None = error
            else:
                failure = None
        yield failure
        if not faults.failed:
            return


def populated(place: Path) -> bytes:
    project = os.fsencode(place / "project")
    os.mkdir(project)
    populate(project)
    return project


def test_the_journal_in_force_is_not_put_away_with_a_commit_that_is_already(place: Path) -> None:
    project = populated(place)
    view = CoreDriver(project)
    work(view)
    view.commit()
    view.create(b"staged since", b"work", 0o644)
    expected = view.tree()
    archive = Path(os.fsdecode(view.session.directory)) / "commits/1/journal"
    journal = Path(os.fsdecode(view.session.journal.path))
    view.close()
    archived, in_force = archive.read_bytes(), journal.read_bytes()
    failures = 0
    for failure in each_read_fails(place, lambda: Session.open(project, SessionAccess.WRITE).close()):
        failures += failure is not None
        assert archive.read_bytes() == archived
        assert in_force in journal.read_bytes()
    assert failures > 20
    view = CoreDriver(project)
    assert view.tree() == expected
    view.close()


def test_a_commit_whose_end_is_settled_is_not_taken_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By then names in the store may have gone, so there is nothing to take it back to."""
    project = populated(place)
    view = CoreDriver(project)
    work(view)
    view.close()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch, Session.open(project, SessionAccess.WRITE) as session:
        patch.setattr(execution, "note_kept_copies", fail)
        with pytest.raises(CommitError):
            commit(session)
    after = exactly(Path(os.fsdecode(project)))
    with Session.open(project, SessionAccess.WRITE) as session:
        found = session.interrupted()
        assert found is not None
        assert found.is_settled
        failure: BaseException | None = None
        for failure in each_read_fails(place, lambda: roll_back_interrupted(session)):
            assert failure is not None
            assert exactly(Path(os.fsdecode(project))) == after, failure
        assert isinstance(failure, CommitError)
        assert "cannot be taken back any more" in failure.message
        assert finish_interrupted(session) is not None


def test_a_read_that_fails_does_not_pass_for_a_missing_session(place: Path) -> None:
    """Whoever is told so starts another one."""
    project = populated(place)
    Session.create(project)
    for failure in each_read_fails(place, lambda: find(project)):
        assert not isinstance(failure, NoSessionError), failure


def test_a_failing_read_gives_no_place_in_found_that_may_be_taken(place: Path) -> None:
    step = Remove(RelPath(b"a"), 1, 7)
    (place / "found").mkdir()
    (place / "found/1").write_text("the host's")
    directory = os.fsencode(place)
    failures = [failure for failure in each_read_fails(place, lambda: place_for(directory, step)) if failure]
    assert len(failures) == 2
    assert place_for(directory, step) == directory + b"/found/1+"


NOTES: dict[str, tuple[str, bytes, Callable[[bytes], object]]] = {
    "folders on other devices": ("far", b"[]", other_devices.noted_paths),
    "names parted": ("parted", b"[]", kept_copies.files_of_kept_copies),
    "steps done": ("progress", b"0\n", step_log.read),
    "what was put back": ("restored", b"[]", restored.read),
    "what it undoes": ("undoes", b'{"commit":1,"is_whole":true}', read_undoes),
    "seal": ("seal", b"x", lambda directory: read_plainly(directory + b"/seal")),
    "digest": ("carried", b"x", lambda directory: digest_of_file(directory + b"/carried")),
    "any note": ("note", b"x", lambda directory: read_note(directory + b"/note", 10)),
}


@pytest.mark.parametrize("note", NOTES)
def test_a_note_that_cannot_be_read_is_not_taken_for_none(place: Path, note: str) -> None:
    name, content, read = NOTES[note]
    directory = os.fsencode(place)
    nothing = read(directory)
    (place / name).write_bytes(content)
    ends = list(each_read_fails(place, lambda: read(directory)))
    assert len(ends) > 2
    assert all(isinstance(end, OSError) for end in ends[:-1])
    assert all(end.filename for end in ends[:-1] if isinstance(end, OSError))
    assert ends[-1] is None
    (place / name).unlink()
    (place / name).symlink_to("/dev/zero")
    assert read(directory) in (nothing, "")
    (place / name).unlink()
    (place / name).mkdir()
    assert read(directory) in (nothing, "")


def test_a_read_that_fails_does_not_drop_earlier_notes_of_restored_files(place: Path) -> None:
    directory = os.fsencode(place)
    restored.add(directory, {(1, 2)})
    for _ in each_read_fails(place, lambda: restored.add(directory, {(3, 4)})):
        assert (1, 2) in restored.read(directory)
    assert restored.read(directory) == {(1, 2), (3, 4)}


def test_is_there_raises_an_error_of_the_disk(place: Path) -> None:
    path = os.fsencode(place / "link")
    os.symlink(b"nowhere", path)
    assert is_there(path)
    assert not is_there(path + b"/below")
    assert not is_there(os.fsencode(place / "missing"))
    with pytest.raises(OSError, match="too long"):
        is_there(os.fsencode(place / ("x" * 300)))
    assert list(map(type, each_read_fails(place, lambda: is_there(path)))) == [OSError, type(None)]


def test_a_name_of_base_that_cannot_be_looked_at_is_not_taken_for_none(place: Path) -> None:
    (place / "file").touch()
    base = Base(os.fsencode(place))
    ends = list(each_read_fails(place, lambda: check(base.has(b"file"))))
    assert len(ends) > 1
    assert all(isinstance(end, OSError) for end in ends[:-1])
    assert not base.has(b"none")
    assert not base.has(b"file/below")
    (place / "link").symlink_to("file")
    assert not base.has(b"link/below")


def check(is_true: bool) -> None:
    assert is_true


def test_names_of_a_file_that_cannot_be_looked_at_are_not_left_out(place: Path) -> None:
    """What looks for them would go on as if these were no names of it."""
    for name in ("dir", "dir/below", "other"):
        (place / name).mkdir()
    (place / "dir/one").touch()
    for name in ("dir/below/two", "other/three", "four"):
        os.link(place / "dir/one", place / name)
    base = Base(os.fsencode(place))
    st = base.lstat(b"dir/one")
    staged = Staged(StoreIno(1), None, b"", base.fingerprint(st), home=RelPath(b"dir/one"), links=4)
    names = [b"dir/below/two", b"dir/one", b"four", b"other/three"]
    looks: list[Callable[[], object]] = [
        lambda: check(sorted(find_names(base, [staged])) == names),
        lambda: check(sorted(find_names_at(base, RelPath(b"dir/one"))[0]) == names),
        lambda: check(find_name_near(base, [base.on_disk(st.st_dev, st.st_ino)], RelPath(b"dir/gone")) is not None),
    ]
    for look in looks:
        ends = list(each_read_fails(place, look))
        assert len(ends) > 3
        assert all(isinstance(end, OSError) for end in ends[:-1])


def test_a_failing_read_in_the_last_check_is_an_error_of_the_disk_and_no_defect_of_the_plan(place: Path) -> None:
    project = populated(place)
    view = CoreDriver(project)
    work(view)
    view.close()
    with Session.open(project, SessionAccess.READ) as session:
        tree = session.state()
        plan = plan_commit(tree, session.base, session.store)
        ends = list(each_read_fails(place, lambda: check_names(plan, tree, session.base)))
    assert len(ends) > 20
    assert all(isinstance(end, OSError) for end in ends[:-1])


def test_a_failing_read_does_not_change_what_an_undo_would_do(place: Path) -> None:
    project = populated(place)
    view = CoreDriver(project)
    work(view)
    view.commit()
    view.close()
    with open(os.path.join(project, b"new", b"of the host"), "wb"):  # so that the directory has to stay
        pass
    with Session.open(project, SessionAccess.READ) as session:
        scratch = scratch_store(os.fsencode(place / "scratch"), session.store)
        commit_1 = choose_commit(session, 1)

        def stays() -> object:
            return prepare_undo(session, commit_1, force=True, into=scratch).stays

        expected, found = stays(), []
        for failure in each_read_fails(place, lambda: found.append(stays())):
            assert failure is not None or found.pop() == expected


def test_a_failing_read_of_a_directory_does_not_pass_for_one_that_exists(place: Path) -> None:
    """Whoever is told that it exists looks for somebody else's."""
    path = os.fsencode(place / "commits/1")
    make_directory(path)
    ends = list(each_read_fails(place, lambda: make_directory(path)))
    assert len(ends) > 1
    assert not any(isinstance(end, FileExistsError) for end in ends)
    assert ends[-1] is None
    (place / "file").touch()
    with pytest.raises(FileExistsError):
        make_directory(os.fsencode(place / "file"))
