"""Hard links between base files stay what they are: on copy-up, over snapshot, travel, remount, commit and abort."""

from __future__ import annotations

import itertools
import mmap
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import wait_until
from tests.mount.in_process import MountedView
from yolofs.changes import Change, compare
from yolofs.paths import RelPath
from yolofs.tree import Tree

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]

NAMES = ("one", "d/two", "far/away/three")
"""Of one file, in base."""


class Links:
    """A view of a base with one file under three names, and one that has a single name beside it."""

    def __init__(self, base: Path, mounted: Mounter) -> None:
        self.base = base
        (base / "d").mkdir()
        (base / "far/away").mkdir(parents=True)
        (base / "one").write_bytes(b"base")
        (base / "single").write_bytes(b"single")
        for name in NAMES[1:]:
            (base / name).hardlink_to(base / "one")
        self.number = (base / "one").stat().st_ino
        self.view = mounted(base_timeout_s=0.0)
        self.root = Path(os.fsdecode(self.view.mountpoint))

    def check(self, content: bytes, *names: str, nlink: int | None = None) -> None:
        """These names are one file with this content; it has as many links as there are names, unless told."""
        for name in reversed(names):
            st = (self.root / name).stat()
            assert (self.root / name).read_bytes() == content, name
            assert (st.st_ino, st.st_nlink) == (self.number, len(names) if nlink is None else nlink), name

    def check_base(self, content: bytes, *names: str) -> None:
        """In base, these names are one file, and it has no other names."""
        numbers = {(self.base / name).stat().st_ino for name in names}
        assert len(numbers) == 1
        for name in names:
            assert (self.base / name).read_bytes() == content, name
            assert (self.base / name).stat().st_nlink == len(names)

    def changes(self) -> list[Change]:
        return self.view.mount.call(
            lambda: compare(Tree(), self.view.session.state(), self.view.session.base, self.view.session.store)
        )

    def letters(self) -> list[tuple[str, str]]:
        return [(change.kind.value, os.fsdecode(change.path)) for change in self.changes() if change.path != b"d"]


@pytest.fixture
def links(base: Path, mounted: Mounter) -> Links:
    return Links(base, mounted)


@pytest.mark.parametrize("written", NAMES)
def test_a_write_through_one_name_shows_under_those_never_looked_up(links: Links, written: str) -> None:
    (links.root / written).write_bytes(b"view")
    links.check(b"view", *NAMES)
    assert (links.base / "one").read_bytes() == b"base"


def test_writes_show_at_once_through_handles_of_other_names(links: Links) -> None:
    with (links.root / "d/two").open("r+b", buffering=0) as two, (links.root / "one").open("r+b", buffering=0) as one:
        one.write(b"AB")
        assert os.pread(two.fileno(), 10, 0) == b"ABse"
        os.pwrite(two.fileno(), b"!", 3)
        assert os.pread(one.fileno(), 10, 0) == b"ABs!"
        assert os.fstat(one.fileno()) == os.fstat(two.fileno())
    links.check(b"ABs!", *NAMES)


def test_metadata_is_shared_too(links: Links) -> None:
    os.utime(links.root / "d/two", ns=(5, 10**18 + 7))
    (links.root / "one").chmod(0o640)
    for name in NAMES:
        st = (links.root / name).stat()
        assert (st.st_mode & 0o777, st.st_mtime_ns) == (0o640, 10**18 + 7)
    links.check(b"base", *NAMES)
    links.view.commit()
    assert {(links.base / name).stat().st_mode & 0o777 for name in NAMES} == {0o640}
    links.check_base(b"base", *NAMES)


def test_over_snapshots_travels_and_remounts(links: Links) -> None:
    first = links.view.snapshot()
    (links.root / "one").write_bytes(b"view")
    second = links.view.snapshot()
    (links.root / "far/away/three").write_bytes(b"later")
    links.check(b"later", *NAMES)
    links.view.remount()
    links.check(b"later", *NAMES)
    links.view.travel(first)
    links.check(b"base", *NAMES)
    links.view.travel(second)
    links.check(b"view", *NAMES)
    links.view.remount()
    (links.root / "d/two").write_bytes(b"again")
    links.check(b"again", *NAMES)
    links.view.travel(second)
    links.check(b"view", *NAMES)
    links.view.travel(0)
    links.check(b"base", *NAMES)


def test_over_a_travel_where_each_state_was_written_through_another_name(links: Links) -> None:
    (links.root / "one").write_bytes(b"first")
    first = links.view.snapshot()
    links.view.travel(0)
    (links.root / "d/two").write_bytes(b"second")
    links.check(b"second", *NAMES)
    second = links.view.snapshot()
    links.view.travel(first)
    links.check(b"first", *NAMES)
    links.view.travel(second)
    links.check(b"second", *NAMES)


