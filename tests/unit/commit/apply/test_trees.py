"""Somebody exchanges a directory for a link while a tree is copied or removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.exchanged_names import SECRET, Exchanger, heard, holders_of_secret, state_of
from yolofs.commit.apply.trees import copy_tree, inode_ctimes_below, names_elsewhere
from yolofs.system.busy_trees import remove_tree

NAMES = ("d", "d/sub", "d/sub/deep", "d/f", "copy", "copy/sub", "copy/sub/deep", "copy/f")


def make_tree(top: Path, content: bytes) -> None:
    (top / "d/sub/deep").mkdir(parents=True)
    for name in ("d/f", "d/sub/f", "d/sub/deep/f"):
        (top / name).write_bytes(content)
    (top / "d/sub/other").hardlink_to(top / "d/f")


def names_of(name: str) -> tuple[str, str]:
    """Return a name in the tree, and what stands for it outside."""
    return name, name.replace("copy", "d")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "act",
    [
        lambda base: copy_tree(bytes(base / "d"), bytes(base / "copy")),
        lambda base: remove_tree(bytes(base / "d")),
        lambda base: names_elsewhere(bytes(base / "d"), lambda _: False),
        lambda base: inode_ctimes_below(bytes(base / "d")),
    ],
    ids=["copy", "remove", "names", "inode_ctimes"],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_whatever_walks_a_tree_follows_no_link_that_is_exchanged_for_a_name(
    tmp_path: Path, name: str, act: Callable[[Path], object], *, is_short: bool
) -> None:
    at, count = 0, 1
    while at < count:
        at += 1
        base, outside = tmp_path / f"base{at}", tmp_path / f"outside{at}"
        make_tree(base, b"base")
        make_tree(outside, SECRET)
        before = state_of(outside)
        count = run(base, outside, name, act, at, is_short=is_short)
        assert state_of(outside) == before, at
        assert (base / "copy").is_symlink() or not holders_of_secret(base / "copy"), at


def run(base: Path, outside: Path, name: str, act: Callable[[Path], object], at: int, *, is_short: bool) -> int:
    """Do it, while a name is exchanged before one call; return how many calls there were."""
    place, target = names_of(name)
    attack: list[Exchanger] = []
    count = 0

    def hear() -> None:
        nonlocal count
        count += 1
        if count == at and (base / place).parent.is_dir():
            attack.append(Exchanger(base, outside, place, target))
            attack[0].exchange()
        elif attack and count > at and is_short:
            attack[0].put_back()

    try:
        with heard(hear):
            act(base)
    except OSError:
        pass
    for one in attack:
        one.close()
    return count


def test_a_tree_that_others_may_not_enter_is_removed(tmp_path: Path) -> None:
    make_tree(tmp_path, b"base")
    (tmp_path / "d/sub").chmod(0o000)
    remove_tree(bytes(tmp_path / "d"))
    assert not (tmp_path / "d").exists()


def test_an_error_names_the_path(tmp_path: Path) -> None:
    make_tree(tmp_path, b"base")
    with pytest.raises(FileExistsError) as raised:
        copy_tree(bytes(tmp_path / "d"), bytes(tmp_path / "d/sub"))
    assert raised.value.filename == bytes(tmp_path / "d/sub")
    assert stat.S_ISDIR(os.lstat(tmp_path / "d/sub").st_mode)
