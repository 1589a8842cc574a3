"""Shells, by the names of their programs."""

from __future__ import annotations

import os

_SHELLS = frozenset({b"sh", b"bash", b"dash", b"zsh", b"ksh", b"fish"})


def is_shell(program: bytes) -> bool:
    """Tell whether a program is a shell, by the last component of its path."""
    return os.path.basename(program) in _SHELLS
