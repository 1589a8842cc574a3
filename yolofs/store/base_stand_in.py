"""Stands in for base with its former files: those from before a commit, or from when the view took
them over.

Compiled with :class:`~yolofs.store.base.Base`, which no class can extend that is not compiled.
"""

from __future__ import annotations

import os
from typing import Protocol

from yolofs.store.base import Base


class KnownBase(Protocol):
    """Knows what base had at its paths."""

    def path(self, rel: bytes) -> bytes:
        """Return the absolute path of what base had at a path."""
        ...

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of what base had at a path.

        Raises:
            OSError: it had nothing there, or that is not known.
        """
        ...

    def has(self, rel: bytes) -> bool:
        """Tell whether base had something at a path.

        Raises:
            OSError: that is not known.
        """
        ...

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names that base had in a directory.

        Raises:
            OSError: it had none there, or it cannot be read.
        """
        ...


class BaseStandIn(Base):
    """Takes the place of :class:`~yolofs.store.base.Base`, with what a :class:`KnownBase` had."""

    def __init__(self, root: bytes, known: KnownBase) -> None:
        """``root``: the base directory, absolute."""
        super().__init__(root)
        self._known = known

    def path(self, rel: bytes) -> bytes:
        """Return the absolute path of what base had at a path."""
        return self._known.path(rel)

    def lstat(self, rel: bytes) -> os.stat_result:
        """Return the attributes of what base had at a path.

        Raises:
            OSError: as :meth:`KnownBase.lstat`.
        """
        return self._known.lstat(rel)

    def has(self, rel: bytes) -> bool:
        """Tell whether base had something at a path.

        Raises:
            OSError: as :meth:`KnownBase.has`.
        """
        return self._known.has(rel)

    def names(self, rel: bytes) -> list[bytes]:
        """Return the names that base had in a directory.

        Raises:
            OSError: as :meth:`KnownBase.names`.
        """
        return self._known.names(rel)
