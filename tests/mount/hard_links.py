"""A view of files that have several names in base."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.in_process import MountedView
from yolofs.changes.changes import Change, compare
from yolofs.state.tree import Tree

Mounter = Callable[..., MountedView]

NAMES = ("one", "d/two", "far/away/three")
"""Of one file, in base."""
ORDERS = (("one", "d/two"), ("d/two", "one"), ())
"""In which two names are looked at before one of them is renamed; by none the kernel knows the
file.
"""


class Links:
    """A view of a base with one file under three names, and one that has a single name beside
    it.
    """

    def __init__(self, base: Path, mounted: Mounter) -> None:
        self.base = base
        (base / "d").mkdir()
        (base / "far/away").mkdir(parents=True)
        (base / "one").write_bytes(b"base")
        (base / "single").write_bytes(b"single")
        for name in NAMES[1:]:
            (base / name).hardlink_to(base / "one")
        self.number = (base / "one").stat().st_ino
        self.view = mounted(base_timeout_s=0.0)
        self.root = Path(os.fsdecode(self.view.mountpoint))

    def check(self, content: bytes, *names: str, nlink: int | None = None) -> None:
        """These names are one file with this content; it has as many links as there are names,
        unless told.
        """
        for name in reversed(names):
            st = (self.root / name).stat()
            assert (self.root / name).read_bytes() == content, name
            assert (st.st_ino, st.st_nlink) == (self.number, len(names) if nlink is None else nlink), name

    def check_base(self, content: bytes, *names: str) -> None:
        """In base, these names are one file, and it has no other names."""
        numbers = {(self.base / name).stat().st_ino for name in names}
        assert len(numbers) == 1
        for name in names:
            assert (self.base / name).read_bytes() == content, name
            assert (self.base / name).stat().st_nlink == len(names)

    def changes(self) -> list[Change]:
        return self.view.mount.call(
            lambda: compare(Tree(), self.view.session.state(), self.view.session.base, self.view.session.store)
        )

    def letters(self) -> list[tuple[str, str]]:
        return [(change.kind.value, os.fsdecode(change.path)) for change in self.changes() if change.path != b"d"]
