"""A base on a disk that knows no extended attributes, where the kernel judges by lists."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Mounter
from tests.mount.probes.tools import as_other, outcome
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.overlay.acl import DEFAULT_XATTR, XATTR

pytestmark = [pytest.mark.mount, pytest.mark.root_only]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", disk], check=True)
    path = disk / "base"
    (path / "below").mkdir(parents=True)
    for name, mode in (("readable", 0o644), ("closed", 0o640)):
        (path / "below" / name).write_bytes(b"content")
        (path / "below" / name).chmod(mode)
    yield path
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("is_staged", [False, True], ids=["base", "staged"])
def test_the_mode_says_who_gets_in(mounted: Mounter, *, is_staged: bool) -> None:
    view = mounted(make_transport=DirectTransport, allow_other=True, xattrs=True)
    os.chmod(view.mountpoint, 0o755)
    below = Path(os.fsdecode(view.mountpoint)) / "below"
    if is_staged:
        for path in (below / "readable", below / "closed", below):
            os.utime(path)

    def attempts() -> list[Any]:
        listed = outcome(lambda: sorted(os.listdir(below)))
        reads = [outcome((below / name).read_bytes) for name in ("readable", "closed")]
        return [listed, reads, [outcome(os.getxattr, below, name) for name in (XATTR, DEFAULT_XATTR)]]

    expected = [["closed", "readable"], ["content", "EACCES"], ["ENODATA", "ENODATA"]]
    assert as_other(attempts) == expected
