"""``yolofs diff``."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yolofs.audit.runs import find_run
from yolofs.changes.changes import Change, compare
from yolofs.changes.counting import counts
from yolofs.changes.patch import Look, quoted, write_patch
from yolofs.changes.patch_files import Reading
from yolofs.changes.patch_stat import stat_changes
from yolofs.cli.completing import runs
from yolofs.cli.earlier_history import chapters_told
from yolofs.cli.guard import hidden_by, readable, seen
from yolofs.cli.missing_paths import check_somewhere
from yolofs.cli.options import options
from yolofs.cli.output import emit_json, has_colour, paint, progress, say
from yolofs.cli.pager import paged
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import PathsCommand, parse_range, paths_given
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.json_forms import change_fields, text_fields
from yolofs.cli.show.listing import Place, emit_changes, group_texts, say_hidden, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.cli.show.stat_lines import stat_lines
from yolofs.cli.versions import look_at, parse_version, ranges_and_versions
from yolofs.errors import GenerationError, UsageError
from yolofs.paths import ROOT, Generation, RelPath, absolute, display, in_shell
from yolofs.session.attribution import attribute
from yolofs.session.generations import States
from yolofs.session.history import Chapter, chapter_of
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.store import Store, StoreFiles
from yolofs.system.disk_usage import size_text
from yolofs.system.work_directories import work_directory
from yolofs.text.characters import replace_harmful

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks
    from yolofs.session.taken_over import Unknown


class Form(Enum):
    """What is printed; the value is the option that asks for it."""

    PATCH = "a patch"
    WORDS = "--word-diff"
    STAT = "--stat"
    NAMES = "--name-only"
    LIST = "--list"
    JSON = "--json"


_PATCHES = frozenset({Form.PATCH, Form.WORDS, Form.STAT})
"""The forms that keep their order in a pipe, and leave out what lies in a ``.git``."""


@click.command(cls=PathsCommand)
@click.argument(
    "words", metavar="[RANGE | GENERATION:PATH GENERATION:PATH]", nargs=-1, shell_complete=ranges_and_versions
)
@click.option(
    "--run",
    "run",
    type=int,
    metavar="N",
    shell_complete=runs,
    help="Show only what run N changed, even before a commit.",
)
@click.option("--scratch", is_flag=True, help="Include changes in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Include paths that a rule hides.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change that status folds, at a terminal too.")
@click.option("--list", "as_list", is_flag=True, help="Print one line for each change, none folded.")
@click.option("--stat", "as_stat", is_flag=True, help="Print how many lines changed in each file.")
@click.option("--name-only", "as_names", is_flag=True, help="Print only the paths of changed files.")
@click.option("-w", "--ignore-all-space", "ignores_space", is_flag=True, help="Leave out changes of white space alone.")
@click.option("--word-diff", "by_words", is_flag=True, help="Show which words changed: [-old-]{+new+}.")
@click.option(
    "--binary", "shows_binary", is_flag=True, help="Print binary files at a terminal too, not only their sizes."
)
@click.option("--no-pager", "is_unpaged", is_flag=True, help="Use no pager, even at a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as a JSON document.")
def command(
    words: tuple[str, ...],
    run: int | None,
    scratch: bool,
    shows_hidden: bool,
    unfolds: bool,
    as_list: bool,
    as_stat: bool,
    as_names: bool,
    ignores_space: bool,
    by_words: bool,
    shows_binary: bool,
    is_unpaged: bool,
    as_json: bool,
) -> None:
    """Print what changed as a patch that `git apply` takes.

    RANGE is one generation (what it changed), A..B, A.. (up to now), ..B (from base), or all
    (everything that a commit would apply). A generation is a number, the name of a snapshot, base,
    or - for where you were before the last travel. Given GENERATION:PATH twice, diff compares the
    two; :PATH alone is what the view shows now. --run N shows what that run did, even if the real
    files have changed since.

    Paths are relative to the project, or, if something outside it changed, to the base directory;
    stderr says so. stderr also lists what a patch cannot express, such as an empty directory or an
    owner. diff leaves out changes in scratch directories without --scratch or their PATH, and paths
    that a rule hides without --hidden.

    What status folds into one line (the inside of a .git, what git ignores, compiled Python code)
    comes last. At a terminal diff folds it too, unless a PATH or --unfold asks for it.

    At a terminal the patch comes through a pager (YOLOFS_PAGER, PAGER, or less), in colour. It only
    says how large a binary file is; --binary prints a patch of it, too. Into a pipe or a file the
    patch is always whole. With --word-diff the output is for people, in a pipe as well: no program
    can apply it.
    """
    form = _form(as_list=as_list, as_stat=as_stat, as_names=as_names, by_words=by_words, as_json=as_json)
    if ignores_space and form not in (Form.PATCH, Form.WORDS, Form.STAT):
        raise UsageError(f"-w is about lines, and {form.value} shows none", hint="yolofs diff -w, with --stat perhaps")
    with reading(find_project()) as session, contextlib.ExitStack() as stack:
        found = stack.enter_context(chapters_told(session)) if run is not None else []
        paths = relative_paths(session, paths_given())
        check_somewhere(session, paths, paths_given())
        # one line stands for a renamed directory, unless a patch or somebody who asks for a file in
        # it needs more
        expands = bool(paths) or form not in (Form.LIST, Form.JSON)
        place = functools.partial(_directory, session, stack)
        differences = _differences(session, found, words, run, paths, expand=expands, place=functools.cache(place))
        visible = _visible(
            session, differences.changes, scratch=scratch or bool(paths) or len(words) > 1, shows_all=shows_hidden
        )
        at_terminal = sys.stdout.isatty()
        is_for_people = at_terminal or form is Form.WORDS
        look = Look(is_for_people and not shows_binary, ignores_space, form is Form.WORDS, at_terminal)
        folds = at_terminal and not (unfolds or paths or len(words) > 1)
        _show(session, differences, visible, form, look, is_paged=not is_unpaged, folds=folds)


class _Differences(NamedTuple):
    """What differs between two states, and what they are states of."""

    states: States
    old: Generation | None
    new: Generation | None
    changes: list[Change]
    commit: int | None = None
    """The commit that they are from before, None if they are of now."""
    unknown: Sequence[Unknown] = ()
    """Those of which it is not known what was there before."""


class _Visible(NamedTuple):
    """What of that is to be shown, and how much is not."""

    changes: list[Change]
    left_out: int
    """In scratch directories."""
    hidden: int


def _differences(
    session: Session,
    found: Sequence[Chapter],
    words: Sequence[str],
    run: int | None,
    paths: Sequence[RelPath],
    *,
    expand: bool,
    place: Callable[[], bytes],
) -> _Differences:
    """Return what differs between the states that the words of a command line mean.

    ``place`` gives a directory for what has to be read meanwhile.

    Raises:
        UsageError: they mean none, or several things at once.
        GenerationError: there is no such generation.
    """
    if len(words) > 1:
        return _Differences(session, None, None, _compare_two(session, words, run, paths))
    range_text = words[0] if words else "all"
    if run is not None:
        return _of_run(session, found, run, range_text, paths, expand=expand, place=place)
    try:
        old, new = parse_range(session.timeline, range_text)
    except GenerationError:
        _check_is_no_version(range_text)
        raise
    changes = _compare(session.states(old, new), session.base, session.store, paths, expand=expand)
    return _Differences(session, old, new, changes)


def _visible(session: Session, changes: list[Change], *, scratch: bool, shows_all: bool) -> _Visible:
    """Return what may and is to be shown; without ``scratch`` not what lies in such directories."""
    root = session.base.root
    everything = seen(options().guard, changes, root)
    changes = everything if scratch else without_scratch(everything, session.regions)
    hider = hiding(session.project, shows_all=shows_all)
    hidden = len(hidden_by(hider, changes, root))
    return _Visible(seen(hider, changes, root), len(everything) - len(changes), hidden)


def _show(
    session: Session,
    found: _Differences,
    visible: _Visible,
    form: Form,
    look: Look,
    *,
    is_paged: bool,
    folds: bool,
) -> None:
    """Print what differs in one of the forms, and say what is left out."""
    changes, place = visible.changes, Place(session.base.root, session.base.relative(session.project))
    marks: Marks = {}
    is_ordered = folds or form not in _PATCHES
    if is_ordered and found.states is session:  # what is committed has been asked about
        marks = marks_of(session, changes)
    if form is Form.JSON:
        document = _document(session, found, changes, marks)
        emit_json(document | {"scratch_left_out": visible.left_out, "hidden_left_out": visible.hidden})
        return
    changes, told = _what_matters_first(session, found, changes, place, form, marks, folds=folds)
    if form is Form.LIST:
        emit_changes(changes, place, session.regions, marks)
    else:
        shown = readable(options().guard, changes, session.base.root)
        if len(shown) < len(changes):
            say(f"note: {len(changes) - len(shown)} files that may not be read are left out")
        notes: list[str] = []
        if form is not Form.NAMES:
            notes, shown = _left_out(found, shown, place)
        with paged(is_wanted=is_paged) as write:
            notes += _emit(session, found.states.store, shown, place, form, look, write)
            if told and form in (Form.NAMES, Form.STAT):
                write("".join(paint(f"-  {text}", "dim") + "\n" for text in told).encode())
        notes += [f"not shown: {text}" for text in told] if form in (Form.PATCH, Form.WORDS) else []
        for note in notes:  # when the pager has left the terminal
            say(f"note: {note}")
    say_left_out(visible.left_out)
    say_hidden(visible.hidden)


def _left_out(found: _Differences, changes: Sequence[Change], place: Place) -> tuple[list[str], list[Change]]:
    """Return what is to be said of the changes whose old version nobody knows, and the others."""
    unknown = {id(one.change): one for one in found.unknown}
    notes = []
    for change in changes:
        one = unknown.get(id(change))
        if one is not None:
            since = "base has nothing there any more" if one.is_gone else "base has changed since"
            size = "" if one.size is None else f"; all that is known is that it had {size_text(one.size)}"
            path = place.show_path(change.path)
            notes.append(f"{path} is left out: {since}, and what the run found there is not kept{size}")
    return notes, [change for change in changes if id(change) not in unknown]


def _what_matters_first(
    session: Session,
    found: _Differences,
    changes: list[Change],
    place: Place,
    form: Form,
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

    folds = folds and form is not Form.LIST and found.states is session
    tree = session.state(found.new) if folds and found.new is not None else None
    shortener = Shortener(session, place, "--unfold", tree)
    apart = set_apart(changes, shortener, marks)
    groups = [group for group in apart.groups if not (is_patch and group.sort is Sort.GIT)]
    told = group_texts(groups, shortener, place) if folds else []
    folded = {id(change) for group in groups for change in group.changes} if folds else set()
    return [change for change in (*apart.first, *apart.last) if id(change) not in folded], told


def _form(*, as_list: bool, as_stat: bool, as_names: bool, by_words: bool, as_json: bool) -> Form:
    """Return the one form that was asked for.

    Raises:
        UsageError: there are several.
    """
    flags = {
        Form.LIST: as_list, Form.STAT: as_stat, Form.NAMES: as_names, Form.WORDS: by_words, Form.JSON: as_json
    }  # fmt: skip
    asked = [form for form, is_asked in flags.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(
            f"{asked[0].value} and {asked[1].value} are two forms of the same output", hint="leave one of them out"
        )
    return asked[0] if asked else Form.PATCH


def _check_is_no_version(text: str) -> None:
    """Check that what stands for a range is not one GENERATION:PATH, of which a comparison takes
    two.

    Raises:
        UsageError: it is.
    """
    generation, colon, path = text.rpartition(":")
    if not colon:
        return
    whole = in_shell(os.fsencode(text))
    at = in_shell(os.fsencode(path))
    since = f"; or what generation {generation} changed there: yolofs diff {generation} -- {at}" if generation else ""
    raise UsageError(
        f"{text} is one version of a file, and a comparison takes two",
        hint=f"with the view as it is now: yolofs diff {whole} {in_shell(os.fsencode(f':{path}'))}{since}",
    )


def _of_run(
    session: Session,
    found: Sequence[Chapter],
    number: int,
    range_text: str,
    paths: Sequence[RelPath],
    *,
    expand: bool,
    place: Callable[[], bytes],
) -> _Differences:
    """Return what a run did, over base as the run found it.

    Raises:
        UsageError: there is a range, too, or its generations have been dropped, or their commit is
            not kept.
    """
    if range_text != "all":
        raise UsageError("--run says already which range is compared", hint=f"yolofs diff --run {number}")
    run = find_run(session.directory, number)
    chapter = chapter_of(run, found)
    before = chapter.generation(run.start.before) if chapter is not None else None
    if chapter is None or before is None:
        raise UsageError(f"what run {number} did has been dropped, or its commit is no longer kept", hint="yolofs runs")
    after = chapter.generation(run.end.after) if run.end is not None else None
    states: States = session
    if chapter.commit is not None:
        from yolofs.session.past_base import states_of  # it takes all that commits need along

        say(f"note: this was before commit {chapter.commit}")
        states = states_of(session, chapter)
    from yolofs.session.taken_over import TakenOver

    old, new = states.states(before, after)
    taken_over = TakenOver(session, chapter, states.base, states.store, place)
    changes = _compare((old, new), taken_over.base(old, new), states.store, paths, expand=expand)
    changes, unknown = taken_over.check(_made_by(states, number, before, after, changes), old, new)
    return _Differences(states, before, after, changes, chapter.commit, unknown)


def _compare_two(session: Session, words: Sequence[str], run: int | None, paths: Sequence[RelPath]) -> list[Change]:
    """Return what differs between two paths, each as it was in some generation.

    Raises:
        UsageError: there are more words than two, or something else, too; or one of the two is a
            directory.
    """
    context = click.get_current_context()
    if not all(":" in word for word in words):
        raise click.UsageError(f"Got unexpected extra argument ({words[1]})", context)
    if len(words) > 2 or run is not None or paths:
        raise UsageError(
            "GENERATION:PATH GENERATION:PATH takes no further argument", hint="yolofs diff GENERATION:PATH :PATH"
        )
    from yolofs.changes.changes import compare_two

    found = [look_at(session, parse_version(session, word), word) for word in words]
    for (_, file), word in zip(found, words, strict=True):
        if file.is_directory:
            raise UsageError(f"{word} is a directory", hint="yolofs diff GENERATION..GENERATION -- PATH")
    (old_files, old), (new_files, new) = found
    change = compare_two(old.node, new.node, old_files.reader, new_files.reader)
    return [change] if change is not None else []


def _made_by(session: States, run: int, old: Generation, new: Generation | None, changes: list[Change]) -> list[Change]:
    attribution = attribute(session.timeline, session.journal, old, new)
    if attribution is None:
        say("note: there was a travel meanwhile, so this is all that differs, not only what the run changed")
        return changes
    return [change for change in changes if run in attribution.runs_of(change)]


def _directory(session: Session, stack: contextlib.ExitStack) -> bytes:
    """Return a new directory in the session's, which goes with the stack."""
    return stack.enter_context(work_directory(session.directory, "diff"))


