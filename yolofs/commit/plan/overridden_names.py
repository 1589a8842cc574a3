"""What base has now at every name of an override tree: the common ground of planning and of finding
conflicts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from yolofs.paths import ROOT, RelPath
from yolofs.state.tree import Entry, Tree, natural_path
from yolofs.store.base import Base


class OverriddenName(NamedTuple):
    """One entry of the override tree, and what base has to do with it."""

    path: RelPath
    """In the view."""
    entry: Entry
    natural_path: RelPath | None
    """The base path that would show here without the entry; None if there is none, as in a
    directory born in the view, or if the directory is gone from base."""
    natural_st: os.stat_result | None
    """What base has at ``natural_path``."""
    source_st: os.stat_result | None
    """What base has at the entry's own source."""
    is_cut_off: bool
    """Whether something was staged or moved here, in a directory that base no longer has: the view
    shows neither.
    """

    @property
    def has_directory_in_base(self) -> bool:
        """Whether the entry's source is a directory in base."""
        return self.source_st is not None and stat.S_ISDIR(self.source_st.st_mode)

    @property
    def is_passing(self) -> bool:
        """Whether the entry only leads to others below it: it was neither staged nor moved."""
        return self.entry.staged is None and self.entry.base is not None and self.entry.base == natural_path(self.entry)


def survey(tree: Tree, base: Base) -> Iterator[OverriddenName]:
    """Yield every entry of the tree, the root's too, parents before children.

    Raises:
        OSError: base cannot be read.
    """
    root = base.look(ROOT)
    yield OverriddenName(ROOT, tree.root, ROOT, root, root, False)
    directories = {tree.root: root is not None}
    for path, entry in tree.walk():
        name = _name(path, entry, base, has_directory=directories[_parent(entry)])
        if entry.children is not None:
            directories[entry] = name.has_directory_in_base
        yield name


def _name(path: RelPath, entry: Entry, base: Base, *, has_directory: bool) -> OverriddenName:
    natural = natural_path(entry) if has_directory else None
    here = base.look_listed(natural)
    source_st = here if entry.source == natural else base.look(entry.source)
    name = OverriddenName(path, entry, natural, here, source_st, is_cut_off=False)
    if has_directory or entry.is_tombstone or _parent(entry).staged is not None:
        return name
    return name._replace(source_st=None) if name.is_passing else name._replace(is_cut_off=True)


def _parent(entry: Entry) -> Entry:
    assert entry.parent is not None
    return entry.parent
