"""Listings that are told again: each shows what a plain directory shows after the same change,
however warm it was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mount.kernel_memory import have_the_kernel_forget, what_it_knows_stays
from tests.support.core_in_python import core_in_python
from tests.support.gate_tools import path_rule
from tests.support.in_process import MountedView
from tests.support.plain_directory import RENAME_EXCHANGE, PlainDirectory
from tests.support.program import DEADLINE_S, wait_until
from tests.support.transports import IS_DIRECT
from yolofs.overlay.held_directories import HeldDirectories
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.paths import RelPath
from yolofs.rules import RuleBook, RuleIndex, RuleSet, RuleState
from yolofs.store.base import Base

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
LONG_S = 3600.0
Look = dict[str, tuple[object, ...]]


def fill(top: Path) -> None:
    """Make what is listed: files of which two are one, also in two directories, a directory, a
    link.
    """
    (top / "d/sub").mkdir(parents=True)
    (top / "e").mkdir()
    for name in ("a", "b", "c", "open", "two"):
        (top / "d" / name).write_text(name)
    os.link(top / "d/a", top / "d/hard")
    os.link(top / "d/two", top / "e/two")
    (top / "d/link").symlink_to("a")


def look(directory: Path) -> Look:
    """Return names, types and attributes, as a listing and what it brought along tell them."""
    with os.scandir(directory) as entries:
        found = {entry.name: (entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries}
    assert len(set(os.listdir(directory))) == len(found)
    shown: Look = {}
    for name, kind in found.items():
        st = os.lstat(directory / name)
        shown[name] = (*kind, st.st_mode, st.st_nlink, 0 if kind[0] else st.st_size, st.st_uid)
    return shown


def look_at_all(top: Path) -> dict[str, Look]:
    """Return what :func:`look` does of the directories in ``top``."""
    return {".": look(top)} | {name: look(top / name) for name in sorted(os.listdir(top)) if (top / name).is_dir()}


def assert_true(view: MountedView) -> None:
    """See that the kernel knows of each file what it would be told now: sizes, times and all."""
    for directory, directories, files in os.walk(view.mountpoint):
        for name in (*directories, *files):
            known = os.lstat(os.path.join(directory, name))
            attr = view.mount.loop.call(view.handlers.getattr, known.st_ino).attr
            assert attr is not None
            told = (attr.mode, attr.nlink, attr.uid, attr.gid, attr.size, attr.blocks, attr.mtime_ns, attr.ctime_ns)
            assert facts(known) == told, name


def facts(st: os.stat_result) -> tuple[int, ...]:
    """Return what is compared of a file's attributes."""
    times = st.st_mtime_ns, st.st_ctime_ns
    return (st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size, st.st_blocks, *times)


def _append(top: Path) -> None:
    with open(top / "d/b", "a") as file:
        file.write("more")


def _write_shared(top: Path) -> None:
    script = "import mmap, sys; f = open(sys.argv[1], 'r+b'); mmap.mmap(f.fileno(), 0)[0:1] = b'C'"
    subprocess.run([sys.executable, "-I", "-c", script, top / "d/c"], check=True)  # our loop's thread waits for no page


def _truncate_open(top: Path) -> None:
    with open(top / "d/open", "wb"):
        pass


def _exchange(top: Path) -> None:
    os.rename(top / "d/a", top / "d/x")
    os.rename(top / "d/b", top / "d/a")
    os.rename(top / "d/x", top / "d/b")


def _file_for_directory(top: Path) -> None:
    (top / "d/sub").rmdir()
    (top / "d/sub").write_text("")


def _replace_directory(top: Path) -> None:
    os.rename(top / "d", top / "f")
    (top / "d").mkdir()


def _drop_attribute(top: Path) -> None:
    os.setxattr(top / "d/b", "user.note", b"1")
    look(top / "d")
    os.removexattr(top / "d/b", "user.note")


