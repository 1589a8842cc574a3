"""Where the view differs from ext4: each row of the table in docs/reference/posix.md that a program
can see.

Both sides are looked at, so that a row fails if it is not true any more, or never was.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mount.probes.tools import outcome
from tests.support.in_process import MountedView
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.libfuse.transport import Pyfuse3Transport

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
libc = ctypes.CDLL(None, use_errno=True)

FICLONE = 0x40049409
FS_IOC_GETFLAGS = 0x80086601
FS_IOC_FIEMAP = 0xC020660B
AT_FDCWD, RENAME_WHITEOUT, STATX_BTIME = -100, 4, 0x800


WRITE_BEHIND = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
fd = os.open(sys.argv[1], os.O_RDWR)
place = libc.mmap(None, ctypes.c_size_t(4096), 3, 1, fd, ctypes.c_long(0))
(ctypes.c_char * 4096).from_address(place)[200] = b"Q"
os.ftruncate(fd, 4096)
print(os.pread(fd, 1, 200).hex(), end="")
"""

WRITE_BY_A_MAPPING = """
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[0] = 0
    memory.flush()
"""


class Sides(NamedTuple):
    """The same files in the view and in a plain directory."""

    view: Path
    plain: Path

    def both(self, look: Callable[[Path], Any]) -> tuple[Any, Any]:
        """Return what one sees in the view and in the plain directory."""
        return look(self.view), look(self.plain)


@pytest.fixture
def sides(base: Path, tmp_path: Path, mounted: Mounter) -> Sides:
    """Return both, with a file of some data and a hole at its end."""
    plain = tmp_path / "plain"
    plain.mkdir()
    for directory in (base, plain):
        (directory / "f").write_bytes(b"x" * 10_000)
        os.truncate(directory / "f", 1 << 20)
        os.utime(directory / "f", ns=(1, 2))
    kind = subprocess.run(["stat", "-fc", "%T", plain], capture_output=True, text=True, check=True).stdout.strip()
    if kind != "ext2/ext3":
        pytest.skip(f"the tests run on {kind}, and only ext4 is compared with")
    return Sides(Path(os.fsdecode(mounted(make_transport=Pyfuse3Transport).mountpoint)), plain)


def name_of(number: int) -> str:
    """Return the name of an errno; EOPNOTSUPP has two."""
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]


def errno_of(operation: Callable[..., Any], *args: Any) -> str:
    """Return the name of the errno that an operation fails with, an empty string if it does not."""
    try:
        operation(*args)
    except OSError as error:
        return name_of(error.errno or 0)
    return ""


def errno_of_call(name: str, *args: Any) -> str:
    """Call a function of libc; return the name of the errno."""
    return name_of(ctypes.get_errno()) if getattr(libc, name)(*args) else ""


def test_unnamed_temporary_files_are_refused(sides: Sides) -> None:
    assert sides.both(lambda at: errno_of(os.open, at, os.O_TMPFILE | os.O_RDWR)) == ("EOPNOTSUPP", "")


def test_fallocate_is_refused(sides: Sides) -> None:
    def call(at: Path) -> str:
        fd = os.open(at / "f", os.O_RDWR)
        return errno_of_call("fallocate", fd, 0, ctypes.c_int64(0), ctypes.c_int64(2 << 20))

    assert sides.both(call) == ("EOPNOTSUPP", "")


def test_holes_cannot_be_found(sides: Sides) -> None:
    def look(at: Path) -> tuple[int, int]:
        fd = os.open(at / "f", os.O_RDONLY)
        return os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE)

    assert sides.both(look) == ((0, 1 << 20), (0, 12_288))


