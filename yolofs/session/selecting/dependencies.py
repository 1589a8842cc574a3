"""Holds back each picked hunk that needs an unpicked one, so that the others can be committed or
dropped.

In a commit, a hunk stays staged if it needs one that was not picked; a new directory comes along
with what is picked in it.  In a drop, a hunk stays as it is if one that was not picked needs it.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator

import msgspec

from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.changes.hunks import PLACES, Hunk
from yolofs.paths import RelPath
from yolofs.session.selecting.placing import ChangesByPlace
from yolofs.session.selecting.wanted_hunks import WantedHunks


class HeldHunk(msgspec.Struct, frozen=True):
    """A hunk that was picked and stays as it is all the same."""

    hunk: Hunk
    beside: Hunk | None = None
    """The hunk that it goes together with; None: it is some lines of another name of a file in
    base.
    """
    needs: tuple[str, ...] = ()
    """The ids of the hunks that have to be picked with it."""

    def reason(self, show: Callable[[RelPath], str]) -> str:
        """Return in words, to follow a colon, why it stays; ``show`` spells a path."""
        if self.beside is None:
            return "it is another name (hard link) of a file in base, so it goes as a whole"
        return f"it goes together with {self.beside.kind.value} {show(self.beside.path)}"


class Dependencies:
    """Settles what goes together."""

    def __init__(self, kept: WantedHunks, places: ChangesByPlace) -> None:
        self._kept = kept
        self._places = places
        self._held: dict[str, HeldHunk] = {}

    @property
    def held_hunks(self) -> tuple[HeldHunk, ...]:
        """The hunks that were held back, in the order of the paths."""
        return tuple(sorted(self._held.values(), key=lambda held: (held.hunk.path, held.hunk.old_start)))

    def settle_commit(self) -> None:
        """Take out of the kept hunks each one that needs an unkept one, and add new directories."""
        needs = self._places.needs()
        along: set[int] = set()
        self._hold_parts_of_new_names(keeps=False)
        links = list(self._links())
        changed = True
        while changed:
            changed = self._hold_linked(links, keeps=False)
            for index, needed in needs.items():
                if not self._kept.has_place(index):
                    continue
                missing = [other for other in sorted(needed) if not self._kept.has_place(other)]
                for other in missing:
                    if self._is_new_directory(other) and other not in along:
                        along.add(other)
                        self._kept.of(other)[self._kept.place(other).id] = None
                        changed = True
                missing = [other for other in missing if not self._kept.has_place(other)]
                if missing:
                    self._hold(index, self._with_what_goes_along(missing, needs, keeps=False), keeps=False)
                    changed = True
        while unneeded := {one for one in along if not self._is_needed(one, needs)}:
            along -= unneeded
            for index in unneeded:
                self._kept.of(index).clear()

    def settle_drop(self) -> None:
        """Add everything to what is kept that something in it needs.  But a deleted directory comes
        back by itself with what is brought back in it.
        """
        needs = self._places.needs()
        needed_by: dict[int, set[int]] = {}
        for index, needed in needs.items():
            for other in needed:
                needed_by.setdefault(other, set()).add(index)
        self._hold_parts_of_new_names(keeps=True)
        links = list(self._links())
        along: set[int] = set()
        changed = True
        while changed:
            changed = self._hold_linked(links, keeps=True)
            for index, needed in needs.items():
                if not self._kept.has_place(index):
                    continue
                others = [other for other in needed if not self._kept.has_place(other)]
                if others and index not in along and self._may_come_back(index, needs):
                    along.add(index)
                    del self._kept.of(index)[self._kept.place(index).id]
                    changed = True
                    continue
                for other in others:
                    self._hold(other, self._with_what_goes_along([index], needed_by, keeps=True), keeps=True)
                    changed = True

    def _may_come_back(self, index: int, needs: dict[int, set[int]]) -> bool:
        """Tell whether a change deletes a directory in whose place nothing has to be."""
        change = self._places.changes[index]
        if change.kind is not ChangeKind.DELETED or change.old is None or change.old.type != stat.S_IFDIR:
            return False
        by = [other for other, needed in needs.items() if index in needed and self._kept.has_place(other)]
        return all(self._places.changes[other].kind is ChangeKind.DELETED for other in by)

    def _is_new_directory(self, index: int) -> bool:
        change = self._places.changes[index]
        return change.kind is ChangeKind.ADDED and change.new is not None and change.new.type == stat.S_IFDIR

    def _is_needed(self, index: int, needs: dict[int, set[int]]) -> bool:
        return any(index in needed and self._kept.has_place(other) for other, needed in needs.items())

    def _with_what_goes_along(self, found: list[int], needs: dict[int, set[int]], *, keeps: bool) -> list[int]:
        """Return some changes with all that they need in turn: the next try then picks enough."""
        everything = dict.fromkeys(found)
        todo = list(found)
        while todo:
            for other in sorted(needs.get(todo.pop(), ())):
                if other not in everything and self._kept.has_place(other) is keeps:
                    everything[other] = None
                    todo.append(other)
        return list(everything)

    def _hold(self, index: int, by: list[int], *, keeps: bool) -> None:
        """Hold the part of a change that is about its place, because of other changes."""
        hunk = self._kept.place(index)
        if keeps:
            self._kept.of(index)[hunk.id] = None
        else:
            del self._kept.of(index)[hunk.id]
        self._note(hunk, [self._kept.place(other) for other in by])

    def _note(self, hunk: Hunk, others: list[Hunk]) -> None:
        known = self._held.get(hunk.id)
        needs = (*(known.needs if known is not None else ()), *(other.id for other in others))
        beside = known.beside if known is not None else others[0]
        self._held[hunk.id] = HeldHunk(hunk, beside, tuple(one for one in dict.fromkeys(needs) if one != hunk.id))

    # ---- files with several names

    def _hold_parts_of_new_names(self, *, keeps: bool) -> None:
        """Hold some lines of what is no new file, but another name (hard link) of one of base's."""
        for index, picks in self._kept.picks.items():
            new = self._places.changes[index].new
            if self._places.changes[index].kind is not ChangeKind.ADDED or new is None or new.ino is not None:
                continue
            for hunk in self._kept.file(index).hunks:
                if not picks.get(hunk.id):
                    continue
                if keeps:
                    picks[hunk.id] = None
                else:
                    del picks[hunk.id]
                self._held[hunk.id] = HeldHunk(hunk)

    def _links(self) -> Iterator[list[tuple[int, Hunk]]]:
        """Yield the hunks that have to be picked all or none, as they are about one file with
        several names.
        """
        changes = self._places.changes
        for side in ("new", "old"):
            groups: defaultdict[object, list[int]] = defaultdict(list)
            for index, change in enumerate(changes):
                what = getattr(change, side)
                if what is not None and what.type != stat.S_IFDIR:
                    groups[_file(what)].append(index)
            for group in groups.values():
                if len(group) > 1:
                    yield from self._tied(group)

    def _tied(self, group: list[int]) -> Iterator[list[tuple[int, Hunk]]]:
        hunks = [(index, hunk) for index in group for hunk in self._kept.file(index).hunks]
        in_place = [(index, hunk) for index, hunk in hunks if hunk.kind not in PLACES]
        if not in_place:
            if any(self._kept.of(index).get(hunk.id) for index, hunk in hunks):  # some lines of a new file
                yield hunks
            return
        inner = {index for index, _ in in_place}
        names = [one for one in hunks if one[1].kind in PLACES and one[0] not in inner]
        was_one = len({_old_file(self._places.changes[index]) for index in inner}) == 1
        if names or not was_one or not self._are_alike(inner):
            yield [*in_place, *names]
            return
        alike: defaultdict[tuple[object, ...], list[tuple[int, Hunk]]] = defaultdict(list)
        for index, hunk in in_place:
            alike[_identity_of(hunk)].append((index, hunk))
        yield from alike.values()

    def _are_alike(self, indices: set[int]) -> bool:
        said = [
            [_identity_of(hunk) for hunk in self._kept.file(index).hunks if hunk.kind not in PLACES]
            for index in indices
        ]
        return all(one == said[0] for one in said)

    def _hold_linked(self, links: list[list[tuple[int, Hunk]]], *, keeps: bool) -> bool:
        changed = False
        for tied in links:
            picked = [self._kept.of(index).get(hunk.id, frozenset()) for index, hunk in tied]
            if all(one == picked[0] for one in picked):
                continue
            changed = True
            different = [hunk for (_, hunk), lines in zip(tied, picked, strict=True) if (lines is None) is keeps]
            others = different or [tied[0][1]]
            for index, hunk in tied:
                kept = self._kept.of(index)
                if keeps and kept.get(hunk.id, frozenset()) is not None:
                    kept[hunk.id] = None
                elif not keeps and hunk.id in kept:
                    del kept[hunk.id]
                else:
                    continue
                self._note(hunk, others)
        return changed


def _file(side: Side) -> object:
    """Return what stands for a file, whichever of its names it was found by."""
    try:
        st = os.lstat(side.meta) if side.ino is None else None
    except OSError:
        st = None
    return (st.st_dev, st.st_ino) if st is not None else side.meta


def _old_file(change: Change) -> object:
    return _file(change.old) if change.old is not None else None


def _identity_of(hunk: Hunk) -> tuple[object, ...]:
    return hunk.kind, hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines, hunk.old, hunk.new
