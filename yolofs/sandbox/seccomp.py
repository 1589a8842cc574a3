"""Which system calls the kernel refuses inside the sandbox, as a compiled filter for
``bwrap --seccomp``.

What is refused here is of three kinds.  It needs a capability, and the sandbox has none anyway; or
it would let a program get one (a user namespace of its own); or it would reach past the sandbox
without one.  Of the last kind are typing into the user's terminal, the user's keys in the kernel,
having the host wait for a lease, the process by which bubblewrap keeps the sandbox together, and
without network what a network namespace does not cut off.

The program is classic BPF over ``struct seccomp_data``: seccomp(2), linux/bpf_common.h.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

_LOAD_WORD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_JUMP_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

_NUMBER_OFFSET: Final = 0
_ARCH_OFFSET: Final = 4
_ARGUMENT_OFFSET: Final = 16
_ARGUMENT_BYTES: Final = 8

_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000

_NEW_USER_NAMESPACE: Final = 0x10000000
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C
SUBVOLUMES: Final = (
    0x50009401,  # BTRFS_IOC_SNAP_CREATE
    0x5000940E,  # BTRFS_IOC_SUBVOL_CREATE
    0x5000940F,  # BTRFS_IOC_SNAP_DESTROY
    0x50009417,  # BTRFS_IOC_SNAP_CREATE_V2
    0x50009418,  # BTRFS_IOC_SUBVOL_CREATE_V2
    0x5000943F,  # BTRFS_IOC_SNAP_DESTROY_V2
    0x4020BC10,  # BCH_IOCTL_SUBVOLUME_CREATE
    0x4020BC11,  # BCH_IOCTL_SUBVOLUME_DESTROY
)
"""Requests that make subvolumes and take them away (linux/btrfs.h; bcachefs_ioctl.h)."""
_F_SETLEASE: Final = 1024
_F_SETDELEG: Final = 1040
_X32_BIT: Final = 0x40000000
_FIRST_PROCESS: Final = 1
_PTRACE_TRACEME: Final = 0
_UFFD_USER_MODE_ONLY: Final = 1
_SYS_SOCKET, _SYS_SOCKETPAIR = 1, 8

FAMILIES: Final = (1, 2, 10, 16)
"""The sockets that there are without network: AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK
(linux/socket.h).

