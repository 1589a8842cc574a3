"""What is to move to another device, and what the host has put there while the commit was
interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, lacks_renameat2, scan
from tests.support.old_base import all_done, at, killed_after
from tests.support.second_disk import mounted_disk
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Create, Park, Remove
from yolofs.errors import CommitError

pytestmark = pytest.mark.root_only


@pytest.fixture
def scribe(tmp_path: Path) -> Iterator[CommitScribe]:
    """A base in which the directory ``far`` lies on another device."""
    far = tmp_path / "base/far"
    far.mkdir(parents=True)
    with mounted_disk(far):
        (tmp_path / "base/a").write_text("base a\n")
        yield CommitScribe(os.fsencode(tmp_path / "base"), os.fsencode(tmp_path / "store"))


@pytest.fixture
def plan(scribe: CommitScribe, parking: bytes) -> Plan:
    """The plan of a commit that is killed when ``a`` is on its way to the other device, where the
    host puts a file.
    """
    scribe.rename(b"a", b"far/a")
    plan = scribe.plan()
    commit = partial(execute, plan, scribe.store, parking=parking)
    killed_after(Steps, "do", lambda step: isinstance(step, Park), commit)
    at(scribe, b"far/a").write_text("the host's\n")
    return plan


def test_a_file_of_the_hosts_there_is_not_taken_for_what_has_not_been_copied_yet(
    scribe: CommitScribe, parking: bytes, plan: Plan
) -> None:
    for _ in range(2):  # the first leaves a copy that waits for its place
        with pytest.raises(CommitError, match="File exists"):
            resume(plan, scribe.store, parking=parking)
        assert at(scribe, b"far/a").read_text() == "the host's\n"
    at(scribe, b"far/a").unlink()
    resume(plan, scribe.store, parking=parking)
    assert at(scribe, b"far/a").read_text() == "base a\n"
    assert os.listdir(at(scribe, b"far")) == ["a"]
    assert not at(scribe, b"a").exists()


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_move_between_devices_is_taken_back_and_the_hosts_file_stays(
    scribe: CommitScribe, parking: bytes, plan: Plan, *, is_copied: bool
) -> None:
    if is_copied:
        with pytest.raises(CommitError, match="File exists"):
            resume(plan, scribe.store, parking=parking)
    roll_back(plan, scribe.store, parking=parking)
    assert {path: node.content for path, node in scan(scribe.base.root).items() if node.content} == {
        b"a": b"base a\n",
        b"far/a": b"the host's\n",
    }
    assert not os.path.lexists(parking)


def test_what_the_host_gives_a_copy_the_original_gets_when_that_comes_back(
    scribe: CommitScribe, parking: bytes
) -> None:
    at(scribe, b"d").mkdir()
    (at(scribe, b"d") / "in").write_text("base in\n")
    scribe.rename(b"a", b"far/a")
    scribe.rename(b"d", b"far/d")
    scribe.chmod(b"far/a", 0o600)
    scribe.set_xattr(b"far/a", "user.mark", b"staged")
    plan = all_done(scribe, parking)
    for path in (b"far/a", b"far/d/in"):
        at(scribe, path).chmod(0o604)
        os.setxattr(at(scribe, path), "user.hosts", b"given")
    meanwhile = roll_back(plan, scribe.store, parking=parking)
    assert set(meanwhile.given_metadata) == {b"far/a", b"far/d/in"}
    for path in (b"a", b"d/in"):
        assert at(scribe, path).stat().st_mode & 0o777 == 0o604
        assert os.listxattr(at(scribe, path)) == ["user.hosts"]


def remove(scribe: CommitScribe) -> None:
    scribe.remove(b"far/gone")


def replace(scribe: CommitScribe) -> None:
    scribe.write(b"far/over", b"staged\n")


@pytest.mark.parametrize("knows_exchange", [True, False])
@pytest.mark.parametrize("work", [remove, replace])
def test_what_is_kept_of_another_device_is_copied_again_where_the_disk_has_lost_that(
    scribe: CommitScribe,
    parking: bytes,
    work: Callable[[CommitScribe], None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    knows_exchange: bool,
) -> None:
    """The log tells that the step is done; it may have reached the disk before what it tells of."""
    if not knows_exchange:
        lacks_renameat2(monkeypatch)
    for path in (b"far/gone", b"far/over"):
        at(scribe, path).write_text(f"base {path.decode()}\n")
    work(scribe)
    expected, plan = scribe.expected(), scribe.plan()
    (number,) = (step.number for step in plan.steps if isinstance(step, Remove | Create))
    kept = os.path.join(parking, b"replaced/%d" % number)

    def is_kept(*_: object) -> bool:
        return os.path.lexists(kept)

    killed_after(Log, "add", is_kept, partial(execute, plan, scribe.store, parking=parking, is_spare=lambda _: False))
    os.unlink(kept)
    resume(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == expected
    assert Path(os.fsdecode(kept)).read_text().startswith("base far/")
