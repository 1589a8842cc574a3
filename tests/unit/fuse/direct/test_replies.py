"""Answers, byte by byte as include/uapi/linux/fuse.h lays them out."""

from __future__ import annotations

import os
import stat
import struct

import pytest

from yolofs.fuse.direct import kernel_protocol
from yolofs.fuse.direct.replies import DirEntry, Replies
from yolofs.fuse.results import EntryReply
from yolofs.overlay.inodes import Attr

SIZES = {
    "OUT": 16,
    "ENTRY_OUT": 16 + 128,
    "CREATE_OUT": 16 + 128 + 16,
    "ATTR_OUT": 16 + 104,
    "OPEN_OUT": 16 + 16,
    "COUNT_OUT": 16 + 8,
    "OFFSET_OUT": 16 + 8,
    "STATFS_OUT": 16 + 80,
    "INIT_OUT": 16 + 64,
    "DIRENTPLUS": 128 + 24,
    "INVAL_INODE_OUT": 16 + 24,
    "INVAL_ENTRY_OUT": 16 + 16,
    "IN": 40,
    "SETATTR_IN": 88 - 4,
}
"""In bytes; the last one is read without what nobody needs at its end."""
ATTR = Attr(
    number=77,
    mode=stat.S_IFCHR | 0o640,
    nlink=2,
    uid=1000,
    gid=100,
    rdev=os.makedev(259, 1000),
    size=5_000_000_000,
    blocks=8,
    atime_ns=1_600_000_000_000_000_001,
    mtime_ns=-1_500_000_000,
    ctime_ns=1_700_000_000_999_999_999,
    is_stable=True,
)


@pytest.mark.parametrize(("name", "size"), SIZES.items(), ids=SIZES)
def test_each_structure_has_the_size_that_the_kernel_gives_it(name: str, size: int) -> None:
    assert getattr(kernel_protocol, name).size == size


def test_an_entry_is_laid_out_as_the_kernel_reads_it() -> None:
    reply = bytes(Replies(256).entry(9, EntryReply(ATTR, 1.5, 86_400.25)))
    length, error, unique = struct.unpack_from("=IiQ", reply)
    assert (length, error, unique) == (len(reply), 0, 9)
    node, generation, name_s, attr_s, name_ns, attr_ns = struct.unpack_from("=QQQQII", reply, 16)
    assert (node, generation) == (77, 0)
    assert (name_s, name_ns, attr_s, attr_ns) == (1, 500_000_000, 86_400, 250_000_000)
    ino, size, blocks, atime, mtime, ctime = struct.unpack_from("=QQQqqq", reply, 56)
    assert (ino, size, blocks) == (77, 5_000_000_000, 8)
    atime_ns, mtime_ns, ctime_ns, mode, nlink, uid, gid, rdev = struct.unpack_from("=IIIIIIII", reply, 104)
    assert (atime, atime_ns) == (1_600_000_000, 1)
    assert (mtime, mtime_ns) == (-2, 500_000_000)
    assert (ctime, ctime_ns) == (1_700_000_000, 999_999_999)
    assert (mode, nlink, uid, gid) == (stat.S_IFCHR | 0o640, 2, 1000, 100)
    assert rdev == 0x3103E8


def test_an_entry_for_no_such_name_has_number_zero_and_a_lifetime() -> None:
    reply = bytes(Replies(256).entry(9, EntryReply(None, 60.0, 0.0)))
    assert struct.unpack_from("=IiQ", reply) == (144, 0, 9)
    assert struct.unpack_from("=QQQQ", reply, 16) == (0, 0, 60, 0)


def test_an_error_is_a_header_with_the_negative_errno_alone() -> None:
    assert bytes(Replies(64).error(5, 13)) == struct.pack("=IiQ", 16, -13, 5)


def test_names_of_a_listing_end_at_multiples_of_eight() -> None:
    for length in range(1, 20):
        packed = DirEntry(EntryReply(ATTR, 1.0, 1.0), ATTR, b"n" * length, 3).packed()
        assert len(packed) % 8 == 0
        ino, offset, told, kind = struct.unpack_from("=QQII", packed, 128)
        assert (ino, offset, told, kind) == (77, 3, length, stat.S_IFCHR >> 12)
        assert packed[152 : 152 + length] == b"n" * length
        assert not any(packed[152 + length :])


def test_a_name_that_is_told_again_has_the_lifetimes_that_were_set_meanwhile() -> None:
    entry = DirEntry(EntryReply(ATTR, 60.0, 60.0), ATTR, b"name", 3)
    entry.entry_timeout = entry.attr_timeout = 7.5
    assert struct.unpack_from("=QQII", entry.packed(), 16) == (7, 7, 500_000_000, 500_000_000)
