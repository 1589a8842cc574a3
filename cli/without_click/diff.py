"""What ``yolofs diff`` prints."""

from __future__ import annotations

import contextlib
import functools
import stat
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from yolofs.changes.changes import Change
from yolofs.changes.counting import counts
from yolofs.changes.patch import PatchStyle, quoted_name, write_patch
from yolofs.changes.patch_files import Reading
from yolofs.changes.patch_stat import stat_changes
from yolofs.cli.guard import hidden_by, readable_changes, visible_changes
from yolofs.cli.history.differences import (
    Differences,
    chapters_of_runs,
    differences,
    directory_beside,
    range_and_paths_of,
)
from yolofs.cli.history.missing_paths import check_somewhere
from yolofs.cli.options import options
from yolofs.cli.output import emit_json, has_colour, paint, say
from yolofs.cli.project.project import find_project, reading, relative_paths
from yolofs.cli.rules.hidden_changes import hiding_of
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.json_forms import change_fields, text_fields
from yolofs.cli.show.listing import (
    PathDisplay,
    emit_changes,
    group_texts,
    say_hidden,
    say_illegible,
    say_left_out,
    without_scratch,
)
from yolofs.cli.show.marking import marks_of
from yolofs.cli.terminal.pager import paged
from yolofs.paths import ROOT, RelPath, absolute, display
from yolofs.session.session import Session
from yolofs.store.store import Store
from yolofs.system.disk_usage import size_text
from yolofs.text.characters import replace_harmful

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


class DiffForm(Enum):
    """What is printed; the value is the option that asks for it."""

    PATCH = "a patch"
    WORDS = "--word-diff"
    STAT = "--stat"
    NAMES = "--name-only"
    LIST = "--list"
    JSON = "--json"


_PATCHES = frozenset({DiffForm.PATCH, DiffForm.WORDS, DiffForm.STAT})
"""The forms that keep their order in a pipe, and leave out what lies in a ``.git``."""


def show_diff(
    words: Sequence[str] = (),
    typed: Sequence[bytes] = (),
    *,
    run: int | None = None,
    form: DiffForm = DiffForm.PATCH,
    scratch: bool = False,
    shows_hidden: bool = False,
    unfolds: bool = False,
    ignores_space: bool = False,
    shows_binary: bool = False,
    is_unpaged: bool = False,
) -> None:
    """Print what changed; ``words`` and the paths that were ``typed`` are those of the command, and
    so are the options.
    """
    with reading(find_project()) as session, contextlib.ExitStack() as stack:
        found = chapters_of_runs(session, stack) if run is not None else []
        if words and not (len(words) > 1 and all(":" in word for word in words)):
            word, typed = range_and_paths_of(session, words, typed)
            words = (word,)
        paths = relative_paths(session, typed)
        check_somewhere(session, paths, typed)
        # one line stands for a renamed directory, unless a patch or somebody who asks for a file in
        # it needs more
        expands = bool(paths) or form not in (DiffForm.LIST, DiffForm.JSON)
        place = functools.partial(directory_beside, session, stack)
        parts = differences(session, found, words, run, paths, expand=expands, place=functools.cache(place))
        at_terminal = sys.stdout.isatty()
        is_for_people = at_terminal or form is DiffForm.WORDS
        look = PatchStyle(is_for_people and not shows_binary, ignores_space, form is DiffForm.WORDS, at_terminal)
        folds = at_terminal and not (unfolds or paths or len(words) > 1)
        documents = []
        for part in parts:
            visible = _visible(
                session, part.changes, scratch=scratch or bool(paths) or len(words) > 1, shows_all=shows_hidden
            )
            if part.commit is not None:
                say(f"note: this was before commit {part.commit}")
            elif len(parts) > 1:
                say("note: this was after it")
            if form is DiffForm.JSON:
                documents.append(_document(session, part, visible))
            else:
                _show(session, part, visible, form, look, is_paged=not is_unpaged, folds=folds)
        if form is DiffForm.JSON:
            *earlier, last = documents
            emit_json(last | {"earlier": earlier})


class _Visible(msgspec.Struct, frozen=True):
    """Which changes of a comparison are shown, and how many are not."""

    changes: list[Change]
    left_out: int
    """In scratch directories."""
    hidden: int


def _visible(session: Session, changes: list[Change], *, scratch: bool, shows_all: bool) -> _Visible:
    """Return what may and is to be shown; without ``scratch`` not what lies in such directories."""
    root = session.base.root
    everything = visible_changes(options().guard, changes, root)
    changes = everything if scratch else without_scratch(everything, session.regions)
    hider = hiding_of(session.project, changes, root, shows_all=shows_all)
    hidden = len(hidden_by(hider, changes, root))
    return _Visible(visible_changes(hider, changes, root), len(everything) - len(changes), hidden)


