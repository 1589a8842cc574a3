"""What click is told of arguments and options that are paths."""

from __future__ import annotations

import os
import stat
from typing import Any

import click

from yolofs.paths import display

PATH = click.Path(readable=False, path_type=bytes)
"""Any path, also one that nothing is at, or that the user may not read."""


class Directory(click.Path):
    """A directory that is there; a disk that does not tell is not taken for one without it."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=bytes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """Return the path.

        Raises:
            BadParameter: nothing is there, or something else.
            OSError: it cannot be looked at.
        """
        path = os.fsencode(value)
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            self.fail(f"Directory '{display(path)}' does not exist.", param, ctx)
        if not is_directory:
            self.fail(f"Directory '{display(path)}' is a file.", param, ctx)
        return path
