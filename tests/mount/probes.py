"""What programs do to files, to be done in the view and in a plain directory, and compared.

``python probes.py NAME`` runs the function of that name in the current directory, which :func:`prepare` has filled,
and prints what it saw as one JSON document: results, errnos and attributes, but nothing that differs between any two
directories of ext4 (times of now, inode numbers).  Each runs as a process of its own, because some map files.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
F_OFD_SETLK = 37
NOBODY = 65534
OTHER = 12345
"""A user and group that nothing here belongs to."""


def prepare(root: Path) -> None:
    """Fill a directory with what the probes work on."""
    (root / "f").write_bytes(bytes(range(256)) * 40)
    (root / "empty").write_bytes(b"")
    (root / "d/e").mkdir(parents=True)
    (root / "d/x").write_bytes(b"in d\n")
    (root / "d/e/y").write_bytes(b"in e\n")
    (root / "hollow").mkdir()
    (root / "twin").write_bytes(b"of two names\n")
    os.link(root / "twin", root / "d/twin")
    (root / "link").symlink_to("f")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    with (root / "sparse").open("wb") as file:
        file.write(b"head")
        file.seek(3 << 20)
        file.write(b"middle")
        file.truncate(8 << 20)
    (root / "program").write_text("#!/bin/sh\necho ran with $1\n")
    (root / "program").chmod(0o755)
    shutil.copy2("/bin/sleep", root / "sleep")


# ---- how a probe tells what it sees


def outcome(operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what an operation returns, or the name of its errno."""
    try:
        result = operation(*args, **options)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return result.decode("latin-1") if isinstance(result, bytes) else result


def called(name: str, *args: Any) -> Any:
    """Call a function of libc; return its result, or the name of its errno."""
    result = getattr(libc, name)(*args)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result


def facts(path: str | int) -> dict[str, Any]:
    """Return what stat(2) tells and any two directories agree on."""
    st = os.fstat(path) if isinstance(path, int) else os.lstat(path)
    size = st.st_size if not stat.S_ISDIR(st.st_mode) else 0
    return {"mode": oct(st.st_mode), "nlink": st.st_nlink, "uid": st.st_uid, "gid": st.st_gid, "size": size}


def content(path: str) -> str:
    """Return what is in a file."""
    return Path(path).read_bytes().decode("latin-1")


def opened(path: str, flags: int, mode: int = 0o644) -> str:
    """Open and close; return "open", or the name of the errno."""
    try:
        os.close(os.open(path, flags, mode))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "open"


class Child:
    """A forked process that runs ``work`` and sends its result; ``go`` lets it begin its next step."""

    def __init__(self, work: Callable[[Callable[[], None]], Any]) -> None:
        self._read, write = os.pipe()
        self._steps, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            os.close(self._steps)
            return
        os.close(self._go)

        def wait() -> None:
            os.write(write, b"\n")
            os.read(self._steps, 1)

        try:
            os.write(write, json.dumps(work(wait)).encode() + b"\n")
        finally:
            os._exit(0)

    def until_it_waits(self) -> None:
        """Wait for the child to be at its next step."""
        assert os.read(self._read, 1) == b"\n"

    def go(self) -> None:
        """Let it begin the step."""
        os.write(self._go, b"x")

    def result(self) -> Any:
        """Return what its work returned."""
        data = b""
        while chunk := os.read(self._read, 65536):
            data += chunk
        os.waitpid(self.pid, 0)
        return json.loads(data)


def as_other(work: Callable[[], Any], uid: int = OTHER, gid: int = OTHER) -> Any:
    """Do something as another user, in this directory; needs root."""

    def step(_: Callable[[], None]) -> Any:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        return work()

    return Child(step).result()


# ---- open


def open_flags() -> Any:
    kinds = {
        "": os.O_RDONLY,
        "w": os.O_WRONLY,
        "rw": os.O_RDWR,
        "creat": os.O_RDWR | os.O_CREAT,
        "excl": os.O_RDWR | os.O_CREAT | os.O_EXCL,
        "trunc": os.O_RDWR | os.O_TRUNC,
        "r trunc": os.O_RDONLY | os.O_TRUNC,
        "creat trunc": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
        "append trunc": os.O_WRONLY | os.O_APPEND | os.O_TRUNC,
        "directory": os.O_DIRECTORY,
        "creat directory": os.O_CREAT | os.O_DIRECTORY,
        "nofollow": os.O_NOFOLLOW,
        "creat nofollow": os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW,
        "path": os.O_PATH,
        "path nofollow": os.O_PATH | os.O_NOFOLLOW,
        "path directory": os.O_PATH | os.O_DIRECTORY,
        "noatime": os.O_NOATIME,
        "sync": os.O_RDWR | os.O_SYNC,
        "dsync": os.O_RDWR | os.O_DSYNC,
        "nonblock": os.O_RDWR | os.O_NONBLOCK,
    }
    names = "f", "empty", "d", "d/x", "hollow", "link", "dangling", "loop", "missing", "f/x", "d/missing", "sparse"
    results = {}
    for name in names:
        for kind, flags in kinds.items():
            results[f"{name} {kind}"] = [opened(name, flags), sorted(os.listdir()), facts("f")]
            for made in ("nowhere", "missing", "d/missing"):
                Path(made).unlink(missing_ok=True)
    return results


def nofollow_reads_and_writes_the_file_itself() -> Any:
    fd = os.open("f", os.O_RDWR | os.O_NOFOLLOW)
    os.pwrite(fd, b"written", 5)
    result: list[Any] = [os.pread(fd, 16, 0).decode("latin-1"), facts(fd)]
    os.close(fd)
    path = os.open("link", os.O_PATH | os.O_NOFOLLOW)
    result += [stat.S_IFMT(os.fstat(path).st_mode), os.readlink("", dir_fd=path), outcome(os.read, path, 1)]
    return result


