"""What a commit keeps of base does not count as a name of a file that is still there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.commit_model import CommitScribe, have_linked, scan
from yolofs.commit import execute, resume
from yolofs.commit.apply import execution
from yolofs.commit.apply.given_ctimes import PutInPlace
from yolofs.commit.apply.kept_copies import KeptCopy, put_in_place
from yolofs.store import copying
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls

OLD = 1_400_000_000_000_000_007


@pytest.fixture(params=["copied", "linked"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files come into base as copies, or store inodes do themselves."""
    if request.param == "linked":
        have_linked(monkeypatch)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base of files that each have two names, and more."""
    base = tmp_path / "base"
    (base / "d/sub").mkdir(parents=True)
    for name in ("a", "b", "d/sub/x"):
        (base / name).write_bytes(b"base " + name.encode())
        os.setxattr(base / name, "user.note", name.encode())
        os.link(base / name, base / f"{name}-other")
    for path in sorted(scan(os.fsencode(base)), reverse=True):
        os.utime(base / os.fsdecode(path), ns=(OLD, OLD))
    return base


@pytest.fixture
def scribe(base: Path) -> CommitScribe:
    return CommitScribe(os.fsencode(base), os.fsencode(base.parent / "store"))


@pytest.fixture
def parking(tmp_path: Path) -> Path:
    """The directory of the commit."""
    return tmp_path / "commits/1"


def kept(parking: Path) -> dict[bytes, Any]:
    """Return what is kept of base, by path."""
    return {path: node for path, node in scan(os.fsencode(parking / "replaced")).items() if path}


def test_a_removed_name_does_not_count_any_more(scribe: CommitScribe, base: Path, parking: Path) -> None:
    scribe.remove(b"a-other")
    scribe.commit(os.fsencode(parking))
    assert (base / "a").stat().st_nlink == 1
    [node] = kept(parking).values()
    assert (node.content, node.mtime_ns, node.xattrs) == (b"base a", OLD, (("user.note", b"a"),))
    (base / "a").write_bytes(b"later")
    assert [node.content for node in kept(parking).values()] == [b"base a"]


def test_names_in_a_removed_directory_do_not_count_either(scribe: CommitScribe, base: Path, parking: Path) -> None:
    os.link(base / "b", base / "d/sub/b")
    os.utime(base / "d/sub", ns=(OLD, OLD))
    os.link(base / "d/sub/x", base / "x")
    scribe.remove(b"d")
    scribe.commit(os.fsencode(parking))
    assert [(base / name).stat().st_nlink for name in ("b", "x")] == [2, 1]
    names = {path.partition(b"/")[2]: node for path, node in kept(parking).items()}
    assert names[b"sub/x"].links == names[b"sub/x-other"].links
    assert len(names[b"sub/x"].links) == 2
    assert (names[b"sub/b"].content, names[b"sub"].mtime_ns) == (b"base b", OLD)


def test_a_file_that_goes_with_all_its_names_is_not_copied(scribe: CommitScribe, base: Path, parking: Path) -> None:
    number = (base / "a").stat().st_ino
    scribe.remove(b"a")
    scribe.remove(b"a-other")
    scribe.commit(os.fsencode(parking))
    assert {os.lstat(path).st_ino for path in (parking / "replaced").iterdir()} == {number}


def test_the_copy_of_a_file_that_was_changed_too_has_the_old_content_and_metadata(
    scribe: CommitScribe, base: Path, parking: Path
) -> None:
    """The removed name was a link of the file, so it would have the commit's change."""
    os.link(base / "a", base / "a-third")
    os.chmod(base / "b", 0o604)
    scribe.write(b"a", b"new")
    scribe.remove(b"a-other")
    scribe.chmod(b"b", 0o755)
    scribe.remove(b"b-other")
    scribe.commit(os.fsencode(parking))
    assert ((base / "a").read_bytes(), (base / "a").stat().st_nlink) == (b"new", 2)
    assert ((base / "b").stat().st_mode & 0o777, (base / "b").stat().st_nlink) == (0o755, 1)
    found = {(node.content, stat.S_IMODE(node.mode), node.mtime_ns) for node in kept(parking).values()}
    assert found == {(b"base a", 0o644, OLD), (b"base b", 0o604, OLD)}


def test_the_copy_has_the_old_content_if_no_name_was_known_of_what_was_changed(
    scribe: CommitScribe, base: Path, parking: Path
) -> None:
    scribe.write(b"a", b"new")
    scribe.remove(b"a")
    scribe.chmod(b"b", 0o600)
    scribe.remove(b"b")
    scribe.commit(os.fsencode(parking))
    assert ((base / "a-other").read_bytes(), (base / "a-other").stat().st_nlink) == (b"new", 1)
    assert ((base / "b-other").stat().st_mode & 0o777, (base / "b-other").stat().st_nlink) == (0o600, 1)
    found = {(node.content, stat.S_IMODE(node.mode)) for node in kept(parking).values()}
    assert found == {(b"base a", 0o644), (b"base b", 0o644)}


