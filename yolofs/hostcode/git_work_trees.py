"""Finds the index of each work tree, also of linked ones and of submodules, whose ``.git`` is a
file.

All of it is read on the host, by absolute paths.  Anybody may have written these files, so what
they name may be any path.
"""

from __future__ import annotations

import contextlib
import os

from yolofs.system.plain_files import read_plain

_GIT = b".git"
_INDEX = b"index"
_LEADS = b"gitdir:"
_MOST_BYTES = 1 << 13
"""A file that leads to a directory has a path, and no more."""


def index_of(work_tree: bytes) -> bytes | None:
    """Return the path of the index of the work tree at a path, whether it is there or not; None if
    there is no work tree.
    """
    known = os.path.join(work_tree, _GIT)
    if os.path.isdir(known):
        return os.path.join(known, _INDEX)
    text = _text(known)
    if not text.startswith(_LEADS):
        return None
    return os.path.normpath(os.path.join(work_tree, text.removeprefix(_LEADS).strip(b" \r\n"), _INDEX))


def may_be_index(path: bytes) -> bool:
    """Tell whether the index of some work tree may lie at a path."""
    return path.endswith(b"/" + _INDEX) and b"/.git/" in b"/" + path


def work_tree_of(index: bytes) -> bytes | None:
    """Return the work tree whose index lies at a path, None if it is nobody's."""
    repository = os.path.dirname(index)
    if os.path.basename(repository) == _GIT:
        return os.path.dirname(repository)
    if os.path.basename(os.path.dirname(repository)) == b"worktrees":
        known = _normal(repository, _text(os.path.join(repository, b"gitdir")))
        return os.path.dirname(known) if os.path.basename(known) == _GIT else None
    return _of_submodule(repository) if b"/modules/" in repository else None


def repository_of(work_tree: bytes) -> bytes | None:
    """Return the repository that a linked work tree belongs to, the ``.git`` of another work tree;
    None of anything else, and if that repository has no such work tree.
    """
    index = index_of(work_tree)
    if index is None or work_tree_of(index) != work_tree:
        return None
    own = os.path.dirname(index)
    above, name = os.path.split(os.path.dirname(own))
    is_linked = name == b"worktrees" and _text(os.path.join(own, b"commondir")).rstrip(b"\r\n") == b"../.."
    return above if is_linked else None


def _of_submodule(repository: bytes) -> bytes | None:
    from yolofs.hostcode.git_config import MOST_BYTES, parse_config  # few have submodules

    try:
        text = read_plain(os.path.join(repository, b"config"), MOST_BYTES)
    except OSError:
        return None
    entries = parse_config(text) or ()
    values = [entry.value for entry in entries if entry.name == ("core", None, "worktree")]
    return _normal(repository, os.fsencode(values[-1])) if values and values[-1] else None


def _normal(directory: bytes, target: bytes) -> bytes:
    return os.path.normpath(os.path.join(directory, target.rstrip(b"\r\n")))


def _text(path: bytes) -> bytes:
    """Return the content of a small file, nothing if it cannot be read."""
    with contextlib.suppress(OSError):
        return read_plain(path, _MOST_BYTES)
    return b""
