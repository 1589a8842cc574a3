"""Files with hard links that are committed without the time that the view gives them.

Of such a file nothing but the time differs from base at names that are not selected.  Base's file
keeps its time.  What else becomes of its names (new links, removed ones) is committed; then the
file stays staged, by all the names that the view has for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from yolofs.commit.select.choice import Layout
from yolofs.commit.select.units import Unit, Units
from yolofs.journal.records import Keep
from yolofs.paths import RelPath, is_below, join, split
from yolofs.state.tree import Entry, Staged, link_key


class LeftTimes:
    """The files of one split whose time stays staged, though something else of them goes."""

    def __init__(self, units: Units, layout: Layout, taken: Collection[Unit], files: Mapping[Staged, RelPath]) -> None:
        """``files``: each with a name in base that is not selected."""
        self._units = units
        self._layout = layout
        self._taken = taken
        self.files = files

    def leaves_alone(self, entry: Entry) -> bool:
        """Tell whether base keeps a name just as it is, as only the time differs there."""
        return entry.staged in self.files and self._units.is_in_place(entry)

    def new_links_of(self) -> Iterator[tuple[RelPath, Staged]]:
        """Yield the files that get new links in base, each with the path of what these are links
        of.
        """
        for staged in self.files:
            home = staged.home
            if home is not None and not self._loses(home) and not all(map(self._units.is_in_place, staged.names)):
                yield self._place(home), staged

    def records(self, staged: Staged) -> list[Keep]:
        """Return the records of a file over base as it will be, one for each of its names; one
        alone where no name of it is known in the view.
        """
        assert staged.base is not None
        number, name = staged.base.ino, self.files[staged]
        home = min(map(self._place_of, staged.names), default=(True, self._place(name)))[1]
        links = (staged.links or 1) - self._count_lost(staged) + self._count_made(staged)
        record = Keep(
            0,
            home,
            staged.ino,
            origin=home if staged.origin is not None else None,
            home=home,
            base=msgspec.structs.replace(staged.base, ctime_ns=0, nlink=0),  # which its new and lost names change
            key=link_key(number) if links > 1 else 0,
            links=links if links > 1 else 0,
        )
        paths = [self._units.slots[entry] for entry in staged.names]
        if links > 1 and not paths:
            return [msgspec.structs.replace(record, is_nameless=True)]
        if not paths:  # it is known by its name alone then
            path = self._units.with_another_time(name)
            assert path is not None, "that was asked before"
            paths = [path]
        return [msgspec.structs.replace(record, path=path, replaces=True) for path in paths]

    def _place(self, name: RelPath) -> RelPath:
        """Return the path that a name of base gets that stays in its directory."""
        directory, last = split(name)
        place = self._layout.path(directory)
        assert place is not None, "what stays has a place"
        return join(place, last)

    def _place_of(self, entry: Entry) -> tuple[bool, RelPath]:
        """Return where base has a name afterwards, and whether it is another name than now."""
        place = self._layout.of_slot(entry)
        assert place is not None, "what is chosen has a place"
        return not self._units.is_in_place(entry), place

    def _loses(self, name: RelPath) -> bool:
        """Tell whether base loses a name."""
        entry = self._units.in_slot.get(name)
        if entry is not None:
            return self._units.of[entry] in self._taken and not self._units.is_in_place(entry)
        return any(is_below(name, source) for source, _ in self._removed())

    def _removed(self) -> Iterator[tuple[RelPath, Entry]]:
        for source, entry in self._units.removed.items():
            if self._units.of[entry] in self._taken:
                yield source, entry

    def _count_made(self, staged: Staged) -> int:
        """Return how many names base gets for a file."""
        assert staged.base is not None
        slots = self._units.of[staged.names[0] if staged.names else staged].slots
        made = sum(not self._units.is_in_place(entry) for entry in staged.names)
        return made + sum(self._units.number_of_moved(entry) == staged.base.ino for entry in slots)

    def _count_lost(self, staged: Staged) -> int:
        """Return how many names of a file base loses."""
        assert staged.base is not None
        number = staged.base.ino
        lost = sum(
            of == number and self._units.of[entry] in self._taken and not self._units.is_in_place(entry)
            for entry, of in self._units.numbers.items()
        )
        for source, _ in self._removed():
            lost += sum(of == number for of in self._units.links_below(source))
            if staged.home is not None and staged.home in self._units.moved and is_below(staged.home, source):
                lost += 1  # it shows at other names of the file
        return lost
