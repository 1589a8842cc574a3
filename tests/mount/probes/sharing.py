"""Probes of mappings, running programs, locks and notifications."""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mount.probes.tools import (
    F_OFD_SETLK,
    PAGE,
    Child,
    content,
    facts,
    libc,
    main,
    opened,
    outcome,
)


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


if __name__ == "__main__":
    main(globals())
