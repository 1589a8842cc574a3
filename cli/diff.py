"""``yolofs diff``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import click

from yolofs.changes import Change, compare
from yolofs.cli.jsonform import change_fields, text_fields
from yolofs.cli.listing import Place, counts, emit_changes
from yolofs.cli.output import emit_bytes, emit_json, has_colour, progress, say
from yolofs.cli.project import find_project, reading, relative_paths
from yolofs.cli.ranges import PathsCommand, parse_range, paths_given
from yolofs.paths import ROOT, Generation, RelPath, display
from yolofs.session import Session


@click.command(cls=PathsCommand)
@click.argument("range_text", metavar="[RANGE]", default="all")
@click.option("--list", "as_list", is_flag=True, help="Print one line for each change, as status does.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as a JSON document.")
def command(range_text: str, as_list: bool, as_json: bool) -> None:
    """Print what changed as a patch that `git apply` takes.

    RANGE is one generation (what it changed), A..B, A.. (up to now), ..B (from base) or all, which is what a commit
    would apply. A generation is a number, the name of a snapshot, base, or - for where one was before the last
    travel.

    Paths are relative to the project; if something outside it changed, to the base directory, which is then said on
    stderr. So is what a patch cannot express, such as an empty directory or an owner.
    """
    with reading(find_project()) as session:
        old, new = parse_range(session.timeline, range_text)
        paths = relative_paths(session, paths_given())
        # one line stands for a renamed directory, unless a patch or somebody who asks for a file in it needs more
        changes = _compare(session, old, new, paths, expand=bool(paths) or not (as_list or as_json))
        place = Place(session.base.root, session.base.relative(session.project))
        if as_json:
            emit_json(_document(session, old, new, changes))
        elif as_list:
            emit_changes(changes, place)
        else:
            _emit_patch(session, changes, place)


def _compare(
    session: Session, old: Generation, new: Generation | None, paths: Sequence[RelPath], *, expand: bool
) -> list[Change]:
    with progress("comparing") as update:
        return compare(
            session.state(old),
            session.state(new),
            session.base,
            session.store,
            paths=paths,
            progress=update,
            expand_renames=expand,
        )


def _emit_patch(session: Session, changes: Sequence[Change], place: Place) -> None:
    from yolofs.patch import write_patch

    prefix = ROOT
    if place.project is not None and all(map(place.holds, changes)):
        prefix = place.project
    elif changes:
        say(f"note: paths are relative to {display(place.root)}, as not all of them lie in the project")
    settings = session.settings.diff
    out: Callable[[bytes], object] = emit_bytes
    if has_colour(sys.stdout):
        from yolofs.cli.colour import PatchPainter

        out = PatchPainter(emit_bytes)
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


def _document(session: Session, old: Generation, new: Generation | None, changes: Sequence[Change]) -> object:
    return {
        **text_fields("root", session.base.root),
        "from": old,
        "to": new,
        "counts": counts(changes),
        "changes": [change_fields(change, session.base.root) for change in changes],
    }