CHANGES: dict[str, Callable[[Path], object]] = {
    "create": lambda top: (top / "d/new").write_text("new"),
    "append": _append,
    "mmap": _write_shared,
    "truncate": lambda top: os.truncate(top / "d/b", 100),
    "truncate at open": _truncate_open,
    "chmod": lambda top: (top / "d/b").chmod(0o600),
    "chmod by another name": lambda top: (top / "d/hard").chmod(0o600),
    "link": lambda top: os.link(top / "d/c", top / "d/second"),
    "unlink": lambda top: (top / "d/c").unlink(),
    "unlink of another name": lambda top: (top / "d/hard").unlink(),
    "rename": lambda top: os.rename(top / "d/b", top / "d/c"),
    "swap": _exchange,
    "exchange": lambda top: PlainDirectory(os.fsencode(top)).rename(b"d/a", b"e", RENAME_EXCHANGE),
    "move out": lambda top: os.rename(top / "d/sub", top / "sub"),
    "move in": lambda top: os.rename(top / "e/two", top / "d/moved"),
    "move over": lambda top: os.rename(top / "e/two", top / "d/b"),
    "rename over the other name's directory": lambda top: os.rename(top / "d/b", top / "e/two"),
    "link elsewhere": lambda top: os.link(top / "d/c", top / "e/c"),
    "unlink elsewhere": lambda top: (top / "e/two").unlink(),
    "chmod by a name elsewhere": lambda top: (top / "e/two").chmod(0o600),
    "rename of a name of two": lambda top: os.rename(top / "d/two", top / "d/renamed"),
    "times": lambda top: os.utime(top / "d/b", (1, 2)),
    "attribute": lambda top: os.setxattr(top / "d/b", "user.note", b"1"),
    "no attribute any more": _drop_attribute,
    "attribute of a directory": lambda top: os.setxattr(top / "d/sub", "user.note", b"1"),
    "mode of a directory": lambda top: (top / "d/sub").chmod(0o700),
    "file in a directory": lambda top: (top / "d/sub/new").touch(),
    "directory in a directory": lambda top: (top / "d/sub/new").mkdir(),
    "mkdir": lambda top: (top / "d/more").mkdir(),
    "rmdir and a file there": _file_for_directory,
    "symlink": lambda top: (top / "d/to").symlink_to("nowhere"),
    "fifo": lambda top: os.mkfifo(top / "d/fifo"),
    "directory replaced": _replace_directory,
}


@pytest.fixture(params=["of base", "staged"])
def scene(request: pytest.FixtureRequest, base: Path, tmp_path: Path, mounted: Mounter) -> SimpleNamespace:
    """A view and a plain directory with the same content, both looked at."""
    plain = tmp_path / "plain"
    fill(plain)
    if request.param == "of base":
        fill(base)
    view = mounted(base_timeout_s=LONG_S, staged_timeout_s=LONG_S, xattrs=True)
    top = Path(os.fsdecode(view.mountpoint))
    if request.param == "staged":
        fill(top)
    for _ in range(3):
        assert look_at_all(top) == look_at_all(plain)
    return SimpleNamespace(view=view, top=top, plain=plain)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.some(20)
def test_every_change_shows_at_once(scene: SimpleNamespace, change: str) -> None:
    for top in (scene.plain, scene.top):
        CHANGES[change](top)
    for _ in range(3):
        assert look_at_all(scene.top) == look_at_all(scene.plain)
        assert_true(scene.view)


def test_a_change_shows_to_a_process_in_the_middle_of_a_listing(scene: SimpleNamespace) -> None:
    for number in range(500):  # so many that they are told in several answers
        (scene.top / "d" / f"many{number}").write_text("")
    look(scene.top / "d")
    with os.scandir(scene.top / "d") as entries:
        first = next(entries).name
        (scene.top / "d/many499").unlink()
        (scene.top / "d/many498").chmod(0o600)
        seen = [first, *(entry.name for entry in entries)]
    assert len(seen) == len(set(seen))
    assert {f"many{number}" for number in range(498)} <= set(seen)
    assert (scene.top / "d/many498").stat().st_mode & 0o777 == 0o600
    assert "many499" not in look(scene.top / "d")


def test_travel_commit_and_abort_show_at_once(scene: SimpleNamespace) -> None:
    before = look(scene.top / "d")
    generation = scene.view.snapshot()
    _append(scene.top)
    (scene.top / "d/c").unlink()
    after = look(scene.top / "d")
    present = scene.view.snapshot()
    for _ in range(2):
        scene.view.travel(generation)
        assert look(scene.top / "d") == look(scene.top / "d") == before
        scene.view.travel(present)
        assert look(scene.top / "d") == look(scene.top / "d") == after
    scene.view.commit()
    assert look(scene.top / "d") == look(scene.top / "d") == after
    (scene.top / "d/b").unlink()
    look(scene.top / "d")
    scene.view.abort()
    assert look(scene.top / "d") == after


def test_a_kept_listing_does_not_tell_a_name_that_a_rule_hides_since(base: Path, mounted: Mounter) -> None:
    fill(base)
    allowed = path_rule(base, ".", RuleState.ALLOW)
    book = RuleBook(RuleSet((allowed,)))
    view = mounted(base_timeout_s=LONG_S, book=book)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    shown = look(directory)
    assert look(directory) == shown
    hidden = RuleSet((allowed, path_rule(base, "d/b", RuleState.HIDDEN)))
    view.mount.invalidate(view.mount.call(lambda: view.mount.gate.replace_rules(RuleIndex(hidden)))())
    assert look(directory) == {name: of for name, of in shown.items() if name != "b"}
    shows = RuleSet((allowed,))
    view.mount.invalidate(view.mount.call(lambda: view.mount.gate.replace_rules(RuleIndex(shows)))())
    assert look(directory) == shown


