"""A disk below base gets another device number: plugged in again, or after the machine started
anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.support.required import do_without
from yolofs.system.disks import disk_key

pytestmark = [pytest.mark.mount, pytest.mark.root_only, pytest.mark.timeout(300)]
MIB = 1 << 20


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def make_disk(path: Path, size: int = 24 * MIB) -> None:
    with path.open("wb") as file:
        file.truncate(size)
    run("mkfs.ext4", "-q", "-F", path)


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[int]:
    """Mount a disk on some loop device; give its number."""
    try:
        loop = run("losetup", "--find", "--show", image)
    except subprocess.CalledProcessError as error:
        do_without(f"no loop device is to be had: {error.stderr}")
    try:
        run("mount", loop, place)
        try:
            yield os.stat(place).st_dev
        finally:
            run("umount", place)
    finally:
        run("losetup", "--detach", loop)


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
        number = 0
        while number < device:  # each time the first that is free; a higher one: somebody else has taken it
            loop = run("losetup", "--find", "--show", other)
            taken.callback(run, "losetup", "--detach", loop)
            number = os.stat(loop).st_rdev
        with mounted(image, place) as now:
            assert now != device
            yield


def test_a_disk_is_known_though_it_has_another_number(disk: tuple[Path, Path, Path]) -> None:
    image, other, place = disk
    with mounted(image, place) as device:
        key = disk_key(device)
    with mounted_elsewhere(image, other, place, device):
        assert disk_key(os.stat(place).st_dev) == key
        assert disk_key(device) != key


def test_what_is_staged_is_the_same_after_the_number_has_changed(disk: tuple[Path, Path, Path]) -> None:
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
