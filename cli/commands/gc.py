"""``yolofs gc``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from yolofs.cli.commit.tidying import surplus_of
from yolofs.cli.output import emit, emit_json, local_time, say, warn
from yolofs.cli.project import changing, find_project, reading_whole, session_directory
from yolofs.cli.run.untrusted_settings import waiting_fields, waiting_lines
from yolofs.config.load import load
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConfigError, YolofsError
from yolofs.os_errors import said_as
from yolofs.session import run_tmp
from yolofs.session.dead_generations import dead_generations, drop_dead_generations
from yolofs.session.ended_commits import EndedCommit
from yolofs.session.retention import freed_by, put_aside, remove_gone, remove_half_written
from yolofs.system.disk_usage import size_of, size_text
from yolofs.system.work_directories import left_behind

if TYPE_CHECKING:  # takes long, and hardly a command needs it
    from yolofs.config.trust import WaitingLine


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--generations", is_flag=True, help="Drop the generations, too, that the present view is not built on.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(dry_run: bool, generations: bool, as_json: bool) -> None:
    """Remove old commits that are kept, and say what that frees.

    yolofs keeps commits so that you can undo them: the last 20, for 30 days, and up to 5 GiB of
    what base had before, whichever ends first. It always keeps the newest. `keep_commits` changes
    these limits, in .yolofs.toml or, for all projects, in your own config.toml. Each commit removes
    older ones by itself. gc also removes what killed commands had left in directories of their own.
    It never touches what is staged. If .yolofs.toml says to keep less, that holds once you have
    agreed to it (`yolofs trust`); until then gc says that it waits, and --dry-run says what it
    would remove.

    --generations also drops the generations that you have travelled away from. No travel leads
    there any more, and those that stay get new numbers.
    """
    project = find_project()
    waiting = _say_what_waits(project)
    later: list[EndedCommit] = []
    if dry_run:
        with reading_whole(project) as session:
            gone = surplus_of(session)
            if waiting:
                later = [one for one in surplus_of(session, load(project).keep_commits) if one not in gone]
            dropped = dead_generations(session) if generations else 0
            freed = freed_by(session, gone, generations=generations)
            killed = len(left_behind(session.directory))
    else:
        directory = session_directory(project)
        others = {run_tmp.top_of(directory)}  # in which programs are at work
        before = size_of(directory, without=others)  # opening it removes what a killed command has left
        sentence = "some of what is no longer kept could not be removed"
        with said_as(YolofsError, sentence, again="yolofs gc", place=directory):
            with changing(project, LoanKind.GC) as (session, is_mounted):
                session.check_no_interrupted_commit()
                gone = surplus_of(session)
                remove_half_written(session)
                put_aside(gone)
                dropped = drop_dead_generations(session) if generations else 0
                if not is_mounted:
                    session.collect()
            killed = len(left_behind(directory))
            remove_gone(directory)
        freed = before - size_of(directory, without=others)
    if as_json:
        numbers = [one.number for one in gone]
        document = {"commits": numbers, "generations": dropped, "freed_bytes": max(0, freed), "dry_run": dry_run}
        document["killed_commands"] = killed
        emit_json(document | {"waiting": waiting_fields(waiting), "once_agreed": [one.number for one in later]})
        return
    for one in gone:
        emit(f"{one.number:>4}  {local_time(one.began_ns)}")
    which = "1 commit" if len(gone) == 1 else f"{len(gone)} commits"
    if generations:
        which += " and 1 generation" if dropped == 1 else f" and {dropped} generations"
    if killed:
        which += f" and what {killed} killed command{'s' if killed > 1 else ''} had left"
    what = "would be removed" if dry_run else "removed"
    if later:
        which_later = ", ".join(str(one.number) for one in later)
        say(f"once you have agreed to what waits, also: commit{'s' if later[1:] else ''} {which_later}")
    say(f"{which} {what}, {size_text(max(0, freed))} {'would be freed' if dry_run else 'freed'}")


def _say_what_waits(project: bytes) -> list[WaitingLine]:
    """Tell which settings of what is kept wait for the user to agree, if any do, and return
    them.
    """
    waiting: list[WaitingLine] = []
    with contextlib.suppress(ConfigError):  # which opening the session tells
        waiting += (one for one in waiting_lines(project) if one.key[0] == "keep_commits")
    if waiting:
        from yolofs.config.trust import NEXT, count_text

        warn(f"{count_text(len(waiting), about=' about keep_commits')}: {NEXT}")
    return waiting
