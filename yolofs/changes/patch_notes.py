"""What a patch leaves out because git has no words for it, in sentences for the user."""

from __future__ import annotations

import re
import stat

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.paths import ROOT, RelPath, display, is_below

_GIT_MODES = frozenset({0o644, 0o755, 0o664, 0o775})
"""Modes that a file from a patch has under the usual umasks."""
_GIT_DIRECTORY_MODES = frozenset({0o755, 0o775})
_TYPE_NAMES = {
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}

# As verify_path() of git's read-cache.c, which keeps patches out of repositories' own files, the
# names included that would come to the same on NTFS (is_ntfs_dotgit, is_ntfs_dotgitmodules in
# path.c).
_REFUSED_NAME = rb"(\.git|git~1)[ .]*([:\\].*)?"
_short_names = b"|".join(b"gi7eba"[:length] + b"~[1-9]" + b"[0-9]" * (6 - length) for length in range(7))
_REFUSED_LINK = rb"(\.gitmodules|gitmod~[1-4]|%b)[ .]*(:.*)?" % _short_names


def _refused_name(name: bytes) -> bool:
    """Tell whether git refuses a name; the pattern is compiled only for one that begins like it."""
    is_like_it = name[:5].lower().startswith((b".git", b"git~1"))
    return is_like_it and re.fullmatch(_REFUSED_NAME, name, re.IGNORECASE | re.DOTALL) is not None


def _refused_link(name: bytes) -> bool:
    return re.fullmatch(_REFUSED_LINK, name, re.IGNORECASE | re.DOTALL) is not None


def is_refused_by_git(path: bytes, *, is_symlink: bool) -> bool:
    """Tell whether ``git apply`` refuses a patch because of this path in it."""
    if any(_refused_name(name) for name in path.split(b"/")):
        return True
    return is_symlink and _refused_link(path.rpartition(b"/")[2])


def _refused_part(path: bytes) -> bytes:
    """Return a path up to the first name that git refuses, be it the last name."""
    names = path.split(b"/")
    refused = next((depth for depth, name in enumerate(names, 1) if _refused_name(name)), len(names))
    return b"/".join(names[:refused])


class Notes:
    """Collects the notes of one patch; they name paths as it does, from the directory ``prefix``
    on.
    """

    def __init__(self, prefix: RelPath = ROOT) -> None:
        self._prefix = prefix
        self._notes: list[str] = []
        self._filled: set[bytes] = set()
        """Directories that the patch puts a file into."""
        self._emptied: set[bytes] = set()
        """Directories that the patch takes a file from."""
        self._new_directories: list[bytes] = []
        self._old_directories: list[bytes] = []
        self._refused: dict[bytes, list[bytes]] = {}
        """The paths that git refuses, by the outermost name that it refuses them for."""

    def add(self, note: str) -> None:
        """Add a sentence (without a full stop)."""
        self._notes.append(note)

    def all(self) -> list[str]:
        """Return all notes, those on refused paths and on empty directories last."""
        refused = [
            f"{self._named(paths[0])} is a path that git refuses in patches"
            if len(paths) == 1
            else f"{self._named(part)} holds {len(paths)} changes that git refuses in patches"
            for part, paths in self._refused.items()
        ]
        new = [
            f"{self._named(path)} is an empty directory" for path in self._new_directories if path not in self._filled
        ]
        gone = [
            f"{self._named(path)} is an empty directory that was deleted"
            for path in self._old_directories
            if path not in self._emptied
        ]
        return self._notes + refused + new + gone

    def add_change(self, change: Change, *, has_old: bool, has_new: bool, is_outside: bool) -> None:
        """Note what a patch cannot express of a change.  ``has_old`` and ``has_new`` tell which
        side it can express at all.
        """
        if is_outside:
            self.add(f"{display(change.path)} is outside of the patch's directory")
            return
        if has_old:
            _add_parents(self._emptied, change.old_path or change.path)
        if has_new:
            _add_parents(self._filled, change.path)
        if change.unseen_names:
            self.add(f"{change.unseen_names} more of the names of {self._named(change.path)} in base change with it")
        self._see_directories(change)
        self._see_type(change, has_old=has_old, has_new=has_new)
        if change.new is not None and (has_new or change.new.type == stat.S_IFDIR):
            self._see_metadata(change, change.new)

    def _named(self, path: bytes) -> str:
        if not self._prefix or not is_below(path, self._prefix):
            return display(path)
        return display(path[len(self._prefix) + 1 :] or b".")

    def _see_directories(self, change: Change) -> None:
        if change.kind in (ChangeKind.MODIFIED, ChangeKind.METADATA) or is_refused_by_git(
            change.path, is_symlink=False
        ):
            return
        if change.new is not None and change.new.type == stat.S_IFDIR:
            self._new_directories.append(change.path)
        if change.old is not None and change.old.type == stat.S_IFDIR:
            self._old_directories.append(change.old_path or change.path)

    def _see_type(self, change: Change, *, has_old: bool, has_new: bool) -> None:
        for side, is_seen, path in (
            (change.old, has_old, change.old_path or change.path),
            (change.new, has_new, change.path),
        ):
            if side is None or is_seen or side.type == stat.S_IFDIR:
                continue
            name = _TYPE_NAMES.get(side.type)
            if name:
                self.add(f"{self._named(path)} is {name}, which git does not know")
            else:
                self._refused.setdefault(_refused_part(path), []).append(path)
            return

    def _see_metadata(self, change: Change, new: Side) -> None:
        path = self._named(change.path)
        if _has_other_mode(change, new):
            self.add(f"mode {new.mode:04o} of {path} cannot be expressed by git")
        if Aspect.OWNER in change.metadata:
            self.add(f"owner {new.uid}:{new.gid} of {path} cannot be expressed by git")
        if Aspect.TIME in change.metadata and change.kind is ChangeKind.METADATA:
            self.add(f"the changed time of {path} cannot be expressed by git")
        if Aspect.XATTRS in change.metadata:
            self.add(f"extended attributes of {path} cannot be expressed by git")


def _has_other_mode(change: Change, new: Side) -> bool:
    """Tell whether the file has another mode than after the patch."""
    if new.type == stat.S_IFLNK:
        return False
    is_directory = new.type == stat.S_IFDIR
    if Aspect.MODE in change.metadata and change.old is not None:
        if is_directory or not (change.old.mode ^ new.mode) & 0o100:
            return True
    elif is_directory and change.kind is not ChangeKind.ADDED:
        return False
    elif change.kind is ChangeKind.METADATA:
        return False  # nothing is written, so the mode stays
    return new.mode not in (_GIT_DIRECTORY_MODES if is_directory else _GIT_MODES)


def _add_parents(directories: set[bytes], path: bytes) -> None:
    parent = path.rpartition(b"/")[0]
    while parent and parent not in directories:
        directories.add(parent)
        parent = parent.rpartition(b"/")[0]
