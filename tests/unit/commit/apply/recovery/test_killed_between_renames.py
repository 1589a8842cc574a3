"""Taking a commit back is killed when an old thing is in its place again, and what was there is not
moved off yet: what the host has made of it is lost by no further try, on one device and on two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, lacks_renameat2, scan
from tests.support.fault_points import way_of, ways
from tests.support.rolling_back import at, interrupted, killed_between_renames, steps_of, stops_at
from tests.support.second_disk import mounted_disk
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply.other_devices import FarFolders
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.errors import CommitError
from yolofs.store import copying

HOSTS = b"the host's own lines\n"
DEVICES = ("one device", "two devices", "two devices, and no folder there")
OLD = 1_400_000_000_000_000_007


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device")


@pytest.fixture(params=[DEVICES[0], *(pytest.param(one, marks=needs_root) for one in DEVICES[1:])])
def scribe(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommitScribe]:
    """A base in which the directory ``far`` lies on another device, or on the same."""
    if request.param == DEVICES[2]:
        monkeypatch.setattr(FarFolders, "folder_in", lambda *_: None)
    root = tmp_path / "base"
    (root / "far").mkdir(parents=True)
    with mounted_disk(root / "far") if request.param != DEVICES[0] else nullcontext():
        for name in ("a", "far/a", "far/b", "far/c"):
            (root / name).write_text(f"base {name}\n")
            os.utime(root / name, ns=(OLD, OLD))
        yield CommitScribe(os.fsencode(root), os.fsencode(tmp_path / "store"))


EXCHANGES = ("exchange", "no exchange")


@pytest.fixture(params=ways(*EXCHANGES), autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system exchanges two names, or cannot."""
    if way_of(request, *EXCHANGES) == "no exchange":
        lacks_renameat2(monkeypatch)


def write_over(scribe: CommitScribe) -> None:
    scribe.write(b"far/c", b"staged\n")


def remove_and_make(scribe: CommitScribe) -> None:
    scribe.remove(b"far/c")
    scribe.write(b"far/c", b"staged\n")


def move_over_within(scribe: CommitScribe) -> None:
    scribe.rename(b"far/b", b"far/c")


def move_over_from_elsewhere(scribe: CommitScribe) -> None:
    scribe.rename(b"a", b"far/c")


def link_over(scribe: CommitScribe) -> None:
    scribe.remove(b"far/c")
    scribe.write(b"far/new", b"staged\n")
    scribe.link(b"far/new", b"far/c")


WORK: tuple[Callable[[CommitScribe], None], ...] = (
    write_over,
    remove_and_make,
    move_over_within,
    move_over_from_elsewhere,
    link_over,
)