def test_what_a_mapping_wrote_behind_the_end_of_a_file_shows_when_that_grows(sides: Sides) -> None:
    def byte_behind(at: Path) -> str:
        (at / "short").write_bytes(b"x" * 100)
        command = [sys.executable, "-ISc", WRITE_BEHIND, str(at / "short")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert sides.both(byte_behind) == ("51", "00")


def test_what_is_appended_may_go_over_what_the_host_has_added(sides: Sides, base: Path) -> None:
    def last(at: Path) -> bytes:
        fd = os.open(at / "f", os.O_RDWR | os.O_APPEND)
        with (base / "f" if at == sides.view else at / "f").open("ab") as by_the_host:
            by_the_host.write(b"host")
        os.write(fd, b"view")
        os.close(fd)
        return (at / "f").read_bytes()[1 << 20 :]

    assert sides.both(last) == (b"view", b"hostview")


@pytest.mark.parametrize(
    ("request_", "argument", "expected"),
    [
        (FICLONE, "a descriptor", ("EOPNOTSUPP", "EOPNOTSUPP")),
        (FS_IOC_GETFLAGS, b"\0" * 8, ("ENOTTY", "")),
        (FS_IOC_FIEMAP, struct.pack("QQIIII", 0, 1 << 20, 0, 0, 0, 0), ("EOPNOTSUPP", "")),
    ],
)
def test_ioctls_are_refused(sides: Sides, request_: int, argument: Any, expected: tuple[str, str]) -> None:
    def call(at: Path) -> str:
        fd, other = os.open(at / "f", os.O_RDWR), os.open(at / "g", os.O_RDWR | os.O_CREAT)
        return errno_of(fcntl.ioctl, fd, request_, other if isinstance(argument, str) else argument)

    assert sides.both(call) == expected


def test_whiteouts_are_refused(sides: Sides) -> None:
    def call(at: Path) -> str:
        return errno_of_call("renameat2", AT_FDCWD, bytes(at / "f"), AT_FDCWD, bytes(at / "g"), RENAME_WHITEOUT)

    ours, theirs = sides.both(call)
    assert ours == "EINVAL"
    assert theirs in ("", "EPERM")  # only root may make the device


def test_birth_times_are_not_known(sides: Sides) -> None:
    def is_known(at: Path) -> bool:
        buffer = ctypes.create_string_buffer(256)
        assert libc.statx(AT_FDCWD, bytes(at / "f"), 0, STATX_BTIME, buffer) == 0
        return bool(struct.unpack_from("I", buffer)[0] & STATX_BTIME)

    assert sides.both(is_known) == (False, True)


def test_a_rename_does_not_change_the_ctime(sides: Sides) -> None:
    def moves(at: Path) -> bool:
        before = (at / "f").stat().st_ctime_ns
        for _ in range(1000):
            (at / "f").rename(at / "g")
            (at / "g").rename(at / "f")
            if (at / "f").stat().st_ctime_ns != before:
                return True
        return False

    assert sides.both(moves) == (False, True)


def test_extended_attributes_are_refused_unless_they_are_on(sides: Sides) -> None:
    assert sides.both(lambda at: errno_of(os.setxattr, at / "f", "user.x", b"")) == ("EOPNOTSUPP", "")
    assert sides.both(lambda at: errno_of(os.getxattr, at / "f", "user.y")) == ("EOPNOTSUPP", "ENODATA")


def test_reading_moves_the_access_time_of_a_staged_file_alone(sides: Sides) -> None:
    def moves(at: Path) -> dict[str, bool]:
        (at / "new").write_bytes(b"x")
        os.utime(at / "new", ns=(1, 2))
        found = {}
        for name in ("f", "new"):
            before = (at / name).stat().st_atime_ns
            subprocess.run(["cat", at / name], stdout=subprocess.DEVNULL, check=True)
            found[name] = (at / name).stat().st_atime_ns != before
        return found

    assert sides.both(moves) == ({"f": False, "new": True}, {"f": True, "new": True})


def test_direct_io_needs_no_alignment(sides: Sides) -> None:
    def call(at: Path) -> str:
        fd = os.open(at / "f", os.O_RDWR | os.O_DIRECT)
        return errno_of(os.pwrite, fd, b"x", 3)

    assert sides.both(call) == ("", "EINVAL")


@pytest.mark.parametrize("transport", [DirectTransport, Pyfuse3Transport])
def test_nothing_is_read_or_written_on_condition_that_it_does_not_wait(
    base: Path, tmp_path: Path, mounted: Mounter, transport: type[DirectTransport | Pyfuse3Transport]
) -> None:
    def call(at: Path) -> tuple[str, str]:
        (at / "f").write_bytes(b"x" * 10)
        fd = os.open(at / "f", os.O_RDWR)
        return (
            errno_of(os.preadv, fd, [bytearray(5)], 0, os.RWF_NOWAIT),
            errno_of(os.pwritev, fd, [b"y"], 0, os.RWF_NOWAIT),
        )

    (tmp_path / "plain").mkdir()
    assert call(tmp_path / "plain")[0] == ""  # few disks write so, and some kernels
    view = Path(os.fsdecode(mounted(make_transport=transport).mountpoint))
    assert call(view) == ("EOPNOTSUPP", "EOPNOTSUPP")


def test_sockets_fifos_and_locks_do_not_reach_programs_outside(sides: Sides, base: Path) -> None:
    outside = Sides(base, sides.plain)

    def connect(directory: Path) -> str:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(f"/proc/self/fd/{fd}/socket")  # a path that is short enough for any socket
            except OSError as error:
                return errno.errorcode[error.errno or 0]
            finally:
                os.close(fd)
        return "connected"

    def bind(directory: Path) -> socket.socket:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"/proc/self/fd/{fd}/socket")
        os.close(fd)
        server.listen()
        return server

    def read(directory: Path) -> int:
        os.mkfifo(directory / "fifo")
        return os.open(directory / "fifo", os.O_RDONLY | os.O_NONBLOCK)

    def lock(directory: Path) -> int:
        fd = os.open(directory / "f", os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    held = [*outside.both(read), *outside.both(lock)]
    servers = outside.both(bind)
    try:
        assert sides.both(connect) == ("ECONNREFUSED", "connected")
        opened = sides.both(lambda directory: outcome(os.open, directory / "fifo", os.O_WRONLY | os.O_NONBLOCK))
        assert (opened[0], type(opened[1])) == ("ENXIO", int)
        held.append(opened[1])
        mine = sides.both(lambda directory: os.open(directory / "f", os.O_RDONLY))
        held += mine
        locked = [outcome(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB) for fd in mine]
        assert locked == [None, "EAGAIN"]
    finally:
        for server in servers:
            server.close()
        for fd in held:
            os.close(fd)


def test_devices_cannot_be_opened(sides: Sides) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make devices")

    def call(at: Path) -> str:
        os.mknod(at / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        return errno_of(os.open, at / "null", os.O_RDONLY)

    assert sides.both(call) == ("EACCES", "")


@pytest.mark.parametrize(
    ("user", "group", "others", "expected"),
    [
        (4, 0, 0, {"named": (False, True), "in the group": (False, False), "other": (False, False)}),
        (0, 4, 4, {"named": (False, False), "in the group": (False, True), "other": (False, True)}),
    ],
    ids=["one more user may read", "one user may not read"],
)
@pytest.mark.parametrize("is_staged", [False, True])
def test_an_acl_keeps_out_and_lets_nobody_in(
    base: Path,
    tmp_path: Path,
    mounted: Mounter,
    user: int,
    group: int,
    others: int,
    expected: dict[str, tuple[bool, bool]],
    is_staged: bool,
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    plain = tmp_path / "plain"
    plain.mkdir()
    nobody, somebody, crew, unused = 65534, 47110, 47111, 0xFFFFFFFF
    rules = ((1, 6, unused), (2, user, nobody), (4, group, unused), (16, 4, unused), (32, others, unused))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *rule) for rule in rules)
    for directory in (base, plain):
        directory.chmod(0o755)
        (directory / "f").write_bytes(b"secret")
        os.chown(directory / "f", 0, crew)
        os.setxattr(directory / "f", "system.posix_acl_access", acl)
    view = mounted(make_transport=Pyfuse3Transport, allow_other=True, xattrs=True)
    os.chmod(view.mountpoint, 0o755)
    root = Path(os.fsdecode(view.mountpoint))
    if is_staged:
        with (root / "f").open("ab") as file:
            file.write(b"!")
    found = {}
    for who, uid, gid in (("named", nobody, nobody), ("in the group", somebody, crew), ("other", somebody, somebody)):
        code = f"import os; os.setgroups([]); os.setgid({gid}); os.setuid({uid}); os.open('f', os.O_RDONLY)"

        def may_read(at: Path, code: str = code) -> bool:
            return not subprocess.run([sys.executable, "-c", code], cwd=at, capture_output=True, check=False).returncode

        found[who] = Sides(root, plain).both(may_read)
    assert found == expected
    assert os.getxattr(root / "f", "system.posix_acl_access") == acl


@pytest.fixture
def shared_sides(base: Path, tmp_path: Path, mounted: Mounter) -> Sides:
    """Return both sides, open to other users."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    plain = tmp_path / "plain"
    plain.mkdir()
    for directory in (base, plain):
        directory.chmod(0o755)
        shutil.copy("/usr/bin/id", directory / "id")
        (directory / "id").chmod(0o4755)
        (directory / "f").write_bytes(b"x")
        (directory / "f").chmod(0o2666)
    view = mounted(allow_other=True)
    os.chmod(view.mountpoint, 0o755)
    return Sides(Path(os.fsdecode(view.mountpoint)), plain)


def printed_by_another_user(at: Path, code: str) -> str:
    """Run Python code as another user; return what it prints."""
    become = "import os; os.setgroups([]); os.setgid(47110); os.setuid(47110); "
    command = [sys.executable, "-c", become + code]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, check=True).stdout.strip()


def test_setuid_programs_lend_no_rights(shared_sides: Sides) -> None:
    code = "os.execv('./id', ['id', '-u'])"
    assert shared_sides.both(lambda at: printed_by_another_user(at, code)) == ("47110", "0")


def test_a_write_clears_setgid_without_group_execute(shared_sides: Sides) -> None:
    code = "os.write(os.open('f', os.O_WRONLY), b'y'); print(oct(os.stat('f').st_mode))"
    assert shared_sides.both(lambda at: printed_by_another_user(at, code)) == ("0o102666", "0o100666")


@pytest.mark.root_only
@pytest.mark.parametrize("transport", [DirectTransport, Pyfuse3Transport])
def test_a_write_by_a_shared_mapping_takes_a_capability_away(
    base: Path, tmp_path: Path, mounted: Mounter, transport: type
) -> None:
    plain = tmp_path / "plain"
    for path in (base / "f", plain):
        path.write_bytes(b"program")
    view = Path(os.fsdecode(mounted(make_transport=transport, xattrs=True).mountpoint))

    def is_left(path: Path) -> bool:
        os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0))
        subprocess.run([sys.executable, "-c", WRITE_BY_A_MAPPING, path], check=True)
        return "security.capability" in os.listxattr(path)

    assert (is_left(view / "f"), is_left(plain)) == (False, True)
