"""``yolofs mount``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import click

from yolofs.cli import output
from yolofs.cli.options import start_directory
from yolofs.cli.path_types import ExistingDirectory
from yolofs.cli.project.connection import connected, warn_of_other_version
from yolofs.cli.project.project import find_project, session_directory
from yolofs.cli.rules.untrusted_settings import say_what_waits, waiting_or_warned
from yolofs.cli.show.mount_lines import emit_mountpoint, say_where_the_project_is
from yolofs.daemon.rpc.protocol import Info, unquote
from yolofs.errors import UsageError
from yolofs.paths import display


@click.command()
@click.option(
    "--root",
    metavar="DIR",
    type=ExistingDirectory(),
    help="The base directory that the view shows; / if neither this nor .yolofs.toml says otherwise.",
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground until Ctrl-C, the log on stderr.")
def command(root: bytes | None, foreground: bool) -> None:
    """Mount the view and print its mountpoint.

    What programs change below the mountpoint is staged; the base directory stays as it is. The link
    .yolofs/mnt also leads to the mountpoint.
    """
    from yolofs.daemon.rpc.launch import launch

    project = find_project()
    if root is not None:
        root = os.path.realpath(os.path.join(start_directory(), root))
    with connected(project) as client:
        if client is not None:
            warn_of_other_version(client)
            _report_running(client.info(), root)
            say_what_waits(len(waiting_or_warned(project)))
            return
    started = launch(project, session_directory(project), root=root, in_foreground=foreground)
    if foreground:
        _pass_signals_on(started.process)  # before anybody can know that it is mounted
    for warning in started.info.warnings:
        output.warn(warning)
    say_what_waits(len(waiting_or_warned(project, warned=started.info.warnings)))
    emit_mountpoint(started.info)
    say_where_the_project_is(started.info)
    if foreground:
        sys.exit(started.process.wait())
    started.process.returncode = 0  # it goes on without us: no complaint that nobody waited for it


def _report_running(info: Info, root: bytes | None) -> None:
    if root is not None and root != unquote(info.root):
        raise UsageError(
            f"the session is mounted already, with the root {display(unquote(info.root))}",
            hint="yolofs unmount, then mount again",
        )
    output.say(f"mounted already, by process {info.pid}")
    emit_mountpoint(info)


def _pass_signals_on(process: subprocess.Popen[bytes]) -> None:
    """Let a daemon in the foreground end by itself: Ctrl-C at the terminal reaches it as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
