"""``yolofs undo`` where the view stages names (hard links) of a file of the commit, so that what
becomes of each name cannot be told: that file stays, and all else is undone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program


@pytest.fixture
def before(yolofs: Program) -> dict[str, tuple[object, ...]]:
    """What a project was before its only commit; a file that this made has two names, and is
    staged.
    """
    project = yolofs.project
    (project / "a").write_text("a\n")
    (project / "b").write_text("b\n")
    found = looks(project)
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"a")
    view.create(b"a", b"another\n", 0o644)
    view.link(b"a", b"new")
    view.append(b"b", b"more\n")
    view.create(b"made", b"made\n", 0o644)
    view.close()
    yolofs("commit", "--yes")
    view = CoreDriver(os.fsencode(project))
    view.append(b"a", b"edited\n")
    view.close()
    return found


def shown(yolofs: Program) -> dict[bytes, tuple[Any, ...]]:
    view = CoreDriver(os.fsencode(yolofs.project))
    try:
        return view.tree()
    finally:
        view.close()


def check_that_it_stays(err: str, project: Path) -> None:
    assert (
        f"stays: {project}/a: hard links of it are staged: what an earlier commit keeps is to take its place;"
        f" first: yolofs restore {project}/a\n"
    ) in err
    assert f"stays: {project}/new: it goes together with {project}/a\n" in err


def test_the_file_stays_and_all_else_is_undone(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    project, view = yolofs.project, shown(yolofs)
    done = yolofs("undo", "--yes", code=16)
    check_that_it_stays(done.err, project)
    assert "2 paths stay as they are; all else of commit 1 is undone" in done.err
    assert "commit 1 is undone in part by commit 2" in done.err
    assert (project / "a").read_text() == "another\n"
    assert (project / "a").samefile(project / "new")
    assert looks(project)["b"] == before["b"]
    assert not (project / "made").exists()
    assert shown(yolofs) == view


def test_what_is_said_leads_to_base_as_it_was(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    yolofs("undo", "--yes", code=16)
    yolofs("restore", "a")
    yolofs("undo", "1", "--yes")
    assert looks(yolofs.project) == before


def test_a_dry_run_says_the_same(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    done = yolofs("undo", "--dry-run", code=16)
    check_that_it_stays(done.err, yolofs.project)
    assert f"delete {yolofs.project}/made\n" in done.out
    assert f"delete {yolofs.project}/new\n" not in done.out


def test_of_the_file_alone_nothing_is_undone(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    project = yolofs.project
    now = looks(project)
    done = yolofs("undo", "1", "a", "new", "--yes", code=16)
    check_that_it_stays(done.err, project)
    assert looks(project) == now


def test_other_paths_are_undone_without_a_word_of_it(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    done = yolofs("undo", "1", "b", "--yes")
    assert "stays:" not in done.err
    assert looks(yolofs.project)["b"] == before["b"]


def test_a_file_with_a_name_outside_of_base_stays(yolofs: Program) -> None:
    project = yolofs.project
    (project / "a").write_text("a\n")
    (project / "b").write_text("b\n")
    (project.parent / "outside").hardlink_to(project / "a")
    view = CoreDriver(os.fsencode(project))
    view.link(b"a", b"new")
    view.append(b"b", b"more\n")
    view.close()
    yolofs("commit", "--yes")
    view = CoreDriver(os.fsencode(project))
    view.append(b"a", b"edited\n")
    view.close()
    done = yolofs("undo", "--yes", code=16)
    assert f"stays: {project}/new: hard links of it are staged: not all its names were found" in done.err
    assert (project / "b").read_text() == "b\n"
    assert (project / "a").samefile(project / "new")
    assert f"first: yolofs restore {project}/a\n" in done.err
    yolofs("restore", "a")
    yolofs("undo", "1", "--yes")
    assert not (project / "new").exists()
    assert (project / "a").samefile(project.parent / "outside")
