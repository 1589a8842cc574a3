"""The mountpoint of a session: made before it is mounted, and unmounted in the end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import time

from yolofs.daemon.blockers import Blockers
from yolofs.daemon.rpc import daemon_files as files
from yolofs.errors import BusyFilesError, MountError
from yolofs.paths import display
from yolofs.registry.runtime import MOUNT_NAME, NO_RUNTIME_HINT, make_runtime_directory, runtime_directory
from yolofs.system import mounts

log = logging.getLogger("yolofs.daemon")
_NOBODY_S = 1.0
"""How long the kernel may take to let go of a mount in which nobody is found."""
_AGAIN_S = 0.02
"""How long to wait before each further try: the kernel tells nobody when it has let go."""


def prepare(session: bytes) -> bytes:
    """Make the mountpoint of the session in a directory; return the runtime directory, in which it
    lies.  What a daemon that died left mounted is taken away first.

    Raises:
        MountError: the mountpoint cannot be made.
        YolofsError: as :func:`yolofs.registry.runtime.make_runtime_directory`.
    """
    described = files.read_daemon_file(session)
    places = {os.path.join(runtime_directory(session), MOUNT_NAME)}
    if described is not None:
        places.add(files.mountpoint_path(described))
    for mountpoint in places:
        if mounts.detach_stale(mountpoint):
            log.info("took away the mount that a daemon left at %s when it died", display(mountpoint))
    runtime = make_runtime_directory(session)
    try:
        os.makedirs(os.path.join(runtime, MOUNT_NAME), 0o700, exist_ok=True)
    except OSError as error:
        raise MountError(
            f"cannot make the mountpoint in {display(runtime)}: {error.strerror}", hint=NO_RUNTIME_HINT
        ) from error
    return runtime


def take_away(runtime: bytes) -> None:
    """Remove the mountpoint and the runtime directory, unless somebody still uses them."""
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(runtime, MOUNT_NAME))
        os.rmdir(runtime)


def unmount(mountpoint: bytes, blockers: Blockers, *, force: bool) -> None:
    """Unmount; with ``force`` even if processes are inside, which go on with what they have open.

    Blocks, for a second at most if the kernel says that the mount is in use and nobody is found.

    Raises:
        BusyFilesError: processes are inside, and ``force`` is not given.
        MountError: the kernel refuses for another reason.
    """
    deadline = time.monotonic() + _NOBODY_S
    while not _is_unmounted(mountpoint, lazy=force):
        users = blockers.inside()
        if users or time.monotonic() > deadline:
            raise BusyFilesError(
                "processes are at work inside the mount", users=users, hint="end them, or: yolofs unmount --force"
            )
        time.sleep(_AGAIN_S)


def _is_unmounted(mountpoint: bytes, *, lazy: bool) -> bool:
    """Try to unmount; tell whether the mount is gone, and not just in use."""
    try:
        mounts.unmount(mountpoint, lazy=lazy)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        if error.errno not in (errno.EINVAL, errno.ENOENT):  # those say that somebody else was faster
            raise MountError(
                f"cannot unmount {display(mountpoint)}: {error.strerror}", hint="yolofs unmount --force"
            ) from error
    return True
