"""What stands between the kernel and :mod:`yolofs.fuse.handlers`, as the mount sees it.

There are two: :mod:`yolofs.fuse.libfuse` is pyfuse3's, :mod:`yolofs.fuse.direct` speaks the
kernel's protocol itself.  ``docs/design/transport.md`` says what each has that the other lacks.
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass
from typing import Literal, Protocol

from yolofs.access.questions import Asker
from yolofs.fuse.cache.freeing import Freeing
from yolofs.fuse.current_run import CurrentRun
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.long_changes import LongChanges
from yolofs.fuse.loop.loop import DeviceLoop
from yolofs.fuse.trace import Trace

FILESYSTEM_NAME = "yolofs"
"""What the mount table names, behind ``fuse.``, as the type of a mount."""
SOURCE_NAME = "yolofs:view"
"""What it names as the source.  mount(8) and others take a name that is there for a path."""
NOT_KNOWN = frozenset([errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY])
"""What the kernel answers to a notice about a file or name that it does not know; no error."""


class Kernel(Protocol):
    """What the kernel can be told.  That it does not know the file is no error.

    Raises:
        OSError: it refuses for another reason.
    """

    def forget_attributes(self, number: int) -> None:
        """Have it ask for a file's attributes when it next needs them.  Never waits."""

    def forget_file(self, number: int) -> None:
        """Have it drop all that it has cached of a file.

        Blocks, and needs the loop to serve meanwhile.
        """

    def forget_name(self, parent: int, name: bytes) -> None:
        """Have it drop a name, with all that it knows below.  Blocks while the directory is
        locked.
        """

    def expire_name(self, parent: int, name: bytes) -> None:
        """Have it look a name up when it next needs it, and keep it and all below until then.  It
        may drop it instead.  Blocks while the directory is locked.
        """


@dataclass(frozen=True, slots=True)
class MountOptions:
    """How a mount is to be; times in seconds."""

    allow_other: bool
    drops_pages_itself: bool
    """Whether the kernel is to drop pages by what it hears of times, as we would tell it too
    late.
    """
    xattrs: bool | Literal["auto"]
    """Whether extended attributes are served; "auto" leaves it to the transport."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a transport works with."""

    handlers: Handlers
    loop: DeviceLoop
    asker: Asker
    freeing: Freeing
    current_run: CurrentRun
    long_changes: LongChanges


class Transport(Kernel, Protocol):
    """One mount's way to the kernel.  Used once.

    Its class has ``tells_interrupts``: whether it calls
    :meth:`yolofs.access.questions.Asker.withdraw` for everybody who is interrupted or killed while
    a request waits for an answer.
    """

    def mount(self, mountpoint: bytes) -> None:
        """Mount; requests wait until :meth:`serve` runs.

        Raises:
            MountError: the kernel or fusermount3 refuses.
        """

    async def serve(self) -> None:
        """Serve until the mount is taken away or the loop is stopped: the ``main`` of the loop."""

    def close(self, *, unmount: bool) -> None:
        """Let go of the kernel, after the loop has ended; ``unmount``: take the mount away."""

    def unjudged(self) -> contextlib.AbstractContextManager[None]:
        """Open files for the calling thread without judging while the block runs: it is
        :meth:`yolofs.fuse.mount.Mount.flush`'s.
        """
        ...

    def count(self, trace: Trace) -> None:
        """Have requests counted; to be called before :meth:`mount`."""