def test_hard_links_of_symlinks_and_fifos_are_copied_apart(scribe: CommitScribe, base: Path, parking: Path) -> None:
    os.symlink("nowhere", base / "soft")
    os.mkfifo(base / "fifo")
    for name in ("soft", "fifo"):
        os.link(base / name, base / f"{name}-other", follow_symlinks=False)
        scribe.remove(name.encode())
    scribe.commit(os.fsencode(parking))
    assert [os.lstat(base / f"{name}-other").st_nlink for name in ("soft", "fifo")] == [1, 1]
    assert {stat.S_IFMT(node.kind) for node in kept(parking).values()} == {stat.S_IFLNK, stat.S_IFIFO}


def test_on_a_full_disk_it_stays_a_link_and_the_commit_goes_through(
    scribe: CommitScribe, base: Path, parking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> tuple[str, ...]:
        raise OSError(errno.ENOSPC, "no space")

    scribe.remove(b"a-other")
    with monkeypatch.context() as patch:
        patch.setattr(copying, "copy_node", full)
        scribe.commit(os.fsencode(parking))
    assert (base / "a").stat().st_nlink == 2
    assert [node.content for node in kept(parking).values()] == [b"base a"]
    assert os.listdir(parking / "new") == []


@pytest.mark.parametrize("failing", ["link", "rename", "utime", "sync_filesystem"])
def test_copies_that_a_crash_left_half_in_place_are_put_in_place_by_the_next_try(
    scribe: CommitScribe, base: Path, parking: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    class Crash(BaseException):
        pass

    def crash(*_: object, **__: object) -> None:
        raise Crash

    def crashing(copies: list[KeptCopy], new: bytes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, crash)
            put_in_place(copies, new)

    (base / "gone").mkdir()
    for name in ("a-third", "gone/a-fourth"):
        os.link(base / "a", base / name)
    os.utime(base / "gone", ns=(OLD, OLD))
    for path in (b"a-other", b"a-third", b"gone"):
        scribe.remove(path)
    plan = scribe.plan()
    with monkeypatch.context() as patch:
        if failing == "sync_filesystem":
            patch.setattr(syscalls, failing, crash)
        else:
            patch.setattr(execution, "put_in_place", crashing)
        with pytest.raises(Crash):
            execute(plan, scribe.store, parking=os.fsencode(parking))
    assert not (parking / "done").exists()
    resume(plan, scribe.store, parking=os.fsencode(parking))
    assert (base / "a").stat().st_nlink == 1
    found = kept(parking)
    assert [node.content for node in found.values() if stat.S_ISREG(node.kind)] == [b"base a"] * 3
    assert [node.mtime_ns for node in found.values()] == [OLD] * 4
    assert os.listdir(parking / "new") == []
    assert (parking / "done").exists()


@pytest.mark.parametrize(("does_host_change_it", "is_noted"), [(False, True), (True, False)])
def test_a_file_that_lost_a_name_is_told_with_its_new_ctime_unless_the_host_changed_it(
    scribe: CommitScribe, parking: Path, does_host_change_it: bool, is_noted: bool
) -> None:
    """Else what stays staged of it would take the commit for the host; or the host for the
    commit.
    """
    file = Path(os.fsdecode(scribe.base.root)) / "a-other"
    was = file.stat()
    scribe.remove(b"a")
    noted = set[InodeCtime]()

    def change(done: int, total: int) -> None:
        if done == total and does_host_change_it:
            until = file.stat().st_ctime_ns
            while file.stat().st_ctime_ns == until:  # till the coarse clock has moved
                file.chmod(0o640)

    def note(came: PutInPlace) -> None:
        noted.update(came.inode_ctimes)

    execute(scribe.plan(), scribe.store, parking=os.fsencode(parking), arrived=note, progress=change)
    now = file.stat()
    assert (now.st_nlink, now.st_ino) == (was.st_nlink - 1, was.st_ino)
    assert ((now.st_ino, now.st_ctime_ns) in noted) is is_noted


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESTALE])
def test_a_disk_that_finds_files_by_names_may_not_know_an_open_one_whose_name_went(
    scribe: CommitScribe, base: Path, parking: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Disks in user space answer ENOENT or ESTALE (mergerfs); the commit ends all the same."""
    looked: list[bytes | int] = []

    def ctime_of(target: bytes | int) -> int:
        looked.append(target)
        raise OSError(number, os.strerror(number))

    def on_such_a_disk(copies: list[KeptCopy], new: bytes) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(syscalls, "fresh_ctime_ns", ctime_of)
            return put_in_place(copies, new)

    scribe.remove(b"a-other")
    monkeypatch.setattr(execution, "put_in_place", on_such_a_disk)
    scribe.commit(os.fsencode(parking))
    assert len(looked) == 1
    assert (base / "a").stat().st_nlink == 1
    assert [node.content for node in kept(parking).values()] == [b"base a"]
