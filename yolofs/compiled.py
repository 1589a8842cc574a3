"""Whether what every request passes through is compiled (``docs/design/compiled.md``)."""

from __future__ import annotations

from yolofs.state import tree


def is_compiled() -> bool:
    """Tell whether the modules that every request passes through are compiled to machine code."""
    return not str(tree.__file__).endswith(".py")
