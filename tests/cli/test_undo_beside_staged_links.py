"""``yolofs undo`` where the view stages names (hard links) of a file of the commit.

If what becomes of each name cannot be told, that file stays, and all else is undone.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program
from tests.support.second_disk import mounted_disk


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


def test_a_file_that_base_loses_is_shown_as_it_is_staged(
    yolofs: Program, before: dict[str, tuple[object, ...]]
) -> None:
    project, view = yolofs.project, shown(yolofs)
    after = looks(project)
    done = yolofs("undo", "--yes")
    assert "commit 1 is undone by commit 2" in done.err
    assert looks(project) == before
    assert shown(yolofs) == view
    yolofs("commit", "--yes")
    assert (project / "a").read_text() == "another\nedited\n"
    assert (project / "a").samefile(project / "new")
    assert looks(project).keys() == after.keys()
    assert shown(yolofs) == view


def test_a_dry_run_says_the_same(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    now = looks(yolofs.project)
    done = yolofs("undo", "--dry-run")
    assert "stays:" not in done.err
    assert f"delete {yolofs.project}/new\n" in done.out
    assert looks(yolofs.project) == now


@pytest.mark.root_only  # who mounts a second disk
def test_a_dry_run_says_the_same_of_names_that_have_come_from_another_disk(yolofs: Program) -> None:
    project = yolofs.project
    (project / "far").mkdir()
    with mounted_disk(project / "far"):
        (project / "far/a").write_text("a\n")
        os.link(project / "far/a", project / "far/b")
        view = CoreDriver(os.fsencode(project))
        view.rename(b"far/a", b"a")
        view.rename(b"far/b", b"b")
        view.close()
        yolofs("commit", "--yes")
        view = CoreDriver(os.fsencode(project))
        view.append(b"a", b"edited\n")
        view.close()
        dry = yolofs("undo", "--dry-run")
        assert "stays:" not in dry.err
        assert dry.out.startswith("D  a\nR  b -> far/a\nA  far/b\n")
        done = yolofs("undo", "--yes")
        assert "commit 1 is undone by commit 2" in done.err
        assert (project / "far/a").samefile(project / "far/b")


def test_the_file_alone_is_undone(yolofs: Program, before: dict[str, tuple[object, ...]]) -> None:
    project, view = yolofs.project, shown(yolofs)
    yolofs("undo", "1", "a", "new", "--yes")
    assert looks(project)["a"] == before["a"]
    assert not (project / "new").exists()
    assert (project / "made").exists()
    assert shown(yolofs) == view


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
    dry = yolofs("undo", "--dry-run", code=16)
    done = yolofs("undo", "--yes", code=16)
    stays = [line for line in done.err.splitlines() if line.startswith("stays: ")]
    assert stays == [line for line in dry.err.splitlines() if line.startswith("stays: ")]
    assert f"delete {project}/new\n" not in dry.out
    assert "1 path stays as it is; all else of commit 1 is undone" in done.err
    assert "commit 1 is undone in part by commit 2" in done.err
    assert f"stays: {project}/new: hard links of it are staged: not all its names were found" in done.err
    assert (project / "b").read_text() == "b\n"
    assert (project / "a").samefile(project / "new")
    assert f"first: yolofs restore {project}/a\n" in done.err
    yolofs("restore", "a")
    yolofs("undo", "1", "--yes")
    assert not (project / "new").exists()
    assert (project / "a").samefile(project.parent / "outside")
