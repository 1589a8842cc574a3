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

_MOST_NAMES = 2000
"""How many names are looked at: some 25 ms."""
_MOST_SHOWN = 3
_PRUNED = frozenset({b".yolofs", b"node_modules"})


def say_others_files(project: bytes) -> None:
    """Tell root, after a command that failed, which files in a project belong to other users."""
    found = others_files(project)
    if not found:
        return
    shown = ", ".join(f"{display(os.path.relpath(path, project))} ({owner})" for path, owner in found[:_MOST_SHOWN])
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    say(f"yolofs: root in a run is an ordinary user, and may not write what others own: {shown}{more}")
    paths = " ".join(in_shell(path) for path, _ in found[:_MOST_SHOWN])
    say(f"if the command failed for that, make it yours, outside of a run: chown -R root {paths}")


def others_files(project: bytes) -> list[tuple[bytes, str]]:
    """Return the topmost files and directories in a project that another user owns and root in a
    run may not write, each with its owner's name.
    """
    return list(_others(project))


def _others(project: bytes) -> Iterator[tuple[bytes, str]]:
    directories = [project]
    left = _MOST_NAMES
    with contextlib.suppress(OSError):
        st = os.stat(project)
        if _is_closed(st):
            yield project, _name(st.st_uid)
            return
    for directory in directories:  # grows
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    return
                st = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(st.st_mode):
                    continue
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
