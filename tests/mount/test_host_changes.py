"""Changes that the host makes to base under the mount."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.in_process import MountedView

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
