"""Somebody on the host exchanges a name in base for a symbolic link while a commit works there, is
finished after a kill or taken back, or is undone: no link is followed, and nothing outside of base
is read, written or removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.exchanged_names import SECRET, Exchanger, calls_of, holders_of_secret, state_of
from tests.support.fault_points import points
from tests.support.second_disk import mounted_disk
from tests.support.undo_model import Commits
from yolofs.commit import execute, resume
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.errors import YolofsError
from yolofs.system import syscalls

NAMES = ("d", "d/sub", "d/sub/y", "e", "e/x", "f", "f/deep", "f/deep/2", "g", "g/one", "h", "h/x", "p", ".yolofs-*")
DIRECTORIES = ("d/sub", "e", "f/deep", "g", "h", ".yolofs-", "new/f", "new/f/deep")
FILES = ("a", "c", "d/x", "d/sub/y", "e/x", "e/link", "f/1", "f/deep/2", "g/one", "g/two", "h/x", "h/y", "h/z")
MORE = ("p", ".yolofs-/x", ".yolofs-/sub", "new/file", "new/f/1", "new/f/deep/2")


@pytest.fixture(params=["one disk", "two disks"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Where base and what is outside of it lie: on the disk of the session, or on another one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if request.param == "one disk":
        yield disk
        return
    with mounted_disk(disk, mib=64):
        yield disk


def worlds(place: Path, number: int) -> tuple[Path, Path]:
    """Make a base, and something outside for each name that it has or gets."""
    base, outside = place / f"base{number}", place / f"outside{number}"
    for top, content in ((base, b"base"), (outside, SECRET)):
        for name in DIRECTORIES:
            if top is outside or not name.startswith((".yolofs", "new")):
                (top / name).mkdir(parents=True)
        for name in (*FILES, *MORE):
            if top is outside or name in ("a", "c", "d/x", "d/sub/y", "e/x", "f/1", "f/deep/2", "g/one", "h/x", "h/y"):
                (top / name).write_bytes(content)
    (base / "g/two").hardlink_to(base / "g/one")
    (base / "d/sub/one").hardlink_to(base / "g/one")
    os.mkfifo(base / "p")
    for path in (outside, *outside.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return base, outside


def work(scribe: CommitScribe) -> None:
    """Stage something of every kind."""
    scribe.write(b"c", b"new c")
    scribe.chmod(b"e/x", 0o644)
    scribe.utime(b"e/x", 5)
    scribe.chmod(b"e", 0o755)
    scribe.mkdir(b"new", 0o755)
    scribe.write(b"new/file", b"made")
    scribe.rename(b"f", b"new/f")
    scribe.remove(b"new/f/1")
    scribe.remove(b"d")
    scribe.write(b"g/one", b"both names")
    scribe.chmod(b"h", 0o755)
    scribe.rename(b"h/x", b"h/z")
    scribe.link_metadata(b"h/y", b"h/w")
    scribe.chmod(b"p", 0o644)


def planned(place: Path, number: int, parking: Path) -> Callable[[], None]:
    """Plan a commit, and return what carries it out as far as that is possible."""
    scribe = CommitScribe(os.fsencode(place / f"base{number}"), os.fsencode(parking.parent.parent / f"store{number}"))
    work(scribe)
    plan = scribe.plan()

    def commit() -> None:
        with contextlib.suppress(YolofsError, OSError):
            execute(plan, scribe.store, parking=os.fsencode(parking), durable=False)

    return commit


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_commit_follows_no_link_that_is_exchanged_for_a_name(
    place: Path, tmp_path: Path, name: str, *, is_short: bool
) -> None:
    (tmp_path / "commits").mkdir()
    worlds(place, 0)
    calls = calls_of(planned(place, 0, tmp_path / "commits/0"))
    for at in points(range(1, calls + 1), name, is_short, some=16):
        base, outside = worlds(place, at)
        before = state_of(outside)
        commit = planned(place, at, tmp_path / f"commits/{at}")
        attack = Exchanger(base, outside, name)
        try:
            with attack.before_call(at, is_short=is_short):
                commit()
        finally:
            attack.close()
        assert state_of(outside) == before, at
        assert not holders_of_secret(base, tmp_path / "commits"), at


class Killed(BaseException):
    """Ends a commit between two steps, as SIGKILL does: nothing of it is taken back."""


def kill_after(part: float) -> Callable[[int, int], None]:
    """Return what ends a commit once that part of its work is done: first files are made."""

    def progress(done: int, total: int) -> None:
        if done >= total * part:
            raise Killed

    return progress


def go_on(what: str, scribe: CommitScribe, parking: bytes) -> Callable[[], object]:
    """Commit, or a part of that, and return what goes on from there."""
    if what == "undo":
        commits = Commits(scribe, os.path.dirname(parking))
        commits.commit(int(os.path.basename(parking)))
        return lambda: commits.undo(int(os.path.basename(parking)), by=10_000 + int(os.path.basename(parking)))
    plan = scribe.plan()
    with pytest.raises(Killed):
        execute(plan, scribe.store, parking=parking, durable=False, progress=kill_after(PARTS[what]))
    if what == "continue":
        return lambda: resume(plan, scribe.store, parking=parking)
    return lambda: roll_back(plan, scribe.store, parking=parking, durable=False)


PARTS = {"continue": 0.5, "roll back": 0.95}
"""After which part of the work it is interrupted, so that much is left to be done."""


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("what", [*PARTS, "undo"])
@pytest.mark.parametrize("name", [*NAMES, "new", "new/f"])
def test_no_link_is_followed_by_what_goes_on_or_back(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str, *, is_short: bool
) -> None:
    monkeypatch.setattr(syscalls, "sync_filesystem", lambda _: None)
    (tmp_path / "commits").mkdir()

    def attacked(number: int, at: int) -> int:
        """Exchange the name before one call; with none, 0, return how many calls there are."""
        base, outside = worlds(place, number)
        scribe = CommitScribe(bytes(base), bytes(tmp_path / f"store{number}"))
        work(scribe)
        act = go_on(what, scribe, bytes(tmp_path / f"commits/{number}"))
        before = state_of(outside)

        def go() -> None:
            with contextlib.suppress(YolofsError, OSError, AssertionError):  # the model's, of an undo: drift
                act()

        count = 0
        if not at:
            count = calls_of(go)
        elif (base / name).parent.is_dir():
            attack = Exchanger(base, outside, name)
            with attack.before_call(at, is_short=is_short):
                go()
            attack.close()
        else:
            go()
        assert state_of(outside) == before, at
        assert not holders_of_secret(base, tmp_path / "commits", tmp_path / f"store{number}"), at
        return count

    for at in points(range(1, attacked(1, 0) + 1), name, what, is_short, some=10):
        attacked(1 + at, at)


@pytest.mark.parametrize("place", ["two disks"], indirect=True)
def test_what_somebody_moves_to_the_name_of_a_leftover_is_not_deleted(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory's owner may move another user's directory in it, but not remove its content."""
    base, _ = worlds(place, 1)
    (base / "precious").mkdir()
    (base / "precious/file").write_bytes(b"another user's")
    really = Steps.discard_leftovers

    def discard(steps: Steps) -> None:
        for hidden in base.glob(".yolofs-*"):
            if hidden.is_dir() and not hidden.name.endswith("new"):
                hidden.rename(base / "aside")
                (base / "precious").rename(hidden)
        really(steps)

    monkeypatch.setattr(Steps, "discard_leftovers", discard)
    (tmp_path / "commits").mkdir()
    planned(place, 1, tmp_path / "commits/1")()
    assert (base / "aside").is_dir()
    assert [path.read_bytes() for path in base.glob(".yolofs-*/file")] == [b"another user's"]
