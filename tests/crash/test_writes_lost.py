"""A disk fails to write data, says so once, and is well again: the kernel calls the lost data
clean, and the next sync reports success.

What a commit puts into base then is on the disk all the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.failing_disk import FailingDisk, failing_disk
from tests.support.program import Program

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
LOST = b"what the disk does not write. "
NOT_BEGUN, INTERRUPTED = 17, 12


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FailingDisk]:
    with failing_disk(request.param, tmp_path) as disk:
        yield disk


@pytest.mark.some(1)
def test_a_commit_writes_files_once_more_that_the_disk_of_the_session_lost(
    disk: FailingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk.root / "state").mkdir(mode=0o700)
    monkeypatch.setenv("YOLOFS_STATE", str(disk.root / "state"))
    project = disk.root / "project"
    project.mkdir()
    contents = {b"new": LOST * 300, b"other": LOST, b"old": LOST * 5000}
    (project / "old").write_bytes(b"base")
    disk.fail(LOST)
    view = CoreDriver(os.fsencode(project))
    for name in (b"new", b"other"):
        view.create(name, contents[name], 0o644)
    view.overwrite(b"old", contents[b"old"])
    view.close()
    program = Program(project)
    assert "Input/output error" in program("commit", "--yes", code=NOT_BEGUN).err
    disk.mend()
    if program("commit", "--yes", code=None).code:  # XFS tells it twice
        program("commit", "--yes")
    disk.mount_anew()
    assert {name: (project / os.fsdecode(name)).read_bytes() for name in contents} == contents


@pytest.mark.some(1)
def test_a_commit_writes_files_once_more_that_the_disk_of_base_lost(
    disk: FailingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with hard links are written in their places, after all others were waited for."""
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    project = disk.root / "project"
    project.mkdir()
    (project / "one").write_bytes(b"base")
    (project / "other").hardlink_to(project / "one")
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"one", LOST * 300)
    view.close()
    disk.fail(LOST)
    program = Program(project)
    assert "Input/output error" in program("commit", "--yes", code=INTERRUPTED).err
    disk.mend()
    program("commit", "--continue")
    disk.mount_anew()
    assert (project / "other").read_bytes() == LOST * 300
