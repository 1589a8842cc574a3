"""A commit that fails at any step is taken back: base is as it was, byte for byte and time for
time.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.property.core_driver import CoreDriver
from tests.support.commit_model import CommitScribe, Node, have_linked, scan
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply import commit_directory, execution, step_log
from yolofs.commit.apply.rollback import BackSteps
from yolofs.commit.apply.steps import Steps
from yolofs.commit.apply.taking_back import roll_back
from yolofs.commit.plan.plan import Rewrite, Step
from yolofs.commit.select.selection import Selection
from yolofs.errors import CommitError, NotPreparedError, RolledBackError
from yolofs.paths import RelPath
from yolofs.session.commit import commit
from yolofs.session.session import Access, Session
from yolofs.store import copying
from yolofs.system import syscalls

OLD = 1_400_000_000_000_000_007


@pytest.fixture(params=["copied", "linked"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files come into base as copies, or store inodes do themselves."""
    if request.param == "linked":
        have_linked(monkeypatch)


@pytest.fixture
def scribe(tmp_path: Path) -> CommitScribe:
    """A base with something for every kind of step, all of it old."""
    return make_scribe(tmp_path)


def make_scribe(tmp_path: Path) -> CommitScribe:
    root = tmp_path / "base"
    for name in ("d/sub", "e", "f/deep", "g", "h"):
        (root / name).mkdir(parents=True)
    for name in ("a", "b", "c", "d/x", "d/sub/y", "e/x", "f/1", "f/deep/2", "g/one", "g/two", "h/x", "h/y"):
        (root / name).write_bytes(b"base " + name.encode())
    for name in ("one", "two"):
        os.link(root / f"g/{name}", root / f"g/other {name}")
    (root / "soft").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    for path in sorted(scan(os.fsencode(root)), reverse=True):
        os.utime(os.path.join(os.fsencode(root), path), ns=(OLD, OLD), follow_symlinks=False)
    return CommitScribe(os.fsencode(root), os.fsencode(tmp_path / "store"))


@pytest.fixture
def parking(tmp_path: Path) -> bytes:
    """The commit's directory."""
    return os.fsencode(tmp_path / "commits" / "1")


def work(scribe: CommitScribe) -> None:
    scribe.exchange(b"a", b"b")
    scribe.write(b"c", b"new c")
    scribe.chmod(b"e/x", 0o600)
    scribe.mkdir(b"new", 0o750)
    scribe.write(b"new/file", b"made")
    scribe.link(b"new/file", b"e/link")
    scribe.symlink(b"new/soft", b"somewhere")
    scribe.rename(b"f", b"new/f")
    scribe.remove(b"new/f/1")
    scribe.remove(b"d")
    scribe.write(b"d", b"a file now")
    scribe.write(b"g/one", b"both names")
    scribe.remove(b"g/two")
    scribe.remove(b"soft")
    scribe.rename(b"pipe", b"soft")
    scribe.chmod(b"h", 0o700)
    scribe.rename(b"h/x", b"h/z")
    scribe.link_metadata(b"h/y", b"h/w")


def whole(scribe: CommitScribe) -> dict[bytes, tuple[Node, int]]:
    """Return all that base is, and the inode numbers: nothing is to come back as a copy."""
    root = scribe.base.root
    return {path: (node, os.lstat(os.path.join(root, path)).st_ino) for path, node in scan(root).items()}


def fail_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool, error: BaseException) -> None:
    """Have step ``number`` fail, before or after it was done."""
    really, count = Steps.do, 0

    def do(self: Steps, step: Step) -> None:
        nonlocal count
        count += 1
        if count == number + 1 and not after:
            raise error
        really(self, step)
        if count == number + 1:
            raise error

    monkeypatch.setattr(Steps, "do", do)


def steps_of(scribe: CommitScribe) -> int:
    return len(scribe.plan().steps)


