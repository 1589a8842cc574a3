"""A project in which something is staged for every kind of step of a commit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tests.support.core_driver import CoreDriver
from tests.support.plain_directory import PlainDirectory


def populate(root: bytes) -> None:
    for directory in (b"d/sub", b"e", b"f"):
        os.makedirs(os.path.join(root, directory))
    for name in (b"a", b"b", b"c", b"d/x", b"d/sub/y", b"e/x", b"f/1", b"f/2"):
        Path(os.fsdecode(os.path.join(root, name))).write_bytes(b"base " + name)
    os.mkdir(os.path.join(root, b"g"))
    for number in (b"1", b"2", b"3"):
        Path(os.fsdecode(os.path.join(root, b"g/one" + number))).write_bytes(b"linked " + number)
        os.link(os.path.join(root, b"g/one" + number), os.path.join(root, b"g/other" + number))


def work(view: CoreDriver | PlainDirectory) -> None:
    """Leave something for every kind of step."""
    view.rename(b"a", b"t")
    view.rename(b"b", b"a")
    view.rename(b"t", b"b")
    view.overwrite(b"c", b"new c")
    view.chmod(b"e/x", 0o600)
    view.mkdir(b"new", 0o750)
    view.create(b"new/file", b"made", 0o640)
    view.link(b"new/file", b"e/link")
    view.symlink(b"somewhere", b"new/soft")
    view.rename(b"f", b"new/f")
    view.unlink(b"new/f/1")
    view.unlink(b"d/sub/y")
    view.rmdir(b"d/sub")
    view.unlink(b"d/x")
    view.rmdir(b"d")
    view.create(b"d", b"now a file", 0o644)
    view.utimes(b"e", 1_000_000_000_000_000_000)
    view.overwrite(b"g/one1", b"both change")
    view.write_without_name(b"g/one2", b"through a handle")
    view.unlink(b"g/one3")


def prepare(project: Path) -> dict[bytes, tuple[Any, ...]]:
    """Make a project with that work staged, and return what the view shows."""
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    populate(os.fsencode(project))
    view = CoreDriver(os.fsencode(project))
    work(view)
    expected = view.tree()
    view.close()
    return expected
