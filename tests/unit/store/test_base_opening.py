"""Opening a base file whose name the host has given to something else meanwhile."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.overlay.inodes import Inode


def put_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def put_link_to_file(path: Path) -> None:
    path.with_name("elsewhere").write_text("elsewhere")
    path.symlink_to("elsewhere")


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.fspath(path))


def put_fifo(path: Path) -> None:
    os.mkfifo(path)


def put_directory(path: Path) -> None:
    path.mkdir()


def put_file(path: Path) -> None:
    path.write_text("another")


def put_nothing(_: Path) -> None:
    pass


PUT = [put_link, put_link_to_file, put_socket, put_fifo, put_directory, put_file, put_nothing]


@pytest.fixture
def driver(tmp_path: Path) -> CoreDriver:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("first")
    return CoreDriver(os.fsencode(tmp_path))


def known(driver: CoreDriver) -> Inode:
    """Return the inode of d/f, as the kernel knows it."""
    overlay = driver.overlay
    directory = overlay.lookup(overlay.root, b"d")
    assert directory is not None
    found = overlay.lookup(directory[0], b"f")
    assert found is not None
    return found[0]


@pytest.mark.parametrize("was_open", [False, True])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC])
@pytest.mark.parametrize("put", PUT)
def test_what_is_not_the_file_that_was_looked_up_is_stale(
    tmp_path: Path, driver: CoreDriver, put: Callable[[Path], None], flags: int, was_open: bool
) -> None:
    inode = known(driver)
    if was_open:
        driver.overlay.open(inode, os.O_RDONLY)
        driver.overlay.release(inode, writer=False)
    held = tmp_path / "held"  # so that its number is not given out anew
    (tmp_path / "d/f").rename(held)
    put(tmp_path / "d/f")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)) as raised:
        driver.overlay.open(inode, flags)
    assert raised.value.errno == errno.ESTALE
    assert inode.opens == inode.writers == 0
    assert len(os.listdir("/proc/self/fd")) == before
    assert held.read_text() == "first"


def test_the_same_file_at_its_name_again_opens(tmp_path: Path, driver: CoreDriver) -> None:
    inode = known(driver)
    (tmp_path / "d/f").rename(tmp_path / "aside")
    with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
        driver.overlay.open(inode, os.O_RDONLY)
    (tmp_path / "aside").rename(tmp_path / "d/f")
    driver.overlay.open(inode, os.O_RDONLY)
    assert driver.overlay.read(inode, 0, 100) == b"first"
    driver.overlay.release(inode, writer=False)
