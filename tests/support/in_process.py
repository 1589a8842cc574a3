"""A view mounted by this very process: its device loop in a thread, system calls from the test's
own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from tests.support import may_mount
from tests.support.core_driver import commit_some
from tests.support.plain_directory import PlainDirectory
from yolofs.changes.changes import Change, compare
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.mount import Mount
from yolofs.overlay import Overlay
from yolofs.overlay.inodes import Inode
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Tree


class MountedView(PlainDirectory):
    """A mounted view of ``root``, whose session lies in it; system calls go to
    :attr:`mountpoint`.
    """

    def __init__(self, base: bytes, **options: Any) -> None:
        may_mount.check()
        self.mountpoint = os.fsencode(tempfile.mkdtemp(prefix="yolofs-mnt-"))
        super().__init__(self.mountpoint)
        self.base = base
        self._settled = 0
        self.options = {"staged_timeout_s": 3600.0, "base_timeout_s": 1.0, "allow_other": False} | options
        Session.create(base)
        self._open()

    def _open(self) -> None:
        self.session = Session.open(self.base, SessionAccess.WRITE, root=self.base)
        state = self.session.present()
        self.overlay = Overlay(
            self.session.base, self.session.store, self.session.journal, state.tree, fresh_from=state.fresh_from
        )
        self.mount = Mount(self.overlay, self.mountpoint, **self.options)
        self.mount.start()

    def unmount(self) -> None:
        self.mount.stop()
        self.session.close()

    def close(self) -> None:
        self.unmount()
        shutil.rmtree(self.mountpoint)

    def remount(self) -> None:
        self.unmount()
        self._open()

    @property
    def handlers(self) -> Handlers:
        """What answers the kernel; to be called on the device loop."""
        return self.mount.handlers

    # ---- time

    def settle(self) -> None:
        """Wait until the loop has heard of each close(2) and unlink(2) that has returned.

        Neither waits for that; this does, as requests are answered in order, and calls of other
        threads before them.
        """
        self._settled += 1
        os.path.lexists(os.path.join(self.mountpoint, b"is not there %d" % self._settled))

    def snapshot(self, name: bytes = b"") -> int:
        self.mount.flush()

        def job() -> int:
            generation = self.session.snapshot(name)
            assert generation is not None
            self.overlay.mark(self.session.store.next_ino)
            return generation

        return self.mount.call_at_rest(job)

    def travel(self, generation: int | str) -> int:
        self.settle()
        self.mount.flush()

        def job() -> int:
            _, present = self.session.travel(str(generation))
            self._reload(committed=False)
            return present

        return self._and_invalidate(job)

    def commit(self) -> None:
        from yolofs.session.commit import commit

        self.settle()
        self.mount.flush()

        def job() -> int:
            commit(self.session)
            self._reload(committed=True)
            return 0

        self._and_invalidate(job)

    def commit_paths(self, paths: list[bytes]) -> bool:
        self.settle()
        self.mount.flush()
        is_done = False

        def job() -> int:
            nonlocal is_done
            is_done = commit_some(self.session, paths)
            self._reload(committed=is_done)
            return 0

        self._and_invalidate(job)
        return is_done

    def changes(self) -> list[Change]:
        self.settle()
        self.mount.flush()
        session = self.session
        return self.mount.call(
            lambda: compare(Tree(), session.state(), session.base, session.store, expand_renames=True)
        )

    def abort(self) -> None:
        self.settle()
        self.mount.flush()

        def job() -> int:
            self.session.put_away(None)
            self._reload(committed=False)
            return 0

        self._and_invalidate(job)

    def _reload(self, *, committed: bool) -> None:
        state = self.session.present()
        self._stale = self.overlay.reload(
            self.session.journal, state.tree, fresh_from=state.fresh_from, committed=committed
        )

    def _and_invalidate(self, job: Any) -> int:
        result = self.mount.call_at_rest(job)
        self.mount.invalidate(self._stale)
        return int(result)

    def inodes(self) -> list[Inode]:
        """Return what the overlay knows now."""
        self.settle()
        return self.mount.call(lambda: list(self.overlay.inodes.by_number.values()))
