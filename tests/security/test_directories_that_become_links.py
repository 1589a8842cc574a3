"""Somebody on the host puts a link in the place of a directory while a program in the view looks into that."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

from tests.cli.program import Program
from yolofs import syscalls
from yolofs.base import Base
from yolofs.store import Store

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
    """Return what a file in a directory of the view has while the host exchanges that directory and a link."""

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