def names_that_are_long() -> Any:
    longest = "n" * 255
    results: list[Any] = [
        outcome(Path(longest).write_bytes, b"x"),
        opened("n" * 256, os.O_CREAT | os.O_RDWR),
        outcome(os.mkdir, "n" * 256),
        outcome(os.symlink, "x", "n" * 256),
        outcome(os.link, "f", "n" * 256),
        outcome(os.rename, "f", "n" * 256),
        outcome(os.lstat, "n" * 256),
        outcome(os.unlink, "n" * 256),
        outcome(os.mkdir, "ü" * 127),
        outcome(os.mkdir, "ü" * 128),
        outcome(os.rename, longest, "m" * 255),
        content("m" * 255),
        sorted(os.listdir()),
    ]
    os.mkdir("just-made")
    for length in (256, 300, 1000, 1100):
        name = "just-made/" + "n" * length
        results += [
            outcome(os.lstat, name),
            opened(name, os.O_CREAT | os.O_RDWR),
            outcome(os.mkdir, name),
            outcome(os.mkfifo, name),
            outcome(os.symlink, "x", name),
            outcome(os.link, "f", name),
            outcome(os.rename, "f", name),
            outcome(os.rename, name, "g"),
            outcome(os.unlink, name),
            outcome(os.rmdir, name),
        ]
    return results


def paths_that_are_long() -> Any:
    """Paths of 4,095 bytes and, by chdir, deeper ones."""
    here = len(os.getcwd()) + 1
    directory = "p" * 200
    depth = 0
    while here + (depth + 1) * 201 < 3900:
        depth += 1
    deep = "/".join([directory] * depth)
    os.makedirs(deep)
    absolute = os.path.join(os.getcwd(), deep)
    results: list[Any] = []
    for length in (4095, 4096):
        name = "q" * (length - len(absolute) - 1)
        path = os.path.join(absolute, name)
        assert len(path) == length
        results += [
            outcome(Path(path).write_bytes, b"deep"),
            outcome(lambda path=path: os.lstat(path).st_size),
            outcome(os.rename, path, path[:-1] + "r"),
        ]
    results.append(sorted(len(name) for name in os.listdir(absolute)))
    start = os.open(".", os.O_RDONLY)
    os.chdir(deep)
    for _ in range(10):
        os.mkdir(directory)
        os.chdir(directory)
    Path("bottom").write_bytes(b"below all paths")
    results.append(content("bottom"))
    os.fchdir(start)
    return results


# ---- reading and writing


def append_by_several_processes() -> Any:
    """4 processes append 250 lines each to a file that was there and to a new one."""

    def work(number: int) -> Callable[[Callable[[], None]], None]:
        def append(wait: Callable[[], None]) -> None:
            fds = [os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) for name in ("d/x", "new")]
            wait()
            for line in range(250):
                for fd in fds:
                    text = f"{number} {line} ".ljust(20 + line % 50, ".") + "\n"
                    assert os.write(fd, text.encode()) == len(text)

        return append

    children = [Child(work(number)) for number in range(4)]
    for child in children:
        child.until_it_waits()
    for child in children:
        child.go()
    for child in children:
        child.result()
    results = {}
    for name in ("d/x", "new"):
        lines = content(name).splitlines()
        results[name] = [[line for line in lines if line.startswith(f"{number} ")] for number in range(4)]
        Path(name).write_text("\n".join(sorted(lines)))  # the order among the processes is nobody's
    return results


