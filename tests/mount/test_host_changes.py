"""Changes that the host makes to base under the mount."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from tests.support.transports import IS_DIRECT
from yolofs.overlay import host_changes
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.paths import RelPath

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


def test_changes_by_the_host_show_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "f").write_bytes(b"longer than before")
    assert at(view, "f").read_bytes() == b"longer than before"


def test_a_replaced_file_shows_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "g").write_bytes(b"another")
    (base / "g").rename(base / "f")
    assert at(view, "f").read_bytes() == b"another"


def test_a_deleted_file_is_gone_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "f").unlink()
    with pytest.raises(FileNotFoundError):
        at(view, "f").read_bytes()


def test_changes_of_the_host_show_in_stat_within_a_second(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted()
    assert at(view, "f").stat().st_size == 3
    assert not at(view, "new").exists()
    (base / "f").write_bytes(b"longer")
    (base / "new").write_bytes(b"")
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline and (at(view, "f").stat().st_size != 6 or not at(view, "new").exists()):
        pass
    assert at(view, "f").stat().st_size == 6
    assert at(view, "new").exists()


def test_an_open_base_file_that_the_host_deletes_stays_readable(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"held")
    view = mounted()
    with at(view, "f").open("rb") as held:
        (base / "f").unlink()
        assert held.read() == b"held"


def test_a_staged_name_hides_what_the_host_makes_there(base: Path, mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"staged")
    (base / "f").write_bytes(b"host")
    assert at(view, "f").read_bytes() == b"staged"
    at(view, "f").unlink()
    assert not at(view, "f").exists()
    assert (base / "f").read_bytes() == b"host"


@pytest.mark.parametrize("same_times", [False, True])
def test_a_link_above_a_known_file_leads_to_no_other_file(base: Path, mounted: Mounter, same_times: bool) -> None:
    for name in ("d", "other"):
        (base / name).mkdir()
        (base / name / "f").write_bytes(name.encode().ljust(5))
    if same_times:
        st = (base / "d/f").stat()
        os.utime(base / "other/f", ns=(st.st_atime_ns, st.st_mtime_ns))
    view = mounted()
    known = os.open(os.path.join(os.fsdecode(view.mountpoint), "d/f"), os.O_PATH)
    try:
        again = f"/proc/self/fd/{known}"  # opens the known file, and looks no name up
        assert Path(again).read_bytes() == b"d    "
        (base / "d").rename(base / "moved")
        (base / "d").symlink_to("other")
        with pytest.raises(OSError, match="Stale file handle"):
            Path(again).read_bytes()
        (base / "d").unlink()
        (base / "d").symlink_to("moved")
        assert Path(again).read_bytes() == b"d    "  # the very same file
        (base / "moved/f").write_bytes(b"new  ")
        with pytest.raises(OSError, match="Stale file handle"):
            Path(again).read_bytes()
    finally:
        os.close(known)


def test_directories_that_both_sides_have_removed_are_counted_once(base: Path, mounted: Mounter) -> None:
    for name in ("a", "b", "c"):
        (base / "d" / name).mkdir(parents=True)
    view = Path(os.fsdecode(mounted(base_timeout_s=0.0).mountpoint)) / "d"
    for name in ("a", "b", "c"):
        (view / name).rmdir()
    assert view.stat().st_nlink == (base / "d").stat().st_nlink - 3
    for name in ("a", "b", "c"):
        (base / "d" / name).rmdir()
    assert view.stat().st_nlink == (base / "d").stat().st_nlink
    assert os.listdir(view.parent) == ["d"]


def without_a_path(view: MountedView, name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether somebody who works in a directory of the view has no path once the host's change
    of its name was told, until somebody looks the name up again.
    """
    path = at(view, name)
    with monkeypatch.context() as patch, opened(path) as fd:
        patch.setattr(view.mount, "_look_up", lambda _: None)
        tell_of_name(view, name)
        has_none = os.readlink(f"/proc/self/fd/{fd}") != str(path)
    with opened(path) as fd:
        tell_of_name(view, name)
        assert os.readlink(f"/proc/self/fd/{fd}") == str(path)
    return has_none


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_PATH)
    try:
        yield fd
    finally:
        os.close(fd)


def tell_of_name(view: MountedView, name: str) -> None:
    changes = [HostChange(RelPath(os.fsencode(name)), is_name=True)]
    view.mount.invalidate(view.mount.call(lambda: stale_after(view.overlay, changes)))


def test_whoever_works_in_a_directory_that_the_host_has_just_made_always_has_a_path(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "d").mkdir()
    view = mounted(base_timeout_s=3600)
    assert without_a_path(view, "d", monkeypatch) is not IS_DIRECT  # pyfuse3 has no word for keeping a name
    monkeypatch.setattr(host_changes, "JUST_MADE_NS", 0)
    assert without_a_path(view, "d", monkeypatch)  # all that the kernel knows below goes with the name


def test_a_directory_with_the_number_of_one_that_is_gone_is_dropped_with_all_below(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may know names of the other one, and for longer."""
    (base / "d").mkdir()
    view = mounted(base_timeout_s=3600)
    with opened(at(view, "d")):
        inode = view.overlay.known_at(RelPath(b"d"))
        assert inode is not None
        inode.seen = (1, 1, 4096)  # as the kernel was told of the other one
        assert without_a_path(view, "d", monkeypatch)
