"""Has worker threads copy large files, for requests that wait for it."""

from __future__ import annotations

import contextlib

from yolofs.fuse.loop.loop import DeviceLoop, Future
from yolofs.overlay import Overlay
from yolofs.overlay.inodes import Inode


class CopyWorkers:
    """The copies on their way; one for each file at most, whoever asks for it."""

    def __init__(self, overlay: Overlay, loop: DeviceLoop) -> None:
        self._overlay = overlay
        self._loop = loop
        self._running: dict[Inode, Future[None]] = {}

    async def make(self, inode: Inode, size: int | None) -> None:
        """Copy ``size`` bytes of a file's data (None: all), or wait for whoever does so already.

        Raises:
            OSError: the source cannot be read or the copy not written; nothing is left behind.
            LoopClosedError: the loop ends meanwhile.
        """
        running = self._running.get(inode)
        if running is not None:
            await running
            return
        job = self._overlay.copy_job(inode, size=size)
        done = self._running[inode] = self._loop.create_future()
        try:
            await self._loop.in_thread(job.run)
            self._overlay.take_copy(job)
        except BaseException:
            with contextlib.suppress(OSError):
                job.discard()
            raise
        finally:
            del self._running[inode]
            done.set_result(None)
