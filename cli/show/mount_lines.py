"""A mount in lines: its mountpoint for programs, where the project is in it for people."""

from __future__ import annotations

import os
import sys

from yolofs.cli.output import emit_bytes, say
from yolofs.daemon.rpc.protocol import Info, unquote
from yolofs.paths import display, is_in


def emit_mountpoint(info: Info) -> None:
    """Write the mountpoint on stdout, at once: a program that waits for it may go on."""
    emit_bytes(unquote(info.mountpoint) + b"\n")
    sys.stdout.flush()


def say_where_the_project_is(info: Info) -> None:
    """Say where the project is in a view that shows more than the project."""
    root, project = unquote(info.root), unquote(info.project)
    if root != project and is_in(project, root):
        inside = project[len(root.rstrip(b"/")) + 1 :]
        say(f"the project in it: {display(os.path.join(unquote(info.mountpoint), inside))}")