@pytest.mark.parametrize("remounts", [False, True])
def test_a_commit_reaches_the_names_that_were_never_looked_up(links: Links, remounts: bool) -> None:
    (links.root / "d/two").write_bytes(b"view")
    if remounts:
        links.view.remount()
    links.view.commit()
    links.check_base(b"view", *NAMES)
    assert (links.base / "one").stat().st_ino == links.number
    links.check(b"view", *NAMES)


def test_an_abort_brings_base_back_under_all_names(links: Links) -> None:
    (links.root / "d/two").write_bytes(b"view")
    (links.root / "one").unlink()
    links.check(b"view", "d/two", "far/away/three")
    links.view.abort()
    links.check(b"base", *NAMES)


def test_names_that_go_come_and_move(links: Links) -> None:
    (links.root / "one").unlink()
    links.check(b"base", "d/two", "far/away/three")
    (links.root / "far").rename(links.root / "near")
    (links.root / "near/away/three").write_bytes(b"view")
    links.check(b"view", "d/two", "near/away/three")
    (links.root / "d/new").hardlink_to(links.root / "d/two")
    links.check(b"view", "d/two", "near/away/three", "d/new")
    (links.root / "d/two").rename(links.root / "moved")
    (links.root / "single").rename(links.root / "near/away/three")  # replaces a name
    links.check(b"view", "moved", "d/new")
    links.view.remount()
    links.check(b"view", "moved", "d/new")
    (links.root / "moved").write_bytes(b"last")
    links.view.commit()
    links.check_base(b"last", "moved", "d/new")
    assert (links.base / "near/away/three").read_bytes() == b"single"
    assert not (links.base / "one").exists()
    links.check(b"last", "moved", "d/new")


def test_an_atomic_save_over_one_name_leaves_the_others(links: Links) -> None:
    (links.root / ".one.tmp").write_bytes(b"saved")
    (links.root / ".one.tmp").rename(links.root / "one")
    links.check(b"base", "d/two", "far/away/three")
    assert (links.root / "one").stat().st_nlink == 1
    assert (links.root / "one").stat().st_ino != links.number
    (links.root / "d/two").write_bytes(b"view")
    links.view.commit()
    links.check_base(b"view", "d/two", "far/away/three")
    assert (links.base / "one").read_bytes() == b"saved"


def test_a_rename_onto_another_name_of_the_file_does_nothing(links: Links) -> None:
    (links.root / "one").rename(links.root / "d/two")
    links.check(b"base", *NAMES)
    (links.root / "one").write_bytes(b"view")
    (links.root / "far/away/three").rename(links.root / "one")
    links.check(b"view", *NAMES)


def test_a_directory_of_the_only_looked_up_name_goes(links: Links) -> None:
    (links.root / "d/two").write_bytes(b"view")
    shutil.rmtree(links.root / "d")
    links.check(b"view", "one", "far/away/three")
    links.view.remount()
    links.view.commit()
    assert not (links.base / "d").exists()
    links.check_base(b"view", "one", "far/away/three")


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
def test_so_it_does_after_a_commit_in_between(links: Links, is_written_before: bool) -> None:
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


def test_so_it_does_if_the_commit_leaves_the_file_a_single_name(links: Links) -> None:
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


def test_metadata_through_a_handle_whose_name_is_gone(links: Links) -> None:
    with (links.root / "one").open("rb") as held:
        (links.root / "one").unlink()
        os.fchmod(held.fileno(), 0o600)
        links.check(b"base", "d/two", "far/away/three")
    links.view.remount()
    links.view.commit()
    assert (links.base / "d/two").stat().st_mode & 0o777 == 0o600
    links.check_base(b"base", "d/two", "far/away/three")


def test_all_names_gone_while_open(links: Links) -> None:
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


def test_symbolic_links_and_fifos_have_hard_links_too(base: Path, mounted: Mounter) -> None:
    (base / "link").symlink_to("nowhere")
    os.mkfifo(base / "fifo")
    for name in ("link", "fifo"):
        os.link(base / name, base / f"{name}2", follow_symlinks=False)
    view = mounted(base_timeout_s=0.0)
    root = Path(os.fsdecode(view.mountpoint))
    for name in ("link", "fifo"):
        os.utime(root / name, ns=(0, 10**18), follow_symlinks=False)
        (root / f"{name}2").rename(root / f"{name}3")
        assert (root / f"{name}3").lstat() == (root / name).lstat()
        assert (root / f"{name}3").lstat().st_nlink == 2
    view.commit()
    for name in ("link", "fifo"):
        assert (base / name).lstat() == (base / f"{name}3").lstat()
        assert (base / name).lstat().st_mtime_ns == 10**18


