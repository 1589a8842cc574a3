"""A commit that fails at any step is taken back: base is as it was, byte for byte and time for
time.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commit_model import CommitScribe, scan
from tests.support.rolling_back import (
    at,
    fail_at,
    interrupted,
    killed_between_renames,
    make_scribe,
    steps_of,
    stops_at,
    whole,
    work,
)
from yolofs.commit import execute, resume
from yolofs.commit.apply import commit_directory, execution, step_log
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Rewrite
from yolofs.errors import CommitError, NotPreparedError, RolledBackError

pytestmark = pytest.mark.usefixtures("way")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.some(2)
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


def test_progress_back_is_reported_apart_from_progress_forward(
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
def test_a_commit_does_not_begin_without_room_for_the_files_that_it_writes_first(
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
            lines.add(step_log.LoggedStep(step_log.ObjectIdentity(0, inode, 1 << 62, 0), None))
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
        lines.add(step_log.LoggedStep(line.came._replace(ctime_ns=at(scribe, b"g/one").stat().st_ctime_ns), line.went))
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


def test_a_file_that_the_host_exchanged_stops_a_commit_before_its_first_step(
    scribe: CommitScribe, parking: bytes
) -> None:
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


@pytest.mark.parametrize("end", ["taken back", "finished"])
@pytest.mark.parametrize("after", [False, True])
def test_what_was_moved_over_a_file_is_not_lost_where_taking_it_back_is_killed_between_two_renames(
    scribe: CommitScribe, parking: bytes, end: str, after: bool
) -> None:
    scribe.rename(b"a", b"c")
    before, expected = whole(scribe), scribe.expected()
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    killed_between_renames(plan, scribe, parking, after=after)
    if end == "taken back":
        roll_back(plan, scribe.store, parking=parking, durable=False)
        assert whole(scribe) == before
    else:
        resume(plan, scribe.store, parking=parking)
        assert scan(scribe.base.root) == expected


@pytest.mark.parametrize("end", ["taken back", "finished"])
@pytest.mark.parametrize("is_moved", [False, True], ids=["over a new file", "over one that was moved there"])
def test_what_the_host_put_there_is_not_lost_where_taking_it_back_is_killed_between_two_renames(
    scribe: CommitScribe, parking: bytes, end: str, is_moved: bool
) -> None:
    if is_moved:
        scribe.rename(b"a", b"c")
    else:
        scribe.remove(b"c")
        scribe.write(b"c", b"new c")
    before = whole(scribe)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    at(scribe, b"other").write_bytes(b"the host's")
    at(scribe, b"other").rename(at(scribe, b"c"))
    killed_between_renames(plan, scribe, parking, after=False)
    if end == "taken back":
        assert roll_back(plan, scribe.store, parking=parking, durable=False).found == [b"c"]
        assert whole(scribe).items() >= {path: what for path, what in before.items() if path not in (b"", b"a")}.items()
    elif is_moved:  # what was moved there is gone with that
        with pytest.raises(CommitError):
            resume(plan, scribe.store, parking=parking)
        roll_back(plan, scribe.store, parking=parking, durable=False)
    else:
        resume(plan, scribe.store, parking=parking)
    found = scan(scribe.base.root) | (scan(parking + b"/found") if os.path.isdir(parking + b"/found") else {})
    assert b"the host's" in {node.content for node in found.values()}
