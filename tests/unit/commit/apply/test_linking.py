"""Store inodes that may get a name in base themselves: a copy would be the same in all respects."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.user_identity import NOBODY, in_child
from yolofs.commit.apply.linking import Linking
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Create, Plan
from yolofs.paths import RelPath, StoreIno
from yolofs.store.store import Store

GROUP, OTHER = 5000, 5001


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def is_linked(
    place: Path,
    change: Callable[[bytes], object] = lambda _: None,
    *,
    name: bytes = b"new",
    is_root: bool = True,
    groups: tuple[int, ...] = (),
) -> bool:
    """Tell whether a new file would be linked, by root or by an ordinary user; ``change`` gets its
    path in the store.
    """
    (place / "base").mkdir(exist_ok=True)
    (place / "store/files").mkdir(parents=True, exist_ok=True)
    store = Store(bytes(place / "store/files"))
    ino, fd, _ = store.create_file(0o644)
    with open(fd, "wb") as file:
        file.write(b"new")
    change(store.path(ino))
    (place / "store").chmod(0o755)
    for above, _, _ in os.walk(place / "store"):
        Path(above).chmod(0o755)
    (place / "commit").mkdir(exist_ok=True)
    (place / "commit").chmod(0o777)
    st = os.lstat(store.path(ino))
    step = Create(RelPath(name), StoreIno(ino), 0, st.st_size, st.st_mtime_ns)
    plan = Plan(bytes(place / "base"), (step,))

    def look() -> None:
        if groups:
            os.setgroups(groups)
        folder = os.open(place / "commit", os.O_PATH | os.O_DIRECTORY)
        if groups:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        found = Linking(plan, store, folder, Moves(plan), lambda _: True).look(step)
        os._exit(0 if found is not None else 3)

    code = in_child(look, is_root=is_root or bool(groups))
    assert code in (0, 3)
    assert os.listdir(place / "commit") == [], "what was made to see how the disk numbers links goes"
    return code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away, and becomes another user")
@pytest.mark.parametrize(
    ("uid", "gid", "linked"),
    [
        (NOBODY, NOBODY, True),
        (NOBODY, GROUP, True),
        (NOBODY, OTHER, False),
        (NOBODY, 0, False),
        (0, NOBODY, False),
        (0, GROUP, False),
    ],
)
def test_an_ordinary_users_copy_has_owner_and_group_of_the_user(place: Path, uid: int, gid: int, linked: bool) -> None:
    assert is_linked(place, lambda path: os.chown(path, uid, gid), groups=(GROUP,)) is linked


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away, and becomes another user")
def test_a_file_of_the_group_is_another_users_copy_without_it(place: Path) -> None:
    assert not is_linked(place, lambda path: os.chown(path, NOBODY, GROUP), is_root=False)
    assert is_linked(place, lambda path: os.chown(path, NOBODY, NOBODY), is_root=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_roots_copy_has_whatever_owner_and_group(place: Path) -> None:
    assert is_linked(place, lambda path: os.chown(path, NOBODY, OTHER))


@pytest.mark.parametrize("mode", [0o044, 0o444, 0o244])
def test_a_store_inode_that_its_owner_may_not_read_and_write_is_copied(place: Path, mode: int) -> None:
    assert not is_linked(place, lambda path: os.chmod(path, mode))
    assert is_linked(place, lambda path: os.chmod(path, 0o600))


def test_a_store_inode_with_another_name_is_copied(place: Path) -> None:
    assert not is_linked(place, lambda path: os.link(path, place / "other"))


def test_gits_index_is_copied(place: Path) -> None:
    assert not is_linked(place, name=b"index")
    assert is_linked(place, name=b"index.html")


@pytest.mark.parametrize("way", ["each name has a number", "no links"])
def test_where_a_link_is_not_known_again_by_its_number_a_copy_is_made(
    place: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Disks in user space may find files by their names."""
    assert is_linked(place)
    really = os.link

    def link(source: bytes, target: bytes, **folders: int) -> None:
        if way == "no links":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folders["dst_dir_fd"]))

    monkeypatch.setattr(os, "link", link)
    assert not is_linked(place)
    monkeypatch.setattr(os, "link", really)
    assert is_linked(place)
