"""``yolofs cat``."""

from __future__ import annotations

import os
import stat

import click

from yolofs.cli.history.ranges import GenerationsCommand
from yolofs.cli.history.versions import check_may_read, file_of_version, parse_version, versions
from yolofs.cli.project.project import find_project, reading
from yolofs.cli.show.file_lines import emit_content
from yolofs.cli.show.json_forms import type_name
from yolofs.errors import UsageError
from yolofs.paths import display, in_shell


@click.command(cls=GenerationsCommand)
@click.argument("versions", metavar="GENERATION:PATH...", nargs=-1, required=True, shell_complete=versions)
def command(versions: tuple[str, ...]) -> None:
    """Print files as they were in another generation, without a mount.

    A generation is a number, the name of a snapshot (also of one that a commit has ended),
    base, "run N" for what run N left, "commit N" for base right after that commit, or - for
    where you were before the last travel. :PATH alone is what the view shows now. A terminal
    gets control characters as ^X; a pipe gets the content as it is.
    """
    with reading(find_project()) as session:
        for text in versions:
            files, file = file_of_version(session, parse_version(session, text), text)
            shown, word = display(os.fsencode(text)), in_shell(os.fsencode(text))
            if file.is_directory:
                raise UsageError(f"{shown} is a directory", hint=f"yolofs ls {word}")
            check_may_read(session, file.path, text)
            if file.side.type == stat.S_IFLNK:
                raise UsageError(
                    f"{shown} is a symlink to {display(file.side.target())}, and cat follows none",
                    hint=f"yolofs ls -l {word}",
                )
            if file.side.type != stat.S_IFREG:
                raise UsageError(
                    f"{shown} is a {type_name(file.side)}, and has no content", hint=f"yolofs ls -l {word}"
                )
            emit_content(files.chunks(file))
