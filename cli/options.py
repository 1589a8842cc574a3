"""The options before the command, as commands see them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:  # what it needs takes time to import
    from yolofs.cli.guard import Guard


class Options(NamedTuple):
    """The options before the command."""

    start: bytes = b"."
    """The directory to look for the project from."""
    project: bytes | None = None
    """The project, where it is known already."""
    guard: Guard | None = None
    """What limits the one on whose behalf the command runs; None for the user."""


def options() -> Options:
    """Return the options before the command that runs."""
    found: Options | None = click.get_current_context().find_object(Options)
    return found or Options()


def start_directory() -> bytes:
    """Return the directory that the command starts from, absolute: the current one, or that of ``-C``."""
    return os.path.abspath(options().start)
