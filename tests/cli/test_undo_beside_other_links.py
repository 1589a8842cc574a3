"""``yolofs undo`` of a commit that changed names (hard links) of one file, where something of
another file with several names is staged: the two have nothing to do with each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program


def a_name_more(view: CoreDriver) -> None:
    view.link(b"one", b"new")


def a_name_more_of_a_file_with_two(view: CoreDriver) -> None:
    view.link(b"pair", b"new")


def a_name_less(view: CoreDriver) -> None:
    view.unlink(b"pair2")


def a_name_elsewhere(view: CoreDriver) -> None:
    view.rename(b"pair", b"place/moved")


def a_name_more_and_an_edit(view: CoreDriver) -> None:
    view.link(b"one", b"new")
    view.append(b"new", b"more\n")


def edited(view: CoreDriver) -> None:
    view.append(b"other", b"more\n")


def with_a_name_less(view: CoreDriver) -> None:
    view.unlink(b"other2")


def with_a_name_more(view: CoreDriver) -> None:
    view.link(b"other", b"place/other3")


COMMITTED = a_name_more, a_name_more_of_a_file_with_two, a_name_less, a_name_elsewhere, a_name_more_and_an_edit
STAGED = edited, with_a_name_less, with_a_name_more


@pytest.mark.some(6)
@pytest.mark.parametrize("stage", STAGED)
@pytest.mark.parametrize("commit", COMMITTED)
def test_all_of_it_is_undone_and_done_again(
    yolofs: Program, commit: Callable[[CoreDriver], None], stage: Callable[[CoreDriver], None]
) -> None:
    project = yolofs.project
    (project / "place").mkdir()
    for name in ("one", "pair", "other"):
        (project / name).write_text(f"{name}\n")
    (project / "pair2").hardlink_to(project / "pair")
    (project / "other2").hardlink_to(project / "other")
    before = looks(project)
    change(yolofs, commit)
    yolofs("commit", "--yes")
    after = looks(project)
    change(yolofs, stage)
    view = shown(yolofs)
    done = yolofs("undo", "--yes")
    assert "commit 1 is undone by commit 2" in done.err
    assert looks(project) == before
    assert shown(yolofs) == view
    paths = sorted(set(before.keys() ^ after.keys()) | {"one", "pair", "pair2"} & after.keys())
    yolofs("commit", "--yes", *paths)
    assert files(looks(project)) == files(after)
    assert shown(yolofs) == view


def files(looked: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {path: look for path, look in looked.items() if look[3]}


def change(yolofs: Program, what: Callable[[CoreDriver], None]) -> None:
    view = CoreDriver(os.fsencode(yolofs.project))
    what(view)
    view.close()


def shown(yolofs: Program) -> dict[bytes, tuple[Any, ...]]:
    view = CoreDriver(os.fsencode(yolofs.project))
    try:
        return view.tree()
    finally:
        view.close()


@pytest.mark.parametrize("stage", [None, edited])
def test_a_name_that_came_in_the_place_of_another_file_counts_as_one(
    yolofs: Program, stage: Callable[[CoreDriver], None] | None
) -> None:
    """The commit gave a file a name that another file had, and took one away."""
    project = yolofs.project
    (project / "place").mkdir()
    for name in ("one", "two", "other"):
        (project / name).write_text(f"{name}\n")
    for name in ("two1", "two2"):
        (project / "place" / name).hardlink_to(project / "two")
    (project / "other2").hardlink_to(project / "other")
    before = looks(project)
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"one")
    view.link(b"two", b"one")
    view.unlink(b"place/two2")
    view.close()
    yolofs("commit", "--yes")
    if stage is not None:
        change(yolofs, stage)
    seen = shown(yolofs)
    yolofs("undo", "--yes")
    assert looks(project) == before
    assert shown(yolofs) == seen
