"""Nothing that is done in the view reaches base, and it costs no more than it must."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.mount.kernel_memory import have_the_kernel_forget, what_it_knows_stays
from tests.support.in_process import MountedView
from tests.support.program import wait_until

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
DATE_NS = 1_000_000_000_987_654_321


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


def records(base: Path) -> list[str]:
    """The journal's lines without its header, each without time and checksum."""
    lines = (base / ".yolofs/journal").read_text(errors="surrogateescape").splitlines()[1:]
    return [" ".join(part for k, part in enumerate(line.split(" ")[:-1]) if k != 1) for line in lines]


def stored(base: Path) -> dict[str, os.stat_result]:
    return {path.name: path.lstat() for path in (base / ".yolofs/files").glob("*/*")}


def test_metadata_changes_are_staged(base: Path, mounted: Mounter) -> None:
    file = base / "f"
    file.write_bytes(b"x" * 100_000)
    file.chmod(0o644)
    before = file.lstat()
    view = mounted()
    at(view, "f").chmod(0o600)
    os.utime(at(view, "f"), ns=(DATE_NS, DATE_NS + 1))
    if os.getuid() == 0:
        os.chown(at(view, "f"), 12, 34)
    after = at(view, "f").stat()
    assert stat.S_IMODE(after.st_mode) == 0o600
    assert (after.st_atime_ns, after.st_mtime_ns) == (DATE_NS, DATE_NS + 1)
    assert after.st_size == 100_000
    if os.getuid() == 0:
        assert (after.st_uid, after.st_gid) == (12, 34)
    assert at(view, "f").read_bytes() == b"x" * 100_000
    now = file.lstat()
    assert (now.st_mode, now.st_mtime_ns, now.st_ctime_ns, now.st_uid) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_uid,
    )
    assert [kept.st_blocks for kept in stored(base).values()] == [0], "the data was copied"


