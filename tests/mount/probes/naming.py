"""Probes of names: links, renames, directories and special files."""

from __future__ import annotations

import mmap
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mount.probes.tools import (
    PAGE,
    Child,
    as_other,
    called,
    content,
    facts,
    main,
    opened,
    outcome,
)


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
    """Two names of one file, which were there before: what is done to one is seen by the other, and
    they stay two.
    """
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


if __name__ == "__main__":
    main(globals())
