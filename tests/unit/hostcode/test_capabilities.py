"""File capabilities, which give whoever runs a file more rights than they have."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from tests.support.scribe import Scribe
from tests.unit.hostcode.found_marks import marks, write
from yolofs.changes.changes import Aspect, ChangeKind, compare
from yolofs.state.tree import Tree

CAPABILITY = "security.capability"
SETUID = struct.pack("<IIIII", 0x02000001, 1 << 7, 0, 0, 0)


@pytest.mark.root_only
def test_a_file_with_capabilities_is_marked_if_somebody_may_run_it(scribe: Scribe) -> None:
    top = Path(os.fsdecode(scribe.base.root)) / "home/u/p"
    (top / "dir").mkdir(parents=True)
    (top / "dir/moved").touch(mode=0o755)
    os.setxattr(top / "dir/moved", CAPABILITY, SETUID)
    for name, mode in {"new": 0o755, "text": 0o644}.items():
        write(scribe, f"p/{name}", mode=mode)
        os.setxattr(scribe.meta(f"home/u/p/{name}".encode()), CAPABILITY, SETUID)
    scribe.rename(b"home/u/p/dir", b"home/u/p/other")
    assert marks(scribe) == {"p/new": "capability", "p/other": "capability"}


@pytest.mark.root_only
@pytest.mark.parametrize("name", [CAPABILITY, "trusted.note"])
def test_a_file_that_gets_or_loses_nothing_but_capabilities_is_changed(scribe: Scribe, name: str) -> None:
    top = Path(os.fsdecode(scribe.base.root))
    for path in ("gets", "loses", "keeps"):
        (top / path).touch(mode=0o755)
        if path != "gets":
            os.setxattr(top / path, name, SETUID)
        scribe.copy_up(path.encode())
    os.setxattr(scribe.meta(b"gets"), name, SETUID)
    os.removexattr(scribe.meta(b"loses"), name)
    found = compare(Tree(), scribe.tree, scribe.base, scribe.store)
    changed = {os.fsdecode(one.path): one.metadata for one in found if one.kind is ChangeKind.METADATA}
    assert changed == {"gets": (Aspect.XATTRS,), "loses": (Aspect.XATTRS,)}
