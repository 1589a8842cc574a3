"""``yolofs ls``."""

from __future__ import annotations

import contextlib
import grp
import stat
from collections.abc import Iterable, Iterator

import click

from yolofs.cli.history.ranges import GenerationsCommand
from yolofs.cli.history.versions import check_may_read, file_of_version, parse_version, versions
from yolofs.cli.options import options
from yolofs.cli.output import emit, local_time
from yolofs.cli.project.project import find_project, reading
from yolofs.paths import display
from yolofs.registry.private import user_name
from yolofs.session.session import Session
from yolofs.session.state_files import StateFile, StateFiles


@click.command(cls=GenerationsCommand)
@click.argument("versions", metavar="GENERATION:PATH...", nargs=-1, required=True, shell_complete=versions)
@click.option("-l", "--long", "is_long", is_flag=True, help="Print mode, owner, size in bytes and time, too.")
@click.option("-R", "--recursive", "is_recursive", is_flag=True, help="List the directories below, too.")
def command(versions: tuple[str, ...], is_long: bool, is_recursive: bool) -> None:
    """List files as they were in another generation, without a mount.

    A generation is a number, the name of a snapshot, base, "run N" for what run N left, "commit N"
    for base right after that commit, or - for where you were before the last travel. :PATH alone is
    what the view shows now. A directory has a / at its end.
    """
    with reading(find_project()) as session:
        for text in versions:
            version = parse_version(session, text)
            files, file = file_of_version(session, version, text)
            shown: Iterable[tuple[bytes, StateFile]] = [(version.typed, file)]
            if file.is_directory:
                check_may_read(session, file.path, text)
                shown = _inside(session, files, file, is_recursive=is_recursive)
            for name, below in shown:
                emit(_line(name, below, is_long=is_long))


def _inside(
    session: Session, files: StateFiles, directory: StateFile, *, is_recursive: bool, above: bytes = b""
) -> Iterator[tuple[bytes, StateFile]]:
    """Yield the entries of a directory.  Inside a sandbox, those that rules hide are left out."""
    guard = options().guard
    for name, file in files.inside(directory):
        full = session.base.path(file.path)
        if guard is not None and not guard.may_see(full):
            continue
        yield above + name, file
        if is_recursive and file.is_directory and (guard is None or guard.may_read(full)):
            yield from _inside(session, files, file, is_recursive=True, above=above + name + b"/")


def _line(name: bytes, file: StateFile, *, is_long: bool) -> str:
    side = file.side
    text = display(name) + ("/" if file.is_directory else "")
    if not is_long:
        return text
    if side.type == stat.S_IFLNK:
        text += f" -> {display(side.target())}"
    mode = stat.filemode(side.type | side.mode)
    return (
        f"{mode} {user_name(side.uid):8} {_group_name(side.gid):8} {side.size:>10} {local_time(file.mtime_ns)} {text}"
    )


def _group_name(gid: int) -> str:
    with contextlib.suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return str(gid)
