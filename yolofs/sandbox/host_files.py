"""Files of the host that each sandbox holds besides the view: devices, and the program that makes
it.

Their content is out of reach.  But the owner of a file may change its mode and times, without any
capability, by each path that leads to it, such as ``/proc/1/exe``.  As root owns all of these, a
program that root confines could lock others out of ``/dev/null``.  So they are made read-only where
bubblewrap takes them from: to a device one can write all the same.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator

from yolofs.sandbox.bubblewrap import DEVICES, PROGRAM
from yolofs.system.host_programs import find_program

_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 1, 32, 4096
_KEPT = 2 | 4 | 8
"""``MS_NOSUID``, ``MS_NODEV`` and ``MS_NOEXEC``, which statvfs(3) has by the same numbers: they may
not be dropped.
"""
_libc = ctypes.CDLL(None, use_errno=True)


def own_host_files(search_path: str | None) -> list[bytes]:
    """Return the paths of those host files that this user owns, without symbolic links;
    ``search_path``: where programs are, as in ``PATH``.
    """
    return [path for path in map(os.path.realpath, _host_files(search_path)) if _is_own(path)]


def _host_files(search_path: str | None) -> Iterator[bytes]:
    program = find_program(PROGRAM, search_path)
    if program is not None:
        yield os.fsencode(program)
    yield from DEVICES


def _is_own(path: bytes) -> bool:
    try:
        return os.stat(path).st_uid == os.geteuid()
    except OSError:  # bubblewrap says what it lacks
        return False


def make_read_only(paths: Iterable[bytes]) -> None:
    """Mount files over themselves, read-only.

    For a process in a mount namespace of its own (:func:`yolofs.sandbox.namespaces.leave_mounts`).

    Raises:
        OSError: this machine forbids it.
    """
    for path in paths:
        _mount(path, path, _MS_BIND)
        _mount(None, path, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | os.statvfs(path).f_flag & _KEPT)


def _mount(source: bytes | None, target: bytes, flags: int) -> None:
    if _libc.mount(source, target, None, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)