@pytest.mark.parametrize("after", [False, True])
def test_whichever_step_fails_base_is_as_it_was_and_a_further_commit_succeeds(
    scribe: CommitScribe, parking: bytes, after: bool
) -> None:
    work(scribe)
    before, expected, plan = whole(scribe), scribe.expected(), scribe.plan()
    kinds = {type(step).__name__ for step in plan.steps}
    assert kinds >= {"Park", "Place", "Remove", "Create", "Link", "MakeDirectory", "Rewrite", "SetMetadata"}
    for number in range(len(plan.steps)):
        error = OSError(errno.EIO, os.strerror(errno.EIO))
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, number, after=after, error=error)
            with pytest.raises(RolledBackError, match="Input/output error; base is as it was, and all stays staged"):
                execute(plan, scribe.store, parking=parking, durable=False)
        assert whole(scribe) == before, f"step {number}: {plan.steps[number]}"
        assert not os.path.exists(parking)
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert scan(scribe.base.root) == expected


def test_how_far_it_is_taken_back_is_told_apart(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    plan, forward, back = scribe.plan(), list[int](), list[tuple[int, int]]()
    fail_at(monkeypatch, 5, after=False, error=OSError(errno.EIO, os.strerror(errno.EIO)))
    with pytest.raises(RolledBackError):
        execute(
            plan,
            scribe.store,
            parking=parking,
            progress=lambda done, _: forward.append(done),
            going_back=lambda: lambda done, total: back.append((done, total)),
            durable=False,
        )
    made = len([step for step in plan.steps if type(step).__name__ == "Create"])
    assert forward == list(range(1, made + 6))
    assert back == [(number, len(plan.steps)) for number in range(1, len(plan.steps) + 1)]


@pytest.mark.parametrize("name", [b"plan.json", b"made"])
def test_no_room_for_what_is_written_first_ends_it_before_it_begins(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    work(scribe)
    before = whole(scribe)
    really = commit_directory.write_new

    def write_new(directory: bytes, what: bytes, content: bytes, *, durable: bool = True) -> None:
        if what == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(directory, what, content, durable=durable)

    monkeypatch.setattr(execution, "write_new", write_new)
    with pytest.raises(NotPreparedError, match=r"not begun: .*commits/1: No space left on device; base is as it was"):
        execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert whole(scribe) == before
    assert not os.path.exists(parking)


def test_ctrl_c_takes_the_commit_back_too(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    before = whole(scribe)
    fail_at(monkeypatch, 9, after=True, error=KeyboardInterrupt())
    with pytest.raises(RolledBackError, match="taken back: it was interrupted") as caught:
        execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert caught.value.exit_code == 130
    assert whole(scribe) == before


def test_ctrl_c_when_all_steps_are_done_does_not_leave_the_commit_open(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    expected = scribe.expected()
    really = Steps.release

    def release(self: Steps) -> None:
        signal.raise_signal(signal.SIGINT)
        really(self)

    monkeypatch.setattr(Steps, "release", release)
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert scan(scribe.base.root) == expected
    assert os.path.exists(parking + b"/done")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_takes_the_commit_back_all_the_same(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    before = whole(scribe)
    really = Steps.__exit__

    def leave(self: Steps, *error: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        really(self, *error)

    fail_at(monkeypatch, 9, after=True, error=KeyboardInterrupt())
    monkeypatch.setattr(Steps, "__exit__", leave)
    with pytest.raises(RolledBackError, match="taken back: it was interrupted"):
        execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert whole(scribe) == before


@pytest.mark.parametrize("way", [resume, roll_back])
def test_ctrl_c_while_an_interrupted_commit_is_brought_to_its_end_is_said_and_either_way_is_open(
    scribe: CommitScribe, parking: bytes, way: Callable[..., object]
) -> None:
    work(scribe)
    before, expected = whole(scribe), scribe.expected()
    plan = interrupted(scribe, parking, steps_of(scribe) // 2)
    with pytest.raises(CommitError, match="was interrupted, so base is still partly what the view was") as told:
        way(plan, scribe.store, parking=parking, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    assert told.value.exit_code == 130
    assert whole(scribe) != before
    if way is resume:
        roll_back(plan, scribe.store, parking=parking)
        assert whole(scribe) == before
    else:
        resume(plan, scribe.store, parking=parking)
        assert scan(scribe.base.root) == expected


def interrupted(scribe: CommitScribe, parking: bytes, number: int) -> Plan:
    """Leave a commit as a kill after ``number`` steps does."""

    class KilledError(BaseException):
        pass

    plan = scribe.plan()
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, number, after=False, error=KilledError())
        with pytest.raises(KilledError):
            execute(plan, scribe.store, parking=parking, durable=False)
    return plan


def test_wherever_taking_it_back_stops_it_can_be_finished_instead(tmp_path: Path) -> None:
    """What had been made and was taken away already is made once more."""
    number, stops = 0, True
    while stops:
        directory = tmp_path / str(number)
        scribe, parking = make_scribe(directory), os.fsencode(directory / "commit")
        work(scribe)
        expected = scribe.expected()
        plan = interrupted(scribe, parking, steps_of(scribe) - 1)
        stops = stops_at(number, plan, scribe, parking)
        if stops:
            resume(plan, scribe.store, parking=parking)
            assert scan(scribe.base.root) == expected, f"taken back by {number} steps"
        number += 1
    assert number > 20


@pytest.mark.parametrize("seed", range(6))
def test_what_the_log_says_and_a_power_failure_has_undone_is_done_again(
    scribe: CommitScribe, parking: bytes, seed: int
) -> None:
    """The log may reach the disk before what it tells of."""
    work(scribe)
    expected = scribe.expected()
    number = 4 * (seed + 1)
    plan = interrupted(scribe, parking, number)
    with step_log.Log(parking) as lines:
        for step in plan.steps[number : number + 9]:
            inode = os.lstat(scribe.base.path(step.path)).st_ino if scribe.base.has(step.path) else 0
            lines.add(step_log.Line(step_log.Identity(0, inode, 1 << 62, 0), None))
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected


@pytest.mark.parametrize("name", [b"h/x", b"f/deep/2"])
def test_metadata_that_reached_the_disk_before_the_move_is_taken_back_too(
    scribe: CommitScribe, parking: bytes, name: bytes
) -> None:
    """After a power failure the file may be where it was, or be found in a directory that is, and
    have its new mode.
    """
    work(scribe)
    scribe.chmod({b"h/x": b"h/z", b"f/deep/2": b"new/f/deep/2"}[name], 0o640)
    before, plan = whole(scribe), scribe.plan()
    number = next(index for index, step in enumerate(plan.steps) if type(step).__name__ == "Park")
    interrupted(scribe, parking, number)
    at(scribe, name).chmod(0o640)
    roll_back(plan, scribe.store, parking=parking, durable=False)
    assert whole(scribe) == before


@pytest.mark.parametrize("content", [b"", bytes(10), b"both "])
def test_data_that_a_power_failure_has_taken_from_a_rewritten_file_is_written_again(
    scribe: CommitScribe, parking: bytes, content: bytes
) -> None:
    work(scribe)
    expected, plan = scribe.expected(), scribe.plan()
    number = next(index for index, step in enumerate(plan.steps) if isinstance(step, Rewrite))
    plan = interrupted(scribe, parking, number + 1)
    (line,) = step_log.read(parking)[number:]
    assert line.came is not None
    at(scribe, b"g/one").write_bytes(content)
    with step_log.Log(parking) as lines:
        lines.cut(number)
        lines.add(step_log.Line(line.came._replace(ctime_ns=at(scribe, b"g/one").stat().st_ctime_ns), line.went))
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected


def test_what_a_file_replaced_is_kept_where_the_host_has_removed_it_since(scribe: CommitScribe, parking: bytes) -> None:
    work(scribe)
    plan = scribe.plan()
    number = next(index for index, step in enumerate(plan.steps) if step.path == b"c")
    interrupted(scribe, parking, number + 1)
    with step_log.Log(parking) as lines:
        lines.cut(number)
    at(scribe, b"c").unlink()
    resume(plan, scribe.store, parking=parking)
    assert not at(scribe, b"c").exists()
    assert b"base c" in {node.content for node in scan(parking + b"/replaced").values()}


def stops_at(number: int, plan: Plan, scribe: CommitScribe, parking: bytes) -> bool:
    """Take a commit back until so many steps are undone; return whether there were more."""

    class KilledError(BaseException):
        pass

    really, count = BackSteps.undo, 0

    def undo(self: BackSteps, step: Step, said: step_log.Line | None, *, is_next: bool) -> None:
        nonlocal count
        count += 1
        if count == number + 1:
            raise KilledError
        really(self, step, said, is_next=is_next)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BackSteps, "undo", undo)
        try:
            roll_back(plan, scribe.store, parking=parking, durable=False)
        except KilledError:
            return True
    return False


def at(scribe: CommitScribe, name: bytes) -> Path:
    return Path(os.fsdecode(scribe.base.path(RelPath(name))))


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


HOST: dict[str, tuple[Callable[[CommitScribe], object], bytes, set[bytes]]] = {
    "writes to a file that was replaced": (
        lambda scribe: at(scribe, b"c").write_bytes(b"the host's c"), b"c", {b"the host's c"}
    ),
    "replaces a file that was replaced": (
        lambda scribe: replace(at(scribe, b"c"), b"the host's c"),
        b"c",
        {b"the host's c"},
    ),
    "writes to a file that was made": (
        lambda scribe: at(scribe, b"new/file").write_bytes(b"the host's"), b"new/file", {b"the host's"}
    ),
    "puts a file into a directory that was made": (
        lambda scribe: at(scribe, b"new/more").write_bytes(b"the host's"), b"new", {b"the host's"}
    ),
    "puts a file where one went": (
        lambda scribe: at(scribe, b"g/two").write_bytes(b"the host's"), b"g/two", {b"the host's"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOST)
def test_what_the_host_did_meanwhile_is_kept_and_named(scribe: CommitScribe, parking: bytes, what: str) -> None:
    work(scribe)
    before = whole(scribe)
    act, path, content = HOST[what]
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    act(scribe)
    found = roll_back(plan, scribe.store, parking=parking, durable=False).found
    assert found == [path]
    kept = {node.content for node in scan(parking + b"/found").values()}
    assert content <= kept
    assert {name: node for name, (node, _) in whole(scribe).items()} == {
        name: node for name, (node, _) in before.items()
    }


def move(new: Path) -> None:
    new.rename(new.with_name("moved"))


def put_file(new: Path) -> None:
    shutil.rmtree(new)
    new.write_bytes(b"the host's")


def put_link(new: Path) -> None:
    move(new)
    new.symlink_to("moved")


def put_another(new: Path) -> None:
    move(new)
    new.mkdir()


DIRECTORY: dict[str, Callable[[Path], object]] = {
    "renames it": move,
    "removes it": shutil.rmtree,
    "puts a file in its place": put_file,
    "puts a link in its place": put_link,
    "puts an empty one in its place": put_another,
}


@pytest.mark.parametrize("what", DIRECTORY)
@pytest.mark.parametrize("before_last", [1, 4, 8])
def test_a_directory_that_was_made_and_that_the_host_takes_away_is_no_dead_end(
    scribe: CommitScribe, parking: bytes, what: str, before_last: int
) -> None:
    work(scribe)
    before = {name: node for name, (node, _) in whole(scribe).items()}
    plan = interrupted(scribe, parking, steps_of(scribe) - before_last)
    DIRECTORY[what](at(scribe, b"new"))
    after = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert after.gone == [b"f"]
    assert after.left == [b"f/1"]
    assert [node.content for node in scan(parking + b"/replaced").values() if node.content] == [b"base f/1"]
    now = {name: node for name, (node, _) in whole(scribe).items()}
    assert {name: node for name, node in now.items() if not name.startswith((b"moved", b"new"))} == {
        name: node for name, node in before.items() if not name.startswith(b"f")
    }
    if (at(scribe, b"moved")).exists():
        assert at(scribe, b"moved/f/deep/2").read_bytes() == b"base f/deep/2"


def test_a_changed_link_is_kept_where_it_is_the_last_name(scribe: CommitScribe, parking: bytes) -> None:
    work(scribe)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    at(scribe, b"e/link").write_bytes(b"the host's")
    at(scribe, b"new/file").unlink()
    assert roll_back(plan, scribe.store, parking=parking, durable=False).found == [b"e/link"]
    assert {node.content for node in scan(parking + b"/found").values()} >= {b"the host's"}


def test_what_the_host_wrote_before_a_file_is_rewritten_is_kept(scribe: CommitScribe, parking: bytes) -> None:
    """The copy that was made of it before the first step is not what the file holds by then."""
    work(scribe)
    expected = scribe.expected()
    names = [step.path for step in scribe.plan().steps if isinstance(step, Rewrite)]
    steps = [type(step) for step in scribe.plan().steps]
    plan = interrupted(scribe, parking, steps.index(Rewrite))
    at(scribe, names[0]).write_bytes(b"the host's")
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected
    assert b"the host's" in {node.content for node in scan(parking + b"/replaced").values()}


def test_what_the_host_wrote_into_a_file_that_is_half_rewritten_is_kept(scribe: CommitScribe, parking: bytes) -> None:
    work(scribe)
    expected = scribe.expected()
    number, name = next((n, step.path) for n, step in enumerate(scribe.plan().steps) if isinstance(step, Rewrite))
    plan = interrupted(scribe, parking, number + 1)
    progress = Path(os.fsdecode(parking)) / "progress"
    lines = progress.read_bytes().splitlines(keepends=True)
    progress.write_bytes(b"".join(lines[:number]))  # killed before the log says that it was written
    at(scribe, name).write_bytes(b"the host's")
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected
    assert b"the host's" in {node.content for node in scan(parking + b"/found").values()}


def test_only_what_the_host_left_alone_is_told_as_restored(scribe: CommitScribe, parking: bytes) -> None:
    work(scribe)
    told: dict[int, int] = {}
    plan = interrupted(scribe, parking, 1)
    at(scribe, b"g/two").write_bytes(b"the host's")
    at(scribe, b"soft").unlink()
    at(scribe, b"soft").symlink_to("elsewhere")
    roll_back(plan, scribe.store, parking=parking, restored=told.update, durable=False)
    known = {
        name for name in (b"g/two", b"soft", b"c", b"a") if os.lstat(scribe.base.path(RelPath(name))).st_ino in told
    }
    assert known == {b"c", b"a"}


def test_what_the_host_wrote_into_a_rewritten_file_is_kept_once_however_often_it_is_tried(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    before = whole(scribe)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    (name,) = [step.path for step in plan.steps if isinstance(step, Rewrite)][:1]
    at(scribe, name).write_bytes(b"the host's")
    with monkeypatch.context() as patch:
        patch.setattr(copying, "copy_data", lambda *_: fail(errno.EIO))
        with pytest.raises(CommitError, match="could not be undone: Input/output error"):
            roll_back(plan, scribe.store, parking=parking, durable=False)
    assert roll_back(plan, scribe.store, parking=parking, durable=False).found == [name]
    assert [node.content for path, node in scan(parking + b"/found").items() if path] == [b"the host's"]
    assert whole(scribe) == before


@pytest.mark.parametrize("is_done", [False, True])
def test_a_name_of_a_rewritten_file_that_the_host_removed_is_no_dead_end(
    scribe: CommitScribe, parking: bytes, is_done: bool
) -> None:
    work(scribe)
    before = scan(scribe.base.root)
    (number, name) = next((n, step.path) for n, step in enumerate(scribe.plan().steps) if isinstance(step, Rewrite))
    plan = interrupted(scribe, parking, number + is_done)
    at(scribe, name).unlink()
    roll_back(plan, scribe.store, parking=parking, durable=False)
    now = scan(scribe.base.root)
    assert before.keys() - now.keys() == (set() if is_done else {name})
    if is_done:
        assert now[name].content == before[name].content


def fail(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))


def test_a_file_that_was_opened_up_to_be_rewritten_is_closed_again(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(scribe, b"g/one").chmod(0o444)
    scribe.write(b"g/one", b"both names")
    before = whole(scribe)
    plan = scribe.plan()

    class KilledError(BaseException):
        pass

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "_back_up", die)
        with pytest.raises(KilledError):
            execute(plan, scribe.store, parking=parking, durable=False)
    assert whole(scribe) != before
    roll_back(plan, scribe.store, parking=parking, durable=False)
    assert whole(scribe) == before


def test_what_cannot_be_done_is_seen_before_the_first_step(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"c", b"new")
    scribe.write(b"e/x", b"new")
    plan = scribe.plan()
    at(scribe, b"e/x").rename(at(scribe, b"e/was"))
    at(scribe, b"e/x").write_bytes(b"another")
    before = whole(scribe)
    with pytest.raises(
        NotPreparedError, match=r"not begun: .*/base/e/x: the host has put something else there meanwhile"
    ):
        execute(plan, scribe.store, parking=parking, durable=False)
    assert whole(scribe) == before
    assert not os.path.exists(parking)


# ---- store inodes that were put into base themselves


def store_of(scribe: CommitScribe, name: bytes) -> Path:
    """Return the path of the store inode that is staged at a name."""
    entry = scribe.tree.find(name)
    assert entry is not None
    assert entry.staged is not None
    return Path(os.fsdecode(scribe.store.path(entry.staged.ino)))


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> None:
    have_linked(monkeypatch)


@pytest.mark.usefixtures("linked")
def test_what_the_host_removed_meanwhile_is_staged_still(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    assert at(scribe, b"new").samefile(store_of(scribe, b"new"))
    at(scribe, b"new").unlink()
    meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert not any(meanwhile)
    assert store_of(scribe, b"new").read_bytes() == b"staged"


@pytest.mark.usefixtures("linked")
def test_what_the_host_wrote_to_meanwhile_is_found_and_told_and_its_file_is_another(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    at(scribe, b"new").write_bytes(b"the host's version")
    meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert meanwhile.found == meanwhile.written == [b"new"]
    assert not at(scribe, b"new").exists()
    (found,) = Path(os.fsdecode(parking), "found").iterdir()
    assert found.read_bytes() == store_of(scribe, b"new").read_bytes() == b"the host's version"
    assert not found.samefile(store_of(scribe, b"new"))


@pytest.mark.usefixtures("linked")
def test_a_name_that_the_host_gave_it_meanwhile_does_not_change_with_what_is_staged(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"new", b"staged")
    plan = interrupted(scribe, parking, 1)
    os.link(at(scribe, b"new"), at(scribe, b"e/the host's"))
    before = store_of(scribe, b"new").stat()
    roll_back(plan, scribe.store, parking=parking, durable=False)
    staged = store_of(scribe, b"new")
    assert staged.stat().st_nlink == at(scribe, b"e/the host's").stat().st_nlink == 1
    assert staged.stat().st_mtime_ns == before.st_mtime_ns
    staged.write_bytes(b"by an agent")
    assert at(scribe, b"e/the host's").read_bytes() == b"staged"


@pytest.mark.usefixtures("linked")
@pytest.mark.parametrize("reason", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_no_link_may_be_made_all_is_taken_back_and_may_be_copied(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    """Such as where a directory has another quota (by project), or another key, than the store."""
    scribe.write(b"first", b"1")
    scribe.mkdir(b"new", 0o755)
    scribe.write(b"new/file", b"2")
    before, expected = whole(scribe), scribe.expected()
    refuse_links(monkeypatch, scribe.store.directory, b"file", reason)
    with pytest.raises(RolledBackError) as error:
        execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert error.value.may_not_link
    assert whole(scribe) == before
    assert not os.path.lexists(parking)
    execute(scribe.plan(), scribe.store, parking=parking, is_spare=lambda _: False, durable=False)
    assert scan(scribe.base.root) == expected
    assert store_of(scribe, b"first").read_bytes() == b"1"
    assert at(scribe, b"first").stat().st_nlink == 1


def refuse_links(patch: pytest.MonkeyPatch, store: bytes, name: bytes, reason: int) -> None:
    """Have it refused to give a store inode a name."""
    really = os.link

    def link(source: bytes, target: bytes, **options: Any) -> None:
        if source.startswith(store) and target == name:
            raise OSError(reason, os.strerror(reason), source)
        really(source, target, **options)

    patch.setattr(os, "link", link)


def test_a_commit_of_a_part_is_tried_again_with_copies_and_the_rest_stays_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = os.fsencode(tmp_path / "project")
    os.mkdir(project)
    view = CoreDriver(project)
    view.create(b"a", b"taken", 0o644)
    view.create(b"b", b"stays", 0o644)
    view.close()
    with Session.open(project, Access.WRITE) as session:
        refuse_links(monkeypatch, session.store.directory, b"a", errno.EXDEV)
        done = commit(session, selection=Selection(session.regions, paths=(RelPath(b"a"),)))
        assert done.number == 1
        assert Path(os.fsdecode(project), "a").read_bytes() == b"taken"
        assert os.stat(os.path.join(project, b"a")).st_nlink == 1
        (left,) = session.state().staged.values()
        assert Path(os.fsdecode(session.store.path(left.ino))).read_bytes() == b"stays"


@pytest.mark.usefixtures("linked")
def test_a_store_inode_goes_only_when_all_is_durable(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.write(b"new", b"staged")
    really, removed = os.unlink, []

    def unlink(path: bytes, *, dir_fd: int | None = None) -> None:
        directory = b"" if dir_fd is None else os.readlink(b"/proc/self/fd/%d" % dir_fd)
        whole = os.path.join(directory, path)
        if whole.startswith(scribe.store.directory):
            assert os.path.lexists(parking + b"/settled")
            removed.append(whole)
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert removed == [os.fsencode(store_of(scribe, b"new"))]
    assert at(scribe, b"new").stat().st_nlink == 1


@pytest.mark.usefixtures("linked")
@pytest.mark.parametrize("gone", ["the store's", "base's"])
def test_one_that_was_killed_while_names_in_the_store_went_is_finished(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    scribe.write(b"a new", b"1")
    scribe.write(b"b new", b"2")
    plan = scribe.plan()
    with monkeypatch.context() as patch:
        patch.setattr(Steps, "release_store", lambda _: os._exit(9))
        child = os.fork()
        if not child:
            execute(plan, scribe.store, parking=parking, durable=False)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    (store_of(scribe, b"a new") if gone == "the store's" else at(scribe, b"a new")).unlink()
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"b new").stat().st_nlink == 1
    assert not store_of(scribe, b"b new").exists()
    if gone == "base's":  # by the host: what it has lost so is not lost here
        assert not at(scribe, b"a new").exists()
        assert store_of(scribe, b"a new").read_bytes() == b"1"


@pytest.mark.usefixtures("linked")
def test_what_a_copy_would_not_be_is_copied(scribe: CommitScribe, parking: bytes) -> None:
    for name in (b"plain", b"closed", b"linked", b"reserved"):
        scribe.write(name, b"staged")
    scribe.symlink(b"symlink", b"target")
    store_of(scribe, b"closed").chmod(0o400)  # who reads it as an ordinary user opens it up for a moment
    os.link(store_of(scribe, b"linked"), os.fsdecode(scribe.store.directory) + "/../elsewhere")
    with store_of(scribe, b"reserved").open("r+b") as file:
        syscalls.reserve_space(file.fileno(), 0, 1 << 20)
    scribe.write(b"a", b"replaces something")
    names = [b"plain", b"closed", b"linked", b"reserved", b"symlink", b"a"]
    numbers = {name: store_of(scribe, name).lstat().st_ino for name in names}
    execute(scribe.plan(), scribe.store, parking=parking, durable=False)
    assert [name for name in names if at(scribe, name).lstat().st_ino == numbers[name]] == [b"plain"]
