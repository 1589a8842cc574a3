"""Somebody on the host puts a link in the place of a directory while a program in the view looks
into that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.core_in_python import core_in_python
from tests.support.program import Program
from yolofs.overlay.inodes import Inode
from yolofs.paths import RelPath
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system import syscalls

_TIMES = 4_000
SECRET = b"what a rule denies\n"


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """A base in which ``d`` leads to ``secret``."""
    root = tmp_path / "base"
    (root / "secret").mkdir(parents=True)
    (root / "secret/key").write_bytes(SECRET)
    (root / "d").symlink_to("secret")
    return Base(os.fsencode(root))


@pytest.fixture(params=[True, False])
def has_openat2(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Linux before 5.6 has no system call for it."""
    monkeypatch.setattr(syscalls, "_has_openat2", lambda: request.param)
    return bool(request.param)


@pytest.mark.usefixtures("has_openat2")
def test_base_is_read_through_no_link(base: Base, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="symbolic links"):
        base.open(b"d/key")
    with pytest.raises(NotADirectoryError):
        base.names(b"d")
    (tmp_path / "base/secret/deep").mkdir()
    with pytest.raises(NotADirectoryError):
        base.names(b"d/deep")
    with pytest.raises(FileNotFoundError):
        base.open(b"secret/other")
    fd = base.open(b"secret/key")
    assert os.read(fd, 100) == SECRET
    assert not os.get_inheritable(fd)
    os.close(fd)
    assert sorted(base.names(b"secret")) == [b"deep", b"key"]
    assert sorted(base.names(b"")) == [b"d", b"secret"]


@pytest.mark.usefixtures("has_openat2")
def test_attributes_in_base_are_those_of_what_no_link_leads_to(base: Base) -> None:
    for way in (b"d/key", b"d/nothing", b"d/key/below"):
        with pytest.raises(NotADirectoryError):
            base.lstat(way)
        assert not base.has(way)
    with pytest.raises(FileNotFoundError):
        base.lstat(b"secret/nothing")
    assert base.lstat(b"secret/key").st_size == len(SECRET)
    assert stat.S_ISLNK(base.lstat(b"d").st_mode)
    assert stat.S_ISDIR(base.lstat(b"").st_mode)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoreDriver]:
    """A view whose base has a file and a link of the same names in ``d`` and in ``secret``."""
    root = tmp_path / "view"
    for name, target, mode in (("d", "harmless", 0o644), ("secret", "what-a-rule-denies", 0o600)):
        (root / name).mkdir(parents=True)
        (root / name / "key").write_text(name)
        (root / name / "key").chmod(mode)
        (root / name / "link").symlink_to(target)
    driver = CoreDriver(os.fsencode(root))
    yield driver
    driver.close()


def exchange(driver: CoreDriver) -> None:
    """Put a link to ``secret`` in the place of ``d``."""
    root = Path(os.fsdecode(driver.root))
    (root / "d").rename(root / "away")
    (root / "d").symlink_to("secret")


def known(driver: CoreDriver, *names: bytes) -> Inode:
    """Look a path up as the kernel does, which then knows it."""
    inode = driver.overlay.root
    for name in names:
        found = driver.overlay.lookup(inode, name)
        assert found is not None
        inode = found[0]
    return inode


def refused_by_what_it_has_become() -> contextlib.AbstractContextManager[object]:
    """Expect the error that tells of a link, or of something else than there was: which one depends
    on the call.
    """
    return pytest.raises(OSError, check=lambda error: error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ESTALE))


@pytest.mark.usefixtures("has_openat2")
def test_the_target_of_a_link_is_read_through_no_other(driver: CoreDriver) -> None:
    link = known(driver, b"d", b"link")
    assert driver.overlay.readlink(link) == b"harmless"
    exchange(driver)
    with refused_by_what_it_has_become():
        driver.overlay.readlink(link)
    with refused_by_what_it_has_become():
        driver.overlay.getattr(link)


@pytest.mark.usefixtures("has_openat2")
def test_extended_attributes_are_read_through_no_link(driver: CoreDriver) -> None:
    root = Path(os.fsdecode(driver.root))
    try:
        for name in ("d", "secret"):
            os.setxattr(root / name / "key", "user.what", name.encode())
            os.setxattr(root / name, "user.what", name.encode())
    except OSError as error:
        pytest.skip(f"{root}: {error.strerror}")
    file, directory = known(driver, b"d", b"key"), known(driver, b"d")
    assert driver.overlay.getxattr(file, b"user.what") == b"d"
    assert driver.overlay.listxattr(directory) == [b"user.what"]
    exchange(driver)
    for inode in (file, directory):
        with refused_by_what_it_has_become():
            driver.overlay.getxattr(inode, b"user.what")
        with refused_by_what_it_has_become():
            driver.overlay.listxattr(inode)