def append_ignores_the_position() -> Any:
    fd = os.open("d/x", os.O_RDWR | os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    results: list[Any] = [os.write(fd, b"one"), os.lseek(fd, 0, os.SEEK_CUR)]
    other = os.open("d/x", os.O_WRONLY | os.O_APPEND)
    os.write(other, b"two")
    os.write(fd, b"three")
    results += [os.lseek(fd, 0, os.SEEK_CUR), os.pwrite(fd, b"four", 1), content("d/x")]
    os.ftruncate(other, 3)
    os.write(fd, b"five")
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.pwrite(fd, b"I", 0)
    return [*results, content("d/x"), facts("d/x")]


def direct_io() -> Any:
    """O_DIRECT with what it is made for, aligned."""
    results: list[Any] = []
    for name in ("f", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
        buffer = mmap.mmap(-1, 16 * PAGE)
        buffer.write(b"d" * 16 * PAGE)
        results.append(os.pwritev(fd, [buffer], 4 * PAGE))
        with open(name, "r+b", buffering=0) as cached:
            results.append(cached.read(30).decode("latin-1"))
            cached.seek(5 * PAGE)
            cached.write(b"through the cache")
            os.fsync(cached.fileno())
            back = mmap.mmap(-1, 2 * PAGE)
            results += [os.preadv(fd, [back], 5 * PAGE), back[:30].decode("latin-1")]
            results += [os.preadv(fd, [back], 20 * PAGE), os.preadv(fd, [back], 19 * PAGE)]
            buffer[:PAGE] = b"e" * PAGE
            results.append(os.pwritev(fd, [memoryview(buffer)[:PAGE]], 5 * PAGE))
            results.append(os.pread(cached.fileno(), 30, 5 * PAGE).decode("latin-1"))
        results.append(facts(fd))
        os.close(fd)
    return results


def synchronous_io() -> Any:
    results: list[Any] = []
    for flags in (os.O_SYNC, os.O_DSYNC, os.O_RSYNC | os.O_SYNC):
        fd = os.open("f", os.O_RDWR | flags)
        results += [os.pwrite(fd, b"synchronous", 100), os.pread(fd, 20, 95).decode("latin-1")]
        results += [outcome(os.fsync, fd), outcome(os.fdatasync, fd)]
        os.close(fd)
    directory = os.open("d", os.O_RDONLY)
    results += [outcome(os.fsync, directory), outcome(os.fdatasync, directory), called("syncfs", directory)]
    reading = os.open("d/x", os.O_RDONLY)
    return [*results, outcome(os.fsync, reading), called("sync_file_range", reading, 0, 0, 7)]


def beyond_4_gib() -> Any:
    results: list[Any] = []
    for name in ("f", "sparse", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        for offset in ((1 << 31) - 3, (1 << 32) - 3, (1 << 32) + 5, 5 << 30, (1 << 43) - 10):
            results.append(os.pwrite(fd, b"far away", offset))
            results.append(os.pread(fd, 20, offset - 4).decode("latin-1"))
        results += [facts(fd), os.fstat(fd).st_blocks < 1000]
        results += [os.lseek(fd, -8, os.SEEK_END), os.read(fd, 100).decode("latin-1")]
        results += [outcome(os.ftruncate, fd, 6 << 30), facts(fd), os.pread(fd, 8, 5 << 30).decode("latin-1")]
        results += [outcome(os.ftruncate, fd, 1 << 62), outcome(os.ftruncate, fd, 4), facts(fd)]
        os.close(fd)
    return results


def beyond_what_the_disk_can_hold() -> Any:
    """Offsets past the largest file."""
    fd = os.open("f", os.O_RDWR)
    results: list[Any] = [outcome(os.pwrite, fd, b"x", (1 << 62)), outcome(os.pwrite, fd, b"x", (1 << 63) - 1)]
    return [*results, outcome(os.ftruncate, fd, 1 << 62), facts(fd)]


def positions_and_vectors() -> Any:
    fd = os.open("f", os.O_RDWR)
    results: list[Any] = [os.lseek(fd, 10, os.SEEK_SET), os.lseek(fd, 5, os.SEEK_CUR), os.lseek(fd, -1, os.SEEK_END)]
    results += [outcome(os.lseek, fd, -1, os.SEEK_SET), outcome(os.pread, fd, 1, -1), outcome(os.pwrite, fd, b"", 3)]
    results += [os.writev(fd, [b"a", b"bc", b""]), os.lseek(fd, 0, os.SEEK_CUR)]
    one, two = bytearray(3), bytearray(5)
    results += [os.preadv(fd, [one, two], 10239), one.decode(), two.decode("latin-1")]
    results += [os.read(fd, 10).decode(), os.pread(fd, 10, 1 << 40).decode(), outcome(os.read, fd, 0)]
    reading = os.open("f", os.O_RDONLY)
    writing = os.open("f", os.O_WRONLY)
    results += [outcome(os.write, reading, b"x"), outcome(os.read, writing, 1), outcome(os.ftruncate, reading, 1)]
    results += [outcome(os.truncate, "d", 1), outcome(os.truncate, "missing", 1), outcome(os.truncate, "f", -1)]
    results += [outcome(os.truncate, "link", 20), facts("f"), outcome(os.read, os.open("d", os.O_RDONLY), 1)]
    return results


def allocate() -> Any:
    results: list[Any] = []
    for name in ("f", "empty", "sparse", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        size = os.fstat(fd).st_size
        before = content(name)
        results.append(outcome(os.posix_fallocate, fd, 0, size + 100_000))
        results += [facts(fd), content(name) == before + "\0" * 100_000]
        results += [outcome(os.posix_fallocate, fd, 50, 10), facts(fd), os.fstat(fd).st_blocks * 512 >= size + 100_000]
        results += [outcome(os.posix_fallocate, fd, 0, 0), outcome(os.posix_fallocate, fd, -1, 5)]
        os.close(fd)
    reading = os.open("f", os.O_RDONLY)
    return [*results, outcome(os.posix_fallocate, reading, 0, 10)]


def copying_in_the_kernel() -> Any:
    source, target = os.open("f", os.O_RDWR), os.open("copy", os.O_RDWR | os.O_CREAT, 0o644)
    existing = os.open("d/x", os.O_RDWR)
    outside = os.memfd_create("outside")
    os.ftruncate(outside, 20_000)
    results: list[Any] = [
        outcome(os.copy_file_range, source, target, 5000, 100, 0),
        outcome(os.copy_file_range, source, existing, 3000, 7, 4096),
        outcome(os.copy_file_range, source, target, 5000, 10_000, 0),
        outcome(os.copy_file_range, source, target, 5000, 20_000, 0),
        outcome(os.copy_file_range, source, source, 100, 0, 5000),
        outcome(os.copy_file_range, source, source, 100, 0, 50),
        outcome(os.copy_file_range, os.open("f", os.O_WRONLY), target, 10, 0, 0),
        outcome(os.copy_file_range, source, os.open("copy", os.O_WRONLY | os.O_APPEND), 10, 0, 0),
        outcome(os.copy_file_range, source, os.open("d", os.O_RDONLY), 10, 0, 0),
        outcome(os.sendfile, target, source, 200, 300),
        outcome(os.sendfile, outside, source, 0, 10_240),
        outcome(os.sendfile, existing, outside, 0, 20_000),
    ]
    read, write = os.pipe()
    results += [outcome(os.splice, source, write, 4000, 0), outcome(os.splice, read, target, 4000, None, 100)]
    return [*results, content("copy"), content("d/x"), content("f"), facts("copy"), facts("d/x")]


def holes() -> Any:
    """A hole reads as zeros and takes no room, whatever is written around it."""
    results: list[Any] = []
    for name in ("sparse", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, b"end", 16 << 20)
        os.pwrite(fd, b"x", 5 << 20)
        results += [facts(fd), os.fstat(fd).st_blocks < 200, os.pread(fd, 10, (5 << 20) - 3).decode("latin-1")]
        os.ftruncate(fd, 4 << 20)
        os.ftruncate(fd, 20 << 20)
        results += [facts(fd), os.fstat(fd).st_blocks < 200, os.pread(fd, 10, 5 << 20).decode("latin-1")]
        os.close(fd)
    subprocess.run(["cp", "--sparse=always", "sparse", "copied"], check=True)
    subprocess.run(["cp", "--sparse=auto", "sparse", "again"], check=True)
    same = subprocess.run(["cmp", "sparse", "copied"], check=False).returncode
    return [*results, same, facts("copied"), os.lstat("copied").st_blocks < 200, facts("again")]


# ---- mapping and running


def mappings() -> Any:
    """Shared and private mappings of a file, with msync, beside read and write."""
    results: list[Any] = []
    for name in ("f", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.ftruncate(fd, 3 * PAGE + 100)
        shared = mmap.mmap(fd, 3 * PAGE + 100)
        private = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE)
        reading = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        shared[5:10] = b"hello"
        shared[3 * PAGE + 90 : 3 * PAGE + 100] = b"at the end"
        results += [reading[5:10].decode(), os.pread(fd, 5, 5).decode()]
        private[5:10] = b"alone"
        results += [private[5:10].decode(), shared[5:10].decode(), os.pread(fd, 5, 5).decode()]
        os.pwrite(fd, b"written", PAGE)
        results += [shared[PAGE : PAGE + 7].decode(), private[PAGE : PAGE + 7].decode()]
        shared.flush()
        shared.flush(PAGE, PAGE)
        os.close(fd)
        results.append(content(name))
        shared[0:3] = b"new"
        shared.close()
        private.close()
        results += [content(name), reading[0:3].decode(), facts(name)]
    return results


def mapping_that_outlives_its_file() -> Any:
    with open("f", "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    os.unlink("f")
    shared[0:5] = b"alive"
    shared.flush()
    results: list[Any] = [shared[:8].decode("latin-1")]
    Path("f").write_bytes(b"another file")
    shared[1:2] = b"L"
    return [*results, shared[:8].decode("latin-1"), content("f")]


def mapping_shared_by_processes() -> Any:
    with open("f", "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)

        def work(wait: Callable[[], None]) -> str:
            mine = mmap.mmap(os.open("f", os.O_RDWR), 0)
            mine[0:5] = b"child"
            wait()
            return mine[10:16].decode("latin-1")

        child = Child(work)
        child.until_it_waits()
        seen = shared[0:5].decode("latin-1")
        shared[10:16] = b"parent"
        child.go()
        return [seen, child.result(), content("f")[:16]]


def mapping_rules() -> Any:
    reading, writing = os.open("f", os.O_RDONLY), os.open("f", os.O_WRONLY)
    results: list[Any] = [
        outcome(lambda: mmap.mmap(reading, 0).close()),
        outcome(lambda: mmap.mmap(writing, PAGE, prot=mmap.PROT_WRITE).close()),
        outcome(lambda: mmap.mmap(reading, 0, flags=mmap.MAP_PRIVATE).close()),
        outcome(lambda: mmap.mmap(os.open("d", os.O_RDONLY), PAGE, prot=mmap.PROT_READ).close()),
    ]

    def touch_past_the_end() -> None:
        mapped = mmap.mmap(os.open("f", os.O_RDWR), 0)
        os.truncate("f", 10)
        mapped[2 * PAGE]

    child = os.fork()
    if not child:
        try:
            touch_past_the_end()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return [*results, signal.Signals(status & 0x7F).name, facts("f")]


def running_programs() -> Any:
    results: list[Any] = [subprocess.run(["./program", "words"], capture_output=True, text=True, check=True).stdout]
    shutil.copy2("/bin/echo", "new-program")
    results.append(subprocess.run(["./new-program", "hi"], capture_output=True, text=True, check=True).stdout)
    running = subprocess.Popen(["./sleep", "100"])
    try:
        deadline = time.monotonic() + 20
        while os.path.basename(os.readlink(f"/proc/{running.pid}/exe")) != "sleep" and time.monotonic() < deadline:
            pass
        results += [opened("sleep", os.O_RDWR), outcome(os.truncate, "sleep", 5), opened("sleep", os.O_RDONLY)]
        shutil.copy2("/bin/true", "other")
        results += [outcome(os.rename, "other", "sleep"), subprocess.run(["./sleep", "100"], check=False).returncode]
    finally:
        running.kill()
        running.wait()
    writing = os.open("new-program", os.O_RDWR)
    results.append(outcome(lambda: subprocess.run(["./new-program"], check=False).returncode))
    os.close(writing)
    os.chmod("program", 0o644)
    return [*results, outcome(lambda: subprocess.run(["./program"], check=False).returncode)]


# ---- locks and notifications


def locks_of_whole_files() -> Any:
    exclusive, shared, try_ = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB

    def work(wait: Callable[[], None]) -> list[Any]:
        fd = os.open("f", os.O_RDWR)
        seen = []
        for operation in (exclusive, shared, exclusive, shared, exclusive):
            wait()
            seen.append(outcome(fcntl.flock, fd, operation | try_))
        wait()
        seen.append(outcome(fcntl.flock, fd, exclusive))
        return seen

    child = Child(work)
    fd = os.open("f", os.O_RDONLY)
    again = os.open("f", os.O_RDONLY)
    child.until_it_waits()
    results: list[Any] = [outcome(fcntl.flock, fd, exclusive), outcome(fcntl.flock, again, shared | try_)]
    for step in range(4):
        if step == 1:
            fcntl.flock(fd, shared)
        if step == 3:
            os.close(again)
        child.go()
        child.until_it_waits()
    results.append(outcome(fcntl.flock, fd, exclusive | try_))
    fcntl.flock(fd, fcntl.LOCK_UN)
    child.go()
    child.until_it_waits()
    results.append(outcome(fcntl.flock, fd, shared | try_))
    child.go()
    return [*results, child.result(), outcome(fcntl.flock, fd, shared)]


def locks_of_ranges() -> Any:
    def lock(fd: int, kind: int, start: int, length: int, command: int = fcntl.F_SETLK) -> Any:
        request = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
        return outcome(lambda: struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, request))[:4])

    def work(wait: Callable[[], None]) -> list[Any]:
        fd = os.open("f", os.O_RDWR)
        seen: list[Any] = []
        for _ in range(3):
            wait()
            seen += [
                lock(fd, fcntl.F_WRLCK, 0, 10),
                lock(fd, fcntl.F_RDLCK, 5, 10),
                lock(fd, fcntl.F_WRLCK, 100, 10),
                lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_GETLK),
                lock(fd, fcntl.F_WRLCK, 200, 5, F_OFD_SETLK),
                lock(fd, fcntl.F_UNLCK, 200, 5, F_OFD_SETLK),
                lock(fd, fcntl.F_UNLCK, 0, 0),
            ]
        wait()
        seen.append(lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_SETLKW))
        return seen

    child = Child(work)
    child.until_it_waits()
    fd = os.open("f", os.O_RDWR)
    results: list[Any] = [lock(fd, fcntl.F_WRLCK, 0, 5), lock(fd, fcntl.F_RDLCK, 5, 5), lock(fd, fcntl.F_WRLCK, 90, 20)]
    child.go()
    child.until_it_waits()
    results += [lock(fd, fcntl.F_RDLCK, 0, 5), lock(fd, fcntl.F_UNLCK, 95, 10)]
    child.go()
    child.until_it_waits()
    os.close(os.open("f", os.O_RDONLY))  # any close lets all locks of the process go
    child.go()
    child.until_it_waits()
    results.append(lock(fd, fcntl.F_WRLCK, 0, 0))
    child.go()
    results.append(lock(fd, fcntl.F_UNLCK, 0, 0))
    reading = os.open("f", os.O_RDONLY)
    return [*results, child.result(), lock(reading, fcntl.F_WRLCK, 0, 1), outcome(fcntl.lockf, fd, fcntl.LOCK_EX, 5)]


def watching() -> Any:
    """The events of inotify(7) for what is done in a directory, and for what is done to a file."""
    fd = libc.inotify_init1(os.O_NONBLOCK)
    watches = {libc.inotify_add_watch(fd, name, 0xFFF): name.decode() for name in (b".", b"d", b"f", b"d/e")}
    moved_from: dict[int, int] = {}

    def events() -> list[Any]:
        found: list[Any] = []
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return found
        while data:
            watch, mask, cookie, length = struct.unpack_from("iIII", data)
            name = data[16 : 16 + length].rstrip(b"\0").decode()
            data = data[16 + length :]
            found.append([watches[watch], hex(mask), name, moved_from.setdefault(cookie, len(moved_from))])
        return found

    actions: dict[str, Callable[[], Any]] = {
        "read": lambda: content("f"),
        "write": lambda: Path("f").write_bytes(b"new"),
        "append": lambda: os.close(os.open("d/x", os.O_WRONLY | os.O_APPEND)),
        "create": lambda: Path("d/new").write_bytes(b"x"),
        "chmod": lambda: os.chmod("d/x", 0o600),
        "utime": lambda: os.utime("f"),
        "truncate": lambda: os.truncate("d/x", 1),
        "mkdir": lambda: os.mkdir("sub"),
        "symlink": lambda: os.symlink("f", "d/s"),
        "link": lambda: os.link("f", "d/hard"),
        "rename": lambda: os.rename("d/new", "d/newer"),
        "rename away": lambda: os.rename("d/newer", "newest"),
        "rename over": lambda: os.rename("newest", "d/x"),
        "rename a directory": lambda: os.rename("sub", "d/sub"),
        "list": lambda: os.listdir("d"),
        "rmdir": lambda: os.rmdir("d/sub"),
        "unlink": lambda: os.unlink("d/x"),
        "unlink a name of the watched": lambda: os.unlink("d/hard"),
        "unlink the watched": lambda: os.unlink("f"),
        "remove the watched directory": lambda: shutil.rmtree("d/e"),
    }
    result = {}
    for name, action in actions.items():
        action()
        result[name] = events()
    return result


# ---- names


def names_of_open_files() -> Any:
    """Files that lose their names while they are open, and names that are used again."""
    results: list[Any] = []
    for name in ("f", "sparse", "new"):
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.link(name, "second")
        results.append(facts(fd))
        os.unlink(name)
        results += [facts(fd), facts("second")]
        os.unlink("second")
        results += [facts(fd), os.pwrite(fd, b"still here", 2), os.pread(fd, 14, 0).decode("latin-1")]
        results += [outcome(os.ftruncate, fd, 7), outcome(os.fchmod, fd, 0o600), facts(fd)]
        os.utime(fd, ns=(1, 2))
        results += [os.fstat(fd).st_mtime_ns, called("linkat", -100, b"/proc/self/fd/%d" % fd, -100, b"back", 0x400)]
        Path(name).write_bytes(b"another")
        results += [content(name), os.pread(fd, 20, 0).decode("latin-1"), os.path.exists("back")]
        with open(f"/proc/self/fd/{fd}", "r+b", buffering=0) as again:
            again.write(b"REOPENED")
        results += [os.pread(fd, 20, 0).decode("latin-1"), facts(fd), facts(name)]
        os.close(fd)
    directory = os.open("hollow", os.O_RDONLY)
    os.rmdir("hollow")
    results += [facts(directory), os.listdir(directory), outcome(os.open, "x", os.O_CREAT, dir_fd=directory)]
    os.mkdir("hollow")
    results += [facts(directory), outcome(os.mkdir, "x", dir_fd=directory), facts("hollow")]
    os.chdir("hollow")
    os.rmdir("../hollow")
    results += [outcome(os.getcwd), outcome(os.listdir, "."), outcome(os.mkdir, "sub"), outcome(os.stat, "..") is None]
    return results


RENAMED = "file", "link", "fifo", "full", "hollow", "missing"
REPLACED = "other", "same", "symlink", "full", "filled", "void", "missing", "full/inner/new", "no/where", "other/x"
RENAME_FLAGS = {"": 0, "noreplace": 1, "exchange": 2, "both": 3, "unknown": 8}


def prepare_renames(root: Path) -> None:
    """Make a directory for each case of :func:`renames`."""
    cases = [
        root / f"{old} {new.replace('/', '.')} {flag}" for old in RENAMED for new in REPLACED for flag in RENAME_FLAGS
    ]
    for case in cases:
        (case / "full/inner").mkdir(parents=True)
        (case / "hollow").mkdir()
        (case / "void").mkdir()
        (case / "filled/below").mkdir(parents=True)
        (case / "file").write_bytes(b"file")
        (case / "other").write_bytes(b"other")
        os.link(case / "file", case / "same")
        (case / "link").symlink_to("file")
        (case / "symlink").symlink_to("nowhere")
        os.mkfifo(case / "fifo")


def renames() -> Any:
    """renameat2 with every flag, of every kind of file onto every kind."""
    results: dict[str, Any] = {}
    for old in RENAMED:
        for new in REPLACED:
            for name, flags in RENAME_FLAGS.items():
                case = f"{old} {new.replace('/', '.')} {name}"
                got = called("renameat2", -100, f"{case}/{old}".encode(), -100, f"{case}/{new}".encode(), flags)
                left = sorted(os.path.join(at, name) for at, below, files in os.walk(case) for name in below + files)
                results[case] = [got, [[path, facts(path)] for path in left]]
    return results


def parents_after_a_rename() -> Any:
    """``..`` and link counts of directories that move."""
    inner = os.open("d/e", os.O_RDONLY)
    os.makedirs("a/b/c")
    results: list[Any] = [facts("d"), facts("a/b")]
    os.rename("d/e", "a/b/e")
    results += [facts("d"), facts("a/b"), facts("a/b/e"), sorted(os.listdir("a/b"))]
    parent = os.open("..", os.O_RDONLY, dir_fd=inner)
    results += [os.path.samestat(os.fstat(parent), os.stat("a/b")), sorted(os.listdir(parent))]
    os.chdir(inner)
    results += [sorted(os.listdir("..")), outcome(os.rename, "y", "../y"), sorted(os.listdir(".."))]
    return [*results, os.getcwd().endswith("/a/b/e"), content("../y")]


def links() -> Any:
    results: list[Any] = [
        outcome(os.link, "f", "hard"),
        outcome(os.link, "hard", "d/hard"),
        outcome(os.link, "link", "hard-symlink", follow_symlinks=False),
        called("linkat", -100, b"link", -100, b"d/through", 0x400),  # AT_SYMLINK_FOLLOW
        outcome(os.link, "d", "hard-dir"),
        outcome(os.link, "f", "d/x"),
        outcome(os.link, "missing", "d/z"),
        outcome(os.link, "f", "missing/z"),
        outcome(os.link, "f", "f/z"),
    ]
    with open("d/hard", "ab") as file:
        file.write(b"!")
    os.chmod("hard", 0o640)
    same = [os.path.samefile("f", name) for name in ("hard", "d/hard", "d/through", "link")]
    results += [same, [facts(name) for name in ("f", "hard", "d/hard", "hard-symlink", "link")]]
    os.unlink("f")
    os.rename("hard", "d/hard")
    results += [facts("d/hard"), facts("hard"), sorted(os.listdir()), content("d/through")[-5:]]
    return results


def links_that_were_there() -> Any:
    """Two names of one file, which were there before: what is done to one is seen by the other, and they stay two."""
    results: list[Any] = [[facts("twin"), facts("d/twin"), os.path.samefile("twin", "d/twin")]]
    fd = os.open("twin", os.O_RDWR)

    def write(name: str, flags: int = 0) -> None:
        with open(os.open(name, os.O_WRONLY | flags), "wb") as file:
            file.write(b"by " + name.encode())

    actions: list[Callable[[], Any]] = [
        lambda: os.chmod("d/twin", 0o600),
        lambda: os.utime("twin", ns=(1, 2)),
        lambda: write("d/twin", os.O_APPEND),
        lambda: write("twin"),
        lambda: os.link("d/twin", "third"),
        lambda: os.rename("d/twin", "d/moved"),
        lambda: os.truncate("third", 5),
        lambda: os.rename("twin", "third"),  # the same file: nothing happens
        lambda: os.rename("d", "renamed"),
        lambda: os.unlink("twin"),
        lambda: Path("twin").write_bytes(b"another"),
        lambda: os.pwrite(fd, b"by the handle", 0),
        lambda: os.rename("twin", "third"),
    ]
    for action in actions:
        done = outcome(action)
        names = ("twin", "third", "d/twin", "d/moved", "renamed/moved")
        seen = {
            name: [facts(name), content(name), os.stat(name).st_mtime_ns == 2] for name in names if os.path.exists(name)
        }
        results.append([done, seen, facts(fd), os.pread(fd, 100, 0).decode()])
    return results


def symbolic_links() -> Any:
    longest = "t" * 4095
    results: list[Any] = [
        outcome(os.symlink, longest, "longest"),
        outcome(lambda: os.readlink("longest") == longest),
        facts("longest"),
        outcome(os.symlink, "t" * 4096, "too-long"),
        outcome(os.symlink, "", "nothing"),
        outcome(os.symlink, "f", "link"),
        outcome(os.readlink, "f"),
        outcome(os.readlink, "d"),
        outcome(os.stat, "longest"),
        outcome(os.stat, "loop"),
        outcome(os.chmod, "dangling", 0o600),
        outcome(os.utime, "link", ns=(1, 2), follow_symlinks=False),
        os.lstat("link").st_mtime_ns,
        outcome(os.rename, "dangling", "d/moved"),
        os.readlink("d/moved"),
        outcome(os.rmdir, "link"),
        outcome(os.unlink, "link"),
    ]
    os.symlink("d", "to-d")
    os.symlink("../f", "d/up")
    return [*results, sorted(os.listdir("to-d")), content("to-d/up")[:3], outcome(os.rmdir, "to-d/e/.."), facts("to-d")]


def directories_and_their_errors() -> Any:
    results: list[Any] = [
        outcome(os.mkdir, "d"),
        outcome(os.mkdir, "f"),
        outcome(os.mkdir, "link"),
        outcome(os.mkdir, "dangling"),
        outcome(os.mkdir, "missing/x"),
        outcome(os.mkdir, "f/x"),
        outcome(os.rmdir, "d"),
        outcome(os.rmdir, "f"),
        outcome(os.rmdir, "missing"),
        outcome(os.rmdir, "hollow/."),
        outcome(os.rmdir, "hollow/.."),
        outcome(os.unlink, "d"),
        outcome(os.unlink, "d/"),
        outcome(os.unlink, "f/"),
        outcome(os.rename, "f", "g/"),
        outcome(os.rename, "hollow/", "hollower/"),
        outcome(os.rmdir, "hollower/"),
        outcome(os.listdir, "f"),
        outcome(os.chdir, "f"),
        outcome(os.mkdir, ""),
        outcome(os.stat, ""),
        outcome(os.stat, "f/"),
        outcome(os.stat, "f/."),
        outcome(os.mkdir, "made", 0o1777),
        facts("made"),
        facts("d"),
    ]
    for number in range(3):
        os.mkdir(f"made/{number}")
    return [*results, facts("made"), sorted(os.listdir("made")), outcome(os.rmdir, "made/1"), facts("made")]


def special_files() -> Any:
    os.mkfifo("fifo", 0o640)
    results: list[Any] = [facts("fifo"), opened("fifo", os.O_WRONLY | os.O_NONBLOCK)]

    def write(_: Callable[[], None]) -> int:
        with open("fifo", "wb") as file:
            return file.write(b"through the fifo")

    child = Child(write)
    with open("fifo", "rb") as file:
        results += [file.read().decode(), child.result()]
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    server.listen()
    results += [stat.S_IFMT(os.lstat("socket").st_mode), opened("socket", os.O_RDONLY)]

    def connect(_: Callable[[], None]) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("socket")
            client.sendall(b"ping")
            return client.recv(10).decode()

    child = Child(connect)
    accepted, _ = server.accept()
    results.append(accepted.recv(10).decode())
    accepted.sendall(b"pong")
    results.append(child.result())
    with socket.socket(socket.AF_UNIX) as second:
        results.append(outcome(second.bind, "socket"))
    server.close()
    with socket.socket(socket.AF_UNIX) as late:
        results += [outcome(late.connect, "socket"), outcome(late.connect, "f"), outcome(late.connect, "missing")]
    os.rename("fifo", "d/fifo")
    os.chmod("d/fifo", 0o600)
    results += [facts("d/fifo"), outcome(os.truncate, "d/fifo", 0), outcome(os.unlink, "socket")]
    results += [outcome(os.mknod, "plain", 0o640 | stat.S_IFREG), facts("plain"), outcome(os.mknod, "f")]
    return results


def devices() -> Any:
    """Made by root; what they say of themselves, not what opening them does."""
    results: list[Any] = []
    for name, kind, number in (
        ("null", stat.S_IFCHR, os.makedev(1, 3)),
        ("disk", stat.S_IFBLK, os.makedev(7, 200)),
        ("large", stat.S_IFCHR, os.makedev(1000, 100_000)),
    ):
        results.append(outcome(os.mknod, name, kind | 0o644, number))
        os.chmod(name, 0o600)
        os.link(name, f"d/{name}")
        st = os.lstat(f"d/{name}")
        results += [facts(name), os.major(st.st_rdev), os.minor(st.st_rdev), stat.S_IFMT(st.st_mode)]
    results.append(as_other(lambda: outcome(os.mknod, "theirs", stat.S_IFCHR | 0o644, os.makedev(1, 3))))
    return results


def what_one_does_others_see() -> Any:
    """Another process looks by each name and through a handle, after each thing that was done."""
    os.link("f", "d/hard")
    os.symlink("../f", "d/soft")

    def work(wait: Callable[[], None]) -> list[Any]:
        held, mapped = os.open("f", os.O_RDWR), os.open("d", os.O_RDONLY)
        window = mmap.mmap(held, PAGE)
        seen: list[Any] = []
        for _ in range(9):
            wait()
            names = [[outcome(content, name)[:30], outcome(lambda name=name: facts(name))] for name in ("f", "d/hard")]
            seen.append([names, outcome(content, "d/soft")[:30], facts(held), os.pread(held, 30, 0).decode("latin-1")])
            seen.append([sorted(os.listdir(mapped)), sorted(os.listdir()), window[:30].decode("latin-1")])
        return seen

    child = Child(work)
    child.until_it_waits()
    fd = os.open("d/hard", os.O_RDWR)
    actions: list[Callable[[], Any]] = [
        lambda: os.pwrite(fd, b"by handle", 3),
        lambda: os.truncate("f", 5000),
        lambda: os.chmod("d/soft", 0o600),
        lambda: os.mkdir("d/new"),
        lambda: os.rename("d/hard", "d/firm"),
        lambda: os.unlink("f"),
        lambda: Path("f").write_bytes(b"another"),
        lambda: os.pwrite(fd, b"the old one", 0),
        lambda: os.rename("d/firm", "f"),
    ]
    for number, action in enumerate(actions):
        action()
        child.go()
        if number < len(actions) - 1:
            child.until_it_waits()
    return child.result()


# ---- attributes


def times() -> Any:
    """utimensat with NOW, OMIT and nanoseconds, before 1970 and after 2038."""

    class Timespec(ctypes.Structure):
        _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))

    now, omit = (1 << 30) - 1, (1 << 30) - 2
    results: list[Any] = []
    start_ns = time.time_ns() - 1_000_000_000

    def show(ns: int) -> Any:
        return "now" if ns >= start_ns and ns < 4_000_000_000_000_000_000 else ns

    for name in ("f", "d", "link", "dangling"):
        for atime, mtime in (
            ((1, 5), (2, 999_999_999)),
            ((0, omit), (7, 7)),
            ((8, 8), (0, omit)),
            ((0, omit), (0, omit)),
            ((0, now), (3, 4)),
            ((5, 6), (0, now)),
            ((0, now), (0, now)),
            ((-5, 123_456_789), (-1, 999_999_999)),
            ((1 << 32, 1), (1 << 33, 2)),
            ((1, 1 << 29), (2, 1_000_000_000)),
        ):
            times_ = (Timespec * 2)(Timespec(*atime), Timespec(*mtime))
            got = called("utimensat", -100, name.encode(), times_, 0x100)
            st = os.lstat(name)
            results.append([name, atime, mtime, got, show(st.st_atime_ns), show(st.st_mtime_ns), show(st.st_ctime_ns)])
    os.utime("f", ns=(3, 4))
    os.close(os.open("f", os.O_RDONLY))
    content("f")
    os.listdir("d")
    return [*results, os.stat("f").st_mtime_ns, outcome(os.utime, "missing")]


