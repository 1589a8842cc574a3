"""A range is copied between files though hardly a descriptor may be kept."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.core_driver import OWNER, CoreDriver

COUNT = 6
"""More files than the driver keeps descriptors of."""


def test_a_range_is_copied_by_files_whose_descriptors_have_given_way_to_each_other(tmp_path: Path) -> None:
    for number in range(COUNT):
        (tmp_path / f"source{number}").write_bytes(b"%d" % number * 10)
    driver = CoreDriver(os.fsencode(tmp_path))
    overlay = driver.overlay
    target, _ = overlay.create(overlay.root, b"target", 0o600, OWNER)
    sources = [overlay.lookup_inode(overlay.root, b"source%d" % number) for number in range(COUNT)]
    for inode in sources:
        assert inode is not None
        overlay.open(inode, os.O_RDONLY)
    for _ in range(2):
        for number, inode in enumerate(sources):
            assert inode is not None
            assert overlay.copy_range(inode, 0, target, number * 10, 10) == 10
    assert overlay.read(target, 0, 1000) == b"".join(b"%d" % number * 10 for number in range(COUNT))
    driver.close()
