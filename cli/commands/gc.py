"""``yolofs gc``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from yolofs.cli.commit.tidying import RemovedSurplus, foretell_removal, remove_surplus
from yolofs.cli.output import emit, emit_json, local_time, say, warn
from yolofs.cli.project.project import find_project
from yolofs.cli.rules.untrusted_settings import waiting_fields, waiting_lines
from yolofs.errors import ConfigError
from yolofs.system.disk_usage import size_text

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
    if dry_run:
        removal = foretell_removal(project, generations=generations, looks_at_waiting=bool(waiting))
    else:
        removal = remove_surplus(project, generations=generations)
    if as_json:
        emit_json(_document(removal, waiting, is_dry_run=dry_run))
    else:
        _emit(removal, generations=generations, is_dry_run=dry_run)


def _document(removal: RemovedSurplus, waiting: list[WaitingLine], *, is_dry_run: bool) -> dict[str, object]:
    return {
        "commits": [one.number for one in removal.commits],
        "generations": removal.generations,
        "freed_bytes": removal.freed_bytes,
        "dry_run": is_dry_run,
        "killed_commands": removal.killed_commands,
        "waiting": waiting_fields(waiting),
        "once_agreed": [one.number for one in removal.once_agreed],
    }


def _emit(removal: RemovedSurplus, *, generations: bool, is_dry_run: bool) -> None:
    for one in removal.commits:
        emit(f"{one.number:>4}  {local_time(one.began_ns)}")
    which = "1 commit" if len(removal.commits) == 1 else f"{len(removal.commits)} commits"
    if generations:
        which += " and 1 generation" if removal.generations == 1 else f" and {removal.generations} generations"
    killed = removal.killed_commands
    if killed:
        which += f" and what {killed} killed command{'s' if killed > 1 else ''} had left"
    later = removal.once_agreed
    if later:
        which_later = ", ".join(str(one.number) for one in later)
        say(f"once you have agreed to what waits, also: commit{'s' if later[1:] else ''} {which_later}")
    what, freed = ("would be removed", "would be freed") if is_dry_run else ("removed", "freed")
    say(f"{which} {what}, {size_text(removal.freed_bytes)} {freed}")


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
