"""Removing, emptying and measuring directories in which somebody else is at work."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.model_steps import how_many
from tests.support.overlayfs import container
from yolofs.system import busy_trees
from yolofs.system.busy_trees import Measured, empty, measure, remove_tree

pytestmark = pytest.mark.disk

FLAGS = os.O_RDONLY | os.O_DIRECTORY


@pytest.fixture
def top(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    directory = tmp_path / "top"
    directory.mkdir()
    fd = os.open(directory, FLAGS)
    yield directory, fd
    os.close(fd)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def nest(directory: Path, depth: int) -> None:
    """Make directories that lie in each other, deeper than any path reaches."""
    fd = os.open(directory, FLAGS)
    for _ in range(depth):
        os.mkdir("a" * 200, dir_fd=fd)
        below = os.open("a" * 200, FLAGS, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def empty_at(directory: Path) -> None:
    fd = os.open(directory, FLAGS)
    try:
        empty(fd)
    finally:
        os.close(fd)


def test_all_kinds_of_files_go_and_the_directory_stays(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "d/e/f").mkdir(parents=True)
    (directory / "d/e/file").write_text("x")
    (directory / "link").symlink_to("/etc")
    os.mkfifo(directory / "d/fifo")
    (directory / "loop").symlink_to("loop")
    before = open_descriptors()
    empty(fd)
    assert os.listdir(directory) == []
    assert open_descriptors() == before


def test_the_target_of_a_link_stays_when_the_tree_is_emptied(top: tuple[Path, int], tmp_path: Path) -> None:
    directory, fd = top
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("x")
    (directory / "d").mkdir()
    (directory / "d/link").symlink_to(tmp_path / "other")
    (directory / "link").symlink_to(tmp_path / "other")
    empty(fd)
    assert os.listdir(directory) == []
    assert (tmp_path / "other/file").read_text() == "x"


def test_directories_deeper_than_any_path_go(top: tuple[Path, int]) -> None:
    directory, fd = top
    nest(directory, 2_000)
    before = open_descriptors()
    empty(fd)
    assert os.listdir(directory) == []
    assert open_descriptors() == before


def test_directories_that_are_closed_to_their_owner_go(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "a/b/c").mkdir(parents=True)
    (directory / "a/b/file").write_text("x")
    for path in (directory / "a/b/c", directory / "a/b", directory / "a"):
        path.chmod(0)
    empty(fd)
    assert os.listdir(directory) == []


def test_directories_that_are_kept_stay_and_what_lies_beside_them_goes(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "x/project/inside/deeper").mkdir(parents=True)
    (directory / "x/beside").mkdir()
    (directory / "x/file").write_text("x")
    (directory / "home").mkdir()
    (directory / "project").mkdir()
    number = (directory / "x/project").stat().st_ino
    empty(fd, [b"x/project", b"home", b"gone/long/ago"])
    assert sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*")) == ["home", "x", "x/project"]
    assert (directory / "x/project").stat().st_ino == number


def test_a_link_in_the_place_of_what_is_kept_goes(top: tuple[Path, int], tmp_path: Path) -> None:
    directory, fd = top
    (tmp_path / "other/project").mkdir(parents=True)
    (tmp_path / "other/project/file").write_text("x")
    (directory / "x").symlink_to(tmp_path / "other")
    empty(fd, [b"x/project"])
    assert os.listdir(directory) == []
    assert (tmp_path / "other/project/file").read_text() == "x"


def test_names_that_come_meanwhile_go_too(top: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes a file into each of the first directories just before it is removed."""
    directory, fd = top
    for number in range(5):
        (directory / f"d{number}").mkdir()
    left, really = [3], os.rmdir

    def rmdir(path: bytes, *, dir_fd: int) -> None:
        if left[0]:
            left[0] -= 1
            os.close(os.open(path + b"/late", os.O_CREAT | os.O_WRONLY, dir_fd=dir_fd))
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    empty(fd)
    assert os.listdir(directory) == []
    assert left == [0]


