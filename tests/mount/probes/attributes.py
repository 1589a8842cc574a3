"""Probes of what a file has besides its data."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mount.probes.tools import (
    NOBODY,
    OTHER,
    as_other,
    called,
    content,
    facts,
    main,
    opened,
    outcome,
)


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
    """Return the setuid and setgid bits left after each operation, by each user."""
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
    main(globals())
