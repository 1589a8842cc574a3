"""The options before the command, as commands see them."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """The options before the command."""

    start: bytes = b"."
    """The directory to look for the project from."""