def _compare(
    trees: tuple[Tree, Tree], base: Base, store: StoreFiles, paths: Sequence[RelPath], *, expand: bool
) -> list[Change]:
    with progress("comparing") as update:
        return compare(
            *trees,
            base,
            store,
            paths=paths,
            progress=update,
            expand_renames=expand,
        )


def _emit(
    session: Session,
    store: Store,
    changes: Sequence[Change],
    place: Place,
    form: Form,
    look: Look,
    write: Callable[[bytes], object],
) -> list[str]:
    """Write the changes in one of the forms that are about files, and return what that cannot
    express.
    """
    prefix, notes = ROOT, []
    if place.project is not None and all(map(place.holds, changes)):
        prefix = place.project
    elif changes:
        notes.append(f"paths are relative to {display(place.root)}, as not all of them lie in the project")
    settings = session.settings.diff
    if form is Form.NAMES:
        write(b"".join(name + b"\n" for name in _names(changes, prefix)))
        return notes
    if form is Form.STAT:
        reading = Reading(store, settings.max_text_bytes, look.ignores_space)
        stats, more = stat_changes(changes, reading, prefix=prefix)
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
    return [quoted(path) for path in paths]


def _document(session: Session, found: _Differences, changes: Sequence[Change], marks: Marks) -> dict[str, Any]:
    regions = session.regions
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
    }
