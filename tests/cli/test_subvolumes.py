"""Subvolumes of btrfs in base: disks of their own at which nothing is mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program
from tests.support.sharing_disk import disk_image
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A project in which ``sub`` is a subvolume with a file and a directory."""
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    with disk_image("btrfs", tmp_path) as disk:
        project = disk / "project"
        project.mkdir()
        subprocess.run(["btrfs", "-q", "subvolume", "create", project / "sub"], check=True)
        (project / "sub" / "f").write_text("f\n")
        (project / "sub" / "dir").mkdir()
        (project / "sub" / "dir" / "x").write_text("x\n")
        CoreDriver(os.fsencode(project)).close()
        yield Program(project)


def test_what_goes_in_a_subvolume_that_moves_is_committed_first(program: Program) -> None:
    project, before = program.project, looks(program.project)
    view = CoreDriver(os.fsencode(project))
    view.rename(b"sub", b"sub2")
    view.unlink(b"sub2/f")
    view.rename(b"sub2/dir/x", b"sub2/y")
    view.close()
    refused = program("commit", "--yes", code=1).err
    assert program("commit", "--dry-run", code=1).err.splitlines()[-2:] == refused.splitlines()[-2:]
    assert (
        f"{project}/sub/f cannot be moved or removed in the same commit as {project}/sub above it, as it is on"
        " another disk (in a subvolume)\nhint: name what lies in there first: yolofs commit PATH..."
    ) in refused
    assert looks(project) == before
    program("commit", "--yes", "sub/f", "sub2/y")
    program("commit", "--yes")
    assert sorted(path.name for path in (project / "sub2").iterdir()) == ["dir", "y"]
    program("undo", "2", "--yes")
    program("undo", "1", "--yes")
    assert looks(project) == before


def test_what_a_moved_subvolume_has_got_is_undone_first(program: Program) -> None:
    project, before = program.project, looks(program.project)
    view = CoreDriver(os.fsencode(project))
    view.rename(b"sub", b"sub2")
    view.create(b"sub2/new", b"new\n", 0o644)
    view.close()
    program("commit", "--yes")
    refused = program("undo", "1", "--yes", code=1).err
    assert f"{project}/sub2/new cannot be moved or removed in the same commit as {project}/sub2 above it" in refused
    assert "yolofs undo N PATH..." in refused
    program("undo", "1", "--yes", "sub2/new", code=16)  # the rename stays, it says
    program("undo", "1", "--yes")
    assert looks(project) == before


@pytest.mark.parametrize("what", ["moved", "removed", "removed and made again"])
def test_a_subvolume_that_is_left_alone_inside_moves_and_goes(program: Program, what: str) -> None:
    project, before = program.project, looks(program.project)
    view = CoreDriver(os.fsencode(project))
    if what == "moved":
        view.rename(b"sub", b"sub2")
        view.append(b"sub2/f", b"more\n")
    else:
        for name in (b"sub/f", b"sub/dir/x"):
            view.unlink(name)
        view.rmdir(b"sub/dir")
        view.rmdir(b"sub")
    if what == "removed and made again":
        view.mkdir(b"sub", 0o755)
        view.create(b"sub/new", b"new\n", 0o644)
    view.close()
    program("commit", "--yes")
    program("undo", "--yes")
    assert looks(project) == before


def cut_links_told(text: str) -> list[str]:
    return [line.partition("warning: ")[2] for line in text.splitlines() if "no longer a hard link" in line]


def test_hard_links_that_a_move_into_a_subvolume_cuts_are_told_before_the_commit(program: Program) -> None:
    project = program.project
    (project / "one").write_text("one\n")
    (project / "two").hardlink_to(project / "one")
    (project / "dir").mkdir()
    (project / "dir/three").write_text("three\n")
    (project / "four").hardlink_to(project / "dir/three")
    before = looks(project)
    view = CoreDriver(os.fsencode(project))
    view.rename(b"one", b"sub/one")
    view.mkdir(b"sub/new", 0o755)
    view.rename(b"dir", b"sub/new/dir")
    view.close()
    text = "moves to another disk or mount, and is no longer a hard link of"
    foretold = cut_links_told(program("commit", "--dry-run").err)
    assert sorted(foretold) == [
        f"{project}/sub/new/dir/three {text} {project}/four",
        f"{project}/sub/one {text} {project}/two",
    ]
    with Terminal(project, ["commit"], size=(1000, 24), NO_COLOR="1") as terminal:
        terminal.wait_for("? [y/N] ")
        terminal.type("n\n")
        assert terminal.wait() == 1
        assert cut_links_told(terminal.text) == foretold
    assert cut_links_told(program("commit", "--yes").err) == foretold
    assert (project / "two").stat().st_nlink == 1
    program("undo", "--yes")
    assert looks(project) == before


def test_no_cut_link_is_told_where_a_file_stays_in_its_subvolume(program: Program) -> None:
    project = program.project
    (project / "sub/g").hardlink_to(project / "sub/f")
    view = CoreDriver(os.fsencode(project))
    view.rename(b"sub/f", b"sub/dir/f")
    view.close()
    assert cut_links_told(program("commit", "--dry-run").err) == []
    assert cut_links_told(program("commit", "--yes").err) == []
    assert (project / "sub/g").samefile(project / "sub/dir/f")
