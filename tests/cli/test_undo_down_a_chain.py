"""Undos one after the other, down to before the first commit: a directory that an undo has made
anew is the one that earlier commits know.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.looks import looks
from tests.support.program import Program

pytestmark = pytest.mark.mount


def change_the_mode(view: Path) -> Path:
    (view / "d/r").chmod(0o700)
    return view / "d/r"


def rename(view: Path) -> Path:
    (view / "d/r").rename(view / "d/s")
    return view / "d/s"


def rename_what_is_above(view: Path) -> Path:
    (view / "d").rename(view / "e")
    return view / "e/r"


def make_another(view: Path) -> Path:
    (view / "d/new").mkdir()
    os.link(view / "b.txt", view / "d/new/link")
    return view / "d/new"


FIRST = {act.__name__: act for act in (change_the_mode, rename, rename_what_is_above, make_another)}


@pytest.fixture
def linked(yolofs: Program) -> Program:
    """A project with a directory in which a file lies that has another name outside of it."""
    (yolofs.project / "d/r/deep").mkdir(parents=True)
    (yolofs.project / "b.txt").write_text("b\n")
    os.link(yolofs.project / "b.txt", yolofs.project / "d/r/link")
    return yolofs


@pytest.mark.parametrize(("first", "times"), points(list(itertools.product(FIRST, [1, 2])), "down a chain", some=3))
def test_base_is_what_it_was_before_each_commit(linked: Program, first: str, times: int) -> None:
    """``times``: so often the second commit is undone and done again before."""
    act: Callable[[Path], Path] = FIRST[first]
    before = looks(linked.project)
    with linked.mounted() as view:
        name = act(view).relative_to(view)
    linked("commit", "--yes")
    between = looks(linked.project)
    with linked.mounted() as view:
        shutil.rmtree(view / name)
    linked("commit", "--yes")
    linked("undo", "--yes")
    for _ in range(times - 1):
        assert looks(linked.project) == between
        linked("commit", "--yes")
        assert not (linked.project / name).exists()
        linked("undo", "--yes")
    assert looks(linked.project) == between
    linked("undo", "1", "--yes")
    assert looks(linked.project) == before
    assert all(one["undone"] for one in linked("commits", "--json").json["commits"] if not one["undoes"])


@pytest.mark.parametrize("instead", ["nothing", "another"])
def test_what_the_host_puts_in_the_place_of_a_directory_keeps_its_mode_and_that_is_told(
    linked: Program, instead: str
) -> None:
    with linked.mounted() as view:
        change_the_mode(view)
    linked("commit", "--yes")
    shutil.rmtree(linked.project / "d/r")
    if instead == "another":
        (linked.project / "d/r").mkdir(mode=0o711)
    before = looks(linked.project)
    said = linked("undo", "--yes", code=16).err
    why = "the host has moved or removed it since" if instead == "nothing" else "it is not there any more"
    assert f"stays: {linked.project}/d/r: {why}" in said
    assert looks(linked.project) == before
