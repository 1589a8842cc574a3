"""Which parts of the changes are accepted: whole changes, hunks, or single lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks, Hunk
from yolofs.changes.picks import LineNumbers, whole_if_all
from yolofs.cli.review.change_tree import Key, Node, NodeTree, key_of
from yolofs.cli.review.effects import Carried


class AcceptedPart(NamedTuple):
    """The accepted part of one change."""

    change: Change
    """As it was then."""
    picks: Mapping[str, LineNumbers | None] | None
    """Of its hunks; None where all are and nobody has read them yet."""
    is_whole: bool
    was_named: bool = False
    """Whether somebody accepted this very change, and not all in a directory."""


Before = tuple[Key, AcceptedPart | None]


class Accepted:
    """What is accepted, and the numbers of it in a tree."""

    def __init__(self, tree: NodeTree) -> None:
        self._tree = tree
        self._parts: dict[Key, AcceptedPart] = {}
        self.stale: set[Key] = set()
        """What was accepted, and has become something else since."""

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._parts)

    def of(self, key: Key) -> AcceptedPart | None:
        """Return what of a change is accepted, None if nothing is."""
        return self._parts.get(key)

    def lines_of(self, key: Key, hunk: Hunk) -> LineNumbers | None:
        """Return which lines of a hunk are accepted; None if all of it is."""
        part = self._parts.get(key)
        if part is None:
            return frozenset()
        if part.is_whole or part.picks is None:
            return None
        return part.picks.get(hunk.id, frozenset())

    def named(self) -> list[Key]:
        """Return what somebody accepted by itself, and not with all in a directory."""
        return [key for key, part in self._parts.items() if part.was_named]

    # ---- accepting; each returns what was before, for put_back

    def set_whole(self, nodes: Iterable[Node], files: Mapping[Key, FileHunks], *, is_named: bool) -> list[Before]:
        """Accept changes whole; of those in ``files`` just what has been read."""
        found: list[Before] = []
        for node in nodes:
            assert node.change is not None
            key = key_of(node.change)
            file = files.get(key)
            picks = {hunk.id: None for hunk in file.hunks} if file is not None else None
            found.append(self._set(key, AcceptedPart(node.change, picks, is_whole=True, was_named=is_named)))
        return found

    def clear(self, nodes: Iterable[Node]) -> list[Before]:
        """Accept nothing of some changes."""
        return [self._set(key_of(node.change), None) for node in nodes if node.change is not None]

    def set_lines(self, file: FileHunks, hunk: Hunk, lines: LineNumbers | None, *, is_named: bool) -> list[Before]:
        """Accept just these lines of a hunk, all of it (None), or nothing of it."""
        key = key_of(file.change)
        picks = {one.id: self.lines_of(key, one) for one in file.hunks}
        picks[hunk.id] = whole_if_all(hunk, lines)
        kept = {name: some for name, some in picks.items() if some is None or some}
        is_whole = len(kept) == len(file.hunks) and all(some is None for some in kept.values())
        return [self._set(key, AcceptedPart(file.change, kept, is_whole, was_named=is_named) if kept else None)]

    def put_back(self, before: Iterable[Before]) -> None:
        """Restore an earlier acceptance."""
        for key, part in before:
            if part is None or key in self._tree.by_key:
                self._set(key, part)

    def put_back_at_once(self, before: Iterable[Before]) -> None:
        """Restore an earlier acceptance, before the comparison that has the changes again."""
        for key, part in before:
            self._set(key, part)

    def bind(self, key: Key, file: FileHunks) -> None:
        """Record the hunks of a change that was accepted before its hunks were read."""
        part = self._parts.get(key)
        if part is not None and part.picks is None:
            self._parts[key] = part._replace(picks={hunk.id: None for hunk in file.hunks})

    def carry(self, key: Key, carried: Carried) -> None:
        """Replace hunk ids by their new ones, after other hunks or lines of the same change were
        dropped.  Hunks without a new id are no longer accepted.
        """
        part = self._parts.get(key)
        if part is None or part.picks is None:
            self._set(key, None)
            return
        picks = {carried.ids[name]: lines for name, lines in part.picks.items() if name in carried.ids}
        counts: Counter[str] = Counter()
        for name, places in carried.lines.items():
            counts.update(new for new, _ in places.values())
            known = part.picks.get(name, frozenset())
            moved: defaultdict[str, set[int]] = defaultdict(set)
            for number, (new, at) in places.items():
                if known is None or number in known:
                    moved[new].add(at)
            picks |= {new: None if len(some) == counts[new] else frozenset(some) for new, some in moved.items()}
        is_whole = carried.is_all and len(picks) == len(carried.ids) + len(counts) and not any(picks.values())
        self._set(key, AcceptedPart(carried.change, picks, is_whole, part.was_named) if picks else None)

    # ---- another comparison

    def move_to(self, tree: NodeTree, changed: Iterable[Key]) -> list[Key]:
        """Go on with another tree; what has ``changed`` is not accepted any more, and stale if it
        is still there.
        """
        parts, self._parts, self._tree = self._parts, {}, tree
        gone = set(changed)
        lost: list[Key] = []
        for key, part in parts.items():
            if key not in tree.by_key:
                lost.append(key)
            elif key in gone:
                self.stale.add(key)
                lost.append(key)
            else:
                self._set(key, part._replace(change=tree.by_key[key].change or part.change))
        self.stale = {key for key in self.stale if key in tree.by_key}
        return lost

    def _set(self, key: Key, part: AcceptedPart | None) -> Before:
        before = self._parts.get(key)
        self._count(key, before, -1)
        if part is None:
            self._parts.pop(key, None)
        else:
            self._parts[key] = part
            self.stale.discard(key)
        self._count(key, part, 1)
        return key, before

    def _count(self, key: Key, part: AcceptedPart | None, step: int) -> None:
        if part is None:
            return
        node: Node | None = self._tree.by_key.get(key)
        while node is not None:
            if part.is_whole:
                node.wholly += step
            else:
                node.partly += step
            node = node.above