def edit(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(HOSTS)


def edit_and_set_time_back(path: Path) -> None:
    """Change bytes alone: the size and time are what they were."""
    st = path.stat()
    with path.open("r+b") as file:
        file.write(HOSTS[: st.st_size])
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def replace(path: Path) -> None:
    path.with_name("other").write_bytes(HOSTS)
    path.with_name("other").rename(path)


def hold(tree: dict[bytes, bytes], content: bytes) -> bool:
    return any(one.startswith(content) for one in tree.values())


def contents(top: bytes) -> dict[bytes, bytes]:
    return {path: node.content for path, node in scan(top).items()} if os.path.isdir(top) else {}


@pytest.mark.parametrize("end", ["taken back", "finished"])
@pytest.mark.parametrize("edits", [edit, replace])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.some(40)
def test_what_the_host_has_made_of_what_was_put_in_place_is_not_lost(
    scribe: CommitScribe,
    parking: bytes,
    work: Callable[[CommitScribe], None],
    edits: Callable[[Path], None],
    end: str,
) -> None:
    work(scribe)
    before = contents(scribe.base.root)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    edits(at(scribe, b"far/c"))
    killed_between_renames(plan, scribe, parking, after=False)
    if end == "finished":
        try:
            resume(plan, scribe.store, parking=parking)
        except CommitError:  # what was moved there is gone: the host has replaced it
            assert (work, edits) in ((move_over_within, replace), (move_over_from_elsewhere, replace))
            end = "taken back"
    if end == "taken back":
        meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
        now = contents(scribe.base.root)
        moved = (b"far/b", b"a") if work in (move_over_within, move_over_from_elsewhere) else ()
        for path in before.keys() - set(moved):
            assert now[path] == before[path], path
        assert hold(contents(parking + b"/found"), HOSTS) == bool(set(meanwhile.found) & {b"far/c", b"far/new"})
    assert hold(contents(scribe.base.root), HOSTS) or hold(contents(parking + b"/found"), HOSTS)


@pytest.mark.parametrize("end", ["taken back", "finished"])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.some(20)
def test_without_the_host_all_is_as_it_was_or_as_it_will_be_and_nothing_is_told_as_found(
    scribe: CommitScribe, parking: bytes, work: Callable[[CommitScribe], None], end: str
) -> None:
    work(scribe)
    before, expected = scan(scribe.base.root), scribe.expected()
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    killed_between_renames(plan, scribe, parking, after=False)
    if end == "taken back":
        assert roll_back(plan, scribe.store, parking=parking, durable=False).found == []
        assert scan(scribe.base.root) == before
        assert not os.path.lexists(parking)
    else:
        assert resume(plan, scribe.store, parking=parking).found == ()
        assert scan(scribe.base.root) == expected


@pytest.mark.parametrize("work", [write_over, remove_and_make])
def test_bytes_tell_where_the_host_has_set_the_time_back(
    scribe: CommitScribe, parking: bytes, work: Callable[[CommitScribe], None]
) -> None:
    work(scribe)
    plan = interrupted(scribe, parking, steps_of(scribe) - 1)
    edit_and_set_time_back(at(scribe, b"far/c"))
    killed_between_renames(plan, scribe, parking, after=False)
    assert roll_back(plan, scribe.store, parking=parking, durable=False).found == [b"far/c"]
    assert hold(contents(parking + b"/found"), HOSTS[:7])


class KilledError(BaseException):
    """Stands for the end of the process."""


def killed_while_copying(plan: Plan, scribe: CommitScribe, parking: bytes, number: int) -> bool:
    """Commit until a step's copy of that number is half made; return whether there are as many."""
    really, counted = copying.copy_node, 0

    def copy_half(src: bytes, dst: bytes) -> tuple[str, ...]:
        nonlocal counted
        counted += os.path.exists(parking + b"/made")
        if counted <= number:
            return really(src, dst)
        Path(os.fsdecode(dst)).write_bytes(b"half")
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "copy_node", copy_half)
        try:
            execute(plan, scribe.store, parking=parking, durable=False)
        except KilledError:
            return True
    return False


@pytest.mark.parametrize("is_tried_again", [False, True])
@pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.some(40)
def test_a_half_written_copy_is_neither_put_in_place_nor_taken_for_the_hosts(
    scribe: CommitScribe,
    parking: bytes,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[CommitScribe], None],
    has_links: bool,
    is_tried_again: bool,
) -> None:
    if not has_links:
        monkeypatch.setattr(Steps, "_is_linked", lambda *_: False)
    work(scribe)
    before, expected, count = scan(scribe.base.root), scribe.expected(), 0
    while killed_while_copying(plan := scribe.plan(), scribe, parking, count):
        count += 1
        if is_tried_again:
            stops_at(0, plan, scribe, parking)
        assert roll_back(plan, scribe.store, parking=parking, durable=False).found == []
        assert {path: node.content for path, node in scan(scribe.base.root).items()} == {
            path: node.content for path, node in before.items()
        }
        assert not os.path.lexists(parking)
    assert scan(scribe.base.root) == expected