@core_in_python
@pytest.mark.usefixtures("has_openat2")
def test_metadata_of_a_link_is_copied_up_through_no_other(driver: CoreDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the exchange comes after the look at base and before the copy."""
    inode = known(driver, b"d", b"link")
    look = driver.overlay.base.lstat

    def look_and_exchange(rel: bytes) -> os.stat_result:
        st = look(rel)
        if rel == b"d/link":
            monkeypatch.setattr(driver.overlay.base, "lstat", look)
            exchange(driver)
        return st

    monkeypatch.setattr(driver.overlay.base, "lstat", look_and_exchange)
    with refused_by_what_it_has_become():
        driver.overlay.setattr(inode, mtime_ns=5, atime_ns=5)
    assert driver.changes() == []


@core_in_python
@pytest.mark.usefixtures("has_openat2")
@pytest.mark.parametrize("is_held", [False, True], ids=["not-held", "held"])
@pytest.mark.parametrize("is_before", [False, True], ids=["after-the-look", "before-the-look"])
def test_metadata_of_a_file_is_copied_up_through_no_link(
    driver: CoreDriver, is_before: bool, is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor of the file tells its metadata, too, whatever takes its place."""
    held = driver.overlay.held
    if is_held:
        held.hold_for(3600 * 10**9, lambda _, __: None)
    inode = known(driver, b"d", b"key")
    hold = held.hold

    def hold_beside_an_exchange(path: RelPath) -> int:
        if is_before:
            exchange(driver)
        fd = hold(path)
        if not is_before:
            exchange(driver)
        return fd

    monkeypatch.setattr(held, "hold", hold_beside_an_exchange)
    # its size, which is part of the answer, is looked at by its path
    with contextlib.nullcontext() if is_held else refused_by_what_it_has_become():
        driver.overlay.setattr(inode, mtime_ns=5, atime_ns=5)
    assert (inode.staged is None) is (is_before and not is_held)
    if inode.staged is not None:
        assert stat.S_IMODE(os.lstat(driver.session.store.path(inode.staged.ino)).st_mode) == 0o644
    held.let_go()
    with refused_by_what_it_has_become():
        driver.overlay.read(inode, 0, 100)


@pytest.mark.usefixtures("has_openat2")
def test_nothing_is_copied_up_through_a_link(base: Base, tmp_path: Path) -> None:
    store = Store(os.fsencode(tmp_path / "store"))
    with pytest.raises(OSError, match="symbolic links"):
        store.copy_up(base.path(b"d/key"))
    ino = store.copy_up(base.path(b"secret/key"))
    assert Path(os.fsdecode(store.path(ino))).read_bytes() == SECRET


@pytest.mark.mount
def test_what_is_denied_stays_so_while_somebody_exchanges_a_directory_and_a_link(yolofs: Program) -> None:
    project = yolofs.project
    for name, text in (("d", b"harmless\n"), ("secret", SECRET)):
        (project / name).mkdir()
        (project / name / "key").write_bytes(text)
    (project / "l").symlink_to("secret")
    yolofs("rule", "deny", "secret")
    with yolofs.mounted() as view, pytest.raises(PermissionError):
        (view / "secret/key").read_bytes()
    with yolofs.mounted() as view:
        directory = os.open(view / "d", os.O_RDONLY | os.O_DIRECTORY)
        found = read_while_exchanging(project, directory)
        os.close(directory)
    assert found <= {b"harmless\n"}


def read_while_exchanging(project: Path, directory: int) -> set[bytes]:
    """Return what a file in a directory of the view has while the host exchanges that directory and
    a link.
    """

    def exchange() -> None:
        fd = os.open(project, os.O_RDONLY)
        for _ in range(_TIMES):
            syscalls.rename_exchange(fd, b"d", fd, b"l")
        os.close(fd)

    host = threading.Thread(target=exchange)
    host.start()
    found = set()
    while host.is_alive():
        with contextlib.suppress(OSError):
            fd = os.open("key", os.O_RDONLY, dir_fd=directory)
            found.add(os.read(fd, 100))
            os.close(fd)
    host.join()
    return found
