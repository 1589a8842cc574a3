"""A disk below base gets another device number: plugged in again, or after the machine started
anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.looks import looks
from tests.support.program import DEADLINE_S, Program, wait_until
from tests.support.required import do_without
from yolofs.system.disks import disk_key

pytestmark = [pytest.mark.mount, pytest.mark.root_only, pytest.mark.timeout(300)]
MIB = 1 << 20
ATTEMPTS = 50


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def make_disk(path: Path, size: int = 24 * MIB) -> None:
    with path.open("wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-F", path)


def attached(image: Path) -> str:
    """Return the loop device that an image is attached to: the first that is free.

    Somebody else may take that in the same moment.
    """
    for attempt in range(ATTEMPTS):
        try:
            return run("losetup", "--find", "--show", image)
        except subprocess.CalledProcessError as error:
            if attempt == ATTEMPTS - 1:
                do_without(f"no loop device is to be had: {error.stderr}")
            time.sleep(0.1)
    raise AssertionError("it was attached, or could not be")


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[int]:
    """Mount a disk on some loop device; give its number."""
    loop = attached(image)
    try:
        run("mount", loop, place)
        try:
            yield os.stat(place).st_dev
        finally:
            unmount(place)
    finally:
        run("losetup", "--detach", loop)
        wait_until_free(loop)


def unmount(place: Path) -> None:
    """Unmount a disk; a daemon may hold directories of it for a moment."""

    def is_unmounted() -> bool:
        return not subprocess.run(["umount", place], check=False, capture_output=True).returncode

    wait_until(is_unmounted, f"nobody uses {place}")


def wait_until_free(loop: str) -> None:
    """Wait until nobody has a disk mounted any more.

    A process that has got mounts of its own meanwhile has a copy of ours as long as it lives.  Till
    then the disk is in use, and another mount of it would be a second one.
    """
    holds = Path("/sys/block", Path(loop).name, "loop/backing_file")
    deadline = time.monotonic() + DEADLINE_S
    while holds.exists():
        assert time.monotonic() < deadline, f"a process with mounts of its own still has {loop}"
        time.sleep(0.05)


@pytest.fixture
def disk(tmp_path: Path) -> tuple[Path, Path, Path]:
    """An image of a disk, another one, and where the first is to be mounted."""
    if shutil.which("mkfs.ext4") is None or shutil.which("losetup") is None:
        do_without("mkfs.ext4 or losetup is not installed")
    images = tmp_path / "one", tmp_path / "other"
    for image in images:
        make_disk(image)
    place = tmp_path / "place"
    place.mkdir()
    return (*images, place)


@contextmanager
def mounted_elsewhere(image: Path, other: Path, place: Path, device: int) -> Iterator[None]:
    """Mount a disk so that it has another number than before, which another disk has taken."""
    with ExitStack() as taken:
        for _ in range(ATTEMPTS):
            loop = attached(other)  # each time the first that is free; a loop device may be so late, or somebody has it
            taken.callback(run, "losetup", "--detach", loop)
            if os.stat(loop).st_rdev < device:
                continue
            with mounted(image, place) as now:
                if now != device:
                    yield
                    return
        pytest.fail(f"a disk gets the number {device} again and again")


def test_a_disk_is_known_though_it_has_another_number(disk: tuple[Path, Path, Path]) -> None:
    image, other, place = disk
    with mounted(image, place) as device:
        key = disk_key(device)
    with mounted_elsewhere(image, other, place, device):
        assert disk_key(os.stat(place).st_dev) == key
        assert disk_key(device) != key


def test_staged_changes_are_the_same_after_the_number_of_the_disk_has_changed(disk: tuple[Path, Path, Path]) -> None:
    image, other, place = disk
    project = place / "project"
    program = Program(project)
    with mounted(image, place) as device:
        project.mkdir()
        (project / "a").write_text("a\n")
        (project / "h1").write_text("h\n")
        (project / "h2").hardlink_to(project / "h1")
        program("init")
        with program.mounted("--root", "/") as root:
            view = root / str(project)[1:]
            (view / "h1").rename(view / "h9")
            with (view / "h2").open("a") as file:
                file.write("more\n")
            (view / "a").write_text("changed\n")
        shown = program("status").out
    with mounted_elsewhere(image, other, place, device):
        assert program("status").out == shown
        with program.mounted("--root", "/") as root:
            assert (root / str(project)[1:] / "h9").read_text() == "h\nmore\n"
        program("commit", "--yes")
        assert (project / "h9").read_text() == (project / "h2").read_text() == "h\nmore\n"
        assert (project / "h9").samefile(project / "h2")
        assert (project / "a").read_text() == "changed\n"


def test_an_undo_knows_the_files_after_the_number_has_changed(disk: tuple[Path, Path, Path]) -> None:
    image, other, place = disk
    project = place / "project"
    program = Program(project)
    with mounted(image, place) as device:
        project.mkdir()
        for name in ("h1", "a", "b"):
            (project / name).write_text(f"{name}\n")
        (project / "h2").hardlink_to(project / "h1")
        program("init")
        before = looks(project)
        with program.mounted("--root", "/") as root:
            view = root / str(project)[1:]
            (view / "h1").unlink()
            (view / "a").write_text("changed\n")
            (view / "b").rename(view / "c")
        program("commit", "--yes")
    with mounted_elsewhere(image, other, place, device):
        said = program("undo", "--yes").err
        assert "file of its own" not in said
        assert (project / "h1").samefile(project / "h2")
        assert looks(project) == before


@contextmanager
def mounted_as(image: Path, place: Path, device: int) -> Iterator[None]:
    """Mount a disk under the device number of another one just unmounted; skip the test if somebody
    else has taken it.
    """
    loop = f"/dev/loop{os.minor(device)}"
    if subprocess.run(["losetup", loop, image], check=False, capture_output=True).returncode:
        do_without(f"somebody else has taken {loop}")
    try:
        run("mount", loop, place)
        try:
            assert os.stat(place).st_dev == device
            yield
        finally:
            unmount(place)
    finally:
        run("losetup", "--detach", loop)
        wait_until_free(loop)


def test_a_disk_that_took_the_number_of_another_one_under_a_mount_is_another_disk(
    disk: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    image, other, _ = disk
    project = tmp_path / "project"
    place = project / "place"
    place.mkdir(parents=True)
    program = Program(project)
    program("init")
    with program.mounted() as view:
        with mounted(image, place) as device:
            (place / "file").write_text("on one\n")
            inode = (place / "file").stat().st_ino
            number = wait_for_number(view / "place/file", inode)
        with mounted_as(other, place, device):
            (place / "file").write_text("on the other\n")
            assert (place / "file").stat().st_ino == inode
            wait_until(lambda: wait_for_number(view / "place/file", inode) != number, "it is another file")
            with (view / "place/file").open("a") as file:
                file.write("staged\n")
            program("commit", "--yes")
            assert (place / "file").read_text() == "on the other\nstaged\n"


def wait_for_number(path: Path, inode: int) -> int:
    """Return the number that the view shows for a file of another disk, once it shows that."""
    found: list[int] = []

    def is_there() -> bool:
        with suppress(FileNotFoundError):
            found.append(path.stat().st_ino)
        return bool(found) and found[-1] != inode

    wait_until(is_there, "the view shows the file")
    return found[-1]
