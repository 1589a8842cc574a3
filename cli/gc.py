"""``yolofs gc``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import click

from yolofs.cli.output import emit, emit_json, local_time, say, warn
from yolofs.cli.project import changing, find_project, reading
from yolofs.daemon.protocol import LoanKind
from yolofs.dead_generations import dead_generations, drop_dead_generations
from yolofs.disk_usage import size_of, size_text
from yolofs.errors import YolofsError, reason
from yolofs.retention import put_aside, remove_gone, surplus_of
from yolofs.session import Session
from yolofs.session_undo import Ended


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--generations", is_flag=True, help="Also the generations that the present view is not built from.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(dry_run: bool, generations: bool, as_json: bool) -> None:
    """Remove what is kept of old commits, and say how much that frees.

    Commits are kept, so that they can be undone: the last 20, for 30 days, and as long as what base had before takes no
    more than 5 GiB, whichever ends first; the newest always (`keep_commits` in .yolofs.toml). Each commit removes the
    older ones that this leaves out by itself. What is staged is never touched.

    --generations drops those, too, from which one has travelled away: no travel leads there any more, and those that
    stay are numbered anew.
    """
    project = find_project()
    if dry_run:
        with reading(project) as session:
            session.check_no_interrupted_commit()
            gone = surplus_of(session)
            dropped = dead_generations(session) if generations else 0
            freed = sum(size_of(one.directory) for one in gone)
    else:
        with changing(project, LoanKind.GC) as (session, is_mounted):
            session.check_no_interrupted_commit()
            gone = surplus_of(session)
            before = size_of(session.directory)
            put_aside(gone)
            dropped = drop_dead_generations(session) if generations else 0
            if not is_mounted:
                session.collect()
            directory = session.directory
        remove_gone(directory)
        freed = before - size_of(directory)
    if as_json:
        numbers = [one.number for one in gone]
        emit_json({"commits": numbers, "generations": dropped, "freed_bytes": max(0, freed), "dry_run": dry_run})
        return
    for one in gone:
        emit(f"{one.number:>4}  {local_time(one.began_ns)}")
    which = "1 commit" if len(gone) == 1 else f"{len(gone)} commits"
    if generations:
        which += " and 1 generation" if dropped == 1 else f" and {dropped} generations"
    what = "would be removed" if dry_run else "removed"
    say(f"{which} {what}, {size_text(max(0, freed))} {'would be freed' if dry_run else 'freed'}")


def tidy(session: Session) -> Sequence[Ended]:
    """Put those commits aside, after another one, that are not kept any more; that this fails is no reason to fail."""
    try:
        gone = surplus_of(session)
        put_aside(gone)
    except (YolofsError, OSError) as error:
        warn(f"older commits were not removed: {error.message if isinstance(error, YolofsError) else reason(error)}")
        return ()
    return gone


def remove_tidied(directory: bytes) -> None:
    """Remove what was put aside; what cannot be removed now is when this is tried again."""
    with contextlib.suppress(OSError):
        remove_gone(directory)
