"""A project in which something of every kind is staged, metadata among it, and the calls that set
metadata.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.commit_model import scan
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.memory_disk import memory_directory
from yolofs.commit.apply import commit_directory

OTHER = 12345
"""A user and a group that are nobody's."""
CALLS = {"utime": "times", "chmod": "mode", "setxattr": "xattr user.note"}
"""How what a call sets is named to people."""
if os.geteuid() == 0:
    CALLS["chown"] = "owner"


@contextmanager
def staged_metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """Give the project's path; it lies in memory, and so does the state directory."""
    with memory_directory() as directory:
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        path = os.fsencode(directory / "project")
        os.mkdir(path)
        populate(path)
        for name in (b"c", b"e/x", b"g/one1"):
            os.setxattr(os.path.join(path, name), "user.note", b"before")
        view = CoreDriver(path)
        for place in scan(path):
            os.utime(os.path.join(path, place), ns=(0, 1_400_000_000_000_000_000), follow_symlinks=False)
        work(view)
        view.chmod(b"g/one1", 0o640)
        for name in (b"c", b"e/x", b"g/one1"):
            view.setxattr(name, b"user.note", b"after")
            if os.geteuid() == 0:
                view.chown(name, OTHER, OTHER)
        view.close()
        yield path


def fails_at_the_end(directory: bytes, name: bytes, text: bytes, *, durable: bool = True) -> None:
    """Write a file of a commit as ever, but fail at the one that says that the commit is done."""
    if name == commit_directory.DONE:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    commit_directory.write_new(directory, name, text, durable=durable)
