"""What the model of contents has open: descriptors and mappings."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mount.content_model import Inode

SOON_S = 30.0
"""What is promised within a second; a busy machine may take longer."""
MODES = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY,
    "both": os.O_RDWR,
    "append": os.O_RDWR | os.O_APPEND,
    "direct": os.O_RDWR | os.O_DIRECT,
    "map": os.O_RDONLY,
    "map for writing": os.O_RDWR,
}


@dataclass(eq=False)
class Handle:
    """Something that is open: a descriptor, or a mapping of a :class:`Mapper`."""

    kind: str
    number: int
    inode: Inode
    mapped: int = 0
    """How much is mapped, in bytes."""
    is_behind: bool = False
    """Whether the host has changed the file since it was seen to show what it should."""
    is_dirty: bool = False
    """Whether the mapping was written to and not synced."""

    @property
    def may_write(self) -> bool:
        return MODES[self.kind] & os.O_ACCMODE != os.O_RDONLY

    @property
    def is_map(self) -> bool:
        return self.kind.startswith("map")


class Mapper:
    """The process of :mod:`tests.mount.mapper`."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-S", str(Path(__file__).with_name("mapper.py"))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, word: str, *arguments: Any, **named: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((word, arguments, named), self._process.stdin)
        self._process.stdin.flush()
        result = pickle.load(self._process.stdout)
        if isinstance(result, OSError):
            raise result
        return result

    def end(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            code = process.wait(SOON_S)
        assert code == 0, f"the mapper ended with {code}"
