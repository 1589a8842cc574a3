"""A file with hard links that is held open follows its names, and outlives the one that it was
opened by.
"""

from __future__ import annotations

import itertools
import mmap
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mount.hard_links import NAMES, ORDERS, Links, Mounter
from tests.support.program import wait_until

pytestmark = pytest.mark.mount


def test_writes_show_at_once_through_handles_of_other_names(links: Links) -> None:
    with (links.root / "d/two").open("r+b", buffering=0) as two, (links.root / "one").open("r+b", buffering=0) as one:
        one.write(b"AB")
        assert os.pread(two.fileno(), 10, 0) == b"ABse"
        os.pwrite(two.fileno(), b"!", 3)
        assert os.pread(one.fileno(), 10, 0) == b"ABs!"
        assert os.fstat(one.fileno()) == os.fstat(two.fileno())
    links.check(b"ABs!", *NAMES)


@pytest.mark.parametrize("how", ["unlink", "replace", "rmtree"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_write_through_a_handle_whose_name_is_gone_reaches_the_others(links: Links, how: str, is_late: bool) -> None:
    with (links.root / "d/two").open("r+b", buffering=0) as held:
        if not is_late:
            held.write(b"12")
        match how:
            case "unlink":
                (links.root / "d/two").unlink()
            case "replace":
                (links.root / "single").rename(links.root / "d/two")
            case _:
                shutil.rmtree(links.root / "d")
        links.view.snapshot()
        os.pwrite(held.fileno(), b"view", 0)
        assert os.fstat(held.fileno()).st_nlink == 2
        assert os.fstat(held.fileno()).st_ino == links.number
        links.check(b"view", "one", "far/away/three")
        os.pwrite(held.fileno(), b"V", 0)
    links.check(b"View", "one", "far/away/three")
    links.view.remount()
    links.check(b"View", "one", "far/away/three")
    links.view.remount()  # nothing of it is looked up before the commit
    links.view.commit()
    links.check_base(b"View", "one", "far/away/three")


@pytest.mark.parametrize("is_written_before", [False, True])
def test_a_write_through_a_handle_whose_name_is_gone_reaches_the_others_after_a_commit(
    links: Links, is_written_before: bool
) -> None:
    with (links.root / "d/two").open("r+b", buffering=0) as held:
        (links.root / "d/two").unlink()
        if is_written_before:
            held.write(b"first")
        links.view.commit()
        assert (os.fstat(held.fileno()).st_nlink, os.fstat(held.fileno()).st_ino) == (2, links.number)
        os.pwrite(held.fileno(), b"view", 0)
        os.ftruncate(held.fileno(), 4)
        links.check(b"view", "one", "far/away/three")
    links.view.remount()
    links.view.commit()
    links.check_base(b"view", "one", "far/away/three")


def test_a_write_through_a_handle_whose_name_is_gone_reaches_the_single_name_that_a_commit_leaves(links: Links) -> None:
    (links.base / "single").rename(links.base / "last")
    (links.base / "gone").hardlink_to(links.base / "last")
    with (links.root / "gone").open("r+b", buffering=0) as held:
        (links.root / "gone").unlink()
        number = (links.root / "last").stat().st_ino
        links.view.commit()
        assert (os.fstat(held.fileno()).st_nlink, os.fstat(held.fileno()).st_ino) == (1, number)
        os.pwrite(held.fileno(), b"view", 0)
        assert (links.root / "last").read_bytes() == b"viewle"
    links.view.commit()
    assert (links.base / "last").read_bytes() == b"viewle"


def test_metadata_set_through_a_handle_whose_name_is_gone_reaches_the_others(links: Links) -> None:
    with (links.root / "one").open("rb") as held:
        (links.root / "one").unlink()
        os.fchmod(held.fileno(), 0o600)
        links.check(b"base", "d/two", "far/away/three")
    links.view.remount()
    links.view.commit()
    assert (links.base / "d/two").stat().st_mode & 0o777 == 0o600
    links.check_base(b"base", "d/two", "far/away/three")


def test_an_open_file_all_of_whose_names_are_gone_keeps_its_content(links: Links) -> None:
    with (links.root / "one").open("r+b", buffering=0) as held:
        for name in NAMES:
            (links.root / name).unlink()
        assert os.fstat(held.fileno()).st_nlink == 0
        held.write(b"AB")
        assert os.pread(held.fileno(), 10, 0) == b"ABse"
    links.view.commit()
    assert not any((links.base / name).exists() for name in NAMES)


def test_a_file_kept_open_follows_its_names_over_a_travel(links: Links) -> None:
    with (links.root / "one").open("rb", buffering=0) as held:
        (links.root / "one").rename(links.root / "moved")
        moved = links.view.snapshot()
        links.check(b"base", "moved", *NAMES[1:])
        links.view.travel(0)
        links.check(b"base", *NAMES)
        links.view.travel(moved)
        links.check(b"base", "moved", *NAMES[1:])
        assert held.read() == b"base"
        assert os.fstat(held.fileno()).st_nlink == 3


def test_a_held_file_is_what_base_has_after_a_travel_to_before_its_directory_was_renamed(links: Links) -> None:
    """One of its names lies deeper than that by which it was seen last."""
    (links.root / "far/away/three").write_bytes(b"staged")
    held = os.open(links.root / "far/away/three", os.O_PATH)
    try:
        (links.root / "top").hardlink_to(links.root / "far/away/three")
        (links.root / "far").rename(links.root / "d/moved")
        links.view.travel(0)
        assert Path(f"/proc/self/fd/{held}").read_bytes() == b"base"
        links.check(b"base", *NAMES)
    finally:
        os.close(held)


def test_a_handle_whose_name_is_gone_can_be_linked_again(links: Links) -> None:
    fd = os.open(links.root / "one", os.O_RDONLY)
    try:
        (links.root / "one").unlink()
        subprocess.run(["ln", "-L", f"/proc/{os.getpid()}/fd/{fd}", links.root / "back"], check=True)
    finally:
        os.close(fd)
    links.check(b"base", "back", "d/two", "far/away/three")
    links.view.commit()
    links.check_base(b"base", "back", "d/two", "far/away/three")


def direct(fd: int) -> bytes:
    """Read what the view has now, whatever the kernel has cached."""
    with mmap.mmap(-1, mmap.PAGESIZE) as aligned:
        return aligned[: os.preadv(fd, [aligned], 0)]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        *itertools.product(["rename", "two renames", "host"], [("h1", "h2"), ("h2", "h1")]),
        ("host, and staged", ("h2", "h1")),  # as the name that it was last seen by is where it is staged
    ],
)
def test_what_has_taken_the_place_of_a_hard_link_is_another_file_after_a_commit_too(
    base: Path, mounted: Mounter, by: str, order: tuple[str, str]
) -> None:
    # The commit looks at all names by which an inode was seen, and that name was one of them.
    (base / "h1").write_bytes(b"linked")
    os.link(base / "h1", base / "h2")
    (base / "other").write_bytes(b"other")
    view = Path(os.fsdecode((mount := mounted()).mountpoint))
    content = b"linked"
    for name in order:
        assert (view / name).read_bytes() == content
    if by == "rename":
        (view / "other").rename(view / "h2")
    elif by == "two renames":
        (view / "h2").rename(view / "h3")
        (view / "other").rename(view / "h2")
    else:
        if by == "host, and staged":
            (view / "h1").write_bytes(content := b"staged")
        (base / "other").rename(base / "h2")
        (view / "made").touch()
        wait_until(lambda: (view / "h2").stat().st_ino != (view / "h1").stat().st_ino, "the host's file")
    with open(view / "h1", "rb") as linked:
        for name in ("h2", "h1") if order == ("h1", "h2") else ("h1", "h2"):
            assert (view / name).read_bytes() == {"h1": content, "h2": b"other"}[name]
        first, second = (os.open(view / name, os.O_RDONLY | os.O_DIRECT) for name in ("h1", "h2"))
        try:
            mount.commit()
            assert (direct(first), direct(second)) == (content, b"other")
            assert (linked.read(), (view / "h1").read_bytes(), (view / "h2").read_bytes()) == (
                content,
                content,
                b"other",
            )
            assert (view / "h1").stat().st_ino != (view / "h2").stat().st_ino
        finally:
            os.close(first)
            os.close(second)
    with open(view / "h2", "ab") as file:
        file.write(b"!")
    assert ((view / "h1").read_bytes(), (view / "h2").read_bytes()) == (content, b"other!")
    mount.commit()
    assert ((base / "h1").read_bytes(), (base / "h2").read_bytes()) == (content, b"other!")


@pytest.mark.parametrize("looked", ORDERS)
def test_a_name_may_be_renamed_over_and_back_while_the_file_is_open(links: Links, looked: tuple[str, ...]) -> None:
    for name in looked:
        (links.root / name).stat()
    with (links.root / "far/away/three").open("r+b", buffering=0) as file:
        (links.root / "one").rename(links.root / "single")
        (links.root / "d/two").rename(links.root / "one")
        file.write(b"BASE")
    links.check(b"BASE", "single", "one", "far/away/three")
    links.view.commit()
    links.check_base(b"BASE", "single", "one", "far/away/three")
