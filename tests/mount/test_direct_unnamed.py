"""Files without a name (``O_TMPFILE``), which the transport of our own alone can make, compared
with a plain directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.hard_links import Mounter
from tests.support.gate_tools import Answers, path_rule, refused, replace_rules
from tests.support.in_process import MountedView
from tests.support.program import wait_until
from yolofs.access.questions import Decision, Operation
from yolofs.changes.changes import ChangeKind
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount

_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400


@pytest.fixture
def view(base: Path, mounted: Mounter) -> MountedView:
    (base / "d").mkdir()
    (base / "there").write_text("base")
    return mounted(make_transport=DirectTransport)


def root(view: MountedView) -> Path:
    return Path(os.fsdecode(view.mountpoint))


def unnamed(directory: Path, content: bytes = b"", *, mode: int = 0o666, flags: int = os.O_RDWR) -> int:
    """Make a file without a name in a directory, and return its descriptor."""
    fd = os.open(directory, flags | os.O_TMPFILE, mode)
    if content:
        os.write(fd, content)
    return fd


def by_proc(fd: int, path: Path) -> None:
    """Give a file a name by what /proc has of it, as everybody may."""
    if _LIBC.linkat(_AT_FDCWD, b"/proc/self/fd/%d" % fd, _AT_FDCWD, os.fsencode(path), _AT_SYMLINK_FOLLOW):
        raise OSError(ctypes.get_errno(), "linkat")


def by_descriptor(fd: int, path: Path) -> None:
    """Give a file a name by its descriptor."""
    if _LIBC.linkat(fd, b"", _AT_FDCWD, os.fsencode(path), _AT_EMPTY_PATH):
        raise OSError(ctypes.get_errno(), "linkat")


LINKING = pytest.mark.parametrize("link", [by_proc, by_descriptor], ids=["proc", "descriptor"])
Linking = Callable[[int, Path], None]


def number_of(act: Callable[[], object]) -> int:
    """Return the errno of what is done, 0 if it is done."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


def life(directory: Path, link: Linking) -> list[object]:
    """Return what is seen of a file without a name that gets one, and another."""
    fd = unnamed(directory, b"content", mode=0o751)
    seen: list[object] = [sorted(os.listdir(directory))]
    st = os.fstat(fd)
    seen.append((stat.S_IFMT(st.st_mode), oct(st.st_mode), st.st_nlink, st.st_size, st.st_uid, st.st_gid))
    with open(f"/proc/self/fd/{fd}", "r+b") as again:
        again.seek(0, os.SEEK_END)
        again.write(b", and more")
    os.fchmod(fd, 0o640)
    os.utime(fd, ns=(5, 7))
    os.ftruncate(fd, 14)
    seen.append(number_of(lambda: link(fd, directory / "exists")))
    seen.append(number_of(lambda: link(fd, directory / "none/x")))
    link(fd, directory / "named")
    seen.append((os.fstat(fd).st_nlink, os.fstat(fd).st_ino == os.stat(directory / "named").st_ino))
    os.pwrite(fd, b"CONT", 0)
    os.utime(fd, ns=(5, 7))
    link(fd, directory / "second")
    os.close(fd)
    st = (directory / "named").stat()
    seen.append((oct(st.st_mode), st.st_nlink, st.st_mtime_ns, (directory / "second").read_bytes()))
    (directory / "named").unlink()
    seen.append((sorted(os.listdir(directory)), (directory / "second").stat().st_nlink))
    return seen


@LINKING
def test_a_file_without_a_name_is_as_in_a_plain_directory(view: MountedView, tmp_path: Path, link: Linking) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (root(view) / "new").mkdir()
    for directory in (plain, root(view) / "d", root(view) / "new"):
        (directory / "exists").touch()
    expected = life(plain, link)
    assert life(root(view) / "d", link) == expected
    assert life(root(view) / "new", link) == expected


