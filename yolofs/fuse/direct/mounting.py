"""Making and taking away a mount: root by mount(2), others by fusermount3."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import os
import select
import socket
import stat
import subprocess

from yolofs.errors import MountError
from yolofs.fuse.direct.device import Device
from yolofs.fuse.transport import FILESYSTEM_NAME, SOURCE_NAME
from yolofs.paths import display
from yolofs.system.host_programs import find_program
from yolofs.system.mounts import unmount

DEVICE = "/dev/fuse"
_DEVICE_NUMBER = os.makedev(10, 229)
"""The same on each Linux."""
_NOSUID, _NODEV = 2, 4
_HELPER = "fusermount3"
_HELPER_SOCKET = "_FUSE_COMMFD"
"""The environment variable that tells fusermount3 where to send the device to."""


def mount(mountpoint: bytes, *, allow_other: bool) -> int:
    """Mount, and return the descriptor of the device.

    Raises:
        MountError: the kernel or fusermount3 refuses.
    """
    try:
        if os.geteuid() == 0:
            return _by_kernel(mountpoint, allow_other=allow_other)
        return _by_helper(mountpoint, allow_other=allow_other)
    except OSError as error:
        raise MountError(
            f"cannot mount at {display(mountpoint)}: {error.strerror or error}", hint="yolofs doctor"
        ) from error


def let_go(mountpoint: bytes, device: Device, *, unmounts: bool) -> None:
    """Close the device; ``unmounts``: take the mount away, unless somebody has.  What is still in
    use goes with its last user.
    """
    polling = select.poll()
    polling.register(device.fd, 0)
    is_gone = any(events & select.POLLERR for _, events in polling.poll(0))
    device.close()
    if unmounts and not is_gone:
        with contextlib.suppress(OSError):  # somebody has
            unmount(mountpoint, lazy=True)


def _by_kernel(mountpoint: bytes, *, allow_other: bool) -> int:
    device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    try:
        mode = stat.S_IFMT(os.stat(mountpoint).st_mode)
        options = f"fd={device},rootmode={mode:o},user_id={os.getuid()},group_id={os.getgid()},default_permissions"
        if allow_other:
            options += ",allow_other"
        source, kind = SOURCE_NAME.encode(), f"fuse.{FILESYSTEM_NAME}".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(source, mountpoint, kind, ctypes.c_ulong(_NOSUID | _NODEV), options.encode()):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    except BaseException:
        os.close(device)
        raise
    return device


def _by_helper(mountpoint: bytes, *, allow_other: bool) -> int:
    options = f"fsname={SOURCE_NAME},subtype={FILESYSTEM_NAME},default_permissions"
    if allow_other:
        options += ",allow_other"
    helper = find_program(_HELPER)
    if helper is None:
        raise OSError(errno.ENOENT, f"{_HELPER} is not installed")
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            done = subprocess.run(
                [os.fsencode(helper), b"-o", options.encode(), b"--", mountpoint],
                env={**os.environ, _HELPER_SOCKET: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"{_HELPER} failed"
            raise OSError(errno.EPERM, said)
        return _received(ours)


def _received(ours: socket.socket) -> int:
    _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: descriptors.itemsize])
    for fd in descriptors:
        st = os.fstat(fd)
        if stat.S_ISCHR(st.st_mode) and st.st_rdev == _DEVICE_NUMBER:
            os.set_inheritable(fd, False)
            return fd
        os.close(fd)
    raise OSError(errno.EPROTO, f"{_HELPER} sent no device")
