"""Commits: effects on base beyond those of the property tests, and refusals."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe, contents, lacks_renameat2, scan
from tests.unit.commit.base_to_commit_to import OLD, check, open_scribe, read, stat_of, work_on_everything
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply import step_log
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.ready import Looks, Ready
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.steps import Steps
from yolofs.errors import NotPreparedError, RolledBackError, YolofsError
from yolofs.paths import RelPath
from yolofs.store.base import Base
from yolofs.system.busy_trees import remove_tree

pytestmark = pytest.mark.usefixtures("way")


# --- what base becomes ----------------------------------------------------------------------------


def test_an_empty_tree_changes_nothing(scribe: CommitScribe, parking: bytes) -> None:
    assert scribe.commit(parking).steps == ()


def test_create_then_delete_leaves_only_the_time_of_the_directory(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"d/new", b"short-lived")
    scribe.remove(b"d/new")
    assert list(scribe.plan().lines()) == ["set the metadata of directory d"]
    check(scribe, parking)


def test_replacing_the_content_of_a_file_leaves_the_time_of_its_directory(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"d/x", b"new")
    scribe.commit(parking)
    assert read(scribe, b"d/x") == b"new"
    assert stat_of(scribe, b"d").st_mtime_ns == OLD


def test_three_files_change_places_in_a_circle(scribe: CommitScribe, parking: bytes) -> None:
    scribe.rename(b"a", b"tmp")
    scribe.rename(b"d/x", b"a")
    scribe.rename(b"b", b"d/x")
    scribe.rename(b"tmp", b"b")
    check(scribe, parking)
    assert [read(scribe, path) for path in (b"a", b"b", b"d/x")] == [b"base d/x", b"base a", b"base b"]


def test_a_chain_of_renames_moves_once(scribe: CommitScribe, parking: bytes) -> None:
    for src, dst in ((b"a", b"p"), (b"p", b"q"), (b"q", b"e/r")):
        scribe.rename(src, dst)
    inode = stat_of(scribe, b"a").st_ino
    plan = scribe.commit(parking)
    assert list(plan.lines()) == [
        "take a out of the way",
        "put e/r in its place",
        "set the metadata of directory e",
        "set the metadata of directory .",
    ]
    assert stat_of(scribe, b"e/r").st_ino == inode


def test_a_file_renamed_there_and_back_is_not_moved(scribe: CommitScribe, parking: bytes) -> None:
    before = stat_of(scribe, b"a")
    scribe.rename(b"a", b"p")
    scribe.rename(b"p", b"a")
    scribe.commit(parking)
    assert stat_of(scribe, b"a") == before


def test_a_directory_moves_with_all_that_changed_beneath(scribe: CommitScribe, parking: bytes) -> None:
    scribe.rename(b"d", b"e/d")
    scribe.write(b"e/d/x", b"new")
    scribe.remove(b"e/d/sub/y")
    scribe.rename(b"a", b"e/d/sub/a")
    inode = stat_of(scribe, b"d/sub").st_ino
    check(scribe, parking)
    assert stat_of(scribe, b"e/d/sub").st_ino == inode


def test_a_child_survives_the_directory_that_it_leaves(scribe: CommitScribe, parking: bytes) -> None:
    scribe.rename(b"d/sub/y", b"y")
    scribe.remove(b"d")
    check(scribe, parking)
    assert read(scribe, b"y") == b"base d/sub/y"


def test_parent_and_child_directory_change_places(scribe: CommitScribe, parking: bytes) -> None:
    scribe.rename(b"d/sub", b"top")
    scribe.rename(b"d", b"top/d")
    scribe.rename(b"top", b"d")
    check(scribe, parking)
    assert read(scribe, b"d/d/x") == b"base d/x"


def test_a_recreated_directory_does_not_show_the_old_children(scribe: CommitScribe, parking: bytes) -> None:
    scribe.remove(b"d")
    scribe.mkdir(b"d")
    scribe.write(b"d/only", b"")
    check(scribe, parking)
    assert os.listdir(scribe.base.path(RelPath(b"d"))) == [b"only"]


@pytest.mark.parametrize("old", [b"a", b"d", b"link"])
@pytest.mark.parametrize("new", ["write", "mkdir", "symlink", "mkfifo"])
def test_a_file_of_one_kind_becomes_one_of_another(
    tmp_path: Path, scribe: CommitScribe, parking: bytes, old: bytes, new: str
) -> None:
    os.symlink(b"a", scribe.base.path(RelPath(b"link")))
    scribe.remove(old)
    getattr(scribe, new)(old, *((b"content",) if new in ("write", "symlink") else ()))
    check(scribe, parking)


def test_metadata_alone_keeps_inode_and_data(scribe: CommitScribe, parking: bytes) -> None:
    inode = stat_of(scribe, b"a").st_ino
    scribe.chmod(b"a", 0o4711)
    scribe.utime(b"a", 123_456_789_012_345_678)
    scribe.set_xattr(b"a", "user.note", b"\0 value")
    plan = scribe.plan()
    check(scribe, parking)
    st = stat_of(scribe, b"a")
    assert (st.st_ino, stat.S_IMODE(st.st_mode), st.st_mtime_ns) == (inode, 0o4711, 123_456_789_012_345_678)
    assert list(plan.lines()) == ["set the metadata of a"]


def test_a_symlink_or_fifo_with_new_metadata_keeps_its_inode(scribe: CommitScribe, parking: bytes) -> None:
    os.symlink(b"a", scribe.base.path(RelPath(b"link")))
    os.mkfifo(scribe.base.path(RelPath(b"fifo")))
    before = [stat_of(scribe, path).st_ino for path in (b"link", b"fifo")]
    scribe.utime_any(b"link", 5)
    scribe.utime_any(b"fifo", 6)
    check(scribe, parking)
    assert [stat_of(scribe, path).st_ino for path in (b"link", b"fifo")] == before


def test_a_modified_file_keeps_its_hard_links_in_base(scribe: CommitScribe, parking: bytes) -> None:
    """Also those that the view says nothing of, or that lie outside of base."""
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"e/other")))
    scribe.write(b"a", b"new, and longer than before")
    scribe.commit(parking)
    assert read(scribe, b"e/other") == read(scribe, b"a") == b"new, and longer than before"
    assert stat_of(scribe, b"a").st_nlink == 2
    assert b"base a" in contents(parking + b"/replaced")


def test_hard_links_that_the_host_made_too_late_are_separated(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"a", b"one")
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"e/other")))
    scribe.write(b"e/other", b"two")
    check(scribe, parking)
    assert (read(scribe, b"a"), read(scribe, b"e/other")) == (b"one", b"two")


def test_what_has_lost_its_known_names_is_written_once_and_first(scribe: CommitScribe, parking: bytes) -> None:
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"e/other")))
    scribe.write(b"a", b"new")
    scribe.remove(b"a")
    plan = scribe.plan()
    assert [type(step).__name__ for step in plan.steps[:2]] == ["Rewrite", "Remove"]
    execute(plan, scribe.store, parking=parking)
    assert read(scribe, b"e/other") == b"new"
    assert not os.path.lexists(scribe.base.path(RelPath(b"a")))
    assert b"base a" in contents(parking)
    for name in ("progress", "done"):  # as after a power failure
        Path(os.fsdecode(parking), name).unlink()
    Path(os.fsdecode(scribe.base.path(RelPath(b"e/other")))).write_bytes(b"by the host, later")
    resume(plan, scribe.store, parking=parking)
    assert read(scribe, b"e/other") == b"by the host, later"


def test_what_has_lost_its_known_names_gets_its_metadata(scribe: CommitScribe, parking: bytes) -> None:
    os.link(scribe.base.path(RelPath(b"a")), scribe.base.path(RelPath(b"e/other")))
    scribe.chmod(b"a", 0o600)
    scribe.remove(b"a")
    plan = scribe.plan()
    execute(plan, scribe.store, parking=parking)
    for name in ("progress", "done"):
        Path(os.fsdecode(parking), name).unlink()
    resume(plan, scribe.store, parking=parking)
    assert stat.S_IMODE(stat_of(scribe, b"e/other").st_mode) == 0o600
    assert read(scribe, b"e/other") == b"base a"


def test_new_hard_links_are_one_file_in_base(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"d/new", b"shared")
    scribe.link(b"d/new", b"a-link")
    scribe.link_metadata(b"a", b"z")
    check(scribe, parking)
    assert stat_of(scribe, b"d/new").st_ino == stat_of(scribe, b"a-link").st_ino
    assert stat_of(scribe, b"a").st_ino == stat_of(scribe, b"z").st_ino


def test_holes_stay_holes(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"sparse", b"x")
    os.truncate(scribe.meta(b"sparse"), 1 << 30)
    scribe.commit(parking)
    assert stat_of(scribe, b"sparse").st_size == 1 << 30
    assert stat_of(scribe, b"sparse").st_blocks < 1 << 10


def test_the_root_of_base_gets_its_metadata(scribe: CommitScribe, parking: bytes) -> None:
    scribe.chmod(b"", 0o711)
    check(scribe, parking)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_devices_and_owners_are_committed(scribe: CommitScribe, parking: bytes) -> None:
    ino = scribe.store.create_special(stat.S_IFCHR | 0o620, os.makedev(1, 3))
    scribe._stage(b"null", ino)
    scribe.chown(b"a", 12, 34)
    scribe.chown(b"d", 56, 78)
    scribe.rename(b"d", b"moved")
    check(scribe, parking)


_RECURSION_LIMIT = 400
"""Less than Python's own: a path takes the longer the deeper it is."""


