"""Extended attributes of all namespaces on our own transport, beside a plain directory; as the
present user, and for root as another one, too.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Mounter
from tests.mount.probes.tools import as_other, outcome
from tests.support.in_process import MountedView
from tests.support.required import do_without
from yolofs.fuse.direct.transport import DirectTransport

pytestmark = pytest.mark.mount

OTHER = 47110
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
NAMES = ("user.one", "trusted.one", "security.one", "security.capability", "system.one", "other.one", "user.", "one")
KINDS = ("file", "directory", "link", "fifo")


@pytest.fixture
def room() -> Iterator[Path]:
    """A directory to which every user has a way, on the disk of temporary files."""
    with tempfile.TemporaryDirectory(prefix="yolofs-xattrs-") as name:
        room = Path(name)
        room.chmod(0o755)
        if outcome(os.setxattr, room, "user.probe", b"") == "EOPNOTSUPP":
            do_without("the disk of temporary files knows no extended attributes")
        for directory in ("base", "plain"):
            fill(room / directory)
        yield room


@pytest.fixture
def base(room: Path) -> Path:
    return room / "base"


def fill(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o755)
    (directory / "file").write_text("content")
    (directory / "directory").mkdir()
    (directory / "link").symlink_to("file")
    os.mkfifo(directory / "fifo")
    for name in ("file", "directory"):
        (directory / name).chmod(0o777)
        os.setxattr(directory / name, "user.there", b"before")
        if os.geteuid() == 0:
            for other in ("trusted.there", "security.there"):
                os.setxattr(directory / name, other, b"before")


@pytest.fixture
def view(base: Path, mounted: Mounter) -> MountedView:
    return mounted(make_transport=DirectTransport, xattrs=True, allow_other=os.geteuid() == 0)


def probe(at: Path) -> list[Any]:
    """Set, get, list, replace and remove attributes of all kinds of files."""
    results: list[Any] = []
    for kind in KINDS:
        path = at / kind

        def tried(operation: Callable[..., Any], *args: Any, path: Path = path) -> Any:
            return outcome(operation, path, *args, follow_symlinks=False)

        for name in NAMES:
            value = CAPABILITY if name == "security.capability" else b"value"
            results.append((kind, name, tried(os.getxattr, name)))
            results += [
                tried(os.setxattr, name, value, flags) for flags in (os.XATTR_REPLACE, os.XATTR_CREATE, os.XATTR_CREATE)
            ]
            results += [tried(os.getxattr, name), tried(os.setxattr, name, value, os.XATTR_REPLACE)]
        for name in ("user.there", "trusted.there", "security.there"):
            results += [tried(os.getxattr, name), tried(os.setxattr, name, b""), tried(os.getxattr, name)]
        results += [tried(os.setxattr, "user.large", b"x" * size) for size in (3000, 65_536, 65_537)]
        results += [tried(os.setxattr, "user." + "n" * length, b"") for length in (250, 251)]
        listed = tried(os.listxattr)
        results.append(sorted(listed) if isinstance(listed, list) else listed)
        results += [tried(os.removexattr, name) for name in (*NAMES, *NAMES)]
        listed = tried(os.listxattr)
        results.append(sorted(listed) if isinstance(listed, list) else listed)
    return results


def different(ours: list[Any], theirs: list[Any]) -> list[Any]:
    return [(at, one, other) for at, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]


@pytest.mark.parametrize("is_staged", [False, True], ids=["base", "staged"])
def test_attributes_are_as_in_a_plain_directory(view: MountedView, room: Path, is_staged: bool) -> None:
    root, plain = Path(os.fsdecode(view.mountpoint)), room / "plain"
    if is_staged:
        root, plain = root / "new", plain / "new"
        fill(root)
        fill(plain)
    assert different(probe(root), probe(plain)) == []


@pytest.mark.root_only
@pytest.mark.parametrize("is_of_base", [False, True], ids=["staged", "base"])
def test_an_attribute_that_cannot_be_read_is_there_all_the_same(
    base: Path, room: Path, mounted: Mounter, *, is_of_base: bool
) -> None:
    """The kernel keeps a file capability of no bytes, and tells nobody what it is."""
    name = "security.capability"

    def set_it(directory: Path) -> None:
        for kind in ("file", "directory"):
            os.setxattr(directory / kind, name, b"")

    if is_of_base:
        set_it(base)
    root, plain = Path(os.fsdecode(mounted(make_transport=DirectTransport, xattrs=True).mountpoint)), room / "plain"
    if not is_of_base:
        set_it(root)
    set_it(plain)

    def results(directory: Path) -> list[Any]:
        return [
            (
                outcome(os.getxattr, path, name),
                outcome(os.setxattr, path, name, CAPABILITY, os.XATTR_CREATE),
                outcome(os.removexattr, path, name),
                outcome(os.removexattr, path, name),
                sorted(os.listxattr(path)),
                outcome(os.setxattr, path, name, CAPABILITY, os.XATTR_REPLACE),
                outcome(os.setxattr, path, name, CAPABILITY, os.XATTR_CREATE),
            )
            for path in (directory / "file", directory / "directory")
        ]

    expected = results(plain)
    assert [result[:3] for result in expected] == [("EINVAL", "EEXIST", None)] * 2
    assert results(root) == expected


@pytest.mark.root_only
def test_attributes_are_as_in_a_plain_directory_for_another_user(view: MountedView, room: Path) -> None:
    root, plain = Path(os.fsdecode(view.mountpoint)), room / "plain"
    ours = as_other(lambda: probe(root), uid=OTHER, gid=OTHER)
    assert different(ours, as_other(lambda: probe(plain), uid=OTHER, gid=OTHER)) == []


def test_attributes_stay_over_a_snapshot_and_are_committed(view: MountedView, base: Path) -> None:
    root = Path(os.fsdecode(view.mountpoint))
    names = ["user.new", *(["trusted.new", "security.new"] if os.geteuid() == 0 else [])]
    for kind in ("file", "directory"):
        for name in names:
            os.setxattr(root / kind, name, b"value")
        os.removexattr(root / kind, "user.there")
    view.snapshot(b"set")
    for name in names:
        os.removexattr(root / "file", name)
    view.travel(1)
    view.remount()
    for place in (root, base):
        for kind in ("file", "directory"):
            assert [os.getxattr(place / kind, name) for name in names] == [b"value"] * len(names)
            assert "user.there" not in os.listxattr(place / kind)
        view.commit()
