"""Copying and removing whole directory trees, for what cannot be renamed as it lies on another
device.
"""

from __future__ import annotations

import contextlib
import os
import stat

from yolofs.commit.apply.copy_log import Copied, ObjectByDevice
from yolofs.store import copying
from yolofs.store.restored import Stamp


def copy_tree(src: bytes, dst: bytes) -> tuple[tuple[str, ...], list[Copied]]:
    """Make ``dst`` a copy of ``src``, of any type, with all below it; hard links within it stay
    together.

    Nothing follows symbolic links.  Returns what could not be carried over (see
    :mod:`yolofs.store.copying`), and which copies were made.

    Raises:
        FileExistsError: there is something at ``dst``.
        OSError: a part cannot be read or written; what was copied so far is left at ``dst``.
    """
    links: dict[tuple[int, int], bytes] = {}
    directories: list[tuple[bytes, copying.Metadata]] = []
    left_out: list[str] = []
    copies: list[Copied] = []
    overlays: dict[bytes, bool] = {}
    todo = [b""]
    while todo:
        rel = todo.pop()
        metadata = os.lstat(src + rel)
        if stat.S_ISDIR(metadata.st_mode):
            directories.append((rel, copying.read_metadata(src + rel, st=metadata)))
            os.mkdir(dst + rel, 0o700)
            todo += [rel + b"/" + os.fsencode(name) for name in os.listdir(src + rel)]
        elif (first := links.get((metadata.st_dev, metadata.st_ino))) is not None:
            os.link(dst + first, dst + rel, follow_symlinks=False)
        else:
            left_out += copying.copy_node(src + rel, dst + rel)
            if metadata.st_nlink > 1:
                links[metadata.st_dev, metadata.st_ino] = rel
        names = 1 if stat.S_ISDIR(metadata.st_mode) else metadata.st_nlink
        copy = ObjectByDevice.at(dst + rel, os.lstat(dst + rel), overlays)
        copies.append(Copied(ObjectByDevice.at(src + rel, metadata, overlays), names, copy))
    for rel, of_directory in reversed(directories):
        left_out += copying.write_metadata(dst + rel, of_directory)
    return tuple(dict.fromkeys(left_out)), copies


def has_names_elsewhere(top: bytes) -> bool:
    """Tell whether a file, or one in a directory, has other names (hard links) than those in there.

    Raises:
        OSError: a part cannot be looked at.
    """
    left: dict[tuple[int, int], int] = {}
    todo = [top]
    while todo:
        path = todo.pop()
        st = os.lstat(path)
        if stat.S_ISDIR(st.st_mode):
            todo += [os.path.join(path, os.fsencode(name)) for name in os.listdir(path)]
        elif st.st_nlink > 1:
            file = st.st_dev, st.st_ino
            left[file] = left.get(file, st.st_nlink) - 1
    return any(left.values())


def stamps_below(directory: bytes) -> set[Stamp]:
    """Return the stamps of all that lies in a directory, as far as that can be looked at."""
    found: set[Stamp] = set()
    todo = [directory]
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                st = entry.stat(follow_symlinks=False)
                found.add((st.st_ino, st.st_ctime_ns))
                if stat.S_ISDIR(st.st_mode):
                    todo.append(entry.path)
    return found


def remove_tree(path: bytes) -> None:
    """Remove ``path``, of any type, with all below it, without following symbolic links.

    Raises:
        OSError: a part cannot be removed; the rest is partly gone.
    """
    directories: list[bytes] = []
    todo = [path]
    while todo:
        path = todo.pop()
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        directories.append(path)
        todo += [path + b"/" + os.fsencode(name) for name in _list_to_remove(path)]
    for path in reversed(directories):
        os.rmdir(path)


def _list_to_remove(directory: bytes) -> list[bytes]:
    st = os.lstat(directory)
    if st.st_uid == os.geteuid() and st.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(directory, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
    return [os.fsencode(name) for name in os.listdir(directory)]


def are_alike(one: bytes, other: bytes) -> bool:
    """Tell whether two trees have the same names, and files of the same kind, size and time;
    contents are not read.

    Raises:
        OSError: a part cannot be looked at.
    """
    todo = [b""]
    while todo:
        rel = todo.pop()
        left, right = os.lstat(one + rel), os.lstat(other + rel)
        if stat.S_IFMT(left.st_mode) != stat.S_IFMT(right.st_mode):
            return False
        if not stat.S_ISDIR(left.st_mode):
            if (left.st_size, left.st_mtime_ns) != (right.st_size, right.st_mtime_ns):
                return False
            continue
        names = os.listdir(one + rel)
        if sorted(names) != sorted(os.listdir(other + rel)):
            return False
        todo += [rel + b"/" + os.fsencode(name) for name in names]
    return True
