"""Times of directories beside those that the view has shown before: none goes back, although disks
stamp more finely what was looked at (from Linux 6.13 on).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.mount.hard_links import Mounter
from tests.support.in_process import MountedView
from tests.support.sharing_disk import disk_image
from yolofs.fuse.direct.transport import DirectTransport

pytestmark = pytest.mark.mount

TIMES = 100


def makes(directory: Path) -> None:
    (directory / "made").mkdir()


def renames(directory: Path) -> None:
    (directory / "made").rename(directory / "renamed")


def removes(directory: Path) -> None:
    (directory / "renamed").rmdir()


def links(directory: Path) -> None:
    (directory / "link").hardlink_to(directory / "second")


def replaces(directory: Path) -> None:
    (directory / "link").replace(directory / "replaced")


def unlinks(directory: Path) -> None:
    (directory / "replaced").unlink()


CHANGES = (makes, renames, removes, links, replaces, unlinks)


def keeps_order_after_a_write(directory: Path, change: Callable[[Path], None]) -> bool:
    """Write to a file at a time that nobody asks for before the directory changes; tell whether the
    directory is no older.
    """
    with open(directory / "third", "r+b", buffering=0) as file:
        os.fstat(file.fileno())
        file.write(b"y")
        change(directory)
        return os.fstat(file.fileno()).st_mtime_ns <= directory.stat().st_mtime_ns


def went_back(top: Path) -> list[str]:
    """Change directories right after they and what is in them were looked at; return what was
    earlier afterwards.
    """
    wrong = []
    for number in range(TIMES):
        directory = top / str(number)
        directory.mkdir()
        made_ns = directory.stat().st_mtime_ns
        with open(directory / "first", "wb", buffering=0) as file:
            file.write(b"x")
            os.fstat(file.fileno())
            file.write(b"x")  # which gets a finer time, as it was looked at
            written_ns = os.fstat(file.fileno()).st_mtime_ns
        (directory / "second").touch()
        changed_ns = directory.stat().st_mtime_ns
        os.utime(directory)
        set_ns = directory.stat().st_mtime_ns
        (directory / "first").rename(directory / "third")
        renamed_ns = directory.stat().st_mtime_ns
        too_early = [
            f"than a file that was written and not looked at, by {change.__name__}"
            for change in CHANGES
            if not keeps_order_after_a_write(directory, change)
        ]
        times = {
            "than it was": made_ns <= changed_ns,
            "than a file written before": written_ns <= changed_ns,
            "than it was set to": set_ns <= renamed_ns,
        }
        too_early += [what for what, holds in times.items() if not holds]
        wrong += [f"{number}: earlier {what}" for what in too_early]
    return wrong


def test_no_time_goes_back_when_a_directory_changes_right_after_it_was_looked_at(base: Path, mounted: Mounter) -> None:
    view = mounted(make_transport=DirectTransport)
    assert went_back(Path(os.fsdecode(view.mountpoint))) == []


@pytest.mark.root_only
def test_a_directory_on_a_disk_of_whole_seconds_never_gets_an_earlier_time(tmp_path: Path) -> None:
    times = []
    with disk_image("ext4 of whole seconds", tmp_path) as disk:
        (disk / "base").mkdir()
        with closing(MountedView(os.fsencode(disk / "base"))) as view:
            directory = Path(os.fsdecode(view.mountpoint))
            for number in range(20):
                (directory / f"d{number}").mkdir()
                times.append(directory.stat().st_mtime_ns)
                (directory / f"d{number}").rmdir()
                times.append(directory.stat().st_mtime_ns)
    assert times == sorted(times)
