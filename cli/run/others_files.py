"""Finds files of other users in a project, which root may write outside of a run and not in it: the
kernel refuses that by their modes, and nobody else learns of it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Iterator

from yolofs.cli.output import say
from yolofs.paths import display, in_shell
from yolofs.system.mount_table import mounted_paths

_MOST_NAMES = 2000
"""How many names are looked at."""
_MOST_SHOWN = 3
_PRUNED = frozenset({b".yolofs", b"node_modules"})


def say_others_files(project: bytes) -> None:
    """Tell root, after a command that failed, which files in a project belong to other users."""
    found = list(_others_files(project))
    if not found:
        return
    shown = ", ".join(f"{display(os.path.relpath(path, project))} ({owner})" for path, owner in found[:_MOST_SHOWN])
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    say(f"yolofs: root in a run is an ordinary user, and may not write what others own: {shown}{more}")
    paths = " ".join(in_shell(path) for path, _ in found[:_MOST_SHOWN])
    say(f"if that is why it failed, and you trust what is in there: chown -R root {paths}, outside of a run")


def _others_files(project: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the topmost files and directories in a project that another user owns and root in a run
    may not write, each with its owner's name.

    Other mounts are left out: what another user has mounted may never answer.
    """
    with contextlib.suppress(OSError):
        st = os.stat(project)
        if _is_closed(st):
            yield project, _name(st.st_uid)
            return
    with open("/proc/self/mountinfo", "rb") as lines:
        mounts = {path for path, _ in mounted_paths(lines)}
    directories = [project]
    left = _MOST_NAMES
    for directory in directories:  # grows
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                if entry.is_symlink() or entry.path in mounts:
                    continue
                st = entry.stat(follow_symlinks=False)
                if _is_closed(st):
                    yield entry.path, _name(st.st_uid)
                elif stat.S_ISDIR(st.st_mode) and entry.name not in _PRUNED:
                    directories.append(entry.path)


def _is_closed(st: os.stat_result) -> bool:
    """Tell whether the mode keeps root from writing, without the rights of root."""
    if st.st_uid == 0:
        return False
    bit = stat.S_IWGRP if st.st_gid == 0 or st.st_gid in os.getgroups() else stat.S_IWOTH
    return not st.st_mode & bit


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
