"""Copying and comparing whole directory trees, for what cannot be renamed as it lies on another
device.

Somebody may be at work in them, in base as well as in kept trees: a process with a directory open
can write to it wherever it has been moved.  So each directory is opened by no link
(:mod:`yolofs.system.open_trees`), and what lies in it is reached by its name there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator

from yolofs.commit.apply.copy_log import Copied, FileNumbers, ObjectByDevice
from yolofs.commit.apply.ready import looks_of
from yolofs.store import copying
from yolofs.store.copying import PathDescriptor, at
from yolofs.store.restored import InodeCtime
from yolofs.system.open_trees import OpenTree, named


def copy_tree(src: bytes, dst: bytes) -> tuple[tuple[str, ...], list[Copied]]:
    """Make ``dst`` a copy of ``src``, of any type, with all below it; hard links within it stay
    together.

    Nothing follows symbolic links.  Returns what could not be carried over (see
    :mod:`yolofs.store.copying`), and which copies were made.

    Raises:
        FileExistsError: there is something at ``dst``.
        OSError: a part cannot be read or written; what was copied so far is left at ``dst``.
    """
    with OpenTree(src) as source, OpenTree(dst) as target:
        return _CopyingTree(source, target).copy()


class _CopyingTree:
    """One copy of a tree."""

    def __init__(self, source: OpenTree, target: OpenTree) -> None:
        self._source = source
        self._target = target
        self._links: dict[tuple[int, int], bytes] = {}
        self._directories: list[tuple[bytes, copying.Metadata]] = []
        self._left_out: list[str] = []
        self._copies: list[Copied] = []
        self._made: dict[bytes, tuple[int, int]] = {}
        """Which directories were made: device and inode number."""
        self._overlays: dict[bytes, bool] = {}

    def copy(self) -> tuple[tuple[str, ...], list[Copied]]:
        todo: list[bytes] = []
        with self._source.place(b"") as src, self._target.place(b"") as dst:
            if self._is_directory(b"", src, dst):
                todo.append(b"")
        while todo:
            rel = todo.pop()
            with self._source.directory(rel) as src_fd, self._new_directory(rel) as dst_fd:
                self._directories.append((rel, copying.read_metadata(src_fd)))
                for name in map(os.fsencode, os.listdir(src_fd)):
                    inner = rel + b"/" + name
                    with named(self._source.top + inner):
                        if self._is_directory(inner, (src_fd, name), (dst_fd, name)):
                            todo.append(inner)
        for rel, of_directory in reversed(self._directories):
            with self._new_directory(rel) as fd:
                self._left_out += copying.write_metadata(fd, of_directory)
        return tuple(dict.fromkeys(self._left_out)), self._copies

    @contextlib.contextmanager
    def _new_directory(self, rel: bytes) -> Iterator[int]:
        """Give a directory that was made here: somebody may have put another in its place."""
        with self._target.directory(rel) as fd:
            st = os.fstat(fd)
            if (st.st_dev, st.st_ino) != self._made[rel]:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            yield fd

    def _is_directory(self, rel: bytes, src: tuple[int, bytes], dst: tuple[int, bytes]) -> bool:
        """Copy what is at a place, a directory without what is in it; tell whether it is one."""
        src_fd, src_name = src
        dst_fd, dst_name = dst
        st = os.stat(src_name, dir_fd=src_fd, follow_symlinks=False)
        is_directory = stat.S_ISDIR(st.st_mode)
        if is_directory:
            os.mkdir(dst_name, 0o700, dir_fd=dst_fd)
        elif (first := self._links.get((st.st_dev, st.st_ino))) is not None:
            with self._target.place(first) as (fd, name):
                os.link(name, dst_name, src_dir_fd=fd, dst_dir_fd=dst_fd, follow_symlinks=False)
        else:
            self._left_out += copying.copy_node(at(src_fd, src_name), at(dst_fd, dst_name))
            if st.st_nlink > 1:
                self._links[st.st_dev, st.st_ino] = rel
        now = os.stat(dst_name, dir_fd=dst_fd, follow_symlinks=False)
        was = ObjectByDevice.at(at(src_fd, src_name), st, self._overlays)
        copy = ObjectByDevice.at(at(dst_fd, dst_name), now, self._overlays)
        if is_directory:
            self._made[rel] = now.st_dev, now.st_ino
        links = 1 if is_directory else st.st_nlink
        self._copies.append(Copied(was, links, copy, looks_of(now) if links > 1 else None))
        return is_directory


def names_elsewhere(top: bytes, goes: Callable[[bytes], bool]) -> Counter[FileNumbers]:
    """Count the other names (hard links) of each file that lies in a tree, or is it.

    ``goes`` tells whether something takes the place of what has a path in the tree.  Files of which
    all names in there go are left out.

    Raises:
        OSError: a part cannot be looked at.
    """
    left, stays = Counter[FileNumbers](), set[FileNumbers]()
    with OpenTree(top) as tree:
        for path, st in _all_in(tree):
            if not stat.S_ISDIR(st.st_mode) and st.st_nlink > 1:
                file = st.st_dev, st.st_ino
                left[file] = left.get(file, st.st_nlink) - 1
                if not goes(path):
                    stays.add(file)
    return Counter({file: count for file, count in left.items() if count > 0 and file in stays})


def _all_in(tree: OpenTree) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield all that is in a tree, with its attributes, beginning with it itself."""
    st = tree.lstat(b"")
    yield b"", st
    if stat.S_ISDIR(st.st_mode):
        yield from tree.below()


def inode_ctimes_below(directory: bytes) -> set[InodeCtime]:
    """Return the inode ctimes of all that lies in a directory, as far as that can be looked at."""
    with OpenTree(directory) as tree:
        return {(st.st_ino, st.st_ctime_ns) for _, st in tree.below(passes_over=True)}


def are_alike(one: bytes, other: bytes) -> bool:
    """Tell whether two trees have the same names, and files of the same kind, size and time;
    contents are not read.

    Raises:
        OSError: a part cannot be looked at.
    """
    todo = [b""]
    with OpenTree(one) as first, OpenTree(other) as second:
        while todo:
            rel = todo.pop()
            left, right = first.lstat(rel), second.lstat(rel)
            if stat.S_IFMT(left.st_mode) != stat.S_IFMT(right.st_mode):
                return False
            if not stat.S_ISDIR(left.st_mode):
                if (left.st_size, left.st_mtime_ns) != (right.st_size, right.st_mtime_ns):
                    return False
                continue
            names = first.names(rel)
            if sorted(names) != sorted(second.names(rel)):
                return False
            todo += [rel + b"/" + name for name in names]
    return True


def held_pairs(one: bytes, other: bytes) -> Iterator[tuple[bytes, PathDescriptor, PathDescriptor]]:
    """Yield what lies in two trees that are alike, symbolic links left out: its path in them, and
    what each has there, held until the next one is asked for.

    Raises:
        OSError: a part cannot be looked at.
    """
    with OpenTree(one) as first, OpenTree(other) as second:
        for rel, st in _all_in(first):
            if stat.S_ISLNK(st.st_mode):
                continue
            with (
                first.place(rel) as left,
                second.place(rel) as right,
                copying.path_descriptor(at(*left)) as thing,
                copying.path_descriptor(at(*right)) as partner,
            ):
                yield rel, thing, partner