def access_and_umask() -> Any:
    results: list[Any] = []
    for mask in (0, 0o022, 0o077, 0o777):
        os.umask(mask)
        os.close(os.open(f"file{mask}", os.O_CREAT | os.O_WRONLY, 0o6777))
        os.mkdir(f"dir{mask}", 0o7777)
        os.mkfifo(f"fifo{mask}", 0o777)
        results += [facts(f"{kind}{mask}") for kind in ("file", "dir", "fifo")]
        os.chmod(f"file{mask}", 0o600)
        os.chmod(f"dir{mask}", 0o700)
    os.umask(0o022)
    for mode in (0, 0o111, 0o222, 0o444, 0o755):
        os.chmod("f", mode)
        results.append([mode, [os.access("f", how) for how in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)]])
    return [*results, os.access("missing", os.F_OK), os.access("dangling", os.F_OK), outcome(os.chmod, "f", 0o7654)]


def access_by_others() -> Any:
    """What another user may do, by mode bits alone."""

    def attempts() -> list[Any]:
        found: list[Any] = [[os.access(name, how) for how in (4, 2, 1)] for name in ("f", "d", "locked", "own")]
        found += [opened(name, flags) for name in ("f", "own", "locked/x", "d/x", "group") for flags in (0, 1, 2, 513)]
        found += [outcome(os.chmod, name, 0o600) for name in ("f", "own", "d")]
        found += [outcome(os.chown, "own", OTHER, OTHER), outcome(os.chown, "own", 0, -1)]
        found += [outcome(os.chown, "f", OTHER, -1), outcome(os.chown, "own", -1, 0)]
        found += [outcome(os.utime, "f"), outcome(os.utime, "writable"), outcome(os.utime, "writable", ns=(1, 2))]
        found += [outcome(os.unlink, "d/x"), outcome(os.mkdir, "d/new"), outcome(os.rename, "own", "d/own")]
        found += [outcome(os.truncate, "f", 0), outcome(os.link, "f", "open/f"), outcome(os.listdir, "locked")]
        found += [outcome(os.mkdir, "open/theirs"), facts("open/theirs"), outcome(os.rmdir, "open/theirs")]
        return found

    os.chmod("f", 0o644)
    os.chmod("d", 0o755)
    os.mkdir("locked", 0o700)
    os.mkdir("open")
    os.chmod("open", 0o777)
    Path("locked/x").write_bytes(b"")
    Path("own").write_bytes(b"mine")
    os.chown("own", OTHER, OTHER)
    Path("writable").write_bytes(b"")
    os.chmod("writable", 0o666)
    Path("group").write_bytes(b"")
    os.chmod("group", 0o660)
    os.chown("group", 0, OTHER)
    return [as_other(attempts), facts("own"), facts("f"), facts("writable")]


