"""Which units of a state a commit of a selection takes, and why it leaves some that were asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from yolofs.commit.select.selection import Selection
from yolofs.commit.select.units import DirectoryKey, Unit, Units, directory_of, source_of
from yolofs.paths import RelPath, join, split
from yolofs.state.link_names import find_names, find_names_at
from yolofs.state.tree import Entry, Staged, natural_path
from yolofs.store.base import Base


class HeldBack(msgspec.Struct, frozen=True):
    """Changes that were asked for and that stay all the same."""

    paths: tuple[RelPath, ...]
    """All that they would change, sorted."""
    why: str
    """In words why they stay; ``{}`` in it stands for the path ``beside``."""
    beside: RelPath | None = None
    """The path that they stay because of, if one is the reason."""
    needs: tuple[RelPath, ...] = ()
    """Paths that have to be selected, too, for them to go."""
    unnamed: tuple[RelPath, ...] = ()
    """Those of the paths that have to be named for them to go."""

    def reason(self, show: Callable[[RelPath], str]) -> str:
        """Return in words, to follow a colon, why they stay; ``show`` spells a path."""
        return self.why.replace("{}", show(self.beside)) if self.beside is not None else self.why


class Layout:
    """Where directories lie in base once some units are committed."""

    def __init__(self, units: Units, taken: frozenset[Unit]) -> None:
        """Nothing is worked out before it is asked for."""
        self._units = units
        self._taken = taken
        self._known: dict[DirectoryKey, RelPath | None] = {}

    def path(self, directory: DirectoryKey) -> RelPath | None:
        """Return the path that a directory, or anything else of base, gets; None if it would be
        nowhere.
        """
        if directory not in self._known:
            self._known[directory] = self._find(directory)
        return self._known[directory]

    def of_slot(self, entry: Entry) -> RelPath | None:
        """Return the path that a slot gets, None if it would be nowhere."""
        assert entry.parent is not None
        parent = self.path(directory_of(entry.parent))
        return join(parent, entry.name) if parent is not None else None

    def _find(self, directory: DirectoryKey) -> RelPath | None:
        names: list[bytes] = []
        passed: set[Entry] = set()
        while True:
            entry, rest = self._placed_by(directory)
            if entry is None:
                return RelPath(b"/".join((rest, *reversed(names)) if rest else reversed(names)))
            if entry in passed or self._units.of[entry] not in self._taken:
                return None  # below itself, or in a directory that is not made
            passed.add(entry)
            assert entry.parent is not None
            names.append(entry.name + rest)
            directory = directory_of(entry.parent)

    def _placed_by(self, directory: DirectoryKey) -> tuple[Entry | None, bytes]:
        """Return the slot that decides where a directory lies, and the path from there; no slot: it
        stays.
        """
        if isinstance(directory, Entry):
            return directory, b""
        end = len(directory)
        while end > 0:
            entry = self._units.moved.get(RelPath(directory[:end]))
            if entry is not None and self._units.of[entry] in self._taken:
                return entry, directory[end:]
            end = directory.rfind(b"/", 0, end)
        return None, directory


class Choice:
    """The units that are taken, and what of the selection is not."""

    def __init__(self, units: Units, selection: Selection, base: Base, *, may_leave_times: bool) -> None:
        """Choose.  With ``may_leave_times`` a time alone of a file holds up none of its names.

        Raises:
            OSError: base cannot be read.
        """
        self._units = units
        self._selection = selection
        self._base = base
        self._may_leave_times = may_leave_times
        self._left_times: dict[Staged, RelPath] = {}
        self.taken = {unit for unit in units.all if self._is_selected(unit)}
        self._asked = set(self.taken)
        self._why: dict[Unit, HeldBack] = {}
        for unit in units.all:
            self._check_alone(unit)
        self.layout = Layout(units, frozenset(self.taken))
        while self._settle_directories() or self._settle_places():
            pass

    @property
    def held_back(self) -> list[HeldBack]:
        """What stays though it was asked for, or a part of it."""
        return sorted(self._why.values(), key=lambda one: one.paths)

    @property
    def left_times(self) -> dict[Staged, RelPath]:
        """Files that are taken under some names and differ by their time alone at others: that time
        stays.  Each with one of these names, in base.
        """
        return {
            staged: name
            for staged, name in self._left_times.items()
            if self._units.of[staged.names[0] if staged.names else staged] in self.taken
        }

    def _hold_unnamed(self, unit: Unit, unnamed: Sequence[RelPath]) -> None:
        """Let a unit stay as some paths of it have to be named."""
        self.taken.discard(unit)
        reasons = dict.fromkeys(self._selection.unnamed[path] for path in unnamed)
        self._why[unit] = HeldBack(tuple(sorted({*unit.paths, *unnamed})), ", ".join(reasons), unnamed=tuple(unnamed))

    def _hold(
        self,
        unit: Unit,
        why: str,
        beside: RelPath | None = None,
        needs: Iterable[RelPath] = (),
        names: Iterable[RelPath] = (),
    ) -> None:
        """Let a unit stay; ``needs`` has to be selected for it to go, and ``names`` are others that
        it would change.
        """
        self.taken.discard(unit)
        self._why[unit] = HeldBack(tuple(sorted({*unit.paths, *names})), why, beside, tuple(sorted(set(needs))))

    # ---- what can be told of each unit by itself

    def _is_selected(self, unit: Unit) -> bool:
        """Tell whether all that a unit changes is selected, as far as paths tell."""
        outside = [path for path in unit.paths if not self._selection.has(path)]
        if not outside or len(outside) == len(unit.paths):
            return not outside
        return self._units.are_unchanged(unit, outside) or self._leaves_times(unit, outside)

    def _leaves_times(self, unit: Unit, outside: list[RelPath]) -> bool:
        """Tell whether a unit can be taken without some paths, as only times differ there; note
        which files have them.
        """
        if not self._may_leave_times or self._units.has_times_alone(unit):
            return False
        files = {self._units.slots[entry]: entry.staged for entry in unit.slots if self._units.is_in_place(entry)}
        found: dict[Staged, RelPath] = {}
        for path in outside:
            staged = files.get(path)
            if staged is None or not self._units.may_keep_time(staged) or self._units.with_another_time(path) is None:
                return False
            found.setdefault(staged, path)
        self._left_times.update(found)
        return True

    def _is_worth_a_word(self, unit: Unit) -> bool:
        """Tell whether to say that a unit stays: not of times alone that nobody has asked for."""
        return bool(self._selection.paths) or not (self._may_leave_times and self._units.has_times_alone(unit))

    def _check_alone(self, unit: Unit) -> None:
        if unit not in self.taken:
            if any(map(self._selection.has, unit.paths)) and not self._is_worth_a_word(unit):
                return
            other = next(path for path in unit.paths if not self._selection.has(path))
            by_link = self._asked_by_link(unit)
            if any(map(self._selection.has, unit.paths)):
                needs = {other, *self._other_names(unit)}
                if _is_one_file(unit):
                    self._hold(unit, "it is one file with several names (hard links)", None, needs, by_link)
                else:
                    self._hold(unit, "it goes together with {}", other, needs, by_link)
            elif by_link:
                needs = {*unit.paths, *self._other_names(unit)}
                self._hold(unit, "{} is the same file (hard link)", other, needs, by_link)
            elif self._is_asked_within(unit):
                self._hold(unit, f"{'it' if unit.removed else 'its rename'} goes only as a whole", needs=[other])
            return
        if unnamed := [path for path in unit.paths if path in self._selection.unnamed]:
            self._hold_unnamed(unit, unnamed)
            return
        for directory in unit.removed:
            inside = self._selection.left_out_below(directory) or self._excluded_below(directory)
            if inside is not None:
                self._hold(unit, "{} would go with it", inside, [inside])
                return
        for staged in (*unit.linked, *unit.nameless):
            if not self._check_links(unit, staged):
                return

    def _excluded_below(self, directory: RelPath) -> RelPath | None:
        """Return something that base has below a directory and that is to stay, None if there is
        nothing.
        """
        if self._selection.excluded is None:
            return None
        todo = [directory]
        while todo:
            above = todo.pop()
            if self._selection.excludes(above):
                return above
            try:
                todo += [join(above, name) for name in self._base.names(above)]
            except OSError:  # a file as a rule
                continue
        return None

    def _is_asked_within(self, unit: Unit) -> bool:
        """Tell whether something was asked for that a deleted or renamed directory takes with
        it.
        """
        takes_all = unit.removed or any(source_of(entry) in self._units.moved for entry in unit.slots)
        return bool(takes_all) and any(map(self._selection.has_some_in, unit.paths))

    def _asked_by_link(self, unit: Unit) -> list[RelPath]:
        """Return the selected names that base has for files of a unit, used or not."""
        numbers = [staged.base.ino for staged in (*unit.linked, *unit.nameless) if staged.base is not None]
        return [name for number in numbers for name in self._linked.get(number, ()) if self._selection.has(name)]

    @cached_property
    def _linked(self) -> dict[int, list[RelPath]]:
        """The names in base, as far as they are found, of files of which it may have more than were
        used.
        """
        files = [staged for unit in self._units.all for staged in (*unit.linked, *unit.nameless)]
        names: dict[int, list[RelPath]] = {}
        for name in find_names(self._base, files) if files else ():
            names.setdefault(self._base.number(self._base.lstat(name)), []).append(name)
        return names

    def _check_links(self, unit: Unit, staged: Staged) -> bool:
        """Hold a unit back if a file of it has names in base that are not selected, or may have."""
        assert staged.home is not None
        names, are_all = find_names_at(self._base, staged.home)
        if unnamed := [name for name in names if name in self._selection.unnamed]:  # it is one file, by whatever name
            self._hold_unnamed(unit, unnamed)
            return False
        if self._units.is_unchanged(staged):
            return True
        others = [name for name in names if not self._selection.has(name)]
        if others and self._leaves_time(unit, staged, others):
            return True
        other = others[0] if others else None
        if other is not None and not self._is_worth_a_word(unit):
            self.taken.discard(unit)
        elif other is not None:
            why = "{} is the same file (hard link)"
            self._hold(unit, why, other, self._other_names(unit), self._asked_by_link(unit))
        elif not are_all:
            self._hold(unit, "base has more names for the same file (hard links), which were not found")
        return other is None and are_all

    def _leaves_time(self, unit: Unit, staged: Staged, others: list[RelPath]) -> bool:
        """Tell whether a file can be taken without some names, as only its time differs there; note
        that.
        """
        if not self._may_leave_times or self._units.has_times_alone(unit):
            return False
        if not self._units.may_keep_time(staged) or None in map(self._units.with_another_time, others):
            return False
        self._left_times.setdefault(staged, others[0])
        return True

    def _other_names(self, unit: Unit) -> list[RelPath]:
        """Return the names in base of all files of a unit that are not selected, as far as they are
        found.
        """
        homes = [staged.home for staged in (*unit.linked, *unit.nameless) if staged.home is not None]
        return [name for home in homes for name in find_names_at(self._base, home)[0] if not self._selection.has(name)]

    # ---- what they need of each other

    def _settle_directories(self) -> bool:
        """Take new directories along with their content; return whether that changed anything."""
        before = set(self.taken)
        for unit in sorted(before, key=_first_path):
            for directory in self._needed_by(unit):
                above = self._units.of[directory]
                if above not in self.taken and not self._take_along(above):
                    needs = self._units.slots[directory]
                    self._hold(unit, "its directory {} stays", needs, [needs])
                    break
        needed = {self._units.of[above] for unit in self._asked & self.taken for above in self._needed_by(unit)}
        self.taken &= self._asked | needed
        return self.taken != before

    def _settle_places(self) -> bool:
        """Hold back what would come to lie elsewhere than in the selection; return whether there
        was any.
        """
        self.layout = Layout(self._units, frozenset(self.taken))
        before = len(self.taken)
        for unit in sorted(self._asked & self.taken, key=_first_path):
            for entry in unit.slots:
                place = self.layout.of_slot(entry)
                if place is None:
                    self._hold(unit, "it would lie in itself, as another rename stays")
                elif not entry.is_tombstone and place in self._selection.unnamed:
                    self._hold_unnamed(unit, [place])
                elif not (entry.is_tombstone or self._selection.has(place) or self._is_in_its_place(entry, place)):
                    self._hold(unit, "its directory is still {} in base", split(place)[0], [place])
                else:
                    continue
                break
        return len(self.taken) != before

    def _is_in_its_place(self, entry: Entry, place: RelPath) -> bool:
        """Tell whether a commit leaves what lies at a path of base just as it is."""
        if place != natural_path(entry):
            return False
        return entry.staged in self._left_times or self._units.are_unchanged(self._units.of[entry], [place])

    def _born_above(self, entry: Entry) -> list[Entry]:
        """Return the directories born in the view that a slot lies in, the nearest first."""
        found = []
        assert entry.parent is not None
        directory = directory_of(entry.parent)
        while isinstance(directory, Entry):
            found.append(directory)
            assert directory.parent is not None
            directory = directory_of(directory.parent)
        return found

    def _take_along(self, unit: Unit) -> bool:
        """Take a new directory that something in it needs; not if it is to stay, or more came with
        it.
        """
        if not self._selection.left_staged.isdisjoint(unit.paths):
            return False
        if unit in self._why or len(unit.slots) != 1 or unit.replaces:
            return False
        self.taken.add(unit)
        return True

    def _needed_by(self, unit: Unit) -> Iterator[Entry]:
        for entry in unit.slots:
            yield from self._born_above(entry)


def _is_one_file(unit: Unit) -> bool:
    """Tell whether a unit is all names of one file."""
    files = {entry.staged for entry in unit.slots}
    return len(unit.slots) > 1 and len(files) == 1 and None not in files


def _first_path(unit: Unit) -> bytes:
    return next(iter(unit.paths), b"")