def test_a_listing_shows_a_change_by_the_host_once_that_is_noticed(base: Path, mounted: Mounter) -> None:
    fill(base)
    view = mounted(base_timeout_s=LONG_S)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    look(directory)
    assert look(directory) == look(base / "d")
    (base / "d/b").write_text("longer than before")
    (base / "d/c").unlink()
    (base / "d/new").write_text("new")
    changes = [
        HostChange(RelPath(b"d/b"), is_name=False),
        HostChange(RelPath(b"d/c"), is_name=True),
        HostChange(RelPath(b"d/new"), is_name=True),
    ]
    view.mount.invalidate(view.mount.call(lambda: stale_after(view.overlay, changes)))
    assert look(directory) == look(base / "d")


LONGER = "longer than before"


@pytest.fixture(params=["of base", "with attributes of its own"])
def half(request: pytest.FixtureRequest, base: Path, mounted: Mounter) -> SimpleNamespace:
    """A view in which the data of ``d/b`` is base's."""
    fill(base)
    view = mounted(base_timeout_s=LONG_S)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    if request.param != "of base":
        (directory / "b").chmod(0o600)
    return SimpleNamespace(view=view, directory=directory, data=base / "d/b")


def test_what_an_open_has_seen_of_the_hosts_changes_is_not_taken_back(half: SimpleNamespace) -> None:
    """The host has told nobody; whoever opens the file sees it all the same, and a listing must not
    bring the old size.
    """
    for _ in range(2):
        look(half.directory)
    half.data.write_text(LONGER)
    with open(half.directory / "b") as file:
        for _ in range(2):
            look(half.directory)
            assert (half.directory / "b").stat().st_size == len(LONGER)
        assert file.read() == LONGER


def test_what_a_look_at_an_open_file_has_seen_is_not_taken_back(half: SimpleNamespace) -> None:
    with open(half.directory / "b") as file:
        for _ in range(2):
            look(half.directory)
        assert file.read() == "b"  # so that the kernel asks for attributes, as the access time is another
        half.data.write_text(LONGER)
        for _ in range(2):
            assert os.fstat(file.fileno()).st_size == len(LONGER)
            look(half.directory)


def test_what_a_look_at_all_open_files_has_seen_is_not_taken_back(half: SimpleNamespace) -> None:
    with open(half.directory / "b"):
        for _ in range(2):
            look(half.directory)
        half.data.write_text(LONGER)
        half.view.mount.look_at_open()
        for _ in range(2):
            look(half.directory)
            assert (half.directory / "b").stat().st_size == len(LONGER)


def test_a_listing_shows_the_new_size_once_the_change_is_noticed(base: Path, mounted: Mounter) -> None:
    fill(base)
    view = mounted(base_timeout_s=LONG_S)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    for _ in range(2):
        look(directory)
    (base / "d/b").write_text("longer than before")
    changes = [HostChange(RelPath(b"d/b"), is_name=False)]
    view.mount.invalidate(view.mount.call(lambda: stale_after(view.overlay, changes)))
    for _ in range(2):
        assert look(directory) == look(base / "d")


