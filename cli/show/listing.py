"""Changes as lines for people: a letter, a path, and what else there is to say."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from yolofs.changes.changes import Aspect, Change, ChangeKind
from yolofs.changes.counting import counts
from yolofs.cli.output import emit, paint, say
from yolofs.cli.show.json_forms import type_name
from yolofs.hostcode.mark import is_marked
from yolofs.paths import RelPath, absolute, display, is_below
from yolofs.state.regions import Region, Regions

if TYPE_CHECKING:
    from yolofs.cli.show.folding import ChangeLine, Folded, Group
    from yolofs.hostcode.mark import Marks

_COLOURS = {
    ChangeKind.ADDED: "green",
    ChangeKind.MODIFIED: "yellow",
    ChangeKind.DELETED: "red",
    ChangeKind.RENAMED: "cyan",
    ChangeKind.TYPE: "magenta",
    ChangeKind.METADATA: "blue",
}
_HERE, _OUTSIDE, _SCRATCH, _HIDDEN, _CODE = (
    "",
    "outside the project:",
    "in scratch directories:",
    "on paths that the rules hide:",
    "what the host would run or trust:",
)
"""The titles of the sections of a list, in this order."""
_IN_PROJECT = "in the project:"
"""The title of the first section, where it is not the first."""
_MOST_LAST = 12
"""How many lines about marked changes may come last, as there is room for others before them."""
_PLAIN = bytes(code for code in range(ord("!"), ord("~") + 1) if code not in b'"\\')
"""The characters of names that are shown as they are."""
_WORDS = {
    ChangeKind.ADDED: "added",
    ChangeKind.MODIFIED: "modified",
    ChangeKind.DELETED: "deleted",
    ChangeKind.RENAMED: "renamed",
    ChangeKind.TYPE: "of another type",
    ChangeKind.METADATA: "metadata only",
}


class PathDisplay(msgspec.Struct, frozen=True):
    """What paths are shown relative to."""

    root: bytes
    project: RelPath | None
    """Relative to base; None if the project lies outside."""

    def holds(self, change: Change) -> bool:
        """Tell whether a change lies in the project with both its paths."""
        if self.project is None or not is_below(change.path, self.project):
            return False
        return change.old_path is None or is_below(change.old_path, self.project)

    def show(self, path: bytes, *, inside: bool) -> str:
        """Return a path for the terminal: relative to the project, or absolute."""
        if not inside or self.project is None:
            return display(absolute(self.root, path))
        return display(path[len(self.project) :].lstrip(b"/") or b".")

    def show_path(self, path: bytes) -> str:
        """Return a path for the terminal: relative to the project if it lies there, else
        absolute.
        """
        return self.show(path, inside=self.project is not None and is_below(path, self.project))


class Shortening(Protocol):
    """What makes a list short: :class:`yolofs.cli.show.shortening.Shortener`."""

    @property
    def unfold(self) -> str:
        """What shows each change: an option, or a command."""
        ...

    def fold(self, changes: Iterable[Change], is_kept: Callable[[Change], bool], marks: Marks) -> Folded:
        """Return changes made short; what ``is_kept`` has a line of its own, as what is marked."""
        ...

    def line(self, group: Group, show: Callable[[Change], str]) -> str:
        """Return what stands for a group of changes; ``show`` returns a path for the terminal."""
        ...


def without_scratch(changes: Sequence[Change], regions: Regions) -> list[Change]:
    """Return the changes that do not lie in scratch directories alone."""
    return [change for change in changes if regions.of_all(change.paths) is not Region.SCRATCH]


def say_left_out(count: int, what: str = "change") -> None:
    """Say that some changes in scratch directories are not shown, if there are any."""
    _say_left_out(count, what, "in scratch directories", "--scratch")


def say_hidden(count: int) -> None:
    """Say that some changes on paths that a rule hides are not shown, if there are any."""
    _say_left_out(count, "change", "on paths that the rules hide", "--hidden")


def say_illegible(count: int) -> None:
    """Say that some files are left out as they may not be read, if there are any."""
    if count:
        files = "1 file that may not be read is" if count == 1 else f"{count} files that may not be read are"
        say(f"note: {files} left out")


def _say_left_out(count: int, what: str, where: str, option: str) -> None:
    if count:
        say(f"note: {count} {what}{'s' if count > 1 else ''} {where} not shown; {option} shows them")


def emit_changes(
    changes: Sequence[Change],
    path_display: PathDisplay,
    regions: Regions,
    marks: Marks,
    hidden: Sequence[Change] = (),
    conflicts: Sequence[RelPath] = (),
    merged: Sequence[RelPath] = (),
    shortener: Shortening | None = None,
) -> None:
    """Write changes part by part (project, outside, scratch, on ``hidden`` paths, marked), and a
    line of counts.

    Those at ``conflicts`` are marked, too, and those that were ``merged``.  With a ``shortener``
    what belongs together is one line.
    """
    changed, from_both = frozenset(conflicts), frozenset(merged)
    apart = set(map(id, hidden))

    def is_kept(change: Change) -> bool:
        is_of_both = not (changed.isdisjoint(change.paths) and from_both.isdisjoint(change.paths))
        return is_of_both or id(change) in apart

    letters = _letters()
    by_title: dict[str, list[str]] = {title: [] for title in (_HERE, _OUTSIDE, _SCRATCH, _HIDDEN, _CODE)}
    plain = (
        _PlainAdditions(path_display, regions, by_title, letters[ChangeKind.ADDED])
        if not (apart or changed or from_both)
        else None
    )
    short = shortener.fold(changes, is_kept, marks) if shortener is not None and changes else None
    unfold = shortener.unfold if shortener is not None else ""
    for change, end, of_code in _with_ends(changes, marks, short, unfold):
        is_plain = plain is not None and change.kind is ChangeKind.ADDED and not end
        if is_plain and plain is not None and plain.takes(change):
            continue
        inside = path_display.holds(change)
        if of_code:
            title = _CODE
        elif id(change) in apart:
            title = _HIDDEN
        elif regions.of_all(change.paths) is Region.SCRATCH:
            title = _SCRATCH
        else:
            title = _HERE if inside else _OUTSIDE
        line = _line(letters[change.kind], change, path_display, inside=inside) + end
        if changed and not changed.isdisjoint(change.paths):
            line += paint("  [changed in base, too]", "bold", "red")
        if from_both and not from_both.isdisjoint(change.paths):
            line += paint("  [merged from both]", "bold", "cyan")
        by_title[title].append(line)
    if short is not None and shortener is not None:
        by_title[_HERE] += group_lines(short.groups, shortener, path_display)
    if len(by_title[_CODE]) > max(len(by_title[_HERE]), _MOST_LAST):  # what ends a long list is seen
        by_title[_IN_PROJECT] = by_title.pop(_HERE)
    is_first = True
    for title, lines in by_title.items():
        if lines and title:
            if not is_first:
                emit()
            emit(title)
        if lines:
            emit("\n".join(lines))
            is_first = False
    if changes:
        emit()
    emit(summary(changes))


def group_lines(groups: Iterable[Group], shortener: Shortening, path_display: PathDisplay) -> list[str]:
    """Return a line for each group of changes that are told together, dimmed where there are
    colours.
    """
    return [paint(f"-  {text}", "dim") for text in group_texts(groups, shortener, path_display)]


def group_texts(groups: Iterable[Group], shortener: Shortening, path_display: PathDisplay) -> list[str]:
    """Return what tells each group of changes."""

    def show(change: Change) -> str:
        return path_display.show_path(change.path) + _slash(change)

    return [shortener.line(group, show) for group in groups]


def _with_ends(
    changes: Iterable[Change], marks: Marks, short: Folded | None, unfold: str
) -> Iterator[tuple[Change, str, bool]]:
    """Yield each change with a line of its own, how that line ends, and whether it is marked."""
    if short is None:
        for change in changes:
            yield change, _mark_text(change, marks), is_marked(change, marks)
    else:
        for line in short.lines:
            yield line.change, _end_text(line, marks, unfold), has_mark(line, marks)


class _PlainAdditions:
    """Makes the lines of what was added under plain names: nearly all of a long list, many in one
    directory.
    """

    def __init__(
        self, path_display: PathDisplay, regions: Regions, by_title: dict[str, list[str]], letter: str
    ) -> None:
        self._place = path_display
        self._regions = regions
        self._by_title = by_title
        self._letter = letter
        self._tops = frozenset((regions.project, *regions.scratch, path_display.project))
        self._known: dict[bytes, tuple[list[str], str] | None] = {}
        """Of each directory the section that it belongs to, and how lines about what is in it
        begin.
        """

    def takes(self, change: Change) -> bool:
        """Add the line of a change, if that is all that its section and its path tell."""
        directory, _, name = change.path.rpartition(b"/")
        if directory not in self._known:
            self._known[directory] = self._look(directory)
        known = self._known[directory]
        if known is None or change.new is None or name.translate(None, _PLAIN) or change.path in self._tops:
            return False
        known[0].append(f"{known[1]}{name.decode()}{'/' if change.new.type == stat.S_IFDIR else ''}")
        return True

    def _look(self, directory: bytes) -> tuple[list[str], str] | None:
        path_display = self._place
        inside = path_display.project is not None and is_below(directory, path_display.project)
        if inside and path_display.project is not None:
            shown = directory[len(path_display.project) :].lstrip(b"/")
        else:
            shown = absolute(path_display.root, directory)
        if shown.translate(None, _PLAIN):
            return None
        begin = f"{shown.decode()}/" if shown and not shown.endswith(b"/") else shown.decode()
        if self._regions.of(directory) is Region.SCRATCH:
            title = _SCRATCH
        else:
            title = _HERE if inside else _OUTSIDE
        return self._by_title[title], f"{self._letter}  {begin}"


def summary(changes: Iterable[Change]) -> str:
    """Return how many changes of which kind there are."""
    found = counts(changes)
    total = sum(found.values())
    return f"{total} change{'s' if total > 1 else ''}: {counts_text(found)}" if total else "no changes"


def counts_text(found: Mapping[str, int]) -> str:
    """Return counts of changes by letter in words, those that are not zero."""
    return ", ".join(f"{found[kind.value]} {_WORDS[kind]}" for kind in ChangeKind if found[kind.value])


def line_text(line: ChangeLine, path_display: PathDisplay, marks: Marks, unfold: str, *, inside: bool) -> str:
    """Return a line of a short list; ``unfold`` shows each change, ``inside``: with paths relative
    to the project.
    """
    letter = _letters()[line.change.kind]
    return _line(letter, line.change, path_display, inside=inside) + _end_text(line, marks, unfold)


def has_mark(line: ChangeLine, marks: Marks) -> bool:
    """Tell whether a line is about something that is taken only if it is named."""
    return bool(line.alike) or is_marked(line.change, marks)


def _end_text(line: ChangeLine, marks: Marks, unfold: str) -> str:
    """Return what a line says after what has changed: how much is in it, and its mark."""
    if not line.alike:
        return line.count_text + _mark_text(line.change, marks)
    (mark,) = marks[line.alike[0].path]
    marked = paint(f"  [{len(line.alike)} of them {mark.text}]", "bold", "red")
    return f"{line.count_text.removesuffix(')')}; {unfold}){marked}"


def _mark_text(change: Change, marks: Marks) -> str:
    """Return what follows the line of a change that is taken only if it is named, else ""."""
    if not is_marked(change, marks):
        return ""
    return paint(f"  [{', '.join(mark.text for mark in marks[change.path])}]", "bold", "red")


def say_marked(changes: Iterable[Change], marks: Marks) -> None:
    """Say what the marks of some changes mean, if there are any."""
    count = sum(is_marked(change, marks) for change in changes) if marks else 0
    if count:
        which, them = ("1 is", "it") if count == 1 else (f"{count} are", "these")
        say(f"note: {which} what the host would run or trust; a commit takes {them} by name or with --trusted")


def _letters() -> dict[ChangeKind, str]:
    """Return the letters of all kinds as stdout shows them: once for a list, as looking at stdout
    takes a call.
    """
    return {kind: paint(kind.value, colour) for kind, colour in _COLOURS.items()}


def _line(letter: str, change: Change, path_display: PathDisplay, *, inside: bool) -> str:
    path = path_display.show(change.path, inside=inside) + _slash(change)
    if change.old_path is not None:
        path = f"{path_display.show(change.old_path, inside=inside)}{_slash(change)} -> {path}"
    notes = notes_text(change)
    return f"{letter}  {path}  ({notes})" if notes else f"{letter}  {path}"


def _slash(change: Change) -> str:
    side = change.new or change.old
    return "/" if side is not None and side.type == stat.S_IFDIR else ""


def notes_text(change: Change) -> str:
    """Return what else a line says of a change, in brackets there; empty if nothing."""
    notes = []
    old, new = change.old, change.new
    if change.kind is ChangeKind.RENAMED and change.content:
        notes.append("modified")
    if change.kind is ChangeKind.TYPE and old is not None and new is not None:
        notes.append(f"{type_name(old)} -> {type_name(new)}")
    for aspect in change.metadata:
        if aspect is Aspect.MODE and old is not None and new is not None:
            notes.append(f"mode {old.mode:o} -> {new.mode:o}")
        elif aspect is Aspect.OWNER and old is not None and new is not None:
            notes.append(f"owner {old.uid}:{old.gid} -> {new.uid}:{new.gid}")
        else:
            notes.append(aspect.value)
    if change.unseen_names:
        notes.append(f"{change.unseen_names} more of its names in base")
    return ", ".join(notes)
