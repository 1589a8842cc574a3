"""Snapshots keep states, travel shows them, and running programs notice as little as possible."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


def test_a_writer_that_stays_open_across_a_snapshot_does_not_reach_into_it(base: Path, mounted: Mounter) -> None:
    view = mounted()
    file = at(view, "log")
    with file.open("wb", buffering=0) as writer:
        writer.write(b"one\n")
        first = view.snapshot()
        writer.write(b"two\n")
        second = view.snapshot()
        writer.write(b"three\n")
    assert file.read_bytes() == b"one\ntwo\nthree\n"
    view.travel(first)
    assert file.read_bytes() == b"one\n"
    view.travel(second)
    assert file.read_bytes() == b"one\ntwo\n"
    assert list(base.iterdir()) == [base / ".yolofs"]


def test_writing_after_a_travel_leaves_the_generation_that_one_came_from(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"base")
    view = mounted()
    at(view, "f").write_bytes(b"first")
    first = view.snapshot()
    at(view, "f").write_bytes(b"second")
    second = view.snapshot()
    view.travel(first)
    with at(view, "f").open("r+b") as file:
        file.write(b"FI")
    branch = view.snapshot()
    for generation, content in ((first, b"first"), (second, b"second"), (branch, b"FIrst"), (0, b"base")):
        view.travel(generation)
        assert at(view, "f").read_bytes() == content
    assert (base / "f").read_bytes() == b"base"


def test_travel_snapshots_what_is_not_snapshotted(mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"unsaved")
    view.travel(0)
    assert not at(view, "f").exists()
    view.travel("-")
    assert at(view, "f").read_bytes() == b"unsaved"


def test_an_open_file_keeps_the_content_it_was_opened_with_across_a_travel(mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"old content")
    old = view.snapshot()
    at(view, "f").write_bytes(b"new")
    view.snapshot()
    with at(view, "f").open("rb") as opened:
        view.travel(old)
        assert at(view, "f").read_bytes() == b"old content"
        assert opened.read() == b"new"
        assert os.fstat(opened.fileno()).st_nlink == 0


def test_names_that_were_missing_or_there_change_at_once(mounted: Mounter) -> None:
    view = mounted()
    nothing = view.snapshot()
    at(view, "d").mkdir()
    at(view, "d/f").write_bytes(b"x")
    something = view.snapshot()
    for _ in range(3):
        view.travel(nothing)
        with pytest.raises(FileNotFoundError):
            os.stat(at(view, "d/f"))
        assert os.listdir(at(view, ".")) == []
        view.travel(something)
        assert at(view, "d/f").read_bytes() == b"x"
        assert os.listdir(at(view, "d")) == ["f"]


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_name_that_was_missing_is_there_again_though_somebody_held_on_to_it(mounted: Mounter, kind: str) -> None:
    view = mounted()
    nothing = view.snapshot()
    if kind == "directory":
        at(view, "x").mkdir()
    else:
        at(view, "x").write_bytes(b"")
    something = view.snapshot()
    held = os.open(at(view, "x"), os.O_PATH)
    try:
        for _ in range(3):
            view.travel(nothing)
            assert not at(view, "x").exists()
            view.travel(something)
            assert at(view, "x").exists()
    finally:
        os.close(held)


def test_a_longer_and_a_shorter_version_are_read_whole(mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"s" * 10)
    short = view.snapshot()
    at(view, "f").write_bytes(b"L" * 100_000)
    long = view.snapshot()
    for _ in range(2):
        view.travel(short)
        assert at(view, "f").stat().st_size == 10
        assert at(view, "f").read_bytes() == b"s" * 10
        view.travel(long)
        assert at(view, "f").stat().st_size == 100_000
        assert at(view, "f").read_bytes() == b"L" * 100_000


def test_a_working_directory_outlives_travels(mounted: Mounter) -> None:
    view = mounted()
    at(view, "d/e").mkdir(parents=True)
    at(view, "d/e/f").write_bytes(b"1")
    first = view.snapshot()
    at(view, "d/e/f").write_bytes(b"22")
    second = view.snapshot()
    before = os.getcwd()
    os.chdir(at(view, "d/e"))
    try:
        for generation, content in ((first, b"1"), (second, b"22")):
            view.travel(generation)
            assert Path("f").read_bytes() == content
            assert os.getcwd() == str(at(view, "d/e"))
    finally:
        os.chdir(before)


def test_a_working_directory_that_was_gone_or_made_anew_is_there_again(mounted: Mounter) -> None:
    view = mounted()
    at(view, "d").mkdir()
    at(view, "d/f").write_bytes(b"1")
    first = view.snapshot()
    before = os.getcwd()
    os.chdir(at(view, "d"))
    try:
        view.travel(0)
        assert os.listdir(".") == []
        view.travel(first)
        assert os.listdir(".") == ["f"]
        assert Path("f").read_bytes() == b"1"
        at(view, "d/f").unlink()
        os.chdir(at(view, "."))
        at(view, "d").rmdir()
        at(view, "d").mkdir()
        os.chdir(at(view, "d"))
        Path("g").write_bytes(b"2")
        second = view.snapshot()
        for generation, names in ((first, ["f"]), (second, ["g"]), (0, []), (first, ["f"]), (second, ["g"])):
            view.travel(generation)
            assert os.listdir(".") == names
        Path("h").write_bytes(b"3")
        assert sorted(os.listdir(at(view, "d"))) == ["g", "h"]
        assert at(view, "d").stat().st_ino == Path().stat().st_ino
    finally:
        os.chdir(before)


def test_a_working_directory_that_was_renamed_is_followed_to_its_old_name(base: Path, mounted: Mounter) -> None:
    (base / "top/a/sub").mkdir(parents=True)
    (base / "top/a/sub/f").write_bytes(b"0")
    view = mounted()
    before = os.getcwd()
    try:
        first = view.snapshot()
        at(view, "top/a").rename(at(view, "moved"))
        os.chdir(at(view, "moved/sub"))
        Path("g").write_bytes(b"1")
        second = view.snapshot()
        number = Path().stat().st_ino
        for generation, place, names in [
            (first, "top/a/sub", ["f"]),
            (second, "moved/sub", ["f", "g"]),
            (0, "top/a/sub", ["f"]),
            (second, "moved/sub", ["f", "g"]),
            (first, "top/a/sub", ["f"]),
        ]:
            view.travel(generation)
            assert sorted(os.listdir()) == names
            assert Path().stat().st_ino == number
            assert at(view, place).stat().st_ino == number
            assert os.getcwd() == str(at(view, place))
            assert Path("f").read_bytes() == b"0"
        Path("h").write_bytes(b"2")
        assert at(view, "top/a/sub/h").read_bytes() == b"2"
    finally:
        os.chdir(before)


def test_a_directory_that_another_had_taken_the_place_of_is_one_again_after_a_travel(
    base: Path, mounted: Mounter
) -> None:
    """What is renamed then is what is written to."""
    (base / "one").mkdir()
    (base / "one/a").write_bytes(b"base\n")
    view = mounted()
    at(view, "one").rename(at(view, "moved"))
    at(view, "one").mkdir()
    assert os.listdir(at(view, "moved")) == ["a"]
    at(view, "moved/a").stat()
    at(view, "one").stat()
    both = view.snapshot()
    view.travel(0)
    at(view, "one").rename(at(view, "uno"))
    with at(view, "uno/a").open("ab") as file:
        file.write(b"more\n")
    assert at(view, "uno/a").read_bytes() == b"base\nmore\n"
    assert not at(view, "one").exists()
    generation = view.snapshot()
    view.travel(0)
    assert at(view, "one/a").read_bytes() == b"base\n"
    view.travel(both)
    assert os.listdir(at(view, "one")) == []
    with at(view, "moved/a").open("ab") as file:
        file.write(b"moved\n")
    at(view, "one").rename(at(view, "empty"))
    assert at(view, "moved/a").read_bytes() == b"base\nmoved\n"
    view.travel(generation)
    assert at(view, "uno/a").read_bytes() == b"base\nmore\n"


def test_a_new_directory_that_was_renamed_is_followed_to_its_old_name(mounted: Mounter) -> None:
    view = mounted()
    before = os.getcwd()
    try:
        at(view, "a/sub").mkdir(parents=True)
        at(view, "b").mkdir()
        os.chdir(at(view, "a/sub"))
        first = view.snapshot()
        at(view, "a").rename(at(view, "b/a2"))
        at(view, "b").rename(at(view, "c"))
        second = view.snapshot()
        for generation, place in [(first, "a/sub"), (second, "c/a2/sub"), (first, "a/sub")]:
            view.travel(generation)
            assert os.getcwd() == str(at(view, place))
            Path("f").write_bytes(b"x")
            assert at(view, place + "/f").read_bytes() == b"x"
            Path("f").unlink()
    finally:
        os.chdir(before)


def test_a_renamed_file_keeps_its_number_across_travels(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"x")
    view = mounted()
    at(view, "new").write_bytes(b"y")
    first = view.snapshot()
    at(view, "f").rename(at(view, "g"))
    at(view, "new").rename(at(view, "newer"))
    numbers = at(view, "g").stat().st_ino, at(view, "newer").stat().st_ino
    second = view.snapshot()
    holders = [os.open(at(view, name), os.O_PATH) for name in ("g", "newer")]
    try:
        for generation, names in [(first, ("f", "new")), (second, ("g", "newer")), (first, ("f", "new"))]:
            view.travel(generation)
            assert tuple(at(view, name).stat().st_ino for name in names) == numbers
            assert tuple(os.fstat(fd).st_ino for fd in holders) == numbers
    finally:
        for fd in holders:
            os.close(fd)


def test_a_file_that_was_gone_has_its_number_again(mounted: Mounter) -> None:
    view = mounted()
    at(view, "d").mkdir()
    at(view, "d/f").write_bytes(b"1")
    number = at(view, "d/f").stat().st_ino
    first = view.snapshot()
    for _ in range(3):
        view.travel(0)
        assert not at(view, "d").exists()
        view.travel(first)
        assert at(view, "d/f").stat().st_ino == number


MAPPER = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
mapping = mmap.mmap(fd, 8192)
os.close(fd)
for line in sys.stdin.buffer:
    mapping[0:4] = line[:4]
    print("done", flush=True)
"""
"""A process of its own: whoever waits for a page of ours while holding our interpreter lock waits
for ever.
"""


