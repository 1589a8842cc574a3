"""``yolofs gc``."""

from __future__ import annotations

import click

from yolofs.cli.commit.tidying import foretell_removal, remove_surplus
from yolofs.cli.commit.tidying_report import emit_removal, removal_document
from yolofs.cli.output import emit_json
from yolofs.cli.project.project import find_project
from yolofs.cli.rules.untrusted_settings import say_what_waits_about, waiting_fields


@click.command()
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--generations", is_flag=True, help="Drop the generations, too, that the present view is not built on.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(dry_run: bool, generations: bool, as_json: bool) -> None:
    """Remove kept commits beyond the limits, and say what that frees.

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
    waiting = say_what_waits_about("keep_commits", project)
    if dry_run:
        removal = foretell_removal(project, generations=generations, looks_at_waiting=bool(waiting))
    else:
        removal = remove_surplus(project, generations=generations)
    if as_json:
        emit_json(removal_document(removal, waiting_fields(waiting), is_dry_run=dry_run))
    else:
        emit_removal(removal, generations=generations, is_dry_run=dry_run)
