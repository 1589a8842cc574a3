"""Hunks as they go over the control socket (``docs/reference/rpc.md``).

Paths and patches travel percent-encoded.  The result of each method is that of ``look``.
"""

from __future__ import annotations

import msgspec


class HunksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``hunks``: what two states differ in, at or below some paths if there are
    any.
    """

    range: str = "all"
    """As ``yolofs hunks`` takes it."""
    paths: tuple[str, ...] = ()
    scratch: bool = False
    hidden: bool = False


class CommitHunksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``commit_hunks``."""

    hunks: tuple[str, ...]
    """Ids, perhaps with lines (``ID:1-3,5``)."""
    paths: tuple[str, ...] = ()
    """Paths of the hunks; and the host code to take, which goes only by its name."""
    trusted: bool = False
    ours: bool = False
    """Whether what is staged replaces what has changed in base."""


class DropHunksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``drop_hunks``."""

    hunks: tuple[str, ...]
    source: str = "base"
    """What they become: a generation, ``run N`` or ``base``."""
    paths: tuple[str, ...] = ()


class EditHunkParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``edit_hunk``."""

    hunk: str
    patch: str
    """What has become of it: lines with ``-``, ``+`` or a space before each."""
    paths: tuple[str, ...] = ()
