"""Probes of opening, reading and writing."""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mount.probes.tools import (
    PAGE,
    Child,
    called,
    content,
    facts,
    main,
    opened,
    outcome,
)


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


if __name__ == "__main__":
    main(globals())
