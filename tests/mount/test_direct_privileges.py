"""The bits and capabilities by which a program lends rights, and who takes them away by changing
it: with the transport of our own and extended attributes, compared with a plain directory.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Mounter
from tests.mount.probes.tools import as_other, libc, outcome
from tests.support.ext4_disk import ext4_disk
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.trace import Trace
from yolofs.system.syscalls import fallocate

pytestmark = [pytest.mark.mount, pytest.mark.root_only]

CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
XATTR = "security.capability"
OTHER = 47110
MODES = (0o6777, 0o4766, 0o2777, 0o777)
"""That setgid without group execute stays is in test_posix_differences.py."""


def opened(path: Path, change: Callable[[int], Any], flags: int = 0) -> Any:
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        return change(fd)
    finally:
        os.close(fd)


def copy_into(path: Path) -> int:
    source = os.open(path.with_name("source"), os.O_RDONLY)
    try:
        return int(opened(path, lambda fd: os.copy_file_range(source, fd, 4096)))
    finally:
        os.close(source)


CHANGES: dict[str, Callable[[Path], Any]] = {
    "write": lambda path: opened(path, lambda fd: os.write(fd, b"x")),
    "append": lambda path: opened(path, lambda fd: os.write(fd, b"x"), os.O_APPEND),
    "direct": lambda path: opened(path, lambda fd: os.write(fd, b"")),
    "truncate": lambda path: os.truncate(path, 3),
    "truncate to nothing": lambda path: os.truncate(path, 0),
    "grow": lambda path: os.truncate(path, 10_000),
    "ftruncate": lambda path: opened(path, lambda fd: os.ftruncate(fd, 3)),
    "o_trunc": lambda path: opened(path, lambda _: None, os.O_TRUNC),
    "fallocate": lambda path: opened(path, lambda fd: fallocate(fd, 0, 0, 1 << 16)),
    "punch": lambda path: opened(path, lambda fd: fallocate(fd, 3, 0, 4096)),
    "copy": copy_into,
    "utime": lambda path: os.utime(path, ns=(1, 1)),
    "link": lambda path: os.link(path, path.with_name(f"{path.name}-2")),
    "chmod": lambda path: os.chmod(path, 0o6755),
    "chown": lambda path: os.chown(path, OTHER, OTHER),
    "chown user": lambda path: os.chown(path, OTHER, -1),
    "chown group": lambda path: os.chown(path, -1, OTHER),
    "user xattr": lambda path: os.setxattr(path, "user.x", b"1"),
}


def fill(directory: Path) -> None:
    directory.chmod(0o777)
    (directory / "source").write_bytes(b"s" * 4096)
    for mode in MODES:
        for size in ("full", "empty"):
            path = directory / f"{mode:o}-{size}"
            path.write_bytes(b"c" * 5000 if size == "full" else b"")
            path.chmod(mode)
            os.setxattr(path, XATTR, CAPABILITY)


def fill_below(directory: Path) -> None:
    for name in CHANGES:
        for who in ("root", "other"):
            (directory / f"{name} by {who}").mkdir()
            fill(directory / f"{name} by {who}")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    with ext4_disk(tmp_path) as disk:
        for name in ("base", "plain"):
            (disk / name).mkdir()
            (disk / name).chmod(0o755)
            fill_below(disk / name)
        yield disk / "base"


def changed(directory: Path, name: str) -> list[Any]:
    """Have root and somebody else change files in one way; return what became of each."""
    results: list[Any] = []
    for who in ("root", "other"):
        paths = [directory / f"{name} by {who}" / f"{mode:o}-{size}" for mode in MODES for size in ("full", "empty")]

        def change(paths: list[Path] = paths) -> list[Any]:
            return [done if isinstance(done := outcome(CHANGES[name], path), str) else "" for path in paths]

        did = as_other(change, uid=OTHER, gid=OTHER) if who == "other" else change()
        for path, done in zip(paths, did, strict=True):
            st = path.stat()
            facts = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_size, outcome(os.getxattr, path, XATTR)]
            results.append((path.name, who, done, facts))
    return results


@pytest.mark.parametrize("is_staged", [False, True], ids=["base", "staged"])
def test_whoever_changes_a_program_takes_its_rights_away_as_on_ext4(
    base: Path, mounted: Mounter, is_staged: bool
) -> None:
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True)
    os.chmod(view.mountpoint, 0o755)
    root = Path(os.fsdecode(view.mountpoint))
    plain = base.parent / "plain"
    if is_staged:
        for place in (root, plain):
            (place / "new").mkdir()
            (place / "new").chmod(0o755)
            fill_below(place / "new")
        root, plain = root / "new", plain / "new"
    ours = {name: changed(root, name) for name in CHANGES}
    theirs = {name: changed(plain, name) for name in CHANGES}
    wrong = {
        name: [pair for pair in zip(ours[name], theirs[name], strict=True) if pair[0] != pair[1]] for name in CHANGES
    }
    assert [(name, *pair) for name, pairs in wrong.items() for pair in pairs] == []


def test_a_write_costs_one_more_request_at_most_after_attributes_were_told(base: Path, mounted: Mounter) -> None:
    trace = Trace()
    view = mounted(make_transport=DirectTransport, xattrs=True, trace=trace)
    with open(os.path.join(os.fsdecode(view.mountpoint), "many"), "wb", buffering=0) as file:
        for _ in range(500):
            file.write(b"x")
    assert trace.counts()["write"] == 500
    assert trace.counts().get("getxattr", 0) <= 2


CAP_FSETID = 4
_HEAD, _SETS = struct.pack("<Ii", 0x20080522, 0), struct.Struct("<6I")


def without_fsetid(change: Callable[[], Any]) -> Any:
    """Do something as root who may not keep setuid and setgid bits, as in a sandbox."""

    def work() -> Any:
        sets = ctypes.create_string_buffer(_SETS.size)
        assert libc.capget(_HEAD, sets) == 0
        effective, *others = _SETS.unpack(sets.raw)
        assert libc.capset(_HEAD, _SETS.pack(effective & ~(1 << CAP_FSETID), *others)) == 0
        return change()

    return as_other(work, uid=0, gid=0)


EMPTIES = {"open": os.O_WRONLY | os.O_TRUNC, "create": os.O_WRONLY | os.O_CREAT | os.O_TRUNC}


def test_root_that_may_not_keep_them_takes_the_bits_away_by_emptying_a_program(base: Path, mounted: Mounter) -> None:
    places = base, base.parent / "plain"
    for place in places:
        for name in EMPTIES:
            for mode in MODES:
                (place / f"{name}-{mode:o}").write_bytes(b"content")
                (place / f"{name}-{mode:o}").chmod(mode)
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True)
    left = []
    for place in (Path(os.fsdecode(view.mountpoint)), places[1]):
        paths = {place / f"{name}-{mode:o}": flags for name, flags in EMPTIES.items() for mode in MODES}

        def empty(paths: dict[Path, int] = paths) -> None:
            for path, flags in paths.items():
                os.close(os.open(path, flags, 0o644))

        without_fsetid(empty)
        left.append([(path.name, oct(path.stat().st_mode), path.stat().st_size) for path in paths])
    assert left[0] == left[1]
    assert {mode for _, mode, _ in left[0]} == {"0o100777", "0o100766"}


_NEW_USER_NAMESPACE = 0x10000000
CHANGES_UNTOLD = ("fallocate", "punch", "copy")
"""With these the kernel does not tell whether the caller may keep the bits."""


def in_user_namespace(change: Callable[[], Any]) -> Any:
    """Do something as root whose capabilities count in a user namespace of its own only."""

    def work() -> Any:
        assert libc.unshare(_NEW_USER_NAMESPACE) == 0
        return change()

    return as_other(work, uid=0, gid=0)


@pytest.mark.parametrize("as_root", [without_fsetid, in_user_namespace])
def test_root_that_may_not_keep_them_takes_the_bits_away_by_what_the_kernel_says_nothing_of(
    base: Path, mounted: Mounter, as_root: Callable[[Callable[[], Any]], Any]
) -> None:
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True)
    left = []
    for place in (Path(os.fsdecode(view.mountpoint)), base.parent / "plain"):
        paths = {
            place / f"{name} by root" / f"{mode:o}-full": CHANGES[name] for name in CHANGES_UNTOLD for mode in MODES
        }

        def change(paths: dict[Path, Callable[[Path], Any]] = paths) -> None:
            for path, way in paths.items():
                way(path)

        as_root(change)
        left.append([(path.parent.name, path.name, oct(path.stat().st_mode)) for path in paths])
    assert left[0] == left[1]
    assert {mode for _, _, mode in left[0]} == {"0o100777", "0o100766"}
