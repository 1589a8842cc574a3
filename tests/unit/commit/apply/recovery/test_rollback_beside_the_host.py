"""What the host does while a commit is taken back is kept, and told."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, scan
from tests.support.rolling_back import at, fail, interrupted, steps_of, stops_at, whole, work
from yolofs.commit import resume
from yolofs.commit.apply.recovery.taking_back import outcome_text, roll_back
from yolofs.commit.apply.step_log import ObjectIdentity
from yolofs.commit.plan.plan import Rewrite
from yolofs.errors import CommitError
from yolofs.paths import RelPath
from yolofs.store import file_data

pytestmark = pytest.mark.usefixtures("way")


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
def test_rolling_back_keeps_and_names_what_the_host_did_meanwhile(
    scribe: CommitScribe, parking: bytes, what: str
) -> None:
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
@pytest.mark.some(15)
def test_a_directory_that_was_made_and_that_the_host_takes_away_is_no_dead_end(
    scribe: CommitScribe, parking: bytes, what: str, before_last: int
) -> None:
    work(scribe)
    before = {name: node for name, (node, _) in whole(scribe).items()}
    plan = interrupted(scribe, parking, steps_of(scribe) - before_last)
    DIRECTORY[what](at(scribe, b"new"))
    after = roll_back(plan, scribe.store, parking=parking, durable=False)
    assert after.gone_with_directory == [b"f"]
    assert after.left_in_commit == [b"f/1"]
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


def test_a_host_edit_before_a_file_is_rewritten_is_kept(scribe: CommitScribe, parking: bytes) -> None:
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


def test_a_host_edit_of_a_half_rewritten_file_is_kept(scribe: CommitScribe, parking: bytes) -> None:
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
    told = set[ObjectIdentity]()
    plan = interrupted(scribe, parking, 1)
    at(scribe, b"g/two").write_bytes(b"the host's")
    at(scribe, b"soft").unlink()
    at(scribe, b"soft").symlink_to("elsewhere")
    roll_back(plan, scribe.store, parking=parking, restored=told.update, durable=False)
    numbers = {one.inode for one in told}
    known = {
        name for name in (b"g/two", b"soft", b"c", b"a") if os.lstat(scribe.base.path(RelPath(name))).st_ino in numbers
    }
    assert known == {b"c", b"a"}


def test_a_host_edit_of_a_rewritten_file_is_kept_once_however_often_rolling_back_is_tried(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(scribe)
    before = whole(scribe)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    (name,) = [step.path for step in plan.steps if isinstance(step, Rewrite)][:1]
    at(scribe, name).write_bytes(b"the host's")
    with monkeypatch.context() as patch:
        patch.setattr(file_data, "copy_data", lambda *_: fail(errno.EIO))
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


MODES = {b"e/x": 0o640, b"g/one": 0o604, b"h": 0o711}
"""Of a file whose metadata the commit sets, of one that it writes in place, and of a directory."""


@pytest.mark.parametrize("is_twice", [False, True], ids=["once", "and tried again"])
def test_a_mode_that_the_host_has_given_meanwhile_stays_and_is_told(
    scribe: CommitScribe, parking: bytes, *, is_twice: bool
) -> None:
    work(scribe)
    before = whole(scribe)
    total = steps_of(scribe)
    for steps in (*range(0, total, 3), total - 1):
        plan = interrupted(scribe, parking, steps)
        for name, mode in MODES.items():
            at(scribe, name).chmod(mode)
        if is_twice:
            stops_at(total - 1, plan, scribe, parking)
        meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
        assert {name: stat.S_IMODE(at(scribe, name).stat().st_mode) for name in MODES} == MODES, steps
        assert set(meanwhile.given_metadata) <= MODES.keys()
        if steps == total - 1 and not is_twice:
            assert set(meanwhile.given_metadata) == MODES.keys()
            assert (
                f"the mode, owner, time or attribute that the host has given {at(scribe, meanwhile.given_metadata[0])}"
                in outcome_text(meanwhile, scribe.base.root, parking)
            )
        for name in MODES:
            at(scribe, name).chmod(stat.S_IMODE(before[name][0].mode))
        assert whole(scribe) == before, steps
