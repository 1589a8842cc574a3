"""Somebody on the host at work in base: what he writes there, and what he has thrown away
himself.
"""

from __future__ import annotations

import os
import shutil
import stat
from typing import TypeAlias

from hypothesis import event, note
from hypothesis import strategies as st

from tests.support.commit_model import scan
from yolofs.paths import is_below

Edit: TypeAlias = tuple[str, int, int]
"""The operation, and two numbers that choose among the files there are by then."""

KINDS = (
    *("write", "append", "write back in time", "replace", "save", "create", "remove", "chmod", "utime"),
    *("link", "mkdir", "move", "rename", "rename over", "symlink", "rmtree"),
)
_ROUGH = frozenset({"move", "symlink", "rmtree"})

edits = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5)
_RENAMING = frozenset({"link", "save", "rename", "rename over", "symlink"})
edits_without_renaming = edits.map(lambda some: [edit for edit in some if edit[0] not in _RENAMING])
"""A staged file with another name in base is written in place all the same, so that name follows
it; and after a rename the view is another one.
"""
works = st.lists(edits, min_size=1, max_size=3)
"""What is done, one time after the other."""


class Host:
    """Somebody who changes base; no two of the contents that he writes are the same."""

    def __init__(self, root: bytes) -> None:
        self.written: set[bytes] = set()
        """What he wrote and has not thrown away or written over since."""
        self.thrown_away: set[bytes] = set()
        """The content of others that he has removed, or written over."""
        self.touched: set[bytes] = set()
        """The paths that he changed."""
        self._root = root
        self._count = 0

    def act(self, some: list[Edit]) -> None:
        """Do some of it."""
        for edit in some:
            self._do(*edit)

    def _do(self, kind: str, first: int, second: int) -> None:
        nodes = {path: node for path, node in scan(self._root).items() if _is_seen(path)}
        files = sorted(path for path, node in nodes.items() if node.kind == stat.S_IFREG)
        directories = sorted(path for path, node in nodes.items() if node.kind == stat.S_IFDIR)
        new = os.path.join(directories[second % len(directories)], b"host's %d" % self._count)
        if kind in ("create", "mkdir"):
            pass
        elif kind in _ROUGH or (kind in ("chmod", "utime") and first % 2):
            directories.remove(b"")
            if not directories:
                return
        elif not files:
            return
        path = files[first % len(files)] if files else b""
        directory = directories[first % len(directories)] if directories else b""
        match kind:
            case "write" | "append":
                with open(self._place(path), "rb") as file:
                    before = file.read()
                self._gone(path)
                self._write(path, before if kind == "append" else b"")
            case "write back in time":  # in place, as many bytes, and the time is set back
                st = os.stat(self._place(path))
                self._gone(path)
                self._write(path, size=st.st_size)
                os.utime(self._place(path), ns=(st.st_atime_ns, st.st_mtime_ns))
            case "replace":
                self._gone(path)
                os.unlink(self._place(path))
                self._write(path)
            case "save":  # as editors do
                self._gone(path)
                self._write(new)
                os.rename(self._place(new), self._place(path))
            case "rename":
                os.rename(self._place(path), self._place(new))
                self.touched.add(new)
            case "rename over":
                over = files[second % len(files)]
                if not os.path.samefile(self._place(path), self._place(over)):
                    self._gone(over)
                    os.rename(self._place(path), self._place(over))
                self.touched.add(over)
            case "symlink":  # in the place of a directory, which goes elsewhere
                path = directory
                if is_below(new, directory):
                    return
                os.rename(self._place(directory), self._place(new))
                os.symlink(self._place(new), self._place(directory))
            case "create":  # under a name of its own, or one that the commit may want
                path = new if first % 2 else os.path.join(os.path.dirname(new), (b"a", b"b", b"c", b"x")[first % 4])
                if path in nodes:
                    return
                self._write(path)
            case "remove":
                self._gone(path)
                os.unlink(self._place(path))
            case "chmod" | "utime":
                path = directory if first % 2 else path
                if kind == "chmod":
                    os.chmod(self._place(path), 0o711 if path == directory else 0o640)
                else:
                    os.utime(self._place(path), ns=(0, 1_450_000_000_000_000_000 + self._count))
            case "link":
                os.link(self._place(path), self._place(new))
                self.touched.add(new)
            case "mkdir":
                path = new
                os.mkdir(self._place(new))
            case "move":
                path = directory
                if is_below(new, directory):
                    return
                os.rename(self._place(directory), self._place(new))
            case _:
                path = directory
                for below, node in scan(self._root).items():  # what is set aside in there, too
                    if is_below(below, directory) and node.kind == stat.S_IFREG:
                        self._gone(below)
                shutil.rmtree(self._place(directory))
        self.touched.add(path)
        self._count += 1
        event(f"the host did {kind}")
        note(f"the host did {kind} at {path!r} {new!r}")

    def _place(self, path: bytes) -> bytes:
        return os.path.join(self._root, path) if path else self._root

    def _write(self, path: bytes, before: bytes = b"", size: int = 0) -> None:
        content = (before + b"the host's %d\n" % self._count).rjust(size)
        with open(self._place(path), "wb") as file:
            file.write(content)
        self.written.add(content)

    def _gone(self, path: bytes) -> None:
        """Note that the file at a path is about to be thrown away; it may live on under other
        names.
        """
        with open(self._place(path), "rb") as file:
            content = file.read()
        self.written.discard(content)
        self.thrown_away.add(content)


def _is_seen(path: bytes) -> bool:
    """Tell whether it is no name that the commit has set something aside under, or below one."""
    return not any(name.startswith(b".yolofs-") for name in path.split(b"/"))
