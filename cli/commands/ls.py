"""``yolofs ls``."""

from __future__ import annotations

import click

from yolofs.cli.history.ranges import GenerationsCommand
from yolofs.cli.history.versions import list_version, versions
from yolofs.cli.output import emit, emit_json_list
from yolofs.cli.project.project import find_project, reading
from yolofs.cli.show.file_lines import file_fields, file_line


@click.command(cls=GenerationsCommand)
@click.argument("versions", metavar="GENERATION:PATH...", nargs=-1, required=True, shell_complete=versions)
@click.option("-l", "--long", "is_long", is_flag=True, help="Print mode, owner, size in bytes and time, too.")
@click.option("-R", "--recursive", "is_recursive", is_flag=True, help="List the directories below, too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(versions: tuple[str, ...], is_long: bool, is_recursive: bool, as_json: bool) -> None:
    """List files as they were in another generation, without a mount.

    A generation is a number, the name of a snapshot (also of one that a commit has ended),
    base, "run N" for what run N left, "commit N" for base right after that commit, or - for
    where you were before the last travel. :PATH alone is what the view shows now. A directory
    has a / at its end.
    """
    with reading(find_project()) as session:
        listed = ((text, one) for text in versions for one in list_version(session, text, is_recursive=is_recursive))
        if as_json:
            # all of it first: a refusal leaves no half of a document
            emit_json_list("files", [file_fields(text, file, session.base.root) for text, (_, file) in listed])
            return
        for _, (name, file) in listed:
            emit(file_line(name, file, is_long=is_long))
