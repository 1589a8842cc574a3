"""Edits by the host at a path whose kind a commit changes (:mod:`tests.support.kinds_matrix`), and
around it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from typing import TypeAlias

from tests.support.kinds_matrix import PATH

Edit: TypeAlias = Callable[[bytes], object]
"""Is given the root of base."""


class _Count:
    """Numbers what is written, so that no two contents are the same."""

    written = 0


def _write(path: bytes) -> None:
    _Count.written += 1
    with open(path, "wb") as file:
        file.write(b"the host's %d\n" % _Count.written)


def _it(root: bytes) -> bytes:
    return os.path.join(root, PATH)


def _files(root: bytes) -> list[bytes]:
    """Return the regular files at the path, or below it."""
    top = _it(root)
    found = [top] if os.path.lexists(top) and stat.S_ISREG(os.lstat(top).st_mode) else []
    for directory, _, names in os.walk(top):
        paths = (os.path.join(directory, name) for name in names)
        found += [path for path in paths if stat.S_ISREG(os.lstat(path).st_mode)]
    return sorted(found)


def _write_to_all(root: bytes) -> None:
    for path in _files(root):
        _write(path)


def _replace_all(root: bytes) -> None:
    for path in _files(root):
        os.unlink(path)
        _write(path)


def _save_all(root: bytes) -> None:
    for path in _files(root):
        _write(path + b"~")
        os.rename(path + b"~", path)


def _give_names(root: bytes) -> None:
    for number, path in enumerate(_files(root)):
        os.link(path, os.path.join(root, b"host's name %d" % number))


def _remove(root: bytes) -> None:
    top = _it(root)
    if os.path.isdir(top) and not os.path.islink(top):
        shutil.rmtree(top)
    elif os.path.lexists(top):
        os.unlink(top)


def _put_file(root: bytes) -> None:
    _remove(root)
    _write(_it(root))


def _put_directory(root: bytes) -> None:
    _remove(root)
    os.mkdir(_it(root))
    _write(os.path.join(_it(root), b"same"))


def _put_link(root: bytes) -> None:
    _remove(root)
    os.symlink(b"../two", _it(root))


def _put_hard_link(root: bytes) -> None:
    _remove(root)
    os.link(os.path.join(root, b"two"), _it(root))


def _move(root: bytes) -> None:
    if os.path.lexists(_it(root)):
        os.rename(_it(root), _it(root) + b" moved")


def _move_and_put(root: bytes) -> None:
    _move(root)
    _write(_it(root))


def _put_into(root: bytes) -> None:
    if os.path.isdir(_it(root)) and not os.path.islink(_it(root)):
        _write(os.path.join(_it(root), b"the host's"))


def _move_above(root: bytes) -> None:
    os.rename(os.path.join(root, b"d"), os.path.join(root, b"moved"))


def _put_above(root: bytes) -> None:
    _move_above(root)
    os.mkdir(os.path.join(root, b"d"))
    _write(_it(root))


def _link_above(root: bytes) -> None:
    _move_above(root)
    os.symlink(b"moved", os.path.join(root, b"d"))


def _write_to_others(root: bytes) -> None:
    for name in (b"one", b"two"):
        _write(os.path.join(root, name))


def _replace_others(root: bytes) -> None:
    for name in (b"one", b"two"):
        os.unlink(os.path.join(root, name))
        _write(os.path.join(root, name))


EDITS: dict[str, Edit] = {
    "writes to it": _write_to_all,
    "replaces it": _replace_all,
    "saves it as editors do": _save_all,
    "gives it other names": _give_names,
    "removes it": _remove,
    "puts a file there": _put_file,
    "puts a directory there": _put_directory,
    "puts a symlink there": _put_link,
    "puts a hard link there": _put_hard_link,
    "moves it": _move,
    "moves it and puts a file there": _move_and_put,
    "puts a file into it": _put_into,
    "moves the directory above": _move_above,
    "moves the directory above and makes another": _put_above,
    "moves the directory above and leaves a symlink": _link_above,
    "writes to other files": _write_to_others,
    "replaces other files": _replace_others,
}
