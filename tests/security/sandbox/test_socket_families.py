"""Without network there are only sockets that end where the network namespace does, however they
are asked for.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.sandbox.going import PYTHON
from tests.support.program import Program

pytestmark = pytest.mark.mount

IS_X86 = os.uname().machine == "x86_64"
FAMILIES = {
    int(number): name
    for name, number in re.findall(
        r"#define PF_(\w+)\s+(\d+)", Path(f"/usr/include/{os.uname().machine}-linux-gnu/bits/socket.h").read_text()
    )
    if name != "MAX"
}
KEPT = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}


@pytest.fixture
def cut_off(yolofs: Program) -> Iterator[Program]:
    """Return the program with runs that have no network."""
    config = yolofs.project / ".yolofs.toml"
    before = config.read_text()
    config.write_text(f'{before}[run]\nnetwork = "none"\n')
    try:
        yield yolofs
    finally:
        config.write_text(before)


def inside(yolofs: Program, script: str, *words: str) -> str:
    """Run a script of Python and return what it printed."""
    head = "import ctypes, errno, os, socket, struct, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    return yolofs("run", "--no-review", PYTHON, "-c", head + script, *words).out


MAKE_ALL = """
for call in (libc.socket, libc.socketpair):
    for family in [*range(64), 2**31 - 1]:
        told = set()
        for kind in range(1, 7):
            for protocol in (0, 1, 5, 256):
                pair = (ctypes.c_int * 2)(-1, -1)
                ctypes.set_errno(0)
                fd = call(family, kind, protocol, pair)
                told.add("made" if fd >= 0 else errno.errorcode[ctypes.get_errno()])
                for each in pair if call is libc.socketpair and fd == 0 else [fd] if fd > 2 else []:
                    os.close(each)
        print(call.__name__, family, *sorted(told))
"""


def test_without_network_every_socket_family_but_four_is_refused(cut_off: Program) -> None:
    told = {}
    for line in inside(cut_off, MAKE_ALL).splitlines():
        call, number, *words = line.split()
        told[call, int(number)] = set(words)
    for (call, family), found in told.items():
        if family in KEPT:
            assert ("made" in found) == (call == "socket" or family == socket.AF_UNIX)
        else:
            assert found == {"EAFNOSUPPORT"}, (call, FAMILIES.get(family))


def test_with_network_a_family_is_as_on_the_host(yolofs: Program) -> None:
    """AF_VSOCK, for example, where the machine is a virtual one."""
    script = "print(libc.socket(int(sys.argv[1]), socket.SOCK_STREAM, 0) >= 0)"
    for family in (socket.AF_VSOCK, socket.AF_INET):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
            is_there = True
        except OSError:
            is_there = False
        assert inside(yolofs, script, str(int(family))) == f"{is_there}\n"


def test_what_the_kernel_tells_by_netlink_is_of_the_network_alone(cut_off: Program) -> None:
    script = """
for protocol in range(32):
    ctypes.set_errno(0)
    fd = libc.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    if fd >= 0 or ctypes.get_errno() != errno.EPROTONOSUPPORT:
        print(protocol)
"""
    assert set(inside(cut_off, script).split()) <= {"0", "4"}
    assert "0" in inside(cut_off, script).split()


IO_URING = """
params = (ctypes.c_uint32 * 30)()
ctypes.set_errno(0)
print(libc.syscall(425, 4, params) >= 0, errno.errorcode.get(ctypes.get_errno()))
"""


def test_no_socket_is_asked_for_through_io_uring(cut_off: Program) -> None:
    assert inside(cut_off, IO_URING) == "False ENOSYS\n"


def test_with_network_io_uring_is_as_on_the_host(yolofs: Program) -> None:
    plain = subprocess.run(
        [PYTHON, "-c", "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n" + IO_URING],
        capture_output=True,
        text=True,
        check=True,
    )
    assert inside(yolofs, IO_URING) == plain.stdout


BY_SOCKETCALL = r"""
/* int $0x80 from a 64-bit program is the 32-bit way of calling; what it points to has to lie below 4 GiB. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
static long call(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}
int main(void) {
    unsigned *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned families[] = {40, 38, 17, 1, 2};
    for (int i = 0; i < 5; i++) {
        low[0] = families[i]; low[1] = i == 2 ? 3 : i == 1 ? 5 : 1; low[2] = 0; low[3] = (unsigned)(long)(low + 8);
        long by_one = call(102, 1, (long)low, 0), pair = call(102, 8, (long)low, 0);
        printf("%u %ld %ld %ld\n", families[i], by_one, pair, call(359, low[0], low[1], 0));
    }
    /* x32: another way again */
    long x32;
    __asm__ volatile("syscall" : "=a"(x32) : "a"(0x40000000 + 41), "D"(40), "S"(1), "d"(0) : "memory", "rcx", "r11");
    printf("x32 %ld\n", x32);
}
"""
EAFNOSUPPORT = -97
ENOSYS = -38


@pytest.mark.skipif(not IS_X86, reason="the other ways of calling are x86's")
def test_no_other_way_of_calling_makes_a_socket(cut_off: Program) -> None:
    assert shutil.which("gcc"), "scripts/setup.sh installs it"
    program = cut_off.project / "program"
    subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=BY_SOCKETCALL, text=True, check=True)
    lines = cut_off("run", "--no-review", str(program)).out.splitlines()
    told = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in lines}
    assert told.pop("x32") == [ENOSYS]
    for family, (by_one, pair, directly) in told.items():
        assert (by_one, pair) == (EAFNOSUPPORT, EAFNOSUPPORT)
        assert (directly >= 0) == (int(family) in KEPT)


def test_without_network_programs_talk_over_socket_pairs_and_loopback(cut_off: Program) -> None:
    script = """
import asyncio, threading
first, second = socket.socketpair()
first.send(b"pair"); print(second.recv(9))
for family, place in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((place, 0), family=family)
    with socket.create_connection(listener.getsockname()[:2]) as client:
        listener.accept()[0].send(b"loop"); print(client.recv(9))
print(socket.getaddrinfo("localhost", 80)[0][4][0] in ("127.0.0.1", "::1"), socket.if_nameindex())
async def both():
    server = await asyncio.start_server(lambda r, w: (w.write(b"async"), w.close()), "127.0.0.1", 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(await reader.read())
asyncio.run(both())
"""
    told = inside(cut_off, script).splitlines()
    assert told == ["b'pair'", "b'loop'", "b'loop'", "True [(1, 'lo')]", "b'async'"]


@contextlib.contextmanager
def abstract_socket() -> Iterator[str]:
    name = f"yolofs-test-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        yield name


def test_an_abstract_socket_of_the_host_is_in_reach_with_network_alone(yolofs: Program, cut_off: Program) -> None:
    script = "with socket.socket(socket.AF_UNIX) as it: print(it.connect_ex('\\0' + sys.argv[1]))"
    names = "print(sys.argv[1] in open('/proc/net/unix').read())"
    config = yolofs.project / ".yolofs.toml"
    with abstract_socket() as name:
        assert inside(cut_off, script, name) == "111\n"  # ECONNREFUSED
        assert inside(cut_off, names, name) == "False\n"
        config.write_text(config.read_text().replace('network = "none"', 'network = "host"'))
        assert inside(yolofs, script, name) == "0\n"


def test_the_hosts_servers_are_out_of_reach(cut_off: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = "with socket.socket() as it: print(errno.errorcode[it.connect_ex(('127.0.0.1', int(sys.argv[1])))])"
        assert inside(cut_off, script, str(server.getsockname()[1])) == "ECONNREFUSED\n"