def test_metadata_of_a_directory_is_staged_and_its_children_stay(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir(mode=0o755)
    (base / "d/f").write_bytes(b"x")
    view = mounted()
    at(view, "d").chmod(0o700)
    os.utime(at(view, "d"), ns=(DATE_NS, DATE_NS))
    at(view, "d/g").write_bytes(b"y")
    assert stat.S_IMODE(at(view, "d").stat().st_mode) == 0o700
    assert sorted(os.listdir(at(view, "d"))) == ["f", "g"]
    assert at(view, "d").stat().st_mtime_ns != DATE_NS
    os.utime(at(view, "d"), ns=(DATE_NS, DATE_NS))
    assert at(view, "d").stat().st_mtime_ns == DATE_NS
    view.remount()
    assert at(view, "d").stat().st_mtime_ns == DATE_NS
    assert stat.S_IMODE((base / "d").stat().st_mode) == 0o755
    assert os.listdir(base / "d") == ["f"]


def test_data_follows_when_a_file_with_staged_metadata_is_written(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"0123456789")
    view = mounted()
    at(view, "f").chmod(0o640)
    with at(view, "f").open("r+b") as file:
        file.seek(5)
        file.write(b"X")
    assert at(view, "f").read_bytes() == b"01234X6789"
    assert stat.S_IMODE(at(view, "f").stat().st_mode) == 0o640
    assert (base / "f").read_bytes() == b"0123456789"
    view.remount()
    assert at(view, "f").read_bytes() == b"01234X6789"


def test_opening_with_o_trunc_copies_nothing(base: Path, mounted: Mounter) -> None:
    with (base / "big").open("wb") as file:
        file.truncate(1 << 40)
    view = mounted()
    at(view, "big").write_bytes(b"small")
    assert at(view, "big").read_bytes() == b"small"
    assert [kept.st_size for kept in stored(base).values()] == [5]
    assert (base / "big").stat().st_size == 1 << 40


def test_a_copy_up_keeps_holes_and_a_truncate_by_path_shortens_it(base: Path, mounted: Mounter) -> None:
    with (base / "sparse").open("wb") as file:
        file.seek(1 << 30)
        file.write(b"end")
    view = mounted()
    with at(view, "sparse").open("r+b") as file:
        file.write(b"start")
    assert at(view, "sparse").stat().st_size == (1 << 30) + 3
    assert at(view, "sparse").stat().st_blocks * 512 < 1 << 20
    os.truncate(at(view, "sparse"), 5)
    assert at(view, "sparse").read_bytes() == b"start"
    assert (base / "sparse").stat().st_size == (1 << 30) + 3


def test_a_directory_of_many_files_is_renamed_by_one_record(base: Path, mounted: Mounter) -> None:
    (base / "many").mkdir()
    for number in range(2000):
        (base / f"many/{number}").write_bytes(b"")
    view = mounted()
    assert len(os.listdir(at(view, "many"))) == 2000
    held = at(view, "many/7").open("rb")
    with held:
        at(view, "many").rename(at(view, "other"))
        (record,) = records(base)
        assert record.startswith("R many other src-was=")
        assert len(os.listdir(at(view, "other"))) == 2000
        assert not at(view, "many").exists()
        assert at(view, "other/7").stat().st_ino == os.fstat(held.fileno()).st_ino
    assert stored(base) == {}


def test_a_recreated_directory_does_not_show_the_old_ones_children(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    (base / "d/f").write_bytes(b"x")
    view = mounted()
    at(view, "d/f").unlink()
    at(view, "d").rmdir()
    at(view, "d").mkdir()
    assert os.listdir(at(view, "d")) == []
    view.remount()
    assert os.listdir(at(view, "d")) == []
    with pytest.raises(FileNotFoundError):
        at(view, "d/f").stat()


def test_temporary_files_leave_no_store_inodes(base: Path, mounted: Mounter) -> None:
    view = mounted()
    for number in range(50):
        at(view, f"t{number}").write_bytes(b"x" * 1000)
        at(view, f"t{number}").unlink()
    view.unmount()
    assert stored(base) == {}
    view._open()


@pytest.mark.parametrize(
    "name", [b"new\nline", b"sp ace", b"per%cent", b"#hash", b"\xff\xfe\x80", b"-dash", "ünïcödé".encode(), b"x" * 255]
)
def test_odd_names_survive_a_remount(base: Path, mounted: Mounter, name: bytes) -> None:
    (base / "plain").write_bytes(b"")
    view = mounted()
    path = os.path.join(view.mountpoint, name)
    with open(path, "wb") as file:
        file.write(b"content")
    os.mkdir(path[:-1] + b"D" if len(name) == 255 else path + b"D")
    view.remount()
    with open(path, "rb") as file:
        assert file.read() == b"content"
    os.rename(path, os.path.join(view.mountpoint, b"plain"))
    view.remount()
    assert at(view, "plain").read_bytes() == b"content"


def test_the_session_directory_does_not_exist_in_the_view(base: Path, mounted: Mounter) -> None:
    view = mounted()
    hidden = at(view, ".yolofs")
    assert os.listdir(at(view, ".")) == []
    for attempt in (hidden.stat, hidden.lstat, lambda: os.listdir(hidden), (hidden / "journal").read_bytes):
        with pytest.raises(FileNotFoundError):
            attempt()
    other = at(view, "other")
    other.mkdir()
    at(view, "f").write_bytes(b"")
    for refused in (
        hidden.mkdir,
        lambda: hidden.write_bytes(b""),
        lambda: hidden.symlink_to("x"),
        lambda: other.rename(hidden),
        lambda: os.link(at(view, "f"), hidden),
        lambda: os.mkfifo(hidden),
    ):
        with pytest.raises(PermissionError) as caught:
            refused()
        assert caught.value.errno == errno.EACCES
    assert at(view, ".").stat().st_nlink == 3


def test_more_files_are_open_than_the_view_has_descriptors(base: Path, mounted: Mounter) -> None:
    for number in range(40):
        (base / f"f{number}").write_bytes(b"%d" % number)
    view = mounted()
    view.mount.call(lambda: setattr(view.overlay.descriptors, "_most", 4))
    opened = [at(view, f"f{number}").open("r+b", buffering=0) for number in range(40)]
    try:
        for file in opened:
            file.seek(0, os.SEEK_END)
            file.write(b"!")
        for number, file in enumerate(opened):
            file.seek(0)
            assert file.read() == b"%d!" % number
        assert view.mount.call(lambda: len(view.overlay.descriptors._of)) <= 4
    finally:
        for file in opened:
            file.close()


def test_the_kernels_lookups_are_counted_right(base: Path, mounted: Mounter) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make the kernel forget")
    (base / "d").mkdir()
    for number in range(200):
        (base / f"d/{number}").write_bytes(b"")
    view = mounted()
    with what_it_knows_stays():
        os.listdir(at(view, "d"))
        with os.scandir(at(view, "d")) as found:
            assert sum(entry.stat().st_size for entry in found) == 0
        for number in range(100):
            at(view, f"d/n{number}").write_bytes(b"x")
            at(view, f"d/{number}").rename(at(view, f"d/r{number}"))
            at(view, f"d/n{number}").unlink()
        os.link(at(view, "d/150"), at(view, "d/link"))
        assert len(view.inodes()) > 100

    def is_all_forgotten() -> bool:
        have_the_kernel_forget()
        return [inode.number for inode in view.inodes()] == [1]

    wait_until(is_all_forgotten, "the kernel to forget all but the root")
    assert len(os.listdir(at(view, "d"))) == 201


def is_unmounted(path: Path) -> bool:
    return subprocess.run(["umount", path], check=False).returncode == 0


def test_the_session_directory_is_not_there_under_a_bind_mount_either(base: Path, mounted: Mounter) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can bind")
    (base / "other").mkdir()
    (base / "whole").mkdir()
    (base / ".yolofs").mkdir(mode=0o700)
    subprocess.run(["mount", "--bind", base, base / "whole"], check=True)
    subprocess.run(["mount", "--bind", base / ".yolofs", base / "other"], check=True)
    try:
        view = mounted()
        assert sorted(os.listdir(at(view, "whole"))) == ["other", "whole"]
        for path in ("whole/.yolofs", "other", "whole/.yolofs/journal"):
            with pytest.raises(FileNotFoundError):
                at(view, path).lstat()
    finally:
        for place in ("other", "whole"):  # the view holds a directory for some milliseconds
            wait_until(partial(is_unmounted, base / place), "the bind mount to go")
