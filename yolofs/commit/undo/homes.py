"""Finds the returning files that the commit had renamed, and their names since.

A rename with an edit is a new file at one name and the removal of another in a plan.  What is
staged when such a commit is undone has its *home* again, so that it is a rename, and both names are
committed together.
"""

from __future__ import annotations

import os
import stat

from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import Create, Duplicate, Fetch, Link, Place, Remove
from yolofs.commit.select.base_afterwards import ReturningFile
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.made_anew import NOTHING_ANEW, MadeAnew, ObjectByDisk
from yolofs.paths import RelPath, join, split
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.system.disks import FilesOnDisks
from yolofs.system.plain_files import is_there


def find_homes(applied: Applied, base: Base, tree: Tree, anew: MadeAnew = NOTHING_ANEW) -> dict[RelPath, ReturningFile]:
    """Return the returning files that the commit had renamed with an edit, by the base path of the
    edited version.

    ``tree``: what the undo makes of base; ``anew``: what commits and undos have made anew.  A
    version that has got hard links by the commit has one file under all of these names.  Left out
    are files that had hard links before the commit, and versions that have other names by now.

    Raises:
        OSError: what is kept cannot be read.
    """
    slots = _slots_by_old_path(applied)
    commits = os.path.dirname(applied.directory)
    links = _links_by_file(applied)
    placed = {step.number: index for index, step in enumerate(applied.plan.steps) if isinstance(step, Place)}
    found: dict[RelPath, ReturningFile] = {}
    for index, step in enumerate(applied.plan.steps):
        if not isinstance(step, Create | Fetch) or step.home is None:
            continue
        names = [step.path, *links.get(step.path, ())]
        here = [base.look(name) for name in names]
        came = applied.came(placed[step.number] if isinstance(step, Fetch) else index)
        known = FilesOnDisks(anew.known_by(ObjectByDisk(came)) if came is not None else ())
        if any(
            st is None or not known.has(base.on_disk(st.st_dev, st.st_ino)) or st.st_nlink != len(names) for st in here
        ):
            continue
        home = _home(applied.number, slots, tree, commits, step.home)
        if home is not None:
            found.update(dict.fromkeys(names, home))
    return found


def _links_by_file(applied: Applied) -> dict[RelPath, list[RelPath]]:
    """Return the names of hard links that the commit made, by the path of the file."""
    links: dict[RelPath, list[RelPath]] = {}
    for step in applied.plan.steps:
        if isinstance(step, Link):
            links.setdefault(step.existing, []).append(step.path)
    return links


def _slots_by_old_path(applied: Applied) -> dict[RelPath, int]:
    """Return the slot with the old thing of each path that the commit removed or replaced."""
    slots: dict[RelPath, int] = {}
    for step in applied.plan.steps:
        if isinstance(step, Remove):
            slots[step.path] = step.number
        elif isinstance(step, Create | Place | Link | Duplicate) and step.replaced is not None:
            above, name = split(step.path)
            before = applied.moves.before(above)
            if before is not None:
                slots[join(before, name)] = step.number
    return slots


def _home(number: int, slots: dict[RelPath, int], tree: Tree, commits: bytes, old: RelPath) -> ReturningFile | None:
    """Return the file that comes back and that base had at ``old`` before the commit."""
    top, inside = old, RelPath(b"")
    while top not in slots:
        if not top:
            return None
        top, name = split(top)
        inside = join(RelPath(name), inside) if inside else RelPath(name)
    kept = KeptObject(number, slots[top])
    own = kept.below(inside) if inside else kept
    for thing, rest in ((own, b""), (kept, inside)):
        staged = tree.staged.get(thing.ino)
        if staged is None or len(staged.names) != 1:
            continue
        if not _is_inside(kept.path(commits), inside):
            return None
        path = own.path(commits)
        st = os.lstat(path)
        place = staged.names[0].path()
        return ReturningFile(join(place, rest) if rest else place, path, st) if _is_lone(st) else None
    return None


def _is_inside(top: bytes, inside: RelPath) -> bool:
    """Tell whether what is kept has something at a path in it, and no link leads there.

    The host may have put anything in the place of a directory that something was staged in.
    """
    path = top
    for name in inside.split(b"/") if inside else ():
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return False
        path = os.path.join(path, name)
        if not is_there(path):
            return False
    return True


def _is_lone(st: os.stat_result) -> bool:
    return stat.S_ISREG(st.st_mode) and st.st_nlink == 1
