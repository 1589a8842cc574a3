"""Which part of an undo is done: what is selected, without files that are staged by other names so
that what becomes of them cannot be told.
"""

from __future__ import annotations

import msgspec

from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.compose import untold_links
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.linked_files import UntoldFile
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split, split_state
from yolofs.commit.undo.undoable_names import Inverse
from yolofs.paths import RelPath, StoreIno, absolute, display, in_shell
from yolofs.session.session import Session
from yolofs.state.regions import Region
from yolofs.state.tree import Tree
from yolofs.store.store import Store
from yolofs.system.clock import coarse_clock_ns


class UndoPart(msgspec.Struct, frozen=True):
    """The part of an undo that is done."""

    taken: Tree
    is_whole: bool
    """Whether nothing of it is left."""
    held_back: tuple[HeldBack, ...]
    """What was selected and stays, as it goes together with what was not."""
    untold: dict[RelPath, str]
    """What stays as names (hard links) of the file are staged, by path in base, and why."""


def part_of_undo(
    session: Session, inverse: Inverse, view: Tree, selection: Selection | None, into: Store, store: KeptAndStore
) -> UndoPart:
    """Return the part of an undo that is done; ``selection``: None for all of it.

    ``view`` is what is staged, ``into`` the store that has the store inodes of ``inverse``, and
    ``store`` that together with what commits keep.

    Raises:
        OSError: base or the store cannot be read.
    """
    split, untold = Split(inverse.tree(), (), ()), dict[RelPath, str]()
    if selection is None:
        selection = Selection(session.regions, wanted=frozenset(Region))
    is_whole = selection.is_everything
    while True:
        if not is_whole:
            split = split_state(
                inverse.tree(),
                session.base,
                store,
                msgspec.structs.replace(selection, unnamed=untold),
                Authors((), coarse_clock_ns()),
                whole=[*map(StoreIno, inverse.directories_anew)],
                together=inverse.together,
            )
        found = untold_links(split.taken, view, session.base, into, store.commits)
        if found.keys() <= untold.keys():  # what is found again cannot be left: the undo refuses
            held_back = tuple(one for one in split.held_back if not one.unnamed)
            return UndoPart(split.taken, not split.rest, held_back, _why_left(split, session.base.root))
        untold |= {path: _why(path, one, session.base.root) for path, one in found.items()}
        is_whole = False


def _why(path: RelPath, one: UntoldFile, root: bytes) -> str:
    """Return why a file stays, and what makes it go."""
    names = " ".join(in_shell(absolute(root, name)) for name in one.staged or (path,))
    return f"hard links of it are staged: {one.why}; first: yolofs restore {names}"


def _why_left(split: Split, root: bytes) -> dict[RelPath, str]:
    """Return what stays as it could not be told, by path in base, and why."""
    left = dict[RelPath, str]()
    for one in split.held_back:
        for path in one.paths if one.unnamed else ():
            beside = f"it goes together with {display(absolute(root, one.unnamed[0]))}"
            left[path] = one.why if path in one.unnamed else beside
    return left
