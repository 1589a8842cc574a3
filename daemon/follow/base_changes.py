"""What the host does to base under a mount: tells the kernel what is no longer true.

Plain blocking calls, on any thread but the device loop's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from yolofs.daemon.loop_calls import Call
from yolofs.errors import DaemonError
from yolofs.fuse.loop.loop import LoopClosedError
from yolofs.fuse.mount import Mount
from yolofs.overlay import HostChange, Overlay, names_known_in, stale_after
from yolofs.paths import join
from yolofs.session.session import Session

_AT_ONCE = 100
"""How many changes are looked at between two requests."""


class BaseChanges:
    """The host's changes of what a mount shows."""

    def __init__(self, session: Session, overlay: Overlay, mount: Mount, call: Call) -> None:
        self._session = session
        self._overlay = overlay
        self._mount = mount
        self._call = call

    # ---- watched

    def watchable(self) -> bytes | None:
        """Return the directory that is worth watching, the project; None if it is not in base, or
        not wanted.
        """
        session = self._session
        if not session.settings.mount.watch or session.base.relative(session.project) is None:
            return None
        return session.project

    def unwatched(self) -> list[bytes]:
        """Return the directories in there that are not to be watched: ours, and where others are
        mounted.
        """
        base = self._session.base
        return [self._session.directory, *(base.path(rel) for rel in base.mounts | base.pseudo)]

    def watch(self, *, on: bool) -> None:
        """Let the kernel cache watched base files for longer; without ``on``, no longer."""
        session = self._session
        self._call(lambda: self._mount.lifetimes.watch(session.base.relative(session.project) if on else None))

    def at(self, path: bytes, *, is_name: bool) -> list[HostChange]:
        """Return the changes to report for an absolute path; none if it is not in base."""
        rel = self._session.base.relative(path)
        return [HostChange(rel, is_name)] if rel else []

    def tell(self, changes: Sequence[HostChange]) -> None:
        """Have the kernel forget what is not true any more, a few changes between two requests."""
        for start in range(0, len(changes), _AT_ONCE):
            some = changes[start : start + _AT_ONCE]
            self._mount.invalidate(self._call(partial(stale_after, self._overlay, some)))

    def forget_watched(self) -> None:
        """Have the kernel forget all that it was told of what is watched: something happened
        there.
        """
        top = self.watchable()
        rel = self._session.base.relative(top) if top is not None else None
        if top is None or rel is None:
            return
        names = self._call(partial(names_known_in, self._overlay, rel))  # one of them may be gone
        try:
            names |= {join(rel, name) for name in os.listdir(top)}
        except OSError:  # it was moved away
            names |= {rel} if rel else set()
        self.tell([HostChange(name, is_name=True) for name in names])

    # ---- looked at

    @property
    def is_trusted(self) -> bool:
        """Whether the kernel trusts the attributes of a watched file for long."""
        return self._mount.lifetimes.trusts_any

    def look_after_watched(self) -> None:
        """Have the kernel forget watched files that changed without an event.

        Raises:
            DaemonError: the mount has just ended.
        """
        try:
            found, base = self._mount.changed_unnoticed(), self._session.base
        except LoopClosedError:
            raise DaemonError("the mount has just ended", hint="yolofs mount") from None
        if found:  # a name that has gone is one of which the event is missing
            self.tell([HostChange(path, is_name=not os.path.lexists(base.path(path))) for path in found])

    @property
    def has_open_files(self) -> bool:
        """Whether any file of the view is open."""
        return self._mount.handlers.has_open_files

    def look_at_open(self) -> None:
        """As :meth:`yolofs.fuse.mount.Mount.look_at_open`.

        Raises:
            DaemonError: the mount has just ended.
        """
        try:
            self._mount.look_at_open()
        except LoopClosedError:
            raise DaemonError("the mount has just ended", hint="yolofs mount") from None