def sticky_directories() -> Any:
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    for name, owner in (("root", 0), ("nobody", NOBODY), ("other", OTHER)):
        Path(f"sticky/{name}").write_bytes(b"")
        os.chown(f"sticky/{name}", owner, owner)
        os.mkdir(f"sticky/{name}-dir")
        os.chown(f"sticky/{name}-dir", owner, owner)

    def attempts() -> list[Any]:
        return [
            outcome(os.unlink, "sticky/root"),
            outcome(os.unlink, "sticky/nobody"),
            outcome(os.rename, "sticky/nobody", "sticky/taken"),
            outcome(os.rename, "sticky/other", "sticky/nobody"),
            outcome(os.rmdir, "sticky/nobody-dir"),
            outcome(os.rename, "sticky/other", "sticky/mine"),
            outcome(os.unlink, "sticky/mine"),
            outcome(os.rmdir, "sticky/other-dir"),
            outcome(os.mkdir, "sticky/new"),
        ]

    return [as_other(attempts), sorted(os.listdir("sticky"))]


def setgid_directories() -> Any:
    os.mkdir("shared")
    os.chown("shared", 0, OTHER)
    os.chmod("shared", 0o2777)

    def work() -> list[Any]:
        os.umask(0o002)
        os.mkdir("shared/dir")
        Path("shared/file").write_bytes(b"")
        os.mkfifo("shared/fifo")
        os.symlink("x", "shared/symlink")
        os.mkdir("shared/dir/below")
        os.close(os.open("shared/setgid", os.O_CREAT | os.O_WRONLY, 0o2775))
        os.mkdir("shared/plain")
        return [outcome(os.chmod, "shared/plain", 0o755), outcome(os.chmod, "shared/file", 0o2755)]

    names = "dir", "file", "fifo", "symlink", "dir/below", "setgid", "plain"
    theirs = as_other(work, uid=NOBODY, gid=NOBODY)
    root = [outcome(os.mkdir, "shared/of-root"), facts("shared/of-root")]
    return [theirs, root, [facts(f"shared/{name}") for name in names]]


