"""How long base files are trusted where they are watched, and which of them are looked at
meanwhile.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yolofs.fuse.cache import lifetimes as module
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.overlay.inodes import Attr, Inode
from yolofs.paths import ROOT, RelPath
from yolofs.store.base import Base

WATCHED_S = 60.0
BASE_S = 1.0


class World:
    """Files in base, as the kernel is told of them; the clock is set by hand."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.now_s = 100.0
        base = Base(os.fsencode(top))
        self.wall_s = 1000.0
        self.lifetimes = Lifetimes(
            base,
            staged_s=3600,
            base_s=BASE_S,
            watched_s=WATCHED_S,
            clock=lambda: self.now_s,
            wall_ns=lambda: int(self.wall_s * 10**9),
        )
        self.lifetimes.watch(ROOT)

    def tell(self, name: str) -> float:
        """Make the file if it is missing, and tell of it; return for how long."""
        path = self.top / name
        path.touch()
        st = path.lstat()
        inode = Inode(st.st_ino, stat.S_IFMT(st.st_mode), None, os.fsencode(name))
        inode.base = RelPath(os.fsencode(name))
        return self.lifetimes.of_attr(
            inode,
            Attr(st.st_ino, st.st_mode, st.st_nlink, 0, 0, 0, st.st_size, 0, 0, st.st_mtime_ns, st.st_ctime_ns, False),
        )

    def look(self) -> tuple[list[bytes], list[bytes]]:
        """Return which files changed and which are not trusted any more; they are dropped."""
        changed, over = self.lifetimes.changed_unnoticed()
        self.lifetimes.drop(changed + over)
        return [path for path, _ in changed], [path for path, _ in over]

    def age(self, name: str) -> None:
        os.utime(self.top / name, ns=(1, 1))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_base_file_that_changed_is_found_once(world: World) -> None:
    assert not world.lifetimes.trusts_any
    for name in ("same", "older", "longer", "gone"):
        assert world.tell(name) == WATCHED_S
    assert world.look() == ([], [])
    world.age("older")
    with open(world.top / "longer", "a") as file:
        file.write("more")
    (world.top / "gone").unlink()
    assert world.look() == ([b"older", b"longer", b"gone"], [])
    assert world.look() == ([], [])
    assert world.lifetimes.trusts_any


def test_a_base_file_is_looked_at_no_longer_than_the_kernel_trusts_it(world: World) -> None:
    world.tell("a")
    world.now_s += WATCHED_S / 2
    world.tell("b")
    world.now_s += WATCHED_S / 2 + 1
    assert world.look() == ([], [b"a"])
    world.age("a")
    world.age("b")
    assert world.look() == ([b"b"], [])
    assert not world.lifetimes.trusts_any


def test_a_base_file_that_was_told_anew_during_a_look_is_looked_at_again(world: World) -> None:
    world.tell("a")
    world.age("a")
    changed, over = world.lifetimes.changed_unnoticed()
    world.tell("a")
    world.lifetimes.drop(changed + over)
    world.age("a")
    os.utime(world.top / "a", ns=(2, 2))
    assert world.look() == ([b"a"], [])


def test_more_files_than_can_be_looked_after_are_trusted_for_a_second(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TRUSTED", 2)
    assert [world.tell(name) for name in ("a", "b", "c", "a")] == [WATCHED_S, WATCHED_S, BASE_S, WATCHED_S]
    world.age("a")
    assert world.look() == ([b"a"], [])
    assert world.tell("c") == WATCHED_S


def test_names_in_a_directory_are_trusted_for_a_second_while_it_is_young(world: World) -> None:
    """It takes a moment until a directory that the host has made is watched."""
    directory = Inode(1, stat.S_IFDIR, None, b"directory")
    directory.base = RelPath(b"directory")
    directory.seen = (int(world.wall_s * 10**9), 0, 0)  # its ctime
    lifetimes = world.lifetimes
    for since_s, lifetime_s in ((-60, BASE_S), (0, BASE_S), (module.YOUNG_NS / 10**9, WATCHED_S)):
        world.wall_s = 1000 + since_s  # somebody may have set the clock back
        assert lifetimes.of_name(directory, is_stable=False) == lifetime_s
        assert lifetimes.of_names_in(directory) == lifetime_s
    assert lifetimes.of_name(directory, is_stable=True) > WATCHED_S
