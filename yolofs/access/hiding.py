"""Finds the names that a change of rules has hidden and that the kernel must forget, as it may know
them.

Every other state lets attributes be read, and each open comes to us anyway.  Finding the names
walks over all known inodes, so it is for another thread than the one that owns the view.  It only
looks; what changes meanwhile is judged by the new rules already.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from yolofs.overlay import Invalidation, Overlay
from yolofs.overlay.inodes import Inode
from yolofs.rules import PathRule, Rule, RuleBook, RuleSet, Verdict
from yolofs.state.tree import Entry


def hidden_since(before: tuple[RuleSet, ...], book: RuleBook, overlay: Overlay) -> Invalidation:
    """Return the names that may be known since the rules were those of ``before``, and that are
    hidden now.

    No others: a directory whose name is forgotten is lost as a working directory.
    """
    stale = Invalidation([], [], [], [], {}, set())
    changed = _rules(before) ^ _rules(book.sources)
    may_readmit = any(_readmits_patterns(rule, book) for rule in changed)
    paths = [rule.path for rule in changed if isinstance(rule, PathRule) and book.at(rule.path).state.is_hidden]
    if not book.hides or not (paths or may_readmit):
        return stale
    known = _KnownInodes(book, overlay)
    # whoever has a directory open may go on with the listing that the kernel has of it
    stale.inodes.extend(inode.number for inode in known.inodes if inode.is_directory and inode.opens)
    if book.at(overlay.base.root).seems_absent:  # the kernel asks for it no more, but may go through it
        stale.attributes.append(overlay.root.number)
    for inode in known.inodes:
        names = list(known.names(inode))
        stale.entries.extend((parent.number, name) for parent, name, verdict in names if verdict.seems_absent)
        if any(verdict.seems_absent for _, _, verdict in names):  # of the others some may be gone
            stale.attributes.append(inode.number)
            if inode.kind == stat.S_IFLNK:  # its target, for a process that holds it
                stale.inodes.append(inode.number)
    for path in paths:  # whatever the kernel takes to be there
        place = known.place(path) if book.at(path).seems_absent else None
        if place is not None:
            stale.entries.append(place)
    return stale


def _readmits_patterns(rule: Rule, book: RuleBook) -> bool:
    """Tell whether patterns may decide, now that a rule has come or gone, where they did not
    before.
    """
    if not isinstance(rule, PathRule):
        return True
    return rule.is_whole or book.at(os.path.dirname(rule.path)).outside > 0


def _rules(sources: Iterable[RuleSet]) -> set[Rule]:
    """Return the rules in force, wherever they are written."""
    return {rule for source in sources for rule in source.rules}


class _KnownInodes:
    """The known inodes, and the verdicts over them by the rules as they are now."""

    def __init__(self, book: RuleBook, overlay: Overlay) -> None:
        self._book = book
        self._overlay = overlay
        self.inodes = list(overlay.inodes.by_number.values())
        self._verdicts: dict[Inode, Verdict] = {overlay.root: book.at(overlay.base.root)}
        directories = [inode for inode in self.inodes if inode.is_directory]
        self._by_entry: dict[Entry, Inode] = {inode.entry: inode for inode in directories if inode.entry is not None}
        self._below: dict[tuple[Inode | None, bytes], Inode] = {
            (inode.parent, inode.name): inode for inode in directories
        }

    def names(self, inode: Inode) -> Iterator[tuple[Inode, bytes, Verdict]]:
        """Yield the names by which the kernel may know an inode, with the verdict over each."""
        parent, staged = inode.parent, inode.staged
        if parent is not None:
            yield parent, inode.name, self._verdict(inode)
        if staged is not None and len(staged.names) > 1:
            for entry in list(staged.names):
                above = self._by_entry.get(entry.parent) if entry.parent is not None else None
                if above is not None and (above is not parent or entry.name != inode.name):
                    yield above, entry.name, self._book.below(self._verdict(above), entry.name)

        for also, name in self._overlay.inodes.other_names(inode):
            yield also, name, self._book.below(self._verdict(also), name)

    def place(self, path: bytes) -> tuple[int, bytes] | None:
        """Return the number of the directory of an absolute path and its last name, None if it is
        not known.
        """
        rel = self._overlay.base.relative(path)
        if not rel:
            return None
        *above, name = rel.split(b"/")
        directory = self._overlay.root
        for step in above:
            below = self._below.get((directory, step))
            if below is None:
                return None
            directory = below
        return directory.number, name

    def _verdict(self, inode: Inode) -> Verdict:
        verdicts = self._verdicts
        chain: list[Inode] = []
        current: Inode | None = inode
        while current is not None and current not in verdicts:
            chain.append(current)
            current = current.parent
        verdict = verdicts[current if current is not None else self._overlay.root]
        for link in reversed(chain):
            verdict = verdicts[link] = self._book.below(verdict, link.name)
        return verdict
