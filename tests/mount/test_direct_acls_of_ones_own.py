"""Access control lists in the view of whoever runs the tests, on the disk of temporary files,
compared with a plain directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.hard_links import Mounter
from tests.mount.probes.tools import outcome
from tests.mount.test_direct_acls import DEFAULT, LISTED, compared, makes, packed, prepare, seen
from tests.support.in_process import MountedView
from tests.support.required import do_without
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.overlay.acl import DEFAULT_XATTR, XATTR

pytestmark = pytest.mark.mount


@pytest.fixture
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="yolofs-lists-") as name:
        if outcome(os.getxattr, name, XATTR) == "EOPNOTSUPP":
            do_without("the disk of temporary files knows no access control lists")
        for directory in ("base", "plain"):
            prepare(Path(name) / directory)
        yield Path(name) / "base"


@pytest.fixture
def view(base: Path, mounted: Mounter) -> MountedView:
    return mounted(make_transport=DirectTransport, xattrs=True)


@pytest.mark.parametrize("name", ["defaults", "none"])
def test_new_files_have_the_acl_or_mode_that_they_have_in_a_plain_directory(
    view: MountedView, base: Path, name: str
) -> None:
    found = compared(view, base, lambda at: makes(at / name))
    view.remount()
    view.commit()
    assert [(path.name, seen(path)) for path in sorted((base / name).rglob("*"))] == found


def test_lists_can_be_set_changed_and_taken_away(view: MountedView, base: Path) -> None:
    def probe(at: Path) -> list[Any]:
        results: list[Any] = [outcome(os.setxattr, at / "other", XATTR, packed(LISTED)), seen(at / "other")]
        os.chmod(at / "other", 0o600)
        results.append(seen(at / "other"))
        results += [outcome(os.setxattr, at / "none", DEFAULT_XATTR, packed(DEFAULT)), seen(at / "none")]
        results += [outcome(os.removexattr, at / "file", XATTR), seen(at / "file")]
        results.append((at / "file").read_bytes())
        return results

    compared(view, base, probe)