def test_a_kept_listing_lives_no_longer_than_its_first_lifetime(base: Path, mounted: Mounter) -> None:
    fill(base)
    view = mounted(base_timeout_s=3.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    look(directory)
    (base / "d/b").write_text("longer than before")

    def is_seen() -> bool:
        look(directory)  # which would prolong what the kernel knows, for ever, if it were told whole lifetimes
        return directory.joinpath("b").lstat().st_size != 1

    wait_until(is_seen, "what the host wrote")
    assert look(directory) == look(base / "d")


@pytest.mark.parametrize("with_one", [False, True])
def test_what_the_host_adds_where_nothing_else_of_base_is_shows_soon(
    base: Path, mounted: Mounter, *, with_one: bool
) -> None:
    (base / "d").mkdir()
    view = mounted(base_timeout_s=0.5)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    if with_one:
        (directory / "staged").touch()
    for _ in range(2):
        assert os.listdir(directory) == ["staged"] * with_one
    (base / "d/new").touch()
    wait_until(lambda: "new" in os.listdir(directory), "what the host has added")


def test_an_open_directory_lists_nothing_once_it_went_with_its_directory_of_base(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    view = mounted(base_timeout_s=0.0)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    (directory / "sub").mkdir()
    (directory / "sub/file").touch()
    held = os.open(directory / "sub", os.O_RDONLY)
    try:
        for _ in range(2):
            assert os.listdir(held) == ["file"]
        inode = view.overlay.inodes.by_number[os.fstat(held).st_ino]
        assert view.mount.loop.call(view.handlers.listings.find, inode) is not None
        (base / "d").rmdir()
        directory.mkdir()  # in its place, with nothing in it
        assert view.mount.loop.call(view.handlers.listings.find, inode) is None
        assert os.listdir(held) == []
    finally:
        os.close(held)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names below ``d`` that were looked up in base, by their paths or by a directory that is
    held for a moment.
    """
    names: set[str] = set()
    found, known_fd = Base._unhidden, HeldDirectories.known_fd

    def note(rel: bytes) -> None:
        place, name = os.path.split(os.fsdecode(rel))
        if place == "d":
            names.add(name)

    def noting(base: Base, st: os.stat_result, rel: bytes) -> os.stat_result:
        note(rel)
        return found(base, st, rel)

    def noting_held(held: HeldDirectories, source: RelPath) -> int | None:
        fd = known_fd(held, source)
        if fd is not None:
            note(source)
        return fd

    monkeypatch.setattr(Base, "_unhidden", noting)
    monkeypatch.setattr(HeldDirectories, "known_fd", noting_held)
    return names


@pytest.mark.parametrize("base_timeout_s", [1.0, LONG_S])
@core_in_python
def test_a_warm_listing_looks_nothing_up(base: Path, mounted: Mounter, asked: set[str], base_timeout_s: float) -> None:
    fill(base)
    (base / "d/hard").unlink()  # the other name of a file with two could be changed anywhere
    view = mounted(base_timeout_s=base_timeout_s)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    expected = look(directory)
    end = time.monotonic() + DEADLINE_S
    while True:  # somebody else may have the kernel forget everything in between, or it may take too long
        asked.clear()
        assert look(directory) == expected
        if not asked:
            break
        assert time.monotonic() < end


@core_in_python
def test_only_changed_names_of_a_kept_listing_are_looked_up(base: Path, mounted: Mounter, asked: set[str]) -> None:
    fill(base)
    view = mounted(base_timeout_s=LONG_S)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"

    def looked_up_after(change: Callable[[], object]) -> set[str]:
        change()
        asked.clear()
        look(directory)
        return set(asked)

    with what_it_knows_stays():
        names = set(look(directory))
        assert looked_up_after(lambda: None) == set()
        assert looked_up_after((directory / "b").touch) == (set() if IS_DIRECT else {"b"})  # the kernel keeps names
        assert looked_up_after(lambda: (directory / "c").write_text("anew")) == set()  # it is the store's by now
        assert looked_up_after((directory / "sub/new").touch) == {"sub"}
        assert looked_up_after(view.snapshot) == set()
        looked_up = looked_up_after((directory / "a").unlink)
        assert looked_up == (names if IS_DIRECT else names - {"a", "c"})  # its subdirectories are counted just now


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may have the kernel forget what it knows")
@core_in_python
def test_a_listing_is_told_again_whatever_else_the_kernel_forgets(
    base: Path, mounted: Mounter, asked: set[str]
) -> None:
    fill(base)
    (base / "apart").mkdir()
    (base / "apart/f").touch()
    view = mounted(base_timeout_s=LONG_S)
    top = Path(os.fsdecode(view.mountpoint))
    held = [os.open(top / "d" / name, os.O_PATH | os.O_NOFOLLOW) for name in os.listdir(base / "d")]
    try:
        end = time.monotonic() + DEADLINE_S
        while True:  # somebody else may be at it, too
            expected = look(top / "d")
            forgotten = base.joinpath("apart/f").stat().st_ino
            with what_it_knows_stays():
                (top / "apart/f").lstat()
                assert forgotten in view.overlay.inodes.by_number
            while forgotten in view.overlay.inodes.by_number:
                assert time.monotonic() < end
                have_the_kernel_forget()
                time.sleep(0.05)
            asked.clear()
            assert look(top / "d") == expected
            if not asked:
                break
            assert time.monotonic() < end
    finally:
        for fd in held:
            os.close(fd)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may have the kernel forget what it knows")
def test_every_look_up_by_a_listing_is_counted(base: Path, mounted: Mounter) -> None:
    fill(base)
    view = mounted(base_timeout_s=LONG_S)
    directory = Path(os.fsdecode(view.mountpoint)) / "d"
    for _ in range(20):
        look(directory)
    known = len(view.inodes())
    assert known > len(os.listdir(base / "d"))

    def is_all_forgotten() -> bool:
        have_the_kernel_forget()
        return len(view.inodes()) <= 2  # the root, and the directory that a listing may have looked up again

    wait_until(is_all_forgotten, "the kernel to forget all")
    assert look(directory) == look(base / "d")
    shutil.rmtree(directory)
    assert not directory.exists()