These end where the network namespace does.  Others do not (AF_VSOCK leads to the hypervisor and its
machines, AF_QIPCRTR to other processors of a board, AF_ALG into the kernel's cryptography), or are
no use without a device.
"""
_AF_NETLINK: Final = 16
NETLINK_PROTOCOLS: Final = (0, 4)
"""NETLINK_ROUTE, which the C library asks for the interfaces there are, and NETLINK_SOCK_DIAG
(linux/netlink.h).

NETLINK_KOBJECT_UEVENT, for one, tells root of the host's devices in each network namespace.
"""

SAME_EVERYWHERE: Final[Mapping[str, int]] = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
"""System calls that came after Linux 5.0 have one number on all machines."""

X86_64: Final[Mapping[str, int]] = {
    **SAME_EVERYWHERE,
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "setns": 308,
    "open_by_handle_at": 304,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "bpf": 321,
    "kexec_load": 246,
    "kexec_file_load": 320,
    "init_module": 175,
    "finit_module": 313,
    "delete_module": 176,
    "quotactl": 179,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "acct": 163,
    "syslog": 103,
    "iopl": 172,
    "ioperm": 173,
}
I386: Final[Mapping[str, int]] = {
    **SAME_EVERYWHERE,
    "mount": 21,
    "umount": 22,
    "umount2": 52,
    "pivot_root": 217,
    "chroot": 61,
    "setns": 346,
    "open_by_handle_at": 342,
    "add_key": 286,
    "request_key": 287,
    "keyctl": 288,
    "bpf": 357,
    "kexec_load": 283,
    "init_module": 128,
    "finit_module": 350,
    "delete_module": 129,
    "quotactl": 131,
    "swapon": 87,
    "swapoff": 115,
    "reboot": 88,
    "acct": 51,
    "syslog": 103,
    "iopl": 110,
    "ioperm": 101,
}
AARCH64: Final[Mapping[str, int]] = {
    **SAME_EVERYWHERE,
    "mount": 40,
    "umount2": 39,
    "pivot_root": 41,
    "chroot": 51,
    "setns": 268,
    "open_by_handle_at": 265,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "bpf": 280,
    "kexec_load": 104,
    "kexec_file_load": 294,
    "init_module": 105,
    "finit_module": 273,
    "delete_module": 106,
    "quotactl": 60,
    "swapon": 224,
    "swapoff": 225,
    "reboot": 142,
    "acct": 89,
    "syslog": 116,
}


class Abi(msgspec.Struct, frozen=True):
    """One way of making system calls."""

    audit_arch: int
    """``AUDIT_ARCH_*`` of linux/audit.h."""
    refused: Mapping[str, int]
    """What is refused with EPERM whatever its arguments."""
    clone: int
    clone3: int
    unshare: int
    ioctl: int
    fcntl: tuple[int, ...]
    ptrace: int
    of_a_process: tuple[int, ...]
    """What takes a process by its number, as the first argument, and could change it."""
    userfaultfd: int
    sockets: tuple[int, ...]
    """``socket`` and ``socketpair``."""
    socketcall: int | None = None
    """The one system call for all of them, whose arguments lie in memory."""
    io_uring_setup: int = 425
    end: int | None = None
    """Numbers from this one on belong to another way, which is refused with ENOSYS."""


ABIS: Final[Mapping[str, tuple[Abi, ...]]] = {
    "x86_64": (
        Abi(
            0xC000003E,
            X86_64,
            clone=56,
            clone3=435,
            unshare=272,
            ioctl=16,
            fcntl=(72,),
            ptrace=101,
            of_a_process=(310, 311, 434),
            userfaultfd=323,
            sockets=(41, 53),
            end=_X32_BIT,
        ),
        Abi(
            0x40000003,
            I386,
            clone=120,
            clone3=435,
            unshare=310,
            ioctl=54,
            fcntl=(55, 221),
            ptrace=26,
            of_a_process=(347, 348, 434),
            userfaultfd=374,
            sockets=(359, 360),
            socketcall=102,
        ),
    ),
    "aarch64": (
        Abi(
            0xC00000B7,
            AARCH64,
            clone=220,
            clone3=435,
            unshare=97,
            ioctl=29,
            fcntl=(25,),
            ptrace=117,
            of_a_process=(270, 271, 434),
            userfaultfd=282,
            sockets=(198, 199),
        ),
    ),
}
"""For each machine (as ``uname -m`` calls it) what programs may use; one that uses another ABI is
killed.

``of_a_process`` are process_vm_readv, process_vm_writev and pidfd_open, the way to pidfd_getfd and
process_madvise.
"""


class Instruction(msgspec.Struct, frozen=True):
    """A ``struct sock_filter``: the jumps count the instructions that are passed over."""

    code: int
    if_true: int
    if_false: int
    value: int


def has_filter(machine: str) -> bool:
    """Tell whether there is a filter for a machine."""
    return machine in ABIS


def compile_filter(machine: str, *, has_network: bool = True) -> bytes:
    """Return the filter for a machine, as an array of ``struct sock_filter``.

    Raises:
        KeyError: there is none for this machine.
    """
    code = program(machine, has_network=has_network)
    return b"".join(struct.pack("=HBBI", each.code, each.if_true, each.if_false, each.value) for each in code)


def program(machine: str, *, has_network: bool = True) -> list[Instruction]:
    """Return the filter's instructions."""
    code = [Instruction(_LOAD_WORD, 0, 0, _ARCH_OFFSET)]
    for abi in ABIS[machine]:
        section = [*_section(abi), *(() if has_network else _without_network(abi)), _return(_ALLOW)]
        # A conditional jump reaches 255 instructions at most, so the way past a section is checked
        # here.
        assert len(section) <= 255
        code += [Instruction(_JUMP_EQUAL, 0, len(section), abi.audit_arch), *section]
    return [*code, _return(_KILL_PROCESS)]


def _section(abi: Abi) -> Iterator[Instruction]:
    """Yield what is refused in one ABI; a call that gets to the end is allowed."""
    yield Instruction(_LOAD_WORD, 0, 0, _NUMBER_OFFSET)
    if abi.end is not None:
        yield Instruction(_JUMP_AT_LEAST, 0, 1, abi.end)
        yield _refuse(errno.ENOSYS)
    for number in abi.refused.values():
        yield from _where_it_is(number, [_refuse(errno.EPERM)])
    # The flags of clone3 lie in memory, where no filter can look: the C library falls back to
    # clone.
    yield from _where_it_is(abi.clone3, [_refuse(errno.ENOSYS)])
    for number in (abi.clone, abi.unshare):
        body = [_load(0), Instruction(_JUMP_ANY_BIT, 0, 1, _NEW_USER_NAMESPACE), _refuse(errno.EPERM), _return(_ALLOW)]
        yield from _where_it_is(number, body)
    # On btrfs a snapshot of all that lies around a directory could be put into it, and read there:
    # older kernels ask only for a directory of one's own.
    yield from _refused_requests(abi.ioctl, _TIOCSTI, _TIOCLINUX, *SUBVOLUMES)
    # A lease on a file makes others wait up to 45 seconds when they open it: also on the host, if
    # the sandbox has the file straight from base.
    for number in abi.fcntl:
        yield from _refused_requests(number, _F_SETLEASE, _F_SETDELEG)
    # A program that holds up bubblewrap's process in the sandbox keeps the run from ending.  If it
    # makes that process forget its parent, its own processes outlive the run.
    for number in abi.of_a_process:
        yield from _where_it_is(number, [_load(0), *_either([_FIRST_PROCESS], _refuse(errno.EPERM)), _return(_ALLOW)])
    aimed_at_it = [*_either([_PTRACE_TRACEME], _return(_ALLOW)), _refuse(errno.EPERM)]
    is_aimed_at_it = [_load(1), Instruction(_JUMP_EQUAL, 0, 1 + len(aimed_at_it), _FIRST_PROCESS)]
    yield from _where_it_is(abi.ptrace, [*is_aimed_at_it, _load(0), *aimed_at_it, _return(_ALLOW)])
    # A program that lets the kernel wait for a page makes it wait with its locks held: that of a
    # listed directory of the host, for example.
    kernel_waits = [_load(0), Instruction(_JUMP_ANY_BIT, 1, 0, _UFFD_USER_MODE_ONLY), _refuse(errno.EPERM)]
    yield from _where_it_is(abi.userfaultfd, [*kernel_waits, _return(_ALLOW)])


def _without_network(abi: Abi) -> Iterator[Instruction]:
    """Yield what allows only sockets that the network namespace cuts off."""
    # A socket that is asked for through memory that is shared with the kernel passes no filter.
    yield from _where_it_is(abi.io_uring_setup, [_refuse(errno.ENOSYS)])
    if abi.socketcall is not None:
        makes_one = _either([_SYS_SOCKET, _SYS_SOCKETPAIR], _refuse(errno.EAFNOSUPPORT))
        yield from _where_it_is(abi.socketcall, [_load(0), *makes_one, _return(_ALLOW)])
    netlink = [_load(2), *_either(NETLINK_PROTOCOLS, _return(_ALLOW)), _refuse(errno.EPROTONOSUPPORT)]
    others = [family for family in FAMILIES if family != _AF_NETLINK]
    is_netlink = Instruction(_JUMP_EQUAL, 0, len(netlink), _AF_NETLINK)
    body = [_load(0), *_either(others, _return(_ALLOW)), is_netlink, *netlink, _refuse(errno.EAFNOSUPPORT)]
    for number in abi.sockets:
        yield from _where_it_is(number, body)


def _refused_requests(number: int, *requests: int) -> Iterator[Instruction]:
    """Yield what refuses a system call with some second arguments, of which the kernel takes the
    low half.
    """
    yield from _where_it_is(number, [_load(1), *_either(requests, _refuse(errno.EPERM)), _return(_ALLOW)])


def _where_it_is(number: int, body: list[Instruction]) -> Iterator[Instruction]:
    """Yield what is done at one system call alone, and ends with a verdict, as another word is
    loaded then.
    """
    yield Instruction(_JUMP_EQUAL, 0, len(body), number)
    yield from body


def _either(values: Iterable[int], verdict: Instruction) -> Iterator[Instruction]:
    """Yield a verdict for each of some values of the word that is loaded."""
    for value in values:
        yield Instruction(_JUMP_EQUAL, 0, 1, value)
        yield verdict


def _load(argument: int) -> Instruction:
    """Return what loads the low half of an argument: what the kernel takes of a number of 32
    bits.
    """
    return Instruction(_LOAD_WORD, 0, 0, _ARGUMENT_OFFSET + _ARGUMENT_BYTES * argument)


def _refuse(number: int) -> Instruction:
    return _return(_ERRNO | number)


def _return(action: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, action)
