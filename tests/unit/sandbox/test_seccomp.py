"""The filter of system calls, carried out as the kernel does it, for every machine it is made
for.
"""

from __future__ import annotations

import errno
import itertools
import struct

import pytest

from yolofs.sandbox.seccomp import AARCH64, ABIS, I386, X86_64, compile_filter, has_filter, program

ALLOW = 0x7FFF0000
KILL = 0x80000000
REFUSED = 0x00050000 | errno.EPERM
NEWUSER = 0x10000000
X86_64_ARCH, I386_ARCH, AARCH64_ARCH = 0xC000003E, 0x40000003, 0xC00000B7


def judge(machine: str, arch: int, number: int, *arguments: int, has_network: bool = True) -> int:
    """Return what the filter says to a system call: linux/filter.h, linux/seccomp.h."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number if number < 1 << 31 else number - (1 << 32), arch, 0, *padded)
    raw = compile_filter(machine, has_network=has_network)
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
    def test_listed_system_calls_are_refused(
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

    def test_no_subvolume_is_made_and_blocks_can_be_shared(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        """A snapshot on btrfs could hold all that lies around a directory of one's own; what ``cp``
        asks for is of the same kind.
        """
        snapshot, subvolume = 0x50009417, 0x50009418
        for request in (0x50009401, 0x5000940E, snapshot, subvolume, 0x4020BC10):
            assert judge(machine, arch, numbers["ioctl"], 3, request) == REFUSED
        clone, clone_range, same_range = 0x40049409, 0x4020940D, 0xC0189436
        for request in (clone, clone_range, same_range):
            assert judge(machine, arch, numbers["ioctl"], 3, request) == ALLOW

    def test_a_lease_is_refused_whatever_stands_in_the_upper_half(
        self, machine: str, arch: int, refused: dict[str, int], numbers: dict[str, int]
    ) -> None:
        for command in (1024, 1040, 1024 | 1 << 32, 1040 | 0xFFFFFFFF << 32):
            assert judge(machine, arch, numbers["fcntl"], 3, command) == 0x00050000 | errno.EPERM
        for command in (0, 1, 4, 1025, 1026, 1030, 1031):  # F_DUPFD, F_GETFD, F_SETFL, F_GETLEASE, F_NOTIFY and so on
            assert judge(machine, arch, numbers["fcntl"], 3, command, 1024) == ALLOW


PTRACE = {X86_64_ARCH: 101, I386_ARCH: 26, AARCH64_ARCH: 117}
OF_A_PROCESS = {X86_64_ARCH: (310, 311, 434), I386_ARCH: (347, 348, 434), AARCH64_ARCH: (270, 271, 434)}
SOCKETS = {X86_64_ARCH: (41, 53), I386_ARCH: (359, 360), AARCH64_ARCH: (198, 199)}
USERFAULTFD = {X86_64_ARCH: 323, I386_ARCH: 374, AARCH64_ARCH: 282}
WAYS = [("x86_64", X86_64_ARCH), ("x86_64", I386_ARCH), ("aarch64", AARCH64_ARCH)]
HIGH = 0xFFFFFFFF << 32


@pytest.mark.parametrize("has_network", [True, False])
@pytest.mark.parametrize(("machine", "arch"), WAYS)
class TestTheFirstProcess:
    def test_the_first_process_cannot_be_traced_and_others_can(
        self, machine: str, arch: int, has_network: bool
    ) -> None:
        for request in (16, 0x4206, 12, 0x4207):  # ATTACH, SEIZE, GETREGS, INTERRUPT
            for pid in (1, 1 | HIGH):
                assert judge(machine, arch, PTRACE[arch], request, pid, has_network=has_network) == REFUSED
            for pid in (2, 0, 11, 257):
                assert judge(machine, arch, PTRACE[arch], request, pid, has_network=has_network) == ALLOW
        for pid in (0, 1, 2):  # TRACEME takes no process
            assert judge(machine, arch, PTRACE[arch], 0, pid, has_network=has_network) == ALLOW

    def test_no_process_can_be_reached_by_its_number(self, machine: str, arch: int, has_network: bool) -> None:
        for number in OF_A_PROCESS[arch]:
            assert judge(machine, arch, number, 1, has_network=has_network) == REFUSED
            assert judge(machine, arch, number, 1 | HIGH, has_network=has_network) == REFUSED
            assert judge(machine, arch, number, 2, 1, has_network=has_network) == ALLOW


@pytest.mark.parametrize(("machine", "arch"), WAYS)
class TestSockets:
    def test_without_network_there_are_four_families(self, machine: str, arch: int) -> None:
        for number in SOCKETS[arch]:
            for family in range(64):
                is_kept = family in (1, 2, 10, 16)
                told = ALLOW if is_kept else 0x00050000 | errno.EAFNOSUPPORT
                assert judge(machine, arch, number, family, 3, 0, has_network=False) == told
                assert judge(machine, arch, number, family | HIGH, 3, 0, has_network=False) == told
                assert judge(machine, arch, number, family, 3, 0) == ALLOW

    def test_without_network_two_kinds_of_netlink_are_left(self, machine: str, arch: int) -> None:
        for protocol in range(32):
            told = ALLOW if protocol in (0, 4) else 0x00050000 | errno.EPROTONOSUPPORT
            assert judge(machine, arch, SOCKETS[arch][0], 16, 3, protocol, has_network=False) == told
            assert judge(machine, arch, SOCKETS[arch][0], 2, 3, protocol, has_network=False) == ALLOW

    def test_without_network_io_uring_is_not_there(self, machine: str, arch: int) -> None:
        assert judge(machine, arch, 425, 8, has_network=False) == 0x00050000 | errno.ENOSYS
        assert judge(machine, arch, 425, 8) == ALLOW

    def test_userfaultfd_is_refused_unless_it_is_for_user_mode_only(self, machine: str, arch: int) -> None:
        for flags in (0, 0x80800, 2):
            assert judge(machine, arch, USERFAULTFD[arch], flags) == REFUSED
        assert judge(machine, arch, USERFAULTFD[arch], 0x80801) == ALLOW


def test_the_one_call_of_32_bit_programs_makes_no_socket_without_network() -> None:
    for call in range(21):
        told = 0x00050000 | errno.EAFNOSUPPORT if call in (1, 8) else ALLOW
        assert judge("x86_64", I386_ARCH, 102, call, has_network=False) == told
        assert judge("x86_64", I386_ARCH, 102, call) == ALLOW


def test_both_calls_of_32_bit_programs_for_descriptors_are_judged() -> None:
    assert judge("x86_64", I386_ARCH, 55, 3, 1024) == 0x00050000 | errno.EPERM


def test_a_system_call_of_another_architecture_kills() -> None:
    assert judge("x86_64", AARCH64_ARCH, 63) == KILL
    assert judge("aarch64", 0x40000028, 3) == KILL  # 32-bit ARM


def test_system_calls_of_x32_get_enosys() -> None:
    assert judge("x86_64", X86_64_ARCH, 0x40000000 | 165) == 0x00050000 | errno.ENOSYS


def test_there_is_no_filter_for_machines_that_nobody_has_looked_at() -> None:
    assert not has_filter("s390x")
    assert has_filter("x86_64")


def test_no_jump_leaves_the_program() -> None:
    for machine, has_network in itertools.product(ABIS, (True, False)):
        code = program(machine, has_network=has_network)
        for at, instruction in enumerate(code):
            assert at + 1 + max(instruction.if_true, instruction.if_false) < len(code) or instruction.code == 0x06
