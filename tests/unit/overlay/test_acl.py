"""What the mode of a file with an access control list lets the kernel allow: nothing that the list
forbids.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.access_lists import TAGS, acl
from tests.support.plain_handlers import handlers_of, open_file
from tests.support.required import do_without
from yolofs.fuse.handlers import Handlers
from yolofs.overlay.acl import XATTR, AclReader, narrowed
from yolofs.overlay.inodes import Attr
from yolofs.system.syscalls import AttributeReader


def give_list(path: Path, listed: bytes) -> None:
    """Give a file an access control list; skip the test where the disk has none."""
    try:
        os.setxattr(path, XATTR, listed)
    except OSError:
        do_without("this filesystem has no access control lists")


@pytest.mark.parametrize(
    ("mode", "text", "expected"),
    [
        (0o660, "user:6 alice:6 group:0 mask:6 other:0", 0o600),  # setfacl -m u:alice:rw of a file of mode 0600
        (0o664, "user:6 group:6 other:4", 0o664),
        (0o664, "user:6 alice:6 group:6 mask:6 other:4", 0o664),
        (0o644, "user:6 alice:0 group:4 mask:4 other:4", 0o600),  # alice may be in the group or not
        (0o664, "user:6 alice:7 group:6 mask:4 other:4", 0o644),
        (0o664, "user:6 group:6 staff:0 mask:6 other:4", 0o660),  # staff counts only for those not in the group
        (0o4775, "user:7 alice:5 group:7 mask:7 other:5", 0o4755),
    ],
)
def test_the_mode_lets_nobody_do_more_than_the_list(mode: int, text: str, expected: int) -> None:
    assert oct(narrowed(0o100000 | mode, acl(text))) == oct(0o100000 | expected)


def test_a_list_of_an_unknown_version_leaves_the_owner_alone() -> None:
    assert narrowed(0o100666, struct.pack("<I", 3)) == 0o100600


def test_the_list_is_that_of_the_staged_file_also_while_the_data_is_in_base(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("data")
    (tmp_path / "f").chmod(0o660)
    give_list(tmp_path / "f", acl("user:6 alice:0 group:6 mask:6 other:0"))
    with handlers_of(tmp_path) as handlers:
        handlers.overlay.attributes.is_shared = True
        handle = open_file(handlers, b"f")
        (number,) = (inode.number for inode in handlers.overlay.inodes.by_number.values() if inode.name == b"f")

        def mode() -> str:
            attr = handlers.getattr(number).attr
            assert attr is not None
            return oct(stat.S_IMODE(attr.mode))

        assert mode() == "0o600"
        handlers.removexattr(number, os.fsencode(XATTR))
        assert handlers.read_job(handle, 0, 10)() == b"data"  # from base
        assert mode() == "0o660"
        handlers.release(handle)


def found_in_a_shared_view(handlers: Handlers) -> Attr:
    """Look ``f`` up in a view that other users may enter, whose lists therefore count."""
    handlers.overlay.attributes.is_shared = True
    found = handlers.lookup(1, b"f").attr
    assert found is not None
    return found


def test_a_list_that_is_given_to_a_base_file_counts_at_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("data")
    (tmp_path / "f").chmod(0o664)
    listed = acl("user:6 alice:0 group:6 mask:6 other:4")
    give_list(tmp_path / "f", listed)
    os.removexattr(tmp_path / "f", XATTR)
    with handlers_of(tmp_path) as handlers:
        found = found_in_a_shared_view(handlers)
        handlers.setxattr(found.number, os.fsencode(XATTR), listed)
        attr = handlers.getattr(found.number).attr
        assert attr is not None
        assert oct(stat.S_IMODE(attr.mode)) == "0o600"


@pytest.mark.parametrize("kind", ["metadata", "data"])
def test_the_list_of_a_base_file_counts_for_its_copy(tmp_path: Path, kind: str) -> None:
    (tmp_path / "f").write_text("data")
    (tmp_path / "f").chmod(0o660)
    give_list(tmp_path / "f", acl("user:6 alice:0 group:6 mask:6 other:0"))
    with handlers_of(tmp_path) as handlers:
        found = found_in_a_shared_view(handlers)
        size = 2 if kind == "data" else None
        attr = handlers.setattr(found.number, None, None, None, size, 10**18, 10**18).attr
        assert attr is not None
        assert oct(stat.S_IMODE(attr.mode)) == "0o600"


LISTED = "user:6 alice:6 group:0 mask:6 other:0"
REFUSING = """
    import ctypes, os, struct, sys
    load, refuse_it, allow = (0x20, 0, 0, 0), (6, 0, 0, 0x50000 | {number}), (6, 0, 0, 0x7FFF0000)
    filter = struct.pack("<HBBIHBBIHBBIHBBI", *load, 0x15, 0, 1, 464, *refuse_it, *allow)  # of getxattrat
    room = ctypes.create_string_buffer(filter)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(room)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
    from yolofs.overlay.acl import AclReader
    from yolofs.system.syscalls import AttributeReader
    directory = os.open(sys.argv[1], os.O_PATH)
    try:
        AttributeReader(b"system.posix_acl_access").read(directory, b"listed")
    except OSError as error:
        assert error.errno == {number}, error
    else:
        raise AssertionError("it was not refused")
    reader = AclReader()
    for name in (b"listed", b"plain", b"link", b"gone") * 2:
        found = reader.read(directory, name)
        print(found.hex() if found is not None else None)
