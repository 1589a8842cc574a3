"""What a commit that is gone on with after a crash believes, does again and tidies up."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, scan
from tests.support.old_base import all_done, at, killed_after, scribe
from yolofs.commit import execute, resume
from yolofs.commit.apply import step_log
from yolofs.commit.apply.commit_directory import BACK, SETTLED
from yolofs.commit.apply.keeping import UNMADE
from yolofs.commit.apply.recovery.rollback import RollbackSteps
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Remove
from yolofs.errors import CommitError

__all__ = ["scribe"]


def test_what_was_taken_away_again_is_made_anew_though_the_disk_has_lost_the_note_of_that(
    scribe: CommitScribe, parking: bytes
) -> None:
    """A power cut while the commit was being taken back: neither base nor ``new`` has it."""
    scribe.write(b"n", b"staged")
    scribe.mkdir(b"new", 0o755)
    expected, plan = scribe.expected(), all_done(scribe, parking)
    killed_after(RollbackSteps, "finish", lambda *_: True, partial(roll_back, plan, scribe.store, parking=parking))
    notes = [name for name in os.listdir(parking + b"/new") if name.endswith(UNMADE)]
    assert notes
    for name in notes:
        os.unlink(os.path.join(parking, b"new", name))
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected


def test_a_commit_whose_steps_are_done_after_all_is_not_on_its_way_back_any_more(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.write(b"n", b"staged")
    plan = all_done(scribe, parking)
    killed_after(RollbackSteps, "finish", lambda *_: True, partial(roll_back, plan, scribe.store, parking=parking))
    assert os.path.lexists(os.path.join(parking, BACK))

    def fail(_: Steps) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "sync", fail)
        with pytest.raises(CommitError, match="could not be closed"):
            resume(plan, scribe.store, parking=parking)
    assert not os.path.lexists(os.path.join(parking, BACK))


def test_a_hard_link_that_the_host_removed_when_all_was_durable_is_not_made_again(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.write(b"n", b"staged")
    scribe.link(b"n", b"other")
    plan = scribe.plan()
    commit = partial(execute, plan, scribe.store, parking=parking, is_spare=lambda _: True)
    killed_after(Steps, "release_store", lambda *_: True, commit)
    assert os.path.lexists(os.path.join(parking, SETTLED))
    at(scribe, b"other").unlink()
    resume(plan, scribe.store, parking=parking)
    assert not at(scribe, b"other").exists()
    assert at(scribe, b"n").read_bytes() == b"staged"


def test_a_directory_that_was_opened_up_to_be_removed_is_kept_with_the_mode_that_it_had(
    tmp_path: Path, parking: bytes
) -> None:
    directory = tmp_path / "base/d"
    directory.mkdir(parents=True)
    directory.chmod(0o500)
    scribe = CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))
    scribe.remove(b"d")
    plan = all_done(scribe, parking)
    (number,) = (step.number for step in plan.steps if isinstance(step, Remove))
    kept = Path(os.fsdecode(parking)) / f"replaced/{number}"
    kept.chmod(0o700)  # an ordinary user has to, for the moment of the rename; and then the process was killed
    resume(plan, scribe.store, parking=parking)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o500


@pytest.mark.parametrize("way", [resume, roll_back])
@pytest.mark.parametrize("damage", ["not readable", "cut off"])
def test_nothing_is_done_where_it_cannot_be_told_what_is_the_commits_own(
    scribe: CommitScribe, parking: bytes, way: Callable[..., object], damage: str
) -> None:
    """Else the host's file would be taken for the staged one, as it is there."""
    scribe.write(b"n", b"staged")
    plan = scribe.plan()
    killed_after(Log, "cut", lambda *_: True, partial(execute, plan, scribe.store, parking=parking))
    at(scribe, b"n").write_text("the host's\n")
    made = Path(os.fsdecode(parking), "made")
    if damage == "cut off":
        made.write_bytes(made.read_bytes()[:-9])
    else:
        made.unlink()
        made.symlink_to("nowhere")
    with pytest.raises(OSError, match="damaged" if damage == "cut off" else "not a regular file"):
        way(plan, scribe.store, parking=parking)
    assert at(scribe, b"n").read_text() == "the host's\n"
    assert not os.path.lexists(os.path.join(parking, b"done"))


def test_the_log_says_what_was_done_again(scribe: CommitScribe, parking: bytes) -> None:
    """What it says came is known by that to be the commit's own, and not the host's."""
    scribe.chmod(b"a", 0o600)
    scribe.write(b"n", b"staged")
    scribe.write(b"g1", b"through one of its names")
    plan = all_done(scribe, parking)
    resume(plan, scribe.store, parking=parking)
    told = {step.path: line.came for step, line in zip(plan.steps, step_log.read(parking), strict=True)}
    assert {b"a", b"n", b"g1"} <= told.keys()
    assert told == {path: step_log.ObjectIdentity.of(at(scribe, path).lstat()) for path in told}
