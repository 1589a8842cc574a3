"""For tests that try many rows in one world, as making it takes most of the time: each says itself
that it failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def row(*what: object) -> Iterator[None]:
    """Have whatever fails in the block say in which row it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the row {' '.join(map(str, what))}")
        raise