def setuid_and_setgid() -> Any:
    """Which of the bits that lend rights stay after what, by whom."""
    results: list[Any] = []

    def fresh(mode: int) -> None:
        Path("p").unlink(missing_ok=True)
        Path("p").write_bytes(b"program")
        os.chmod("p", mode)

    def write(flags: int = 0) -> None:
        fd = os.open("p", os.O_WRONLY | flags)
        os.write(fd, b"x")
        os.close(fd)

    actions: dict[str, Callable[[], Any]] = {
        "write": write,
        "append": lambda: write(os.O_APPEND),
        "truncate": lambda: os.truncate("p", 3),
        "o_trunc": lambda: os.close(os.open("p", os.O_WRONLY | os.O_TRUNC)),
        "read": lambda: content("p"),
        "link": lambda: os.link("p", "p2"),
    }
    for mode in (0o6777, 0o4777, 0o2777, 0o777):
        for name, action in actions.items():
            for who in ("root", "other"):
                fresh(mode)
                did = outcome(as_other, lambda action=action: outcome(action)) if who == "other" else outcome(action)
                results.append(
                    [oct(mode), name, who, did if isinstance(did, str) and name != "read" else "", facts("p")]
                )
                Path("p2").unlink(missing_ok=True)
        for uid, gid in ((OTHER, -1), (-1, OTHER), (0, 0), (OTHER, OTHER), (-1, -1)):
            fresh(mode)
            results.append([oct(mode), "chown", uid, gid, outcome(os.chown, "p", uid, gid), facts("p")])
    fresh(0o644)
    os.chown("p", OTHER, 0)
    results.append([as_other(lambda: outcome(os.chmod, "p", 0o6755)), facts("p")])
    os.mkdir("q")
    os.chown("q", OTHER, OTHER)
    os.chmod("q", 0o6755)
    results.append([outcome(os.chown, "q", 0, 0), facts("q")])
    return results