def _show(
    session: Session,
    found: Differences,
    visible: _Visible,
    form: DiffForm,
    look: PatchStyle,
    *,
    is_paged: bool,
    folds: bool,
) -> None:
    """Print what differs in one of the forms, and say what is left out."""
    changes, path_display = visible.changes, PathDisplay(session.base.root, session.base.relative(session.project))
    marks: Marks = {}
    is_ordered = folds or form not in _PATCHES
    if is_ordered and found.states is session:  # what is committed has been asked about
        marks = marks_of(session, changes)
    changes, told = _what_matters_first(session, found, changes, path_display, form, marks, folds=folds)
    if form is DiffForm.LIST:
        emit_changes(changes, path_display, session.regions, marks)
    else:
        shown = readable_changes(options().guard, changes, session.base.root)
        say_illegible(len(changes) - len(shown))
        notes: list[str] = []
        if form is not DiffForm.NAMES:
            notes, shown = _left_out(found, shown, path_display)
        with paged(is_wanted=is_paged) as write:
            notes += _emit(session, found.states.store, shown, path_display, form, look, write)
            if told and form in (DiffForm.NAMES, DiffForm.STAT):
                write("".join(paint(f"-  {text}", "dim") + "\n" for text in told).encode())
        notes += [f"not shown: {text}" for text in told] if form in (DiffForm.PATCH, DiffForm.WORDS) else []
        for note in notes:  # when the pager has left the terminal
            say(f"note: {note}")
    say_left_out(visible.left_out)
    say_hidden(visible.hidden)


def _left_out(
    found: Differences, changes: Sequence[Change], path_display: PathDisplay
) -> tuple[list[str], list[Change]]:
    """Return what is to be said of the changes whose old version nobody knows, and the others."""
    unknown = {id(one.change): one for one in found.unknown}
    notes = []
    for change in changes:
        one = unknown.get(id(change))
        if one is not None:
            since = "base has nothing there any more" if one.is_gone else "base has changed since"
            size = "" if one.size is None else f"; all that is known is that it had {size_text(one.size)}"
            path = path_display.show_path(change.path)
            notes.append(f"{path} is left out: {since}, and what the run found there is not kept{size}")
    return notes, [change for change in changes if id(change) not in unknown]


def _what_matters_first(
    session: Session,
    found: Differences,
    changes: list[Change],
    path_display: PathDisplay,
    form: DiffForm,
    marks: Marks,
    *,
    folds: bool,
) -> tuple[list[Change], list[str]]:
    """Return the changes with those last that a short list folds.  If it ``folds``, they are left
    out, and the lines that stand for them are returned, too.

    A patch and its statistics keep their order in a pipe, and say themselves what lies in a
    ``.git``.
    """
    is_patch = form in _PATCHES
    if not changes or (is_patch and not folds):
        return changes, []
    from yolofs.cli.show.shortening import Shortener, set_apart  # it takes along what asks git

    folds = folds and form is not DiffForm.LIST and found.states is session
    tree = session.state(found.new) if folds and found.new is not None else None
    shortener = Shortener(session, path_display, "--unfold", tree)
    apart = set_apart(changes, shortener, marks)
    groups = [group for group in apart.groups if not (is_patch and group.sort is Sort.GIT)]
    told = group_texts(groups, shortener, path_display) if folds else []
    folded = {id(change) for group in groups for change in group.changes} if folds else set()
    return [change for change in (*apart.first, *apart.last) if id(change) not in folded], told


def _emit(
    session: Session,
    store: Store,
    changes: Sequence[Change],
    path_display: PathDisplay,
    form: DiffForm,
    look: PatchStyle,
    write: Callable[[bytes], object],
) -> list[str]:
    """Write the changes as a patch, names or counts, and return notes on anything left out."""
    prefix, notes = ROOT, []
    if path_display.project is not None and all(map(path_display.holds, changes)):
        prefix = path_display.project
    elif changes:
        notes.append(f"paths are relative to {display(path_display.root)}, as not all of them lie in the project")
    settings = session.settings.diff
    if form is DiffForm.NAMES:
        write(b"".join(name + b"\n" for name in _names(changes, prefix)))
        return notes
    if form is DiffForm.STAT:
        reading = Reading(store, settings.max_text_bytes, look.ignores_space)
        stats, more = stat_changes(changes, reading, prefix=prefix)
        import shutil  # takes a while, as the widths of characters do

        from yolofs.cli.show.stat_lines import stat_lines

        lines = stat_lines(stats, shutil.get_terminal_size().columns)
        write("".join(f"{replace_harmful(line)}\n" for line in lines).encode(errors="backslashreplace"))
        return notes + more
    out = write
    if sys.stdout.isatty():  # elsewhere a patch is exact, byte by byte
        from yolofs.cli.show.patch_colour import PatchPainter

        out = PatchPainter(write, has_colour=has_colour(sys.stdout), by_words=look.by_words)
    return notes + write_patch(
        changes,
        out,
        prefix=prefix,
        context=settings.context,
        max_text_bytes=settings.max_text_bytes,
        store=store,
        look=look,
    )


def _names(changes: Sequence[Change], prefix: RelPath) -> list[bytes]:
    """Return the paths of changed files, as a patch names them; directories are not among them."""
    paths = dict.fromkeys(
        change.path[len(prefix) + 1 :] if prefix else change.path
        for change in changes
        if (side := change.new or change.old) is not None and side.type != stat.S_IFDIR
    )
    return [quoted_name(path) for path in paths]


def _document(session: Session, found: Differences, visible: _Visible) -> dict[str, Any]:
    regions, changes = session.regions, visible.changes
    marks = marks_of(session, changes) if found.states is session else {}
    return {
        **text_fields("root", session.base.root),
        "from": found.old,
        "to": found.new,
        "commit": found.commit,
        "counts": counts(changes),
        "changes": [change_fields(change, session.base.root, regions, marks) for change in changes],
        "unknown": [
            text_fields("path", absolute(session.base.root, change.path))
            for change in changes
            if any(one.change is change for one in found.unknown)
        ],
        "scratch_left_out": visible.left_out,
        "hidden_left_out": visible.hidden,
    }
