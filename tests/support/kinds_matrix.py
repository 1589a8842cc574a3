"""Every pair of kinds that a path can have before a commit and after it, for whatever is done with
the commit then.
"""

from __future__ import annotations

import enum
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.commit_model import CommitScribe, Node, scan
from yolofs.paths import join

PATH = b"d/it"
"""The path whose kind changes."""
OLD = 1_400_000_000_000_000_007


class Kind(enum.Enum):
    """What a path can be."""

    ABSENT = "absent"
    FILE = "file"
    EMPTY_DIRECTORY = "empty directory"
    FULL_DIRECTORY = "full directory"
    SYMLINK = "symlink"
    DANGLING_SYMLINK = "dangling symlink"
    FIFO = "fifo"
    HARD_LINK = "hard link"


class State(NamedTuple):
    """All of base: the nodes that a commit makes, and the identities of things."""

    nodes: dict[bytes, Node]
    inodes: dict[bytes, int]


class Case(NamedTuple):
    """One pair, staged."""

    before: Kind
    after: Kind
    scribe: CommitScribe
    parking: bytes
    """The commit's directory, not there yet."""
    old: State
    """What base was when this was staged."""
    new: dict[bytes, Node]
    """What base is to be after a commit."""

    def now(self) -> State:
        """Return what base is."""
        return look(self.scribe.base.root)


def cases(directory: Path, before: Kind) -> Iterator[Case]:
    """Yield the cases in which base has ``before``, each in a directory of its own below
    ``directory``.
    """
    for after in Kind:
        place = directory / f"{before.value} to {after.value}"
        root = os.fsencode(place / "base")
        os.makedirs(os.path.join(root, b"d"))
        for name in (b"one", b"two"):
            Path(os.fsdecode(os.path.join(root, name))).write_bytes(b"base " + name)
        _in_base(root, before)
        for path in sorted(scan(root), reverse=True):
            os.utime(os.path.join(root, path), ns=(OLD, OLD), follow_symlinks=False)
        scribe = CommitScribe(root, os.fsencode(place / "store"))
        _in_view(scribe, before, after)
        yield Case(before, after, scribe, os.fsencode(place / "commit"), look(root), scribe.expected())


def kind_of(nodes: dict[bytes, Node]) -> Kind:
    """Return what a scan has at :data:`PATH`."""
    node = nodes.get(PATH)
    if node is None:
        return Kind.ABSENT
    if node.kind == stat.S_IFDIR:
        return Kind.FULL_DIRECTORY if any(path.startswith(PATH + b"/") for path in nodes) else Kind.EMPTY_DIRECTORY
    if node.kind == stat.S_IFLNK:
        target = os.path.normpath(os.path.join(os.path.dirname(PATH), node.content))
        return Kind.SYMLINK if target in nodes else Kind.DANGLING_SYMLINK
    if node.kind == stat.S_IFIFO:
        return Kind.FIFO
    assert node.kind == stat.S_IFREG
    return Kind.HARD_LINK if len(node.links) > 1 else Kind.FILE


def pairs() -> set[tuple[Kind, Kind]]:
    """Return all pairs that there are."""
    return set(itertools.product(Kind, Kind))


def look(root: bytes) -> State:
    """Return what a directory is."""
    nodes = scan(root)
    return State(nodes, {path: os.lstat(os.path.join(root, path)).st_ino for path in nodes})


def _in_base(root: bytes, kind: Kind) -> None:
    path = os.path.join(root, PATH)
    match kind:
        case Kind.ABSENT:
            pass
        case Kind.FILE:
            Path(os.fsdecode(path)).write_bytes(b"base's")
        case Kind.EMPTY_DIRECTORY:
            os.mkdir(path, 0o750)
        case Kind.FULL_DIRECTORY:
            os.makedirs(os.path.join(path, b"sub"))
            for name in (b"same", b"sub/deep"):
                Path(os.fsdecode(os.path.join(path, name))).write_bytes(b"base's " + name)
        case Kind.SYMLINK:
            os.symlink(b"../one", path)
        case Kind.DANGLING_SYMLINK:
            os.symlink(b"nowhere", path)
        case Kind.FIFO:
            os.mkfifo(path, 0o640)
        case Kind.HARD_LINK:
            os.link(os.path.join(root, b"one"), path)


def _in_view(scribe: CommitScribe, before: Kind, after: Kind) -> None:
    """Make the path of the kind ``after``, and never what it was: where the kind is the same, it is
    another of it.
    """

    def change_what_is_in_it() -> None:
        scribe.remove(join(PATH, b"sub"))
        scribe.write(join(PATH, b"same"), b"new")

    in_place: dict[Kind, Callable[[], object]] = {
        Kind.FILE: lambda: scribe.write(PATH, b"the view's"),
        Kind.EMPTY_DIRECTORY: lambda: scribe.chmod(PATH, 0o700),
        Kind.FULL_DIRECTORY: change_what_is_in_it,
        Kind.FIFO: lambda: scribe.chmod(PATH, 0o600),
    }
    if before is after and after in in_place:
        in_place[after]()
        return
    if before is not Kind.ABSENT:
        scribe.remove(PATH)
    match after:
        case Kind.ABSENT:
            pass
        case Kind.FILE:
            scribe.write(PATH, b"the view's", 0o600)
        case Kind.EMPTY_DIRECTORY:
            scribe.mkdir(PATH, 0o700)
        case Kind.FULL_DIRECTORY:
            scribe.mkdir(PATH, 0o755)
            scribe.mkdir(join(PATH, b"other"), 0o711)
            for name in (b"same", b"other/deep"):
                scribe.write(join(PATH, name), b"the view's " + name)
        case Kind.SYMLINK:
            scribe.symlink(PATH, b"../two")
        case Kind.DANGLING_SYMLINK:
            scribe.symlink(PATH, b"nobody")
        case Kind.FIFO:
            scribe.mkfifo(PATH)
        case Kind.HARD_LINK:
            scribe.link(b"two", PATH)