"""


def directory_with_a_list(place: Path) -> Path:
    """Make a directory with a file that has a list, one that has none, and a link to the first."""
    (place / "listed").touch(mode=0o600)
    (place / "plain").touch()
    (place / "link").symlink_to("listed")
    give_list(place / "listed", acl(LISTED))
    return place


def test_the_list_of_a_name_in_an_open_directory(tmp_path: Path) -> None:
    directory = os.open(directory_with_a_list(tmp_path), os.O_PATH)
    try:
        reader = AclReader()
        for _ in range(2):
            assert reader.read(directory, b"listed") == os.getxattr(tmp_path / "listed", XATTR)
            assert [reader.read(directory, name) for name in (b"plain", b"link", b"gone")] == [None, None, None]
    finally:
        os.close(directory)


def test_a_list_is_read_by_the_open_directory_whatever_other_calls_have_left_on_the_stack(tmp_path: Path) -> None:
    libc, ones = ctypes.CDLL(None), [ctypes.c_uint64((1 << 64) - 1)] * 16
    directory = os.open(directory_with_a_list(tmp_path), os.O_PATH)
    try:
        reader = AttributeReader(XATTR.encode())
        for _ in range(3):
            libc.getpid(*ones)
            assert reader.read(directory, b"listed") == os.getxattr(tmp_path / "listed", XATTR)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        do_without("this kernel is older than 6.13")
    finally:
        os.close(directory)


def test_a_list_longer_than_usual_is_read_whole_by_the_open_directory(tmp_path: Path) -> None:
    users = b"".join(struct.pack("<HHI", TAGS["alice"], 6, 1000 + number) for number in range(200))
    directory = os.open(directory_with_a_list(tmp_path), os.O_PATH)
    try:
        os.setxattr(tmp_path / "listed", XATTR, acl("user:6") + users + acl("group:0 mask:6 other:0")[4:])
        found = AttributeReader(XATTR.encode()).read(directory, b"listed")
        assert found is not None
        assert found == os.getxattr(tmp_path / "listed", XATTR)
        assert len(found) > 1600
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        do_without("this kernel is older than 6.13")
    finally:
        os.close(directory)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM], ids=["older-kernel", "filtered"])
def test_the_list_is_read_where_the_kernel_cannot_read_it_by_an_open_directory(tmp_path: Path, number: int) -> None:
    directory = directory_with_a_list(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REFUSING).format(number=number), directory],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [os.getxattr(directory / "listed", XATTR).hex(), "None", "None", "None"] * 2
