"""The ctimes that a commit itself has changed, by putting files in place, changing them, or taking
names from them: these are not the host's doing.

A file that loses names to a copy (:mod:`yolofs.commit.apply.kept_copies`) gets another ctime, and
only the process that takes the names knows it.  So what each such file was is noted before.
Whoever finishes the commit after a kill finds the file by that note.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from yolofs.commit.apply import step_log
from yolofs.commit.apply.kept_copies import Ctimes, KeptCopy
from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    FinishDirectory,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    directories_made,
)
from yolofs.paths import ROOT, RelPath, join
from yolofs.store.restored import InodeCtime, by_names
from yolofs.system.plain_files import read_note, replace_note

_NOTE = b"parting"
"""In a commit's directory: what files were before copies took the place of names of theirs."""
_MOST_BYTES = 1 << 30
_GIVES_LOOKS = (Create, Duplicate, Rewrite, SetMetadata, FinishDirectory)


class FileBefore(msgspec.Struct, frozen=True, array_like=True):
    """What a file was before it lost names to a copy, and nobody had changed it since its step."""

    device: int
    inode: int
    ctime_ns: int
    size: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    near: bytes
    """A path of base at which it had a name before the commit."""

    def is_same(self, st: os.stat_result) -> bool:
        """Tell whether a file is this one, and as it was except for its ctime."""
        looks = (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_mode, st.st_uid, st.st_gid)
        return looks == (self.device, self.inode, self.size, self.mtime_ns, self.mode, self.uid, self.gid)


class PutInPlace(NamedTuple):
    """What a commit has put in place, changed or taken names from."""

    inode_ctimes: set[InodeCtime]
    """What the host has changed since its step is not among these."""
    unset: frozenset[int]
    """The inode numbers of what may not look as the plan says, as not all of it could be set."""
    files_that_lost_names: list[FileBefore]
    """Files that had lost names before this process began, or whose lost name no longer tells their
    ctime: they must be looked up.
    """


Arrived: TypeAlias = Callable[[PutInPlace], None]


def note_before(directory: bytes, copies: Sequence[KeptCopy], plan: Plan) -> list[FileBefore]:
    """Note, durably, the files that are about to lose names to ``copies``; return all such notes.

    What the host has changed since its step is left out.

    Raises:
        OSError: it cannot be written, or the log not be read.
    """
    path = os.path.join(directory, _NOTE)
    text = read_note(path, _MOST_BYTES)
    try:
        known = msgspec.json.decode(text, type=list[FileBefore]) if text is not None else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = []
    seen = _seen(step_log.read(directory)) if copies else {}
    noted = {(one.device, one.inode) for one in known}
    new = [_before(one, directory, plan) for one in copies if one.file not in noted]
    new = [one for one in new if seen.get(one.inode) == one.ctime_ns]
    if new:
        replace_note(path, msgspec.json.encode([*known, *new]))
    return [*known, *new]


def find_what_came(
    plan: Plan,
    directory: bytes,
    ctimes: Mapping[int, Ctimes],
    noted: Sequence[FileBefore],
    left_out: Collection[RelPath] | None,
) -> PutInPlace:
    """Return what came, as the log of a commit says.

    ``ctimes`` are the ctimes of what has lost names just now, of the files ``noted``.  ``left_out``
    are the paths at which something could not be set; None if that is not known, as another
    process did some of it.

    Raises:
        OSError: the log cannot be read.
    """
    lines = step_log.read(directory)
    inode_ctimes = {(line.came.inode, line.came.ctime_ns) for line in lines if line.came is not None}
    made = directories_made(plan)
    for step, line in zip(plan.steps, lines, strict=False):
        if isinstance(step, Remove) and line.went is not None:  # its other names stay, and may stay links of it
            inode_ctimes.add((line.went.inode, line.went.ctime_ns))
        if line.came is not None and step.path in made:
            inode_ctimes.add(by_names((line.came.inode, line.came.ctime_ns)))
    unknown: list[FileBefore] = []
    for before in noted:
        times = ctimes.get(before.inode)
        is_ours = times is not None and times.before == before.ctime_ns
        if times is not None and times.after is not None and is_ours:
            inode_ctimes.add((before.inode, times.after))
        elif left_out is None or is_ours:
            unknown.append(before)
    unset: set[int] = set()
    for step, line in zip(plan.steps, lines, strict=False):
        is_at = left_out is None or step.path in left_out
        if is_at and line.came is not None and isinstance(step, _GIVES_LOOKS):
            unset.add(line.came.inode)
    return PutInPlace(inode_ctimes, frozenset(unset), unknown)


def _seen(lines: Sequence[step_log.LoggedStep]) -> dict[int, int]:
    """Return the last ctime, by inode number, that the log has of each thing."""
    seen: dict[int, int] = {}
    for line in lines:
        seen.update((one.inode, one.ctime_ns) for one in (line.came, line.went) if one is not None)
    return seen


def _before(one: KeptCopy, directory: bytes, plan: Plan) -> FileBefore:
    st = os.lstat(one.names[0])
    slot, _, inside = os.path.relpath(one.names[0], os.path.join(directory, b"replaced")).partition(b"/")
    kept = (step for step in plan.steps if isinstance(step, Remove) or getattr(step, "replaced", None) is not None)
    near = next((step.path for step in kept if b"%d" % getattr(step, "number", -1) == slot), ROOT)
    if inside:
        near = join(near, RelPath(inside))
    looks = (st.st_size, st.st_mtime_ns, st.st_mode, st.st_uid, st.st_gid)
    return FileBefore(st.st_dev, st.st_ino, st.st_ctime_ns, *looks, near)
