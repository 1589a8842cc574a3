"""Hard links between base files stay what they are: on copy-up, over snapshot, travel, remount,
commit and abort.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mount.hard_links import NAMES, ORDERS, Links, Mounter
from yolofs.changes.changes import compare
from yolofs.paths import RelPath
from yolofs.state.tree import Tree

pytestmark = pytest.mark.mount


@pytest.mark.parametrize("written", NAMES)
def test_a_write_through_one_name_shows_under_those_never_looked_up(links: Links, written: str) -> None:
    (links.root / written).write_bytes(b"view")
    links.check(b"view", *NAMES)
    assert (links.base / "one").read_bytes() == b"base"


def test_hard_links_share_their_metadata(links: Links) -> None:
    os.utime(links.root / "d/two", ns=(5, 10**18 + 7))
    (links.root / "one").chmod(0o640)
    for name in NAMES:
        st = (links.root / name).stat()
        assert (st.st_mode & 0o777, st.st_mtime_ns) == (0o640, 10**18 + 7)
    links.check(b"base", *NAMES)
    links.view.commit()
    assert {(links.base / name).stat().st_mode & 0o777 for name in NAMES} == {0o640}
    links.check_base(b"base", *NAMES)


def test_hard_links_stay_one_file_over_snapshots_travels_and_remounts(links: Links) -> None:
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


def test_a_travel_shows_under_all_names_what_was_written_through_any(links: Links) -> None:
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


def test_a_file_stays_one_while_its_names_come_go_and_move(links: Links) -> None:
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


def test_other_names_stay_when_the_directory_of_the_only_looked_up_one_goes(links: Links) -> None:
    (links.root / "d/two").write_bytes(b"view")
    shutil.rmtree(links.root / "d")
    links.check(b"view", "one", "far/away/three")
    links.view.remount()
    links.view.commit()
    assert not (links.base / "d").exists()
    links.check_base(b"view", "one", "far/away/three")


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
def test_files_of_other_disks_with_the_same_numbers_are_told_apart(base: Path, mounted: Mounter) -> None:
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


def test_the_list_of_changes_has_all_names_of_a_file(links: Links) -> None:
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


@pytest.mark.parametrize("change", ["chmod", "append", "link", "utime"])
@pytest.mark.parametrize("looked", ORDERS)
@pytest.mark.some(6)
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


def test_an_abort_shows_what_base_has_at_names_that_were_renamed_over(links: Links) -> None:
    """Also to the kernel, to which the name has shown two files by then: its own, and the one put
    there.
    """
    (links.base / "other").write_bytes(b"other")
    (links.base / "d/other").hardlink_to(links.base / "other")
    for name in (*NAMES[:2], "other", "d/other"):
        (links.root / name).stat()
    (links.root / "other").rename(links.root / "one")
    assert (links.root / "one").read_bytes() == b"other"
    links.view.abort()
    links.check(b"base", *NAMES)
    assert {(links.root / name).read_bytes() for name in ("other", "d/other")} == {b"other"}