def test_names_outside_of_base_count_and_are_committed_with_the_file(base: Path, mounted: Mounter) -> None:
    outside = base.parent / "outside"
    outside.write_bytes(b"base")
    (base / "in").hardlink_to(outside)
    view = mounted(base_timeout_s=0.0)
    root = Path(os.fsdecode(view.mountpoint))
    (root / "in").write_bytes(b"view")
    assert (root / "in").stat().st_nlink == 2
    assert outside.read_bytes() == b"base"
    view.commit()
    assert outside.read_bytes() == b"view"
    assert outside.stat().st_ino == (base / "in").stat().st_ino


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount other disks")
def test_files_of_other_disks_below_base_with_the_same_numbers(base: Path, mounted: Mounter) -> None:
    disks = [base / "disk1", base / "disk2"]
    try:
        for disk in disks:
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
            (disk / "one").write_text(disk.name)
            (disk / "two").hardlink_to(disk / "one")
        assert (disks[0] / "one").stat().st_ino == (disks[1] / "one").stat().st_ino
        view = mounted(base_timeout_s=0.0)
        root = Path(os.fsdecode(view.mountpoint))
        for disk in disks:
            (root / disk.name / "two").write_text(f"view of {disk.name}")
        for _ in range(2):
            for disk in disks:
                assert (root / disk.name / "one").read_text() == f"view of {disk.name}"
                assert (root / disk.name / "one").stat() == (root / disk.name / "two").stat()
                assert (root / disk.name / "one").stat().st_nlink == 2
            assert len({(root / disk.name / "one").stat().st_ino for disk in disks}) == 2
            view.remount()
        view.commit()
        for disk in disks:
            assert (disk / "one").read_text() == f"view of {disk.name}"
            assert (disk / "one").stat() == (disk / "two").stat()
    finally:
        for disk in disks:
            subprocess.run(["umount", "-l", disk], check=False)


def test_what_the_host_puts_in_the_place_of_a_name_is_not_the_staged_file(links: Links) -> None:
    (links.root / "one").write_bytes(b"view")
    (links.base / "d/two").unlink()
    (links.base / "d/two").write_bytes(b"host")
    assert (links.root / "d/two").read_bytes() == b"host"
    assert (links.root / "one").read_bytes() == (links.root / "far/away/three").read_bytes() == b"view"


def test_the_place_of_the_copy_up_may_be_taken_by_the_host(links: Links) -> None:
    (links.root / "one").write_bytes(b"view")
    (links.base / "one").unlink()
    assert (links.root / "far/away/three").read_bytes() == b"view"
    (links.base / "one").write_bytes(b"host")
    assert (links.root / "far/away/three").read_bytes() == b"view"
    assert (links.root / "one").read_bytes() == b"view"


def test_a_number_that_the_host_used_again_shows_the_new_file(base: Path, mounted: Mounter) -> None:
    (base / "one").write_bytes(b"base")
    (base / "two").hardlink_to(base / "one")
    number = (base / "one").stat().st_ino
    view = mounted(base_timeout_s=0.0)
    root = Path(os.fsdecode(view.mountpoint))
    (root / "one").write_bytes(b"view")
    (base / "one").unlink()
    (base / "two").unlink()
    for attempt in range(100):
        made = base / f"made{attempt}"
        made.write_bytes(b"made by the host")
        if made.stat().st_ino == number:
            break
    else:
        pytest.skip("this filesystem does not use numbers again")
    (base / "other").hardlink_to(made)
    assert (root / "other").read_bytes() == (root / made.name).read_bytes() == b"made by the host"
    assert (root / "one").read_bytes() == b"view"


def test_changes_name_all_names(links: Links) -> None:
    (links.root / "one").write_bytes(b"view")
    assert links.letters() == [("M", name) for name in sorted(NAMES)]
    assert {change.unseen_names for change in links.changes()} == {0}
    (links.root / "d").rename(links.root / "e")
    (links.root / "far/away/three").unlink()
    (links.root / "one").rename(links.root / "moved")
    found = {(change.kind.value, change.path, change.old_path, change.content) for change in links.changes()}
    assert found == {
        ("R", b"e", b"d", False),
        ("M", b"e/two", b"d/two", True),
        ("D", b"far/away/three", None, False),
        ("R", b"moved", b"one", True),
    }


def test_changes_count_the_names_that_they_do_not_find(base: Path, mounted: Mounter) -> None:
    outside = base.parent / "outside"
    outside.write_bytes(b"base")
    (base / "in").hardlink_to(outside)
    view = mounted()
    (Path(os.fsdecode(view.mountpoint)) / "in").write_bytes(b"view")
    session = view.session
    (change,) = view.mount.call(lambda: compare(Tree(), session.state(), session.base, session.store))
    assert (change.kind.value, change.path, change.unseen_names) == ("M", RelPath(b"in"), 1)


