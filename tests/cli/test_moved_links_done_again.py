"""A file with hard links changes, and names of it move to another disk: an undo brings all back as
it was, and the commit can be done again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program
from tests.support.second_disk import mounted_disk

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]
FATES = ("stays", "goes", "moves")
WAYS = [fates for fates in itertools.product(FATES, repeat=3) if "moves" in fates]


@pytest.fixture
def project(yolofs: Program) -> Iterator[Path]:
    """A project with another disk in it, and a file with three names, one in a directory."""
    project = yolofs.project
    for name in ("far", "folder"):
        (project / name).mkdir()
    (project / "one").write_text("one file\n")
    for name in ("two", "folder/three"):
        (project / name).hardlink_to(project / "one")
    (project / "folder/other").write_text("another file\n")
    with mounted_disk(project / "far"):
        yield project


def change(project: Path, fates: tuple[str, ...], *, is_edited: bool) -> None:
    """Edit the file in the view, and do to each name what is to become of it."""
    view = CoreDriver(bytes(project))
    if is_edited:
        view.append(b"one", b"more\n")
    for name, fate in zip((b"one", b"two", b"folder"), fates, strict=True):
        if fate == "moves":
            view.rename(name, b"far/" + name)
        elif fate == "goes":
            view.unlink(name if name != b"folder" else b"folder/three")
    view.close()


@pytest.mark.some(6)
@pytest.mark.parametrize("is_edited", [True, False])
@pytest.mark.parametrize("fates", WAYS, ids="-".join)
def test_all_names_come_back_and_the_commit_is_done_again(
    yolofs: Program, project: Path, fates: tuple[str, ...], *, is_edited: bool
) -> None:
    before = looks(project)
    change(project, fates, is_edited=is_edited)
    yolofs("commit", "--yes")
    after = looks(project)
    for _ in range(2):
        said = yolofs("undo", "--yes").err
        assert "of its own" not in said
        assert looks(project) == before
        yolofs("commit", "--yes")
        assert looks(project) == after
