"""A project with a commit to undo."""

from __future__ import annotations

import os
from typing import TypeAlias

import pytest

from tests.support.looks import looks
from tests.support.program import Program

Committed: TypeAlias = tuple[Program, dict[str, tuple[object, ...]]]


@pytest.fixture
def committed(yolofs: Program) -> Committed:
    """A project after its first commit, which changed, made, moved and removed; with what it was
    before.
    """
    project = yolofs.project
    for name in ("gone/x", "gone/deep/y", "moved"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"{name}\n")
    os.link(project / "gone/deep/y", project / "other name of y")
    (project / "a.txt").chmod(0o640)
    before = looks(project)
    with yolofs.mounted() as view:
        with (view / "a.txt").open("a") as file:
            file.write("three\n")
        (view / "new").mkdir()
        (view / "new/file").write_text("new\n")
        (view / "moved").rename(view / "dir/moved")
        for name in ("gone/x", "gone/deep/y"):
            (view / name).unlink()
        for name in ("gone/deep", "gone"):
            (view / name).rmdir()
    yolofs("commit", "--yes")
    return yolofs, before


def view_of(yolofs: Program) -> dict[str, tuple[object, ...]]:
    with yolofs.mounted() as view:
        return looks(view)
