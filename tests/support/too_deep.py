"""Directories that lie too deep for a path: a program gets there step by step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def steps_down(top: Path) -> Iterator[Iterator[None]]:
    """Give steps from ``top`` into new directories, each of which the process is in; at the end it
    is back where it was.
    """
    here = os.getcwd()
    try:
        os.chdir(top)
        yield _steps()
    finally:
        os.chdir(here)


def _steps() -> Iterator[None]:
    for _ in range(40):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
        yield
