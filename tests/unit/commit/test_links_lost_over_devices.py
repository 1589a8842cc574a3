"""A name that is copied to another disk is no link any more of those that stay: which are told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.second_disk import mounted_disk
from tests.unit.commit.base_to_commit_to import open_scribe
from yolofs.commit import execute
from yolofs.paths import RelPath

pytestmark = [pytest.mark.usefixtures("way"), pytest.mark.root_only]  # who mounts a second device


class Moving:
    """A project on two disks.  One of them has a file with the names ``a`` and ``in/other``."""

    def __init__(self, scribe: CommitScribe, old: bytes, new: bytes) -> None:
        self._scribe = scribe
        self._old = old
        self._new = new

    def move(self, name: bytes) -> None:
        """Move what has a name to the other disk."""
        self._scribe.rename(self._old + name, self._new + name)

    def remove(self, name: bytes) -> None:
        self._scribe.remove(self._old + name)

    def replace(self, name: bytes, *, is_moved: bool = False) -> None:
        """Put another file at a name."""
        directory = self._new if is_moved else self._old
        self._scribe.write(directory + b"made", b"made")
        self._scribe.rename(directory + b"made", directory + name)

    def link(self, name: bytes, other: bytes) -> None:
        """Give what has moved another name there."""
        self._scribe.link(self._new + name, self._new + other)


def remove_the_other(one: Moving) -> None:
    one.remove(b"in/other")
    one.move(b"a")


def remove_the_directory_of_the_other(one: Moving) -> None:
    one.move(b"a")
    one.remove(b"in")


def replace_the_other(one: Moving) -> None:
    one.move(b"a")
    one.replace(b"in/other")


def replace_both(one: Moving) -> None:
    one.move(b"a")
    one.replace(b"a")
    one.replace(b"in/other")


def replace_the_directory_of_the_other(one: Moving) -> None:
    one.move(b"a")
    one.replace(b"in")


def replace_the_name_in_the_directory_that_moves(one: Moving) -> None:
    one.move(b"in")
    one.replace(b"in/other", is_moved=True)


def remove_the_other_and_link(one: Moving) -> None:
    remove_the_other(one)
    one.link(b"a", b"linked")


def move_both(one: Moving) -> None:
    one.move(b"a")
    one.move(b"in")


def leave_the_other(one: Moving) -> None:
    one.move(b"a")


WAYS = [
    (remove_the_other, "", "a"),
    (remove_the_directory_of_the_other, "", "a"),
    (replace_the_other, "", "a"),
    (replace_both, "", "a"),
    (replace_the_directory_of_the_other, "", "a"),
    (replace_the_name_in_the_directory_that_moves, "", ""),
    (remove_the_other_and_link, "", "a"),
    (move_both, "a in", "a in"),
    (leave_the_other, "a", "a"),
]


@pytest.mark.parametrize("has_third", [False, True])
@pytest.mark.parametrize("is_back", [False, True])
@pytest.mark.parametrize(("work", "lost", "lost_of_three"), WAYS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_hard_link_is_told_to_be_lost_only_where_another_name_stays(
    tmp_path: Path,
    scribe: CommitScribe,
    parking: bytes,
    work: Callable[[Moving], None],
    lost: str,
    lost_of_three: str,
    *,
    is_back: bool,
    has_third: bool,
) -> None:
    root = scribe.base.root
    old, new = (b"e/", b"") if is_back else (b"", b"e/")
    names = [os.path.join(root, old, name) for name in (b"a", b"in/other", b"third")]
    with mounted_disk(Path(os.fsdecode(root), "e")):
        if is_back:
            Path(os.fsdecode(root), "a").unlink()
            Path(os.fsdecode(names[0])).write_bytes(b"a file of the other disk")
        os.mkdir(os.path.dirname(names[1]))
        for name in names[1:] if has_third else names[1:2]:
            os.link(names[0], name)
        scribe = open_scribe(tmp_path)
        work(Moving(scribe, old, new))
        outcome = execute(scribe.plan(), scribe.store, parking=parking)
    expected = (lost_of_three if has_third else lost).split()
    assert outcome.left_out == {RelPath(new + os.fsencode(name)): ("hard link",) for name in expected}
