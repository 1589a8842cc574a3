"""The note of what a commit has copied to another device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.commit.apply import copy_log
from yolofs.commit.apply.copy_log import Copied, ObjectByDevice
from yolofs.commit.apply.ready import looks_of
from yolofs.commit.apply.trees import copy_tree

ONE = Copied(ObjectByDevice((1, 12), 100), 1, ObjectByDevice((2, 13), 200))
OTHER = Copied(ObjectByDevice((1, 14), 0), 2, ObjectByDevice((2, 15), 0), (5, 1_700_000_000_000_000_007, 33188, 0, 9))


OLD = Copied(ObjectByDevice((1, 16), -100), 2, ObjectByDevice((2, 17), -1), (5, -5_000_000_007, 33188, 0, 9))
"""Of before 1970."""


def test_copies_are_read_in_the_order_in_which_they_were_noted(tmp_path: Path) -> None:
    copy_log.add(bytes(tmp_path), [ONE], durable=True)
    copy_log.add(bytes(tmp_path), [], durable=True)
    copy_log.add(bytes(tmp_path), [OTHER, OLD, ONE], durable=False)
    assert copy_log.read(bytes(tmp_path)) == [ONE, OTHER, OLD, ONE]


def test_without_a_note_nothing_was_copied(tmp_path: Path) -> None:
    copy_log.add(bytes(tmp_path), [], durable=True)
    assert os.listdir(tmp_path) == []
    assert copy_log.read(bytes(tmp_path)) == []


@pytest.mark.parametrize("torn", [b"1 12 100 1 2 13 200", b"1 12\n", b"1 12 100 1 2 13 x\n", b"\0" * 9 + b"\n", b"\n"])
def test_a_torn_line_is_passed_over(tmp_path: Path, torn: bytes) -> None:
    copy_log.add(bytes(tmp_path), [ONE], durable=True)
    with (tmp_path / "copied").open("ab") as file:
        file.write(torn)
    assert copy_log.read(bytes(tmp_path)) == [ONE]


@pytest.mark.parametrize("lost", range(1, 20))
def test_a_line_after_a_torn_one_is_read(tmp_path: Path, lost: int) -> None:
    copy_log.add(bytes(tmp_path), [OTHER, ONE], durable=True)
    whole = (tmp_path / "copied").read_bytes()
    (tmp_path / "copied").write_bytes(whole[:-lost])
    copy_log.add(bytes(tmp_path), [ONE], durable=True)
    assert copy_log.read(bytes(tmp_path)) == [OTHER, ONE]


def test_of_a_tree_each_thing_is_told_with_its_copy(tmp_path: Path) -> None:
    (tmp_path / "from/deep").mkdir(parents=True)
    (tmp_path / "from/deep/file").write_text("file")
    (tmp_path / "from/link").hardlink_to(tmp_path / "from/deep/file")
    (tmp_path / "from/soft").symlink_to("nowhere")
    left_out, copies = copy_tree(bytes(tmp_path / "from"), bytes(tmp_path / "to"))
    assert left_out == ()
    copies_of_links = [one for one in copies if one.looks is not None]
    assert {one.was.file[1] for one in copies_of_links} == {os.lstat(tmp_path / "from/link").st_ino}
    assert {one.looks for one in copies_of_links} == {looks_of(os.lstat(tmp_path / "to/link"))}
    pairs = {(one.was.file, one.links, one.now.file) for one in copies}
    for name, links in (("", 1), ("deep", 1), ("deep/file", 2), ("link", 2), ("soft", 1)):
        was, now = (os.lstat(tmp_path / top / name) for top in ("from", "to"))
        assert ((was.st_dev, was.st_ino), links, (now.st_dev, now.st_ino)) in pairs