@LINKING
def test_no_name_can_be_given_where_that_is_excluded_or_the_last_one_is_gone(
    view: MountedView, tmp_path: Path, link: Linking
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for directory in (plain, root(view) / "d"):
        exclusive = unnamed(directory, flags=os.O_RDWR | os.O_EXCL)
        assert number_of(lambda: link(exclusive, directory / "x")) == errno.ENOENT  # noqa: B023 - called in this round
        fd = unnamed(directory)
        link(fd, directory / "x")
        (directory / "x").unlink()
        assert number_of(lambda: link(fd, directory / "y")) == errno.ENOENT  # noqa: B023 - called in this round
        os.close(fd)
        os.close(exclusive)
        assert os.listdir(directory) == []
        assert number_of(lambda: unnamed(directory / "none")) == errno.ENOENT  # noqa: B023 - called in this round
        assert number_of(lambda: unnamed(directory, flags=os.O_RDONLY)) == errno.EINVAL  # noqa: B023 - called in this round


def stored(view: MountedView) -> set[int]:
    """Return what is in the store."""
    view.settle()
    return set(view.mount.call(lambda: list(view.session.store)))


def test_an_unnamed_file_that_is_closed_leaves_nothing_in_the_store(view: MountedView) -> None:
    before = stored(view)
    fd = unnamed(root(view), b"x" * 5000)
    assert len(stored(view)) == len(before) + 1
    os.close(fd)
    wait_until(lambda: stored(view) == before, "the kernel to forget it")
    assert view.changes() == []


def test_nothing_is_left_after_snapshots_of_a_file_that_gets_no_name(view: MountedView) -> None:
    before = stored(view)
    fd = unnamed(root(view), b"first")
    view.snapshot(b"one")
    os.write(fd, b", second")  # copied up
    view.snapshot(b"two")
    assert os.pread(fd, 99, 0) == b"first, second"
    os.close(fd)
    wait_until(lambda: stored(view) == before, "the kernel to forget it")


def test_an_unnamed_file_leaves_nothing_after_a_remount(view: MountedView) -> None:
    before = stored(view)
    fd = unnamed(root(view), b"x")
    view.snapshot(b"a marker")
    view.unmount()
    with contextlib.suppress(OSError):  # ENOTCONN
        os.close(fd)
    view._open()
    assert stored(view) == before


@LINKING
def test_a_name_that_was_given_is_there_after_a_remount_and_committed(
    view: MountedView, base: Path, link: Linking
) -> None:
    fd = unnamed(root(view) / "d", b"content", mode=0o640)
    link(fd, root(view) / "named")
    os.close(fd)
    assert [(change.path, change.kind) for change in view.changes()] == [(b"named", ChangeKind.ADDED)]
    view.remount()
    assert (root(view) / "named").read_bytes() == b"content"
    view.commit()
    assert (base / "named").read_bytes() == b"content"
    assert stat.S_IMODE((base / "named").stat().st_mode) == 0o640
    assert stored(view) == set()


@LINKING
def test_a_name_given_after_a_marker_leaves_what_the_marker_keeps_alone(view: MountedView, link: Linking) -> None:
    fd = unnamed(root(view), b"tmp")
    (root(view) / "kept").write_bytes(b"before")  # a higher number in the store
    view.snapshot(b"kept")
    number = os.fstat(fd).st_ino
    link(fd, root(view) / "named")
    assert os.stat(root(view) / "named").st_ino == number
    os.pwrite(fd, b"TMP", 0)
    os.close(fd)
    view.remount()
    (root(view) / "kept").write_bytes(b"after")
    assert (root(view) / "named").read_bytes() == b"TMP"
    view.travel(1)
    assert (root(view) / "kept").read_bytes() == b"before"
    assert not (root(view) / "named").exists()
    view.travel(2)
    assert (root(view) / "named").read_bytes() == b"TMP"
    assert (root(view) / "kept").read_bytes() == b"after"


def test_a_linked_file_that_is_in_a_generation_stays_in_it(view: MountedView) -> None:
    fd = unnamed(root(view), b"kept")
    by_proc(fd, root(view) / "named")
    view.snapshot(b"with it")
    (root(view) / "named").unlink()
    os.close(fd)
    view.settle()
    view.travel(1)
    assert (root(view) / "named").read_bytes() == b"kept"


def test_a_file_without_a_name_is_kept_over_travel_commit_and_abort(view: MountedView) -> None:
    fd = unnamed(root(view), b"tmp")
    (root(view) / "other").touch()
    view.snapshot(b"one")
    view.travel(0)
    assert os.pread(fd, 9, 0) == b"tmp"
    os.pwrite(fd, b"TMP", 0)
    (root(view) / "third").touch()
    view.commit()
    assert os.pread(fd, 9, 0) == b"TMP"
    view.abort()
    by_proc(fd, root(view) / "named")
    os.close(fd)
    assert (root(view) / "named").read_bytes() == b"TMP"
    view.remount()
    assert (root(view) / "named").read_bytes() == b"TMP"


def test_an_unnamed_file_takes_the_place_of_a_name_that_was_removed_from_base(view: MountedView, base: Path) -> None:
    (root(view) / "there").unlink()
    fd = unnamed(root(view), b"new")
    by_proc(fd, root(view) / "there")
    os.close(fd)
    view.remount()
    assert (root(view) / "there").read_bytes() == b"new"
    view.commit()
    assert (base / "there").read_bytes() == b"new"


@pytest.mark.root_only
def test_the_group_is_the_directorys_if_that_is_setgid(view: MountedView, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    for directory in (plain, root(view) / "s"):
        directory.mkdir()
        os.chown(directory, -1, 4711)
        directory.chmod(0o2755)
        fd = unnamed(directory, mode=0o2755)
        assert (os.fstat(fd).st_gid, oct(os.fstat(fd).st_mode)) == (4711, oct(0o102755)), directory
        os.close(fd)


def test_a_file_whose_name_is_that_of_the_stand_in_is_another_one(view: MountedView) -> None:
    """What stands for the name that a file does not have is a name like others."""
    (root(view) / "#unnamed").write_bytes(b"named")
    fd = unnamed(root(view), b"tmp")
    view.snapshot(b"one")
    view.travel(1)
    assert (root(view) / "#unnamed").read_bytes() == b"named"
    by_proc(fd, root(view) / "x")
    (root(view) / "#unnamed").unlink()
    os.close(fd)
    assert (root(view) / "x").read_bytes() == b"tmp"
    assert set(os.listdir(root(view))) == {"d", "there", "x"}


# ---- rules


def test_rules_of_a_directory_decide_whether_an_unnamed_file_may_be_made_there(base: Path, mounted: Mounter) -> None:
    (base / "closed").mkdir()
    (base / "asked").mkdir()
    asker = Answers(Decision.ALLOW)
    view = mounted(make_transport=DirectTransport, asker=asker)
    replace_rules(
        view,
        path_rule(base, "closed", RuleState.READ_ONLY),
        path_rule(base, "asked", RuleState.WRITE_ASK),
    )
    with refused():
        unnamed(root(view) / "closed")
    assert [(question.operation, question.state) for question in asker.refusals] == [
        (Operation.CREATE, RuleState.READ_ONLY)
    ]
    os.close(unnamed(root(view) / "asked", b"allowed"))
    assert [question.path for question in asker.asked] == [os.fsencode(base / "asked/#unnamed")]
    asker.decision = Decision.DENY
    with refused():
        unnamed(root(view) / "asked")


@LINKING
def test_rules_of_a_name_decide_whether_an_unnamed_file_may_get_it(base: Path, mounted: Mounter, link: Linking) -> None:
    for name in ("closed", "asked"):
        (base / name).mkdir()
    asker = Answers(Decision.DENY)
    view = mounted(make_transport=DirectTransport, asker=asker)
    replace_rules(
        view,
        path_rule(base, "closed", RuleState.READ_ONLY),
        path_rule(base, "asked", RuleState.WRITE_ASK),
        path_rule(base, "hidden", RuleState.HIDDEN),
    )
    fd = unnamed(root(view), b"content")
    for name in ("closed/x", "asked/x", "hidden"):
        with refused():
            link(fd, root(view) / name)
    assert [question.path for question in asker.asked] == [os.fsencode(base / "asked/x")]
    asker.decision = Decision.ALLOW
    link(fd, root(view) / "asked/x")
    os.close(fd)
    assert (root(view) / "asked/x").read_bytes() == b"content"


def test_an_unnamed_file_is_not_made_in_a_place_that_is_no_part_of_the_view(base: Path, mounted: Mounter) -> None:
    view = mounted(make_transport=DirectTransport)
    fd = os.open(root(view), os.O_RDONLY)
    os.mkdir(root(view) / "gone")
    directory = os.open(root(view) / "gone", os.O_RDONLY)
    os.rmdir(root(view) / "gone")
    with refused(errno.ENOENT):
        os.open(f"/proc/self/fd/{directory}", os.O_TMPFILE | os.O_RDWR)
    os.close(directory)
    os.close(fd)
