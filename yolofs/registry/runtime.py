"""Where a session's runtime directory is: the mountpoint and the control sockets, outside the
project.

It lies below ``$XDG_RUNTIME_DIR/yolofs``, which every view shows as an empty directory;
``/run/user/UID`` is shown empty, too: keyrings, agents and other programs of the user have their
sockets there.
"""

from __future__ import annotations

import os
import stat

from yolofs.errors import MountError
from yolofs.paths import display

MOUNT_NAME = b"mnt"
SOCKET_NAME = b"control.sock"
AGENT_SOCKET_NAME = b"agent.sock"
"""The restricted socket, which the sandboxes see."""
NO_RUNTIME_HINT = "make that writable, or set XDG_RUNTIME_DIR to a directory of yours"


def login_directory() -> bytes:
    """Return the directory that a login gives this user for sockets and the like; it need not
    exist.
    """
    return b"/run/user/%d" % os.getuid()


def runtime_root() -> bytes:
    """Return the directory that holds the runtime directories of all this user's sessions; it may
    not exist yet.

    Without symbolic links, so that it is found in the mount table and can be hidden.
    """
    configured = os.environb.get(b"XDG_RUNTIME_DIR")
    uid = os.getuid()
    if configured and os.path.isabs(configured):
        return os.path.join(os.path.realpath(configured), b"yolofs")
    if os.access(login_directory(), os.W_OK):
        return os.path.join(login_directory(), b"yolofs")
    if os.access(b"/run", os.W_OK):
        return b"/run/yolofs-%d" % uid
    return b"/tmp/yolofs-%d" % uid


def runtime_roots() -> tuple[bytes, ...]:
    """Return where :func:`runtime_root` may lie for this user, whatever a command's environment
    says.
    """
    uid = os.getuid()
    fixed = os.path.join(login_directory(), b"yolofs"), b"/run/yolofs-%d" % uid, b"/tmp/yolofs-%d" % uid
    return tuple(dict.fromkeys((runtime_root(), *fixed)))


def runtime_directory(session_directory: bytes) -> bytes:
    """Return the runtime directory of the session in ``session_directory``, existing or not."""
    import hashlib  # takes long, and few that import this module want a digest

    digest = hashlib.sha256(os.path.realpath(session_directory)).hexdigest()[:12]
    return os.path.join(runtime_root(), digest.encode())


def make_runtime_directory(session_directory: bytes) -> bytes:
    """Create the runtime directory (mode 0700) and return it.

    Raises:
        MountError: somebody else owns the place, or it cannot be made.
    """
    directory = runtime_directory(session_directory)
    for path in (os.path.dirname(directory), directory):
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            st = os.lstat(path)
        except OSError as error:
            raise MountError(
                f"cannot make the runtime directory {display(path)}: {error.strerror}", hint=NO_RUNTIME_HINT
            ) from error
        if not stat.S_ISDIR(st.st_mode) or st.st_uid != os.getuid() or st.st_mode & 0o077:
            raise MountError(
                f"{display(path)} is not a directory that only you can enter",
                hint="remove it, or set XDG_RUNTIME_DIR to a directory of yours",
            )
    return directory
