"""A look at base counts for a change a moment later, except after a change by the view itself."""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of
from tests.support.program import wait_until
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Owner
from yolofs.system.clock import coarse_clock_ns

LONG_NS = 3600 * 10**9
OWNER = Owner(os.geteuid(), os.getegid())
ANOTHER_GROUP = 4321
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 1, 2, 4, 16, 32


@pytest.fixture
def handlers(base: Path) -> Iterator[Handlers]:
    (base / "d").mkdir()
    (base / "d/there").touch()
    with handlers_of(base) as found:
        found.overlay.looks.lately_ns = LONG_NS
        yield found


def number_of(handlers: Handlers, name: bytes, parent: int = 1) -> int:
    attr = handlers.lookup(parent, name).attr
    assert attr is not None
    return attr.number


def create(handlers: Handlers, parent: int, name: bytes) -> os.stat_result:
    opened, answer = handlers.create(parent, name, 0o644, os.O_WRONLY | os.O_EXCL, OWNER)
    handlers.release(opened.handle)
    assert answer.attr is not None
    inode = handlers.overlay.inodes.by_number[answer.attr.number]
    assert inode.staged is not None
    return os.lstat(handlers.overlay.store.path(inode.staged.ino))


def test_base_is_not_looked_at_twice_in_one_moment(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d")
    handlers.getattr(directory)
    assert handlers.lookup(directory, b"new").attr is None
    (base / "d/new").touch()  # as if in the same moment
    create(handlers, directory, b"new")


def test_base_is_asked_again_after_the_moment(handlers: Handlers, base: Path) -> None:
    handlers.overlay.looks.lately_ns = 1
    directory = number_of(handlers, b"d")
    handlers.getattr(directory)
    assert handlers.lookup(directory, b"new").attr is None
    (base / "d/new").touch()
    with pytest.raises(FileExistsError):
        create(handlers, directory, b"new")
    (base / "d/new").unlink()
    (base / "d/there").unlink()
    (base / "d").rmdir()
    with pytest.raises(FileNotFoundError):
        create(handlers, directory, b"new")


def test_what_another_request_created_meanwhile_is_there(handlers: Handlers) -> None:
    directory = number_of(handlers, b"d")
    assert handlers.lookup(directory, b"new").attr is None
    create(handlers, directory, b"new")
    with pytest.raises(FileExistsError):
        create(handlers, directory, b"new")
    handlers.unlink(directory, b"new")
    create(handlers, directory, b"new")


def test_a_name_that_was_absent_is_there_after_a_rename_to_it(handlers: Handlers) -> None:
    directory = number_of(handlers, b"d")
    assert handlers.lookup(directory, b"new").attr is None
    handlers.rename(directory, b"there", directory, b"new", 0)
    with pytest.raises(FileExistsError):
        create(handlers, directory, b"new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to any group")
def test_a_directory_that_the_view_changed_since_is_looked_at_again(handlers: Handlers) -> None:
    directory = number_of(handlers, b"d")
    handlers.getattr(directory)
    assert create(handlers, directory, b"one").st_gid == OWNER.gid
    handlers.setattr(directory, 0o2755, None, ANOTHER_GROUP, None, None, None)
    assert create(handlers, directory, b"two").st_gid == ANOTHER_GROUP
    handlers.setattr(directory, 0o755, None, None, None, None, None)
    assert create(handlers, directory, b"three").st_gid == OWNER.gid


ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *rule)
    for rule in [(USER_OBJ, 6, 0), (USER, 0, 99), (GROUP_OBJ, 6, 0), (MASK, 6, 0), (OTHER, 0, 0)]
)


def mode_of(handlers: Handlers, number: int) -> int:
    attr = handlers.getattr(number).attr
    assert attr is not None
    return stat.S_IMODE(attr.mode)


def test_another_access_control_list_is_seen_at_once(handlers: Handlers, base: Path) -> None:
    (base / "d/there").chmod(0o660)
    handlers.overlay.attributes.is_shared = True
    number = number_of(handlers, b"there", number_of(handlers, b"d"))
    inode = handlers.overlay.inodes.by_number[number]
    end = time.monotonic() + 20
    while not inode.lacks:  # it is remembered once the file has been left alone for a while
        assert mode_of(handlers, number) == 0o660
        assert time.monotonic() < end
        time.sleep(0.05)
    try:
        os.setxattr(base / "d/there", "system.posix_acl_access", ACL)
    except OSError:
        pytest.skip("this filesystem has no access control lists")
    assert mode_of(handlers, number) == 0o600
    os.removexattr(base / "d/there", "system.posix_acl_access")
    assert mode_of(handlers, number) == 0o660


def test_an_access_control_list_that_a_staged_file_gets_in_the_view_is_seen_at_once(handlers: Handlers) -> None:
    handlers.overlay.attributes.is_shared = True
    directory = number_of(handlers, b"d")
    create(handlers, directory, b"new")
    number = number_of(handlers, b"new", directory)
    handlers.setattr(number, 0o660, None, None, None, None, None)
    assert mode_of(handlers, number) == 0o660
    try:
        handlers.setxattr(number, b"system.posix_acl_access", ACL)
    except OSError:
        pytest.skip("this filesystem has no access control lists")
    assert mode_of(handlers, number) == 0o600
    handlers.setattr(number, None, None, None, None, 10**18, 10**18)
    assert mode_of(handlers, number) == 0o600
    handlers.removexattr(number, b"system.posix_acl_access")
    assert mode_of(handlers, number) == 0o660


def test_an_acl_that_comes_with_a_copy_up_is_seen(handlers: Handlers, base: Path) -> None:
    handlers.overlay.attributes.is_shared = True
    path = base / "d/there"
    path.chmod(0o660)
    number = number_of(handlers, b"there", number_of(handlers, b"d"))
    assert mode_of(handlers, number) == 0o660
    try:
        os.setxattr(path, "system.posix_acl_access", ACL)
    except OSError:
        pytest.skip("this filesystem has no access control lists")
    handlers.setattr(number, None, None, None, None, 10**18, 10**18)
    assert mode_of(handlers, number) == 0o600


def test_what_a_staged_directory_is_like_is_known_until_the_view_changes_it(handlers: Handlers) -> None:
    directory = handlers.mkdir(1, b"made", 0o755, OWNER).attr
    assert directory is not None
    assert mode_of(handlers, directory.number) == 0o755
    handlers.setattr(directory.number, 0o2775, None, ANOTHER_GROUP, None, None, None)
    assert mode_of(handlers, directory.number) == 0o2775
    before = handlers.getattr(directory.number).attr
    assert before is not None
    wait_until(lambda: coarse_clock_ns() > before.ctime_ns, "the clock to go on")
    handlers.rename(1, b"made", 1, b"renamed", 0)
    after = handlers.getattr(directory.number).attr
    assert after is not None
    assert after.ctime_ns > before.ctime_ns
    assert after.mtime_ns == before.mtime_ns
    assert create(handlers, directory.number, b"new").st_gid == ANOTHER_GROUP
