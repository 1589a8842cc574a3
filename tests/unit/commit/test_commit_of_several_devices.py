"""The session lies on another device than base, or base on several."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, contents, scan
from tests.support.required import do_without
from tests.unit.commit.base_to_commit_to import OLD, open_scribe, read, stat_of, work_on_everything
from yolofs.commit import execute
from yolofs.commit.plan.overridden_names import survey
from yolofs.commit.plan.plan import Rewrite
from yolofs.commit.plan.planner import plan_commit
from yolofs.errors import YolofsError
from yolofs.paths import RelPath
from yolofs.system.busy_trees import remove_tree

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[bytes]:
    """A directory on another device than the rest of the test."""
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK) or shm.stat().st_dev == tmp_path.stat().st_dev:
        do_without("there is no second device to write to")
    path = shm / f"yolofs-test-{os.getpid()}-{tmp_path.name}"
    yield os.fsencode(path)
    if path.exists():
        remove_tree(os.fsencode(path))


def test_all_steps_work_where_the_session_lies_on_another_device(scribe: CommitScribe, other_device: bytes) -> None:
    work_on_everything(scribe)
    before, expected = contents(scribe.base.root), scribe.expected()
    plan = scribe.plan()
    execute(plan, scribe.store, parking=other_device)
    assert len({type(step) for step in plan.steps}) == 10
    assert scan(scribe.base.root) == expected
    assert before <= contents(scribe.base.root) | contents(other_device)
    assert os.listdir(other_device + b"/new") == os.listdir(other_device + b"/parked") == []


def test_a_removed_directory_is_copied_to_another_device(scribe: CommitScribe, other_device: bytes) -> None:
    os.link(scribe.base.path(RelPath(b"d/x")), scribe.base.path(RelPath(b"d/sub/x")))
    scribe.rename(b"d/sub/y", b"y")
    scribe.remove(b"d")
    expected = scribe.expected()
    plan = scribe.plan()
    execute(plan, scribe.store, parking=other_device)
    assert scan(scribe.base.root) == expected
    kept = scan(other_device + b"/replaced")
    x, other = sorted(path for path in kept if path.endswith(b"/x"))
    assert kept[x].links == {x, other}
    assert kept[x].content == b"base d/x"
    assert kept[x].mtime_ns == OLD


@pytest.fixture
def mount_tmpfs() -> Iterator[Callable[[bytes], None]]:
    """Mount tmpfs at a directory until the end of the test."""
    libc = ctypes.CDLL(None, use_errno=True)
    mounted: list[bytes] = []

    def mount(path: bytes) -> None:
        if libc.mount(b"none", path, b"tmpfs", 0, None):
            do_without("mounting is not permitted here")
        mounted.append(path)

    yield mount
    for path in mounted:
        assert libc.umount2(path, 2) == 0


def test_a_directory_with_a_mount_below_it_stays(scribe: CommitScribe, mount_tmpfs: Callable[[bytes], None]) -> None:
    mount_tmpfs(scribe.base.path(RelPath(b"d/sub")))
    scribe.base.refresh_mounts()
    scribe.rename(b"d", b"moved")
    with pytest.raises(YolofsError, match="d in base can be neither moved nor removed"):
        scribe.plan()


def test_things_move_between_devices_below_base(
    tmp_path: Path, scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    root = scribe.base.root
    mount_tmpfs(os.path.join(root, b"e"))
    here = tmp_path / "base" / "e"
    (here / "in").mkdir()
    (here / "in" / "f").write_bytes(b"in e")
    (here / "g").write_bytes(b"g")
    scribe = open_scribe(tmp_path)
    scribe.rename(b"e/in/f", b"f")
    scribe.remove(b"e/in")
    scribe.rename(b"d", b"e/d")
    scribe.write(b"e/d/x", b"new")
    scribe.exchange(b"a", b"e/g")
    scribe.chmod(b"b", 0o640)
    scribe.link_metadata(b"b", b"e/b")
    expected = scribe.expected()
    outcome = execute(scribe.plan(), scribe.store, parking=parking)
    found = scan(root)
    assert {path: node._replace(links=frozenset()) for path, node in found.items()} == {
        path: node._replace(links=frozenset()) for path, node in expected.items()
    }
    assert outcome.left_out == {RelPath(b"e/b"): ("hard link",)}


def _link_a_to_d_a(scribe: CommitScribe, mount_tmpfs: Callable[[bytes], None]) -> None:
    mount_tmpfs(scribe.base.path(RelPath(b"e")))
    scribe.base.refresh_mounts()
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"d/a")))


def test_a_file_that_was_written_and_moved_to_another_device_has_its_new_content_under_all_names(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    """It only loses its hard links, as with mv(1): no device can link to another."""
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.write(b"a", b"new")
    scribe.rename(b"a", b"e/a")
    scribe.commit(parking)
    assert (read(scribe, b"e/a"), read(scribe, b"d/a")) == (b"new", b"new")


def test_another_name_of_a_written_file_has_its_new_content_on_another_device(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    inode = stat_of(scribe, b"a").st_ino
    scribe.write(b"a", b"new")
    scribe.rename(b"d/a", b"e/a")
    scribe.commit(parking)
    assert (read(scribe, b"e/a"), read(scribe, b"a")) == (b"new", b"new")
    assert stat_of(scribe, b"a").st_ino == inode


def test_all_names_of_a_written_file_may_move_to_another_device(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.write(b"a", b"new")
    scribe.rename(b"d/a", b"e/second")
    scribe.rename(b"a", b"e/first")
    scribe.commit(parking)
    assert (read(scribe, b"e/first"), read(scribe, b"e/second")) == (b"new", b"new")


@pytest.mark.parametrize("moved", [b"a", b"d/a"])
def test_both_names_have_a_new_mode_where_one_moves_to_another_device(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None], moved: bytes
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.chmod(b"a", 0o640)
    scribe.rename(moved, b"e/moved")
    scribe.commit(parking)
    there = b"d/a" if moved == b"a" else b"a"
    assert [stat_of(scribe, path).st_mode & 0o777 for path in (there, b"e/moved")] == [0o640, 0o640]
    assert (read(scribe, b"e/moved"), read(scribe, there)) == (b"base a", b"base a")


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_name_in_a_directory_that_moves_to_another_device_shows_what_was_written_under_another(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None], is_removed: bool
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.write(b"a", b"new")
    if is_removed:
        scribe.remove(b"a")
    scribe.rename(b"d", b"e/d")
    scribe.commit(parking)
    assert read(scribe, b"e/d/a") == b"new"
    assert is_removed or read(scribe, b"a") == b"new"


@pytest.mark.parametrize("written", [b"a", b"d/a"])
def test_of_names_in_a_directory_that_moves_to_another_device_one_is_written(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None], written: bytes
) -> None:
    """They stay links of each other there; else an undo would not know what was in them."""
    _link_a_to_d_a(scribe, mount_tmpfs)
    os.link(scribe.base.path(RelPath(b"d/a")), scribe.base.path(RelPath(b"d/sub/a")))
    scribe.write(written, b"new")
    scribe.rename(b"d", b"e/d")
    plan = scribe.commit(parking)
    assert [read(scribe, path) for path in (b"a", b"e/d/a", b"e/d/sub/a")] == [b"new"] * 3
    assert stat_of(scribe, b"e/d/a").st_ino == stat_of(scribe, b"e/d/sub/a").st_ino
    written_there = [step.path for step in plan.steps if isinstance(step, Rewrite) and step.path.startswith(b"e/")]
    assert len(written_there) == 1


def test_a_name_in_a_directory_that_moves_to_another_device_has_the_mode_that_another_was_given(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.chmod(b"a", 0o640)
    scribe.rename(b"d", b"e/d")
    scribe.commit(parking)
    assert [stat_of(scribe, path).st_mode & 0o777 for path in (b"a", b"e/d/a")] == [0o640, 0o640]


def test_a_name_that_was_looked_at_first_is_no_reason_to_leave_another_as_it_was(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    """Both are entries here, and the one that is on another device has been staged first."""
    _link_a_to_d_a(scribe, mount_tmpfs)
    scribe.rename(b"d/a", b"e/a")
    scribe.write(b"e/a", b"new")
    scribe.rename(b"a", b"b2")
    scribe.write(b"b2", b"newer")
    scribe.commit(parking)
    assert (read(scribe, b"e/a"), read(scribe, b"b2")) == (b"newer", b"newer")


@pytest.mark.parametrize("other", ["inside", "outside"])
def test_a_directory_that_moves_to_another_device_says_which_hard_links_it_loses(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None], other: str
) -> None:
    mount_tmpfs(scribe.base.path(RelPath(b"e")))
    with open(scribe.base.path(RelPath(b"d/linked")), "wb"):
        pass
    os.link(
        scribe.base.path(RelPath(b"d/linked")), scribe.base.path(RelPath(b"d/other" if other == "inside" else b"other"))
    )
    scribe.rename(b"d", b"e/d")
    outcome = execute(scribe.plan(), scribe.store, parking=parking)
    assert outcome.left_out == ({} if other == "inside" else {RelPath(b"e/d"): ("hard link",)})
    assert stat_of(scribe, b"e/d/linked").st_nlink == (2 if other == "inside" else 1)


def test_a_removed_name_of_a_file_that_was_written_is_kept_as_it_was_where_there_are_several_devices(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    mount_tmpfs(scribe.base.path(RelPath(b"e")))
    scribe.base.refresh_mounts()
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"d/a")))
    scribe.write(b"e/there", b"new")
    scribe.write(b"a", b"new")
    scribe.remove(b"a")
    scribe.commit(parking)
    assert (read(scribe, b"d/a"), stat_of(scribe, b"d/a").st_nlink) == (b"new", 1)
    assert b"base a" in contents(parking + b"/replaced")


def test_a_removed_name_is_kept_as_it_was_though_another_lies_in_a_directory_that_went_to_another_device(
    scribe: CommitScribe, parking: bytes, mount_tmpfs: Callable[[bytes], None]
) -> None:
    _link_a_to_d_a(scribe, mount_tmpfs)
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"third")))
    scribe.write(b"a", b"new")
    scribe.remove(b"third")
    scribe.rename(b"d", b"e/d")
    scribe.commit(parking)
    assert (read(scribe, b"a"), stat_of(scribe, b"a").st_nlink) == (b"new", 1)
    assert [os.lstat(path).st_nlink for path in _kept_as(parking, b"base a")] == [1, 1, 1]


def _kept_as(parking: bytes, content: bytes) -> list[str]:
    files = [path for path in Path(os.fsdecode(parking), "replaced").rglob("*") if path.is_file()]
    return [str(path) for path in files if path.read_bytes() == content]


def test_a_directory_that_the_host_works_in_while_it_is_planned_is_no_part_of_a_commit(scribe: CommitScribe) -> None:
    """Else an ordinary user would hear that the time of /tmp could not be set."""
    scribe.write(b"d/sub/new", b"new")
    names = list(survey(scribe.tree, scribe.base))
    with open(scribe.base.path(RelPath(b"d/by the host")), "wb"):
        pass
    steps = plan_commit(scribe.tree, scribe.base, scribe.store, names=names).steps
    assert RelPath(b"d") not in [step.path for step in steps]
