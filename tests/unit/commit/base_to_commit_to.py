"""A base to commit to, and a look at what came of it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.commit_model import CommitScribe, scan
from yolofs.paths import RelPath

OLD = 1_400_000_000_000_000_007
"""When all of base was last changed."""


def open_scribe(tmp_path: Path) -> CommitScribe:
    """Give all in base the same old time, and open it."""
    root = os.fsencode(tmp_path / "base")
    for path in sorted(scan(root), reverse=True):
        os.utime(os.path.join(root, path), ns=(OLD, OLD), follow_symlinks=False)
    return CommitScribe(root, os.fsencode(tmp_path / "store"))


def read(scribe: CommitScribe, path: bytes) -> bytes:
    return Path(os.fsdecode(scribe.base.path(RelPath(path)))).read_bytes()


def stat_of(scribe: CommitScribe, path: bytes) -> os.stat_result:
    return os.lstat(scribe.base.path(RelPath(path)))


def check(scribe: CommitScribe, parking: bytes) -> None:
    expected = scribe.expected()
    scribe.commit(parking)
    assert scan(scribe.base.root) == expected


def work_on_everything(scribe: CommitScribe) -> None:
    """Leave steps of every type to do."""
    root = scribe.base.root
    os.link(os.path.join(root, b"b"), os.path.join(root, b"e", b"b"))
    scribe.base.refresh_mounts()
    scribe.write(b"d/sub/y", b"new")  # replaced
    scribe.write(b"d/new", b"new")  # created
    scribe.link(b"d/new", b"e/linked")
    scribe.rename(b"d/sub", b"moved")
    scribe.remove(b"d/x")  # removed
    scribe.rename(b"moved/y", b"d/x")  # created over something
    scribe.mkdir(b"made")
    scribe.write(b"b", b"rewritten")
    scribe.chmod(b"a", 0o600)  # duplicated
    os.link(os.path.join(root, b"a"), os.path.join(root, b"e", b"a"))  # by the host, too late to be one file
    scribe.chmod(b"e/a", 0o640)
    scribe.symlink(b"made/link", b"../a")
