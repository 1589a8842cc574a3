"""What click is told of arguments and options that are paths."""

from __future__ import annotations

import os
import stat
from typing import Any

import click

from yolofs.cli.options import not_entered
from yolofs.errors import UsageError
from yolofs.paths import display
from yolofs.registry.search import hint_of_gone
from yolofs.system.mounts import is_inside_mount


class AnyPath(click.Path):
    """Any path, also one that nothing is at, or that the user may not read: nobody looks there."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=bytes)

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> bytes:
        """Return the path."""
        return os.fsencode(value)


PATH = AnyPath()


class ExistingDirectory(click.Path):
    """A directory that is there; a disk that does not tell is not taken for one without it."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=bytes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """Return the path.

        Raises:
            BadParameter: nothing is there, or something else.
            UsageError: nothing is there any more.
            YolofsError: this user may not enter it.
            OSError: the disk does not tell.
        """
        path = os.fsencode(value)
        if is_inside_mount(path):  # whoever needs more than a path says so, without a look there
            return path
        is_start = param is not None and param.name == "start"
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            hint = hint_of_gone(os.path.abspath(path)) if is_start else ""
            if hint:
                raise UsageError(f"{display(path)} does not exist", hint=hint) from None
            self.fail(f"Directory '{display(path)}' does not exist.", param, ctx)
        except PermissionError as error:
            raise not_entered(path, is_start=is_start) from error
        if not is_directory:
            self.fail(f"Directory '{display(path)}' is a file.", param, ctx)
        if not os.access(path, os.X_OK, effective_ids=True):
            raise not_entered(path, is_start=is_start)
        return path
