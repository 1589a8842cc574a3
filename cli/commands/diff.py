"""``yolofs diff``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from yolofs.audit.runs import find_run, generation_of
from yolofs.changes.changes import Change, compare
from yolofs.cli.completing import generations
from yolofs.cli.guard import hidden_by, readable, seen
from yolofs.cli.options import options
from yolofs.cli.output import emit_bytes, emit_json, has_colour, progress, say
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import PathsCommand, parse_range, paths_given
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.json_forms import change_fields, text_fields
from yolofs.cli.show.listing import Place, counts, emit_changes, say_hidden, say_left_out, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.errors import UsageError
from yolofs.paths import ROOT, Generation, RelPath, display
from yolofs.session.attribution import attribute
from yolofs.session.session import Session

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


@click.command(cls=PathsCommand)
@click.argument("words", metavar="[RANGE | GENERATION:PATH GENERATION:PATH]", nargs=-1, shell_complete=generations)
@click.option("--run", "run", type=int, metavar="N", help="Only what run N changed.")
@click.option("--scratch", is_flag=True, help="Also what changed in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Also what lies on paths that a rule hides.")
@click.option("--list", "as_list", is_flag=True, help="Print one line for each change, as status does.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as a JSON document.")
def command(
    words: tuple[str, ...], run: int | None, scratch: bool, shows_hidden: bool, as_list: bool, as_json: bool
) -> None:
    """Print what changed as a patch that `git apply` takes.

    RANGE is one generation (what it changed), A..B, A.. (up to now), ..B (from base), or all, which is what a commit
    would apply. A generation is a number, the name of a snapshot, base, or - for where you were before the last travel.
    Two of GENERATION:PATH are compared with each other; without a generation, as in :PATH, it is the view as it is now.

    Paths are relative to the project; if something outside it changed, to the base directory, and stderr says so.
    stderr also lists what a patch cannot express, such as an empty directory or an owner. What changed in scratch
    directories is left out unless PATH names it; what lies on paths that a rule hides is left out in any case.
    """
    with reading(find_project()) as session:
        paths = relative_paths(session, paths_given())
        scratch = scratch or bool(paths) or len(words) > 1
        old: Generation | None
        if len(words) > 1:
            old, new, changes = None, None, _compare_two(session, words, run, paths)
        else:
            range_text = words[0] if words else "all"
            if run is not None:
                old, new = _of_run(session, run, range_text, paths)
            else:
                old, new = parse_range(session.timeline, range_text)
            # one line stands for a renamed directory, unless a patch or somebody who asks for a file in it needs more
            changes = _compare(session, old, new, paths, expand=bool(paths) or not (as_list or as_json))
            if run is not None:
                changes = _made_by(session, run, old, new, changes)
        guard, root = options().guard, session.base.root
        everything = seen(guard, changes, root)
        changes = everything if scratch else without_scratch(everything, session.regions)
        left_out = len(everything) - len(changes)
        hider = hiding(session.project, shows_all=shows_hidden)
        hidden = len(hidden_by(hider, changes, root))
        changes = seen(hider, changes, root)
        place = Place(session.base.root, session.base.relative(session.project))
        if as_json:
            document = _document(session, old, new, changes, marks_of(session, changes))
            emit_json(document | {"scratch_left_out": left_out, "hidden_left_out": hidden})
            return
        if as_list:
            emit_changes(changes, place, session.regions, marks_of(session, changes))
        else:
            shown = readable(guard, changes, root)
            if len(shown) < len(changes):
                say(f"note: {len(changes) - len(shown)} files that may not be read are left out")
            _emit_patch(session, shown, place)
        say_left_out(left_out)
        say_hidden(hidden)


def _of_run(
    session: Session, number: int, range_text: str, paths: Sequence[RelPath]
) -> tuple[Generation, Generation | None]:
    """Return the two states between which a run lies.

    Raises:
        UsageError: there is a range, too, or its generations have been committed or dropped.
    """
    if range_text != "all" or paths:
        raise UsageError("--run stands for a range and paths of its own", hint=f"yolofs diff --run {number}")
    run = find_run(session.directory, number)
    before = generation_of(run.start.before, session.journal)
    if before is None:
        raise UsageError(f"what run {number} did has been committed or dropped since", hint="yolofs runs")
    return before, generation_of(run.end.after, session.journal) if run.end is not None else None


def _compare_two(session: Session, words: Sequence[str], run: int | None, paths: Sequence[RelPath]) -> list[Change]:
    """Return what differs between two paths, each as it was in some generation.

    Raises:
        UsageError: there are more words than two, or something else, too; or one of the two is a directory.
    """
    context = click.get_current_context()
    if not all(":" in word for word in words):
        raise click.UsageError(f"Got unexpected extra argument ({words[1]})", context)
    if len(words) > 2 or run is not None or paths:
        raise UsageError("two of GENERATION:PATH stand for themselves", hint="yolofs diff GENERATION:PATH :PATH")
    from yolofs.changes.changes import compare_two
    from yolofs.cli.versions import look_at, parse_version

    found = [look_at(session, parse_version(session, word), word) for word in words]
    for (_, file), word in zip(found, words, strict=True):
        if file.is_directory:
            raise UsageError(f"{word} is a directory", hint="yolofs diff GENERATION..GENERATION -- PATH")
    (old_files, old), (new_files, new) = found
    change = compare_two(old.node, new.node, old_files.reader, new_files.reader)
    return [change] if change is not None else []


def _made_by(
    session: Session, run: int, old: Generation, new: Generation | None, changes: list[Change]
) -> list[Change]:
    attribution = attribute(session.timeline, session.journal, old, new)
    if attribution is None:
        say("note: there was a travel meanwhile, so this is all that differs, not only what the run changed")
        return changes
    return [change for change in changes if run in attribution.runs_of(change)]


def _compare(
    session: Session, old: Generation, new: Generation | None, paths: Sequence[RelPath], *, expand: bool
) -> list[Change]:
    with progress("comparing") as update:
        return compare(
            *session.states(old, new),
            session.base,
            session.store,
            paths=paths,
            progress=update,
            expand_renames=expand,
        )


def _emit_patch(session: Session, changes: Sequence[Change], place: Place) -> None:
    from yolofs.changes.patch import write_patch

    prefix = ROOT
    if place.project is not None and all(map(place.holds, changes)):
        prefix = place.project
    elif changes:
        say(f"note: paths are relative to {display(place.root)}, as not all of them lie in the project")
    settings = session.settings.diff
    out: Callable[[bytes], object] = emit_bytes
    if sys.stdout.isatty():  # elsewhere a patch is exact, byte by byte
        from yolofs.cli.show.patch_colour import PatchPainter

        out = PatchPainter(emit_bytes, has_colour=has_colour(sys.stdout))
    notes = write_patch(
        changes,
        out,
        prefix=prefix,
        context=settings.context,
        max_text_bytes=settings.max_text_bytes,
        store=session.store,
    )
    for note in notes:
        say(f"note: {note}")


def _document(
    session: Session, old: Generation | None, new: Generation | None, changes: Sequence[Change], marks: Marks
) -> dict[str, Any]:
    regions = session.regions
    return {
        **text_fields("root", session.base.root),
        "from": old,
        "to": new,
        "counts": counts(changes),
        "changes": [change_fields(change, session.base.root, regions, marks) for change in changes],
    }