def test_whoever_writes_all_the_time_is_told_of(top: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    directory, fd = top
    (directory / "d").mkdir()
    really = os.rmdir

    def rmdir(path: bytes, *, dir_fd: int) -> None:
        os.close(os.open(path + b"/late", os.O_CREAT | os.O_WRONLY, dir_fd=dir_fd))
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(OSError, match="all the time") as told:
        empty(fd)
    assert told.value.errno == errno.ENOTEMPTY


def test_a_directory_that_is_exchanged_for_a_link_all_the_time_leads_nowhere(
    top: tuple[Path, int], tmp_path: Path
) -> None:
    directory, fd = top
    other = tmp_path / "other"
    other.mkdir()
    for number in range(50):
        (other / f"file{number}").write_text("x")
    is_over = threading.Event()

    def exchange() -> None:
        while not is_over.is_set():
            for name in ("d", "d/e"):
                try:
                    (directory / name).mkdir()
                    (directory / name).rename(directory / f"{name}.old")
                    (directory / name).symlink_to(other)
                    (directory / name).unlink()
                except OSError:
                    continue

    attacker = threading.Thread(target=exchange)
    attacker.start()
    try:
        for _ in range(20):
            try:
                empty(fd)
            except OSError as error:
                assert error.errno == errno.ENOTEMPTY  # noqa: PT017 - it may be told of, or not
            measure(fd, 1000)
    finally:
        is_over.set()
        attacker.join()
    empty(fd)
    assert os.listdir(directory) == []
    assert len(os.listdir(other)) == 50


@pytest.mark.root_only
def test_another_disk_is_not_entered(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "mounted").mkdir()
    (directory / "file").write_text("x")
    subprocess.run(["mount", "-t", "tmpfs", "none", directory / "mounted"], check=True)
    try:
        (directory / "mounted/file").write_text("x" * 100_000)
        assert measure(fd, 100).size_bytes < 50_000
        with pytest.raises(OSError, match="another disk") as told:
            empty(fd)
        assert (told.value.errno, told.value.filename) == (errno.EXDEV, b"mounted")
        assert (directory / "mounted/file").exists()
    finally:
        subprocess.run(["umount", directory / "mounted"], check=True)


@pytest.mark.root_only
@pytest.mark.parametrize("act", [empty_at, lambda path: remove_tree(bytes(path))], ids=["empty", "remove"])
def test_directories_of_a_containers_image_go(tmp_path: Path, act: Callable[[Path], None]) -> None:
    """Their disk renames none of them."""
    with container(tmp_path) as disk:
        disk.renew(lambda image: nest(image, 3))
        (disk.root / ("a" * 200) / "new/deep").mkdir(parents=True)
        before = open_descriptors()
        act(disk.root / ("a" * 200))
        assert [path.name for path in disk.root.rglob("*")] in ([], ["a" * 200])
        assert open_descriptors() == before


def test_what_cannot_be_removed_is_named_by_the_path_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "top/a/b").mkdir(parents=True)
    for name in ("a/b/stays", "a/b/goes", "a/goes"):
        (tmp_path / "top" / name).touch()
    really = os.unlink

    def unlink(path: bytes, *, dir_fd: int) -> None:
        if path == b"stays":
            raise OSError(errno.EIO, "it stays")
        really(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(OSError, match="it stays") as told:
        remove_tree(bytes(tmp_path / "top"))
    assert (told.value.errno, told.value.filename) == (errno.EIO, bytes(tmp_path / "top/a/b/stays"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["stays"]


@pytest.mark.parametrize("kind", ["file", "link", "directory", "deep"])
def test_what_lies_at_a_path_is_removed_and_nothing_beside_it(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "file").touch()
    if kind == "file":
        place.touch()
    elif kind == "link":
        place.symlink_to(beside)
    else:
        place.mkdir()
        (place / "link").symlink_to(beside)
        if kind == "deep":
            nest(place, 1_000)
        place.chmod(0)
    remove_tree(bytes(place))
    assert os.listdir(tmp_path) == ["beside"]
    assert os.listdir(beside) == ["file"]


def test_the_size_is_what_the_disk_has_of_it_each_file_once(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "d").mkdir()
    (directory / "d/file").write_bytes(b"x" * 40_000)
    os.link(directory / "d/file", directory / "again")
    with open(directory / "holes", "wb") as file:
        file.truncate(1 << 30)
    (directory / "link").symlink_to("/usr")
    before = open_descriptors()
    expected = sum(os.lstat(directory / name).st_blocks * 512 for name in ("d", "d/file", "holes", "link"))
    assert measure(fd, 100) == Measured(expected)
    assert 40_000 <= expected < 80_000
    assert open_descriptors() == before


def test_directories_that_do_not_count_do_not_though_what_is_in_them_does(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "x/project").mkdir(parents=True)
    assert measure(fd, 100, without=[b"x/project"]) == Measured(0)
    (directory / "x/file").write_bytes(b"x" * 4096)
    assert measure(fd, 100, without=[b"x/project"]) == Measured(os.lstat(directory / "x/file").st_blocks * 512)


def test_measuring_a_directory_stops_after_so_many_names(top: tuple[Path, int]) -> None:
    directory, fd = top
    for number in range(30):
        (directory / f"{number}").mkdir()
        (directory / f"{number}/file").write_bytes(b"x" * 4096)
    assert not measure(fd, 60).is_more
    some = measure(fd, 59)
    assert some.is_more
    assert 0 < some.size_bytes < measure(fd, 60).size_bytes


def test_what_lies_deep_is_not_measured_and_takes_no_descriptors(top: tuple[Path, int]) -> None:
    directory, fd = top
    nest(directory, 300)
    before = open_descriptors()
    assert measure(fd, 1_000_000).is_more
    assert open_descriptors() == before
    empty(fd)


def test_a_tree_of_very_many_files_is_emptied(top: tuple[Path, int]) -> None:
    """By night a hundred thousand."""
    directory, fd = top
    names = range(1_000)
    for part in range(how_many(ci=10, nightly=100)):
        (directory / f"{part}").mkdir()
        here = os.open(directory / f"{part}", FLAGS)
        for name in names:
            os.mknod(f"{name}", dir_fd=here)
        os.close(here)
    assert measure(fd, 5_000).is_more
    empty(fd)
    assert os.listdir(directory) == []


def test_names_that_are_taken_already_are_passed_over(top: tuple[Path, int]) -> None:
    directory, fd = top
    (directory / "d/e").mkdir(parents=True)
    for number in range(1, 4):
        (directory / f".yolofs-removes-{os.getpid()}-{number}").mkdir()
    empty(fd)
    assert os.listdir(directory) == []
    assert busy_trees._PASSES > 1
