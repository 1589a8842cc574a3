"""The filter of system calls, carried out as the kernel does it, for every machine it is made for."""

from __future__ import annotations

import errno
import struct

import pytest

from yolofs.sandbox.seccomp import AARCH64, ABIS, I386, X86_64, compile_filter, has_filter, program

ALLOW = 0x7FFF0000
KILL = 0x80000000
NEWUSER = 0x10000000
X86_64_ARCH, I386_ARCH, AARCH64_ARCH = 0xC000003E, 0x40000003, 0xC00000B7


def judge(machine: str, arch: int, number: int, *arguments: int) -> int:
    """Return what the filter says to a system call: linux/filter.h, linux/seccomp.h."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number if number < 1 << 31 else number - (1 << 32), arch, 0, *padded)
    raw = compile_filter(machine)
    code = [struct.unpack_from("=HBBI", raw, at) for at in range(0, len(raw), 8)]
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"instruction {operation:#x}")


MACHINES = [
    (
        "x86_64",
        X86_64_ARCH,
        X86_64,
        {"clone": 56, "clone3": 435, "unshare": 272, "ioctl": 16, "fcntl": 72, "read": 0, "openat": 257},
    ),
    (
        "x86_64",
        I386_ARCH,
        I386,
        {"clone": 120, "clone3": 435, "unshare": 310, "ioctl": 54, "fcntl": 221, "read": 3, "openat": 295},
    ),
    (
        "aarch64",
        AARCH64_ARCH,
        AARCH64,
        {"clone": 220, "clone3": 435, "unshare": 97, "ioctl": 29, "fcntl": 25, "read": 63, "openat": 56},
    ),
]


@pytest.mark.parametrize(("machine", "arch", "refused", "numbers"), MACHINES)
class TestOneWayOfCalling:
    def test_what_is_listed_is_refused(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        for number in refused.values():
            assert judge(machine, arch, number) == 0x00050000 | errno.EPERM

    def test_ordinary_calls_are_allowed(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        assert judge(machine, arch, numbers["read"]) == ALLOW
        assert judge(machine, arch, numbers["openat"], 0x5412, 0x5412, 0x5412) == ALLOW

    def test_a_user_namespace_is_refused_and_other_clones_are_not(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        for name in ("clone", "unshare"):
            assert judge(machine, arch, numbers[name], NEWUSER) == 0x00050000 | errno.EPERM
            assert judge(machine, arch, numbers[name], NEWUSER | 17) == 0x00050000 | errno.EPERM
            assert judge(machine, arch, numbers[name], 17) == ALLOW
        assert judge(machine, arch, numbers["clone3"]) == 0x00050000 | errno.ENOSYS

    def test_typing_into_the_terminal_is_refused_whatever_stands_in_the_upper_half(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 0xFFFFFFFF << 32):
            assert judge(machine, arch, numbers["ioctl"], 0, request) == 0x00050000 | errno.EPERM
        for request in (0x5401, 0x5413, 0x5411):
            assert judge(machine, arch, numbers["ioctl"], 0, request) == ALLOW

    def test_a_lease_is_refused_whatever_stands_in_the_upper_half(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        for command in (1024, 1040, 1024 | 1 << 32, 1040 | 0xFFFFFFFF << 32):
            assert judge(machine, arch, numbers["fcntl"], 3, command) == 0x00050000 | errno.EPERM
        for command in (0, 1, 4, 1025, 1026, 1030, 1031):  # F_DUPFD, F_GETFD, F_SETFL, F_GETLEASE, F_NOTIFY and so on
            assert judge(machine, arch, numbers["fcntl"], 3, command, 1024) == ALLOW


def test_both_calls_of_32_bit_programs_for_descriptors_are_judged() -> None:
    assert judge("x86_64", I386_ARCH, 55, 3, 1024) == 0x00050000 | errno.EPERM


def test_another_way_of_calling_kills() -> None:
    assert judge("x86_64", AARCH64_ARCH, 63) == KILL
    assert judge("aarch64", 0x40000028, 3) == KILL  # 32-bit ARM


def test_x32_is_not_there() -> None:
    assert judge("x86_64", X86_64_ARCH, 0x40000000 | 165) == 0x00050000 | errno.ENOSYS


def test_there_is_no_filter_for_machines_that_nobody_has_looked_at() -> None:
    assert not has_filter("s390x")
    assert has_filter("x86_64")


def test_no_jump_leaves_the_program() -> None:
    for machine in ABIS:
        code = program(machine)
        for at, instruction in enumerate(code):
            assert at + 1 + max(instruction.if_true, instruction.if_false) < len(code) or instruction.code == 0x06
