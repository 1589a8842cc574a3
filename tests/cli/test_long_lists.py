"""Lists that are too long to be shown whole say so."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program

COUNT = 25


def numbered(project: Path) -> list[Path]:
    return [project / f"file {number:02}" for number in range(COUNT)]


def test_a_merge_that_leaves_many_marks_says_how_many_files_it_does_not_list(tmp_path: Path) -> None:
    for path in numbered(tmp_path):
        path.write_text("before\n")
    yolofs = Program(tmp_path)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(tmp_path))
    for path in numbered(tmp_path):
        view.overwrite(path.name.encode(), b"view\n")
    view.close()
    for path in numbered(tmp_path):
        path.write_text("host\n")
    told = yolofs("commit", "--yes", "--merge", code=9).err.splitlines()
    marked = "both sides changed the same lines; both stand between marks in the view"
    assert [line for line in told if line.endswith(marked)] == [
        f"{path.name}: {marked}" for path in numbered(tmp_path)[:20]
    ]
    assert "… and 5 more paths" in told


@pytest.mark.mount
def test_an_undo_of_one_of_many_hard_links_names_a_command_that_undoes_all_of_them(yolofs: Program) -> None:
    first, *others = numbered(yolofs.project)
    first.write_text("before\n")
    for path in others:
        path.hardlink_to(first)
    with yolofs.mounted() as view:
        (view / first.name).write_text("after\n")
    yolofs("commit", "--yes")
    told = yolofs("undo", "1", "--yes", first.name, code=16).err.splitlines()
    (command,) = {line.rpartition("; yolofs ")[2] for line in told if "; yolofs undo" in line}
    yolofs(*shlex.split(command), "--yes")
    assert [path.read_text() for path in numbered(yolofs.project)] == ["before\n"] * COUNT
