"""Base lies on a disk that keeps times in whole seconds (ext4 with small inodes), as others keep
them in tenths of microseconds (NTFS) or in two seconds (FAT).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from tests.support.sharing_disk import disk_image

pytestmark = pytest.mark.mount

OLD_NS = 1_400_000_000_000_000_000


def times(top: Path) -> dict[str, int]:
    paths = (top, *(path for path in top.rglob("*") if not path.name.startswith(".yolofs")))
    return {str(path.relative_to(top)): path.lstat().st_mtime_ns for path in paths}


def test_an_undo_gives_directories_their_times_again(tmp_path: Path) -> None:
    with disk_image("ext4 of whole seconds", tmp_path) as disk:
        project = disk / "project"
        (project / "sub").mkdir(parents=True)
        (project / "sub/file").write_text("file\n")
        (project / "edited").write_text("edited\n")
        yolofs = Program(project)
        yolofs.start_session()
        for path in (project / "edited", project / "sub/file", project / "sub", project):
            os.utime(path, ns=(OLD_NS, OLD_NS))
        before = times(project)
        view = CoreDriver(os.fsencode(project))
        view.rename(b"sub/file", b"sub/moved")
        view.create(b"sub/new", b"new\n", 0o644)
        view.overwrite(b"edited", b"changed\n")
        view.utimes(b"edited", OLD_NS + 1_234_567_890)
        view.close()
        for _ in range(2):
            yolofs("commit", "--yes")
            after = times(project)
            assert after["sub"] > OLD_NS
            assert after["sub"] % 10**9 == 0
            assert after["edited"] == OLD_NS + 10**9
            assert yolofs("status", "--json").json["changes"] == []
            yolofs("undo", "--yes")
            assert times(project) == before