def test_rsync_and_tar_carry_the_links_out_of_the_view(links: Links, tmp_path: Path) -> None:
    (links.root / "d/two").write_bytes(b"view")
    for tool in ("rsync", "tar"):
        target = tmp_path / tool
        target.mkdir()
        if tool == "rsync":
            subprocess.run(["rsync", "-aH", f"{links.root}/", f"{target}/"], check=True)
        else:
            archive = subprocess.run(["tar", "-C", links.root, "-c", "."], check=True, capture_output=True).stdout
            subprocess.run(["tar", "-C", target, "-x"], input=archive, check=True)
        stats = [(target / name).stat() for name in NAMES]
        assert {(st.st_ino, st.st_nlink) for st in stats} == {(stats[0].st_ino, 3)}
        assert (target / "one").read_bytes() == b"view"


def test_tar_and_rsync_bring_links_into_the_view(links: Links, tmp_path: Path) -> None:
    archive = subprocess.run(["tar", "-C", links.root, "-c", "."], check=True, capture_output=True).stdout
    for tool in ("rsync", "tar"):
        target = links.root / tool
        target.mkdir()
        if tool == "rsync":
            sources = [f"{links.root}/{name}" for name in ("one", "d", "far")]
            subprocess.run(["rsync", "-aH", *sources, f"{target}/"], check=True)
        else:
            subprocess.run(["tar", "-C", target, "-x"], input=archive, check=True)
        links.view.remount()
        stats = [(target / name).stat() for name in NAMES]
        assert {(st.st_ino, st.st_nlink) for st in stats} == {(stats[0].st_ino, 3)}
    subprocess.run(["tar", "-C", links.root, "-x", "--overwrite"], input=archive, check=True)
    links.check(b"base", *NAMES)
    links.view.commit()
    links.check_base(b"base", *NAMES)
    for tool in ("rsync", "tar"):
        assert len({(links.base / tool / name).stat().st_ino for name in NAMES}) == 1


def test_a_link_to_a_handle_whose_name_is_gone(links: Links) -> None:
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
    # An inode was known by that name, too, when the commit looked for what is at the names that it was seen by.
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


ORDERS = (("one", "d/two"), ("d/two", "one"), ())
"""In which two names are looked at before one of them is renamed; by none the kernel knows the file."""


@pytest.mark.parametrize("change", ["chmod", "append", "link", "utime"])
@pytest.mark.parametrize("looked", ORDERS)
def test_the_name_that_was_renamed_is_the_one_that_moves(links: Links, looked: tuple[str, ...], change: str) -> None:
    for name in looked:
        (links.root / name).stat()
    moved = links.root / "d/moved"
    (links.root / "one").rename(moved)
    expected = ["d/moved", "d/two", "far/away/three"]
    match change:
        case "chmod":
            moved.chmod(0o600)
        case "append":
            with moved.open("ab") as file:
                file.write(b"+")
        case "link":
            (links.root / "linked").hardlink_to(moved)
            expected.append("linked")
        case "utime":
            os.utime(moved, ns=(5, 5))
    content = b"base+" if change == "append" else b"base"
    links.check(content, *expected)
    links.view.remount()
    links.check(content, *expected)
    links.view.commit()
    links.check_base(content, *expected)
    links.check(content, *expected)


@pytest.mark.parametrize("looked", ORDERS)
def test_two_names_may_move_and_so_may_the_directory_of_the_third(links: Links, looked: tuple[str, ...]) -> None:
    for name in looked:
        (links.root / name).stat()
    (links.root / "d/two").rename(links.root / "two")
    (links.root / "far").rename(links.root / "d/far")
    (links.root / "one").rename(links.root / "d/one")
    (links.root / "d/one").chmod(0o600)
    links.check(b"base", "two", "d/one", "d/far/away/three")
    links.view.commit()
    links.check_base(b"base", "two", "d/one", "d/far/away/three")


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


def test_an_abort_shows_what_base_has_at_names_that_were_renamed_over(links: Links) -> None:
    """Also to the kernel, which knows the file that was put there by that name, and the other one did before."""
    (links.base / "other").write_bytes(b"other")
    (links.base / "d/other").hardlink_to(links.base / "other")
    for name in (*NAMES[:2], "other", "d/other"):
        (links.root / name).stat()
    (links.root / "other").rename(links.root / "one")
    assert (links.root / "one").read_bytes() == b"other"
    links.view.abort()
    links.check(b"base", *NAMES)
    assert {(links.root / name).read_bytes() for name in ("other", "d/other")} == {b"other"}
