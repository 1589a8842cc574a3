"""Scratch directories: staged like all others, and shown when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path: Path) -> Iterator[Program]:
    """A mounted project in which a scratch directory lies, and with another beside it; both and all
    else changed.
    """
    project = tmp_path / "project"
    for directory in (project / "build", tmp_path / "cache", tmp_path / "other"):
        directory.mkdir(parents=True)
    (project / ".yolofs.toml").write_text(f'scratch = ["build", "{tmp_path}/cache"]\n')
    program = Program(project)
    program.start_session()
    program.trust()
    with program.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(tmp_path)[1:]
        (view / "project/kept").write_text("kept\n")
        (view / "project/build/out").write_text("out\n")
        (view / "cache/page").write_text("page\n")
        (view / "other/file").write_text("file\n")
        yield program


NOTE = "note: 2 changes in scratch directories not shown; --scratch shows them\n"


def test_status_leaves_scratch_directories_out_and_says_so(yolofs: Program) -> None:
    top = yolofs.project.parent
    done = yolofs("status")
    assert done.out.endswith(f"\n\nA  kept\n\noutside the project:\nA  {top}/other/file\n\n2 changes: 2 added\n")
    assert done.err == NOTE
    asked = yolofs("status", "--scratch")
    assert asked.out.endswith(
        f"\n\nA  kept\n\noutside the project:\nA  {top}/other/file\n\n"
        f"in scratch directories:\nA  {top}/cache/page\nA  build/out\n\n4 changes: 4 added\n"
    )
    assert asked.err == ""


def test_json_tells_the_region_of_each_change(yolofs: Program) -> None:
    document = yolofs("status", "--json").json
    assert [change["region"] for change in document["changes"]] == ["outside", "project"]
    assert document["scratch_left_out"] == 2
    everything = yolofs("diff", "--scratch", "--json").json
    assert [change["region"] for change in everything["changes"]] == ["scratch", "outside", "scratch", "project"]
    assert everything["scratch_left_out"] == 0


def test_status_tells_of_a_scratch_directory_that_base_has_made_too_only_where_scratch_is_shown(
    yolofs: Program,
) -> None:
    """Both sides have it alike, so no list of changes has it."""
    view = Path(yolofs("status", "--json").json["mountpoint"]) / str(yolofs.project)[1:]
    (view / "build/made").mkdir()
    (yolofs.project / "build/made").mkdir()
    assert "changed in base" not in yolofs("status").out
    assert yolofs("status", "--json").json["drift"] == []
    assert "!  build/made" in yolofs("status", "--scratch").out


def test_diff_and_log_leave_scratch_directories_out_unless_they_are_named(yolofs: Program) -> None:
    for words in (["diff"], ["diff", "--list"], ["log", "-v"]):
        done = yolofs(*words)
        assert "kept" in done.out
        assert "build" not in done.out
        assert "cache" not in done.out
        assert NOTE.replace("changes", "records" if words == ["log", "-v"] else "changes") in done.err
        assert "build/out" in yolofs(*words, "--scratch").out
        named = yolofs(*words, "--", "build")
        assert "build/out" in named.out
        assert "note: " not in named.err


def test_scratch_directories_last_as_long_as_the_session_and_go_with_it(yolofs: Program) -> None:
    cache = yolofs.project.parent / "cache"
    yolofs("unmount")
    inside = Path(yolofs("mount").out.rstrip("\n")) / str(cache)[1:]
    assert (inside / "page").read_text() == "page\n"
    yolofs("abort", "--yes")
    assert not list(inside.iterdir())


def test_the_hunks_of_the_project_are_completed_first_and_none_in_scratch_directories(yolofs: Program) -> None:
    listed = [line.split() for line in yolofs("hunks", "--list").out.splitlines()]
    ids = {path: number for number, _, path, *_ in listed}
    done = yolofs(_YOLOFS_COMPLETE="zsh_complete", COMP_WORDS="yolofs commit --hunk ", COMP_CWORD="")
    assert done.out.split("\n")[1::3] == [ids["kept"], ids[f"{yolofs.project.parent}/other/file"]]
