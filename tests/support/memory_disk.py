"""A directory in memory, for tests that make many thousands of files and wait for none of them to
be durable.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = "/dev/shm"


@contextmanager
def memory_directory() -> Iterator[Path]:
    """Give a directory that is gone at the end; on a disk, where the machine has no place in memory
    for one.
    """
    place = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="yolofs-test.", dir=place))
    try:
        (directory / "state").mkdir(0o700)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
