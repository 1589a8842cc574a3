"""Kernels of several versions: what they send is understood in the form that they send it in."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path
from typing import Literal

import pytest

from tests.unit.fuse.direct.kernel import Kernel, kernel_of
from yolofs.fuse.direct.kernel_protocol import Init, Opcode
from yolofs.overlay.acl import DEFAULT_XATTR

V5_4 = (31, 0x03FFFFFB)
V5_15 = (34, 0x33FFFFFB)
V6_18 = (44, 0x73FFFFFB)
KERNELS = pytest.mark.parametrize("version", [V5_4, V5_15, V6_18], ids=["5.4", "5.15", "6.18"])
UMASK = 0o027


def looked_up(kernel: Kernel, name: bytes) -> tuple[int, int]:
    """Return the number and the mode of a name."""
    error, answer = kernel.ask(Opcode.LOOKUP, name + b"\0")
    assert error == 0
    return struct.unpack_from("=Q", answer)[0], struct.unpack_from("=I", answer, 40 + 60)[0]


@KERNELS
def test_a_mount_begins_with_each_version_of_the_kernel(base: Path, version: tuple[int, int]) -> None:
    with kernel_of(base) as (kernel, _):
        accepted = Init(kernel.begin(*version))
        assert Init.CACHE_SYMLINKS | Init.PARALLEL_DIROPS in accepted
        assert Init.POSIX_ACL not in accepted


@KERNELS
def test_an_attribute_is_set_in_the_form_that_was_agreed(base: Path, version: tuple[int, int]) -> None:
    (base / "file").touch()
    with kernel_of(base, xattrs=True) as (kernel, handlers):
        has_flags = Init.SETXATTR_EXT in Init(kernel.begin(*version))
        assert has_flags == (version is not V5_4)
        number, _ = looked_up(kernel, b"file")
        head = struct.pack("=IIII", 5, 0, 0, 0) if has_flags else struct.pack("=II", 5, 0)
        assert kernel.ask(Opcode.SETXATTR, head + b"user.name\0value", number) == (0, b"")
        assert handlers.getxattr(number, b"user.name") == b"value"
        error, answer = kernel.ask(Opcode.GETXATTR, struct.pack("=II", 99, 0) + b"user.name\0", number)
        assert (error, answer) == (0, b"value")


@KERNELS
@pytest.mark.parametrize("xattrs", [False, True])
def test_a_umask_is_applied_by_us_only_where_that_is_agreed(
    base: Path, version: tuple[int, int], *, xattrs: bool
) -> None:
    with kernel_of(base, xattrs=xattrs) as (kernel, _):
        kernel.begin(*version)
        expected = 0o777 & ~UMASK if xattrs else 0o777  # else the kernel has done so
        kernel.ask(Opcode.MKDIR, struct.pack("=II", 0o777, UMASK) + b"directory\0")
        kernel.ask(Opcode.MKNOD, struct.pack("=IIII", stat.S_IFIFO | 0o777, 0, UMASK, 0) + b"fifo\0")
        flags = os.O_RDWR | os.O_CREAT
        kernel.ask(Opcode.CREATE, struct.pack("=IIII", flags, stat.S_IFREG | 0o777, UMASK, 0) + b"file\0")
        for name in (b"directory", b"fifo", b"file"):
            assert stat.S_IMODE(looked_up(kernel, name)[1]) == expected, name


@KERNELS
def test_a_list_is_inherited_from_where_lists_are_judged_by(base: Path, version: tuple[int, int]) -> None:
    rules = ((1, 7, 0xFFFFFFFF), (2, 6, 47110), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))
    try:
        os.setxattr(base, DEFAULT_XATTR, struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *rule) for rule in rules))
    except OSError:
        pytest.skip("the disk of temporary files knows no access control lists")
    with kernel_of(base, xattrs=True) as (kernel, handlers):
        kernel.begin(*version)
        kernel.ask(Opcode.CREATE, struct.pack("=IIII", os.O_RDWR, stat.S_IFREG | 0o666, 0o077, 0) + b"file\0")
        number, mode = looked_up(kernel, b"file")
        assert stat.S_IMODE(mode) == 0o660
        assert len(handlers.getxattr(number, b"system.posix_acl_access")) == 4 + 5 * 8


@KERNELS
@pytest.mark.parametrize("xattrs", ["auto", False])
def test_unknown_requests_are_answered_with_enosys(
    base: Path, version: tuple[int, int], *, xattrs: bool | Literal["auto"]
) -> None:
    with kernel_of(base, xattrs=xattrs) as (kernel, _):
        kernel.begin(*version)
        for opcode in (Opcode.FLUSH, 39, 40, 50, 53, 63):
            assert kernel.ask(opcode, bytes(64))[0] == errno.ENOSYS
        is_served = bool(xattrs) and version is not V5_4
        for opcode in (Opcode.GETXATTR, Opcode.LISTXATTR, Opcode.SETXATTR, Opcode.REMOVEXATTR):
            assert (kernel.ask(opcode, bytes(64))[0] != errno.ENOSYS) == is_served


def test_a_birth_is_told_to_a_program_that_asks(base: Path) -> None:
    (base / "file").touch()
    with kernel_of(base) as (kernel, handlers):
        kernel.begin(*V6_18)
        number, mode = looked_up(kernel, b"file")
        error, answer = kernel.ask(Opcode.STATX, struct.pack("=IIQII", 0, 0, 0, 0, 0xFFF), number)
        assert error == 0
        assert len(answer) == 32 + 256
        mask, _, _, nlink, _, _, told_mode = struct.unpack_from("=IIQIIIH", answer, 32)
        assert (mask, nlink, told_mode) == (0xFFF, 1, mode)
        seconds, rest = struct.unpack_from("=qI", answer, 32 + 80)
        assert seconds * 10**9 + rest == handlers.birth_ns(number)
