"""Stops a program at the import of a module, and goes on when a signal has come that it outlives.

Python imports a module of this name at its start.  ``YOLOFS_STOPS_AT`` names the module that
stops.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class Stopper:
    """A finder that finds nothing; asked for the module, it says so and waits for a signal."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, perhaps after a while."""
        if name == os.environ["YOLOFS_STOPS_AT"]:
            os.write(2, b"HERE\n")
            signal.pause()
        return None


if "YOLOFS_STOPS_AT" in os.environ:
    sys.meta_path.insert(0, Stopper())