@pytest.mark.some(1)
def test_a_deep_path_needs_neither_recursion_nor_descriptors(scribe: CommitScribe, parking: bytes) -> None:
    deep = b"e"
    for _ in range(_RECURSION_LIMIT + 100):
        deep += b"/n"
        scribe.mkdir(deep)
    scribe.write(deep + b"/file", b"deep")
    limits, recursion_limit = resource.getrlimit(resource.RLIMIT_NOFILE), sys.getrecursionlimit()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 150, limits[1]))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        scribe.commit(parking)
        assert read(scribe, deep + b"/file") == b"deep"
    finally:
        sys.setrecursionlimit(recursion_limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        remove_tree(scribe.base.path(RelPath(b"e")))  # pytest's own clean-up is recursive


# --- what a commit leaves behind ------------------------------------------------------------------


def test_replaced_and_removed_files_are_kept_by_the_number_of_their_step(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"a", b"new")
    scribe.remove(b"d")
    scribe.rename(b"b", b"e/b")
    plan = scribe.commit(parking)
    numbers = {step.path: getattr(step, "number", None) for step in plan.steps}
    replaced = Path(os.fsdecode(parking)) / "replaced"
    assert (replaced / str(numbers[RelPath(b"a")])).read_bytes() == b"base a"
    assert (replaced / str(numbers[RelPath(b"d")]) / "sub" / "y").read_bytes() == b"base d/sub/y"
    assert len(list(replaced.iterdir())) == 2


def test_the_plan_is_there_before_the_first_step_and_done_after_the_last(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"a", b"new")
    scribe.write(b"c", b"new")
    seen = []

    def watch(done: int, total: int) -> None:
        names = set(os.listdir(parking))
        seen.append((done, total, b"plan.json" in names, b"done" in names))

    plan = scribe.plan()
    execute(plan, scribe.store, parking=parking, progress=watch)
    assert seen == [(done, 5, True, False) for done in (1, 2, 3, 4, 5)]  # two files are made, then come three steps
    path = Path(os.fsdecode(parking))
    assert Plan.decode((path / "plan.json").read_bytes()) == plan
    lines = step_log.read(parking)
    for step, line in zip(plan.steps, lines, strict=True):
        here = os.lstat(scribe.base.path(step.path))
        assert line.came is not None
        assert line.came._replace(ctime_ns=0) == (here.st_dev, here.st_ino, 0, here.st_size)
        assert line.came.ctime_ns in (here.st_ctime_ns, step_log.UNKNOWN_NS)
    assert (path / "done").read_bytes() == b"3\n"


def test_a_directory_of_another_commit_is_refused(scribe: CommitScribe, parking: bytes) -> None:
    scribe.commit(parking)
    scribe.write(b"a", b"new")
    with pytest.raises(FileExistsError):
        scribe.commit(parking)
    assert read(scribe, b"a") == b"base a"


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_symlink_in_the_place_of_a_directory_is_not_followed(
    tmp_path: Path, scribe: CommitScribe, parking: bytes
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    scribe.write(b"d/x", b"new")
    plan = scribe.plan()
    d = tmp_path / "base" / "d"
    d.rename(tmp_path / "base" / "was d")
    d.symlink_to(outside)
    with pytest.raises(NotPreparedError, match=r"not begun: .*/base/d: Not a directory"):
        execute(plan, scribe.store, parking=parking)
    assert os.listdir(outside) == []
    assert not os.path.exists(parking)


def test_a_file_that_the_host_made_meanwhile_is_not_overwritten(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"c", b"from the view")
    scribe.write(b"a", b"from the view")
    plan = scribe.plan()
    before = scan(scribe.base.root)
    there = Path(os.fsdecode(scribe.base.path(RelPath(b"c"))))
    there.write_bytes(b"from the host")
    with pytest.raises(NotPreparedError, match=r"not begun: .*/base/c: the host has put something there meanwhile"):
        execute(plan, scribe.store, parking=parking)
    assert there.read_bytes() == b"from the host"
    there.unlink()

    really = Steps.look

    def look(steps: Steps, seen: Mapping[FileNumbers, Looks]) -> Ready:
        ready = really(steps, seen)
        there.write_bytes(b"from the host")  # after the look, and before the first step
        return ready

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "look", look)
        with pytest.raises(RolledBackError, match=r"to create .*/base/c: File exists; base is as it was"):
            execute(plan, scribe.store, parking=parking)
    assert there.read_bytes() == b"from the host"
    assert not os.path.exists(parking)
    there.unlink()
    assert {path: node for path, node in scan(scribe.base.root).items() if path} == {
        path: node for path, node in before.items() if path
    }


def test_a_host_edit_after_planning_is_kept_when_the_file_is_replaced(scribe: CommitScribe, parking: bytes) -> None:
    scribe.write(b"a", b"new")
    plan = scribe.plan()
    Path(os.fsdecode(scribe.base.path(RelPath(b"a")))).write_bytes(b"the host was late")
    execute(plan, scribe.store, parking=parking)
    assert contents(parking + b"/replaced") == {b"the host was late"}


def test_what_the_host_has_taken_away_meanwhile_is_seen_before_the_first_step(
    scribe: CommitScribe, parking: bytes
) -> None:
    scribe.rename(b"a", b"z")
    scribe.remove(b"b")
    plan = scribe.plan()
    os.unlink(scribe.base.path(RelPath(b"a")))
    before = scan(scribe.base.root)
    with pytest.raises(NotPreparedError, match=r"the commit was not begun: .*/base/a: No such file or directory"):
        execute(plan, scribe.store, parking=parking)
    assert scan(scribe.base.root) == before


def test_a_directory_that_holds_the_session_stays(tmp_path: Path, scribe: CommitScribe) -> None:
    (tmp_path / "base" / "d" / ".yolofs").mkdir()
    scribe.base = Base(scribe.base.root, hidden=[os.fsencode(tmp_path / "base" / "d" / ".yolofs")])
    scribe.rename(b"d", b"moved")
    with pytest.raises(YolofsError, match="d in base can be neither moved nor removed"):
        scribe.plan()


# --- without rights, without renameat2, across devices --------------------------------------------


def as_ordinary_user(act: Callable[[], object], *trees: bytes) -> None:
    """Call ``act`` as a user without privileges, who owns ``trees``: in a child process if we are
    root.
    """
    if os.geteuid() != 0:
        act()
        return
    for tree in trees:
        for path in scan(tree):
            os.chown(os.path.join(tree, path), 65534, 65534, follow_symlinks=False)
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, which setuid clears: else /proc/self/fd would be root's
            act()
            os._exit(0)
        except BaseException:  # noqa: BLE001  the child must end here, whatever happened
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def open_tmp_path() -> Iterator[Path]:
    """A directory that every user may work in."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o777)
        yield Path(path)


def test_an_owner_commits_below_directories_that_forbid_writing(open_tmp_path: Path) -> None:
    for name in ("d/sub", "e"):
        (open_tmp_path / "base" / name).mkdir(parents=True)
    for name in ("a", "b", "d/x", "d/sub/y"):
        (open_tmp_path / "base" / name).write_bytes(b"base " + name.encode())
    scribe = open_scribe(open_tmp_path)
    root = scribe.base.root
    os.link(os.path.join(root, b"b"), os.path.join(root, b"e", b"b"))
    scribe.write(b"d/sub/y", b"new")
    scribe.write(b"d/sub/z", b"secret", mode=0)
    scribe.remove(b"d/x")
    scribe.rename(b"d/sub", b"e/sub")
    scribe.chmod(b"e", 0o111)
    scribe.chmod(b"a", 0o400)
    scribe.write(b"b", b"rewritten")
    os.chmod(os.path.join(root, b"b"), 0)
    for path in (b"d/sub", b"d", b""):
        os.chmod(os.path.join(root, path), 0o555)
    os.chmod(os.path.join(root, b"e"), 0o500)
    as_ordinary_user(lambda: scribe.commit(os.fsencode(open_tmp_path / "commit")), root, scribe.store.directory)
    modes = {path: oct(node.mode) for path, node in scan(root).items() if node.kind == stat.S_IFDIR}
    assert modes == {b"": "0o555", b"d": "0o555", b"e": "0o111", b"e/sub": "0o555"}
    assert read(scribe, b"e/sub/y") == b"new"
    assert read(scribe, b"e/sub/z") == b"secret"
    assert read(scribe, b"b") == read(scribe, b"e/b") == b"rewritten"
    os.chmod(root, 0o755)


@pytest.mark.parametrize("mode", [0o600, 0])
def test_a_root_that_was_closed_meanwhile_is_no_dead_end(open_tmp_path: Path, mode: int) -> None:
    for name in ("d/sub", "e"):
        (open_tmp_path / "base" / name).mkdir(parents=True)
    for name in ("a", "b", "d/x", "d/sub/y"):
        (open_tmp_path / "base" / name).write_bytes(b"base " + name.encode())
    scribe, parking = open_scribe(open_tmp_path), os.fsencode(open_tmp_path / "commit")
    root = scribe.base.root
    scribe.write(b"d/sub/y", b"new")
    scribe.write(b"n", b"new")
    scribe.remove(b"d/x")
    scribe.rename(b"d/sub", b"e/sub")
    scribe.rename(b"a", b"c")
    scribe.chmod(b"b", 0o600)
    plan = scribe.plan()

    class KilledError(BaseException):
        pass

    def kill(done: int, total: int) -> None:
        if done == total - 2:
            raise KilledError

    def act() -> None:
        before = scan(root)
        for end in (roll_back, resume):
            with contextlib.suppress(KilledError):
                execute(plan, scribe.store, parking=parking, progress=kill, durable=False)
            os.chmod(root, mode)
            end(plan, scribe.store, parking=parking)
            assert stat.S_IMODE(os.stat(root).st_mode) == mode
            os.chmod(root, 0o755)
            assert (scan(root) == before) is (end is roll_back)

    as_ordinary_user(act, root, scribe.store.directory)
    assert read(scribe, b"e/sub/y") == b"new"


def test_all_steps_work_without_renameat2(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks_renameat2(monkeypatch)
    work_on_everything(scribe)
    before = contents(scribe.base.root)
    check(scribe, parking)
    assert before <= contents(scribe.base.root) | contents(parking)


def test_without_renameat2_nothing_is_overwritten_either(
    scribe: CommitScribe, parking: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks_renameat2(monkeypatch)
    test_a_file_that_the_host_made_meanwhile_is_not_overwritten(scribe, parking)
