"""A commit to a subvolume of btrfs that is read-only, as snapshots are: its mount is not, so only
the subvolume itself tells.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import exactly
from tests.support.program import Program
from tests.support.sharing_disk import disk_image

NOT_BEGUN = 17


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """A project in which ``old`` is a read-only subvolume with a few files; the session is on
    another disk.
    """
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    with disk_image("btrfs", tmp_path) as disk:
        project = disk / "project"
        project.mkdir()
        subprocess.run(["btrfs", "-q", "subvolume", "create", project / "now"], check=True)
        (project / "now" / "alone").write_text("alone\n")
        (project / "now" / "pair").write_text("pair\n")
        (project / "now" / "pair2").hardlink_to(project / "now" / "pair")
        (project / "now" / "dir").mkdir()
        subprocess.run(["btrfs", "-q", "subvolume", "snapshot", "-r", project / "now", project / "old"], check=True)
        (project / "here").write_text("here\n")
        yield Program(project)


CHANGES: dict[str, Callable[[CoreDriver], object]] = {
    "a new file": lambda view: view.create(b"old/new", b"", 0o644),
    "an edit": lambda view: view.append(b"old/alone", b"more\n"),
    "an edit of a file with two names": lambda view: view.append(b"old/pair", b"more\n"),
    "a mode": lambda view: view.chmod(b"old/alone", 0o600),
    "a mode of a directory": lambda view: view.chmod(b"old/dir", 0o700),
    "a removal": lambda view: view.unlink(b"old/alone"),
    "a move out of it": lambda view: view.rename(b"old/alone", b"alone"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.some(4)
@pytest.mark.mount
def test_it_is_refused_before_anything_has_changed(program: Program, change: str) -> None:
    view = CoreDriver(os.fsencode(program.project))
    view.append(b"here", b"more\n")
    CHANGES[change](view)
    view.close()
    before = exactly(program.project)
    refused = program("commit", "--yes", code=NOT_BEGUN).err
    assert "the commit was not begun: " in refused
    assert f"{program.project}/old" in refused
    assert "Read-only file system; base is as it was, and all stays staged" in refused
    assert exactly(program.project) == before
    program("commit", "--yes", "here")
    assert (program.project / "here").read_text() == "here\nmore\n"