def test_shared_mappings_are_part_of_the_snapshot(mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"a" * 8192)
    command = [sys.executable, "-c", MAPPER, str(at(view, "f"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as mapper:
        assert mapper.stdin is not None
        assert mapper.stdout is not None
        generations = []
        for text in (b"map1\n", b"map2\n"):
            mapper.stdin.write(text)
            mapper.stdin.flush()
            assert mapper.stdout.readline() == b"done\n"
            generations.append(view.snapshot())
        mapper.stdin.close()
    for generation, text in zip(generations, (b"map1a", b"map2a"), strict=True):
        view.travel(generation)
        assert at(view, "f").read_bytes()[:5] == text


def test_hard_links_share_across_snapshots_and_directories(mounted: Mounter) -> None:
    view = mounted()
    at(view, "a").mkdir()
    at(view, "b").mkdir()
    at(view, "a/one").write_bytes(b"1")
    os.link(at(view, "a/one"), at(view, "b/two"))
    first = view.snapshot()
    with at(view, "b/two").open("ab") as file:
        file.write(b"2")
    assert at(view, "a/one").read_bytes() == b"12"
    assert at(view, "a/one").stat().st_ino == at(view, "b/two").stat().st_ino
    assert at(view, "a/one").stat().st_nlink == 2
    second = view.snapshot()
    view.travel(first)
    assert (at(view, "a/one").read_bytes(), at(view, "b/two").read_bytes()) == (b"1", b"1")
    view.travel(second)
    view.remount()
    assert (at(view, "a/one").read_bytes(), at(view, "b/two").read_bytes()) == (b"12", b"12")
    at(view, "a/one").unlink()
    assert at(view, "b/two").stat().st_nlink == 1


def test_inode_numbers_stay_on_copy_up_rename_and_snapshot(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"x")
    view = mounted()
    number = at(view, "f").stat().st_ino
    at(view, "f").write_bytes(b"copied up")
    assert at(view, "f").stat().st_ino == number
    view.snapshot()
    with at(view, "f").open("ab") as file:
        file.write(b"!")
    at(view, "f").rename(at(view, "g"))
    assert at(view, "g").stat().st_ino == number
    view.remount()
    assert at(view, "g").stat().st_ino == number
    assert at(view, "g").read_bytes() == b"copied up!"


def test_an_aborted_view_equals_base_while_files_are_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"base")
    view = mounted()
    with at(view, "f").open("r+b", buffering=0) as held, at(view, "new").open("wb", buffering=0) as other:
        held.write(b"BA")
        other.write(b"x")
        view.abort()
        assert at(view, "f").read_bytes() == b"base"
        assert not at(view, "new").exists()
        held.write(b"SE")
        held.seek(0)
        assert held.read() == b"BASE"
        other.write(b"y")
    assert at(view, "f").read_bytes() == b"base"
    assert (base / "f").read_bytes() == b"base"


def test_travel_to_a_generation_that_does_not_exist_is_refused(mounted: Mounter) -> None:
    from yolofs.errors import GenerationError

    view = mounted()
    with pytest.raises(GenerationError, match="no generation 7"):
        view.travel(7)


def test_an_unlinked_open_file_stays_usable_across_a_snapshot(mounted: Mounter) -> None:
    view = mounted()
    file = at(view, "f").open("w+b", buffering=0)
    with file:
        file.write(b"data")
        at(view, "f").unlink()
        view.snapshot()
        file.write(b" more")
        os.ftruncate(file.fileno(), 7)
        file.seek(0)
        assert file.read() == b"data mo"
        assert os.fstat(file.fileno()).st_nlink == 0
    with pytest.raises(FileNotFoundError):
        at(view, "f").stat()


def test_a_hard_link_that_lost_a_name_follows_a_travel(mounted: Mounter) -> None:
    view = mounted()
    at(view, "a/b").mkdir(parents=True)
    at(view, "c").mkdir()
    at(view, "a/b/one").write_bytes(b"1")
    os.link(at(view, "a/b/one"), at(view, "c/two"))
    both = view.snapshot()
    with at(view, "c/two").open("ab", buffering=0) as file:
        at(view, "c/two").unlink()
        file.write(b"2")
        assert at(view, "a/b/one").read_bytes() == b"12"
        assert os.fstat(file.fileno()).st_nlink == 1
    one = view.snapshot()
    view.travel(both)
    assert (at(view, "a/b/one").read_bytes(), at(view, "c/two").read_bytes()) == (b"1", b"1")
    view.travel(one)
    assert at(view, "a/b/one").read_bytes() == b"12"
    assert not at(view, "c/two").exists()