def extended_attributes() -> Any:
    results: list[Any] = []
    for name in ("f", "d", "new"):
        if name == "new":
            Path(name).write_bytes(b"")
        results += [
            outcome(os.setxattr, name, "user.one", b"1"),
            outcome(os.setxattr, name, "user.one", b"2", os.XATTR_CREATE),
            outcome(os.setxattr, name, "user.two", b"2", os.XATTR_REPLACE),
            outcome(os.setxattr, name, "user.one", b"first", os.XATTR_REPLACE),
            outcome(os.setxattr, name, "user.empty", b""),
            outcome(os.setxattr, name, "user.large", b"l" * 3000),
            outcome(os.getxattr, name, "user.one"),
            outcome(os.getxattr, name, "user.large"),
            outcome(os.getxattr, name, "user.none"),
            outcome(os.removexattr, name, "user.none"),
            outcome(os.removexattr, name, "user.empty"),
            outcome(os.setxattr, name, "user." + "n" * 250, b""),
            outcome(os.setxattr, name, "user." + "n" * 251, b""),
            outcome(os.setxattr, name, "unknown.space", b""),
            outcome(os.setxattr, name, "user.huge", b"x" * 65537),
            sorted(os.listxattr(name)),
        ]
    results += [outcome(os.setxattr, "link", "user.x", b"1", follow_symlinks=False), sorted(os.listxattr("link"))]
    os.rename("f", "moved")
    os.link("moved", "hard")
    with open("hard", "ab") as file:
        file.write(b"!")
    fd = os.open("moved", os.O_RDONLY)
    os.unlink("moved")
    results += [sorted(os.listxattr("hard")), outcome(os.getxattr, fd, "user.one")]
    os.unlink("hard")
    return [
        *results,
        outcome(os.getxattr, fd, "user.one"),
        outcome(os.setxattr, fd, "user.late", b"1"),
        os.listxattr(fd),
    ]


def figures_of_the_disk() -> Any:
    st = os.statvfs(".")
    return [st.f_bsize, st.f_frsize, st.f_blocks, st.f_files, st.f_namemax, 0 < st.f_bavail <= st.f_bfree < st.f_blocks]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))  # noqa: T201
