"""Mounting what comes straight from base over the view, before bubblewrap makes that the root and
takes it along.

bubblewrap could bind directories itself, but reads the whole mount table anew for each, and follows
every symbolic link that it is to put something over.

What is mounted is not base itself but parts of an overlay over it, which has nothing to add.  It
reads from the same pages, but its files are files of their own: whoever locks one of them (flock(2)
needs no right to write) locks nobody out on the host.  Linux 5.12; overlays from 5.11 on for
ordinary users, too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from yolofs.sandbox.mount_calls import (
    HERE,
    NO_DEVICES,
    NO_SETUID,
    READ_ONLY,
    filesystem,
    mount_at,
    mount_on,
    opened,
    part,
    reconfigurable,
    reconfigure,
    restrict,
)

_ASIDE = b"/sys"
"""A directory that is never bound: it holds the sources of partial binds, where no sandbox sees
them.
"""


def mount_over(view: bytes, native: Mapping[bytes, Sequence[bytes]]) -> list[int]:
    """Mount directories, files and symbolic links over what a view shows at the same paths,
    read-only.

    For a process in a mount namespace of its own (:func:`yolofs.sandbox.namespaces.leave_mounts`).
    ``view`` is the mountpoint of a view of ``/``; no path leads through a symbolic link, in base
    and in the view.  ``native``: the paths, by the directories in which they lie
    (:func:`yolofs.sandbox.native_mountable.by_directory`).  What cannot be mounted stays as the
    view shows it.

    Returns descriptors for :func:`forget_names`, one for each overlay.
    """
    handles: list[int] = []
    links = [path for paths in native.values() for path in paths if os.path.islink(path)]  # which nobody can lock
    for path in links:
        with contextlib.suppress(OSError), _copied(path) as tree:
            _put_over(view, path, tree)
    with contextlib.suppress(OSError), filesystem(b"tmpfs", {"size": b"4k"}) as empty:
        mount_at(empty, _ASIDE)  # parts are taken only of what is mounted; bubblewrap leaves this behind
        for directory, paths in native.items():
            others = [path for path in paths if path not in links]
            if others:
                with contextlib.suppress(OSError), _overlay(directory, empty) as overlay:
                    handles.append(reconfigurable(overlay))
                    for path in others:
                        with contextlib.suppress(OSError), part(overlay, os.path.relpath(path, directory)) as tree:
                            _put_over(view, path, tree)
    return handles


def forget_names(handle: int) -> None:
    """Have an overlay look at base again for names that it knows, or knows not to be there.

    The user who made it may do so from outside its namespace, too.

    Raises:
        OSError: it is not there any more.
    """
    reconfigure(handle)


def try_copy() -> None:
    """Do what :func:`mount_over` does for a link, short of mounting anything anywhere.

    Raises:
        OSError: this machine forbids it, or its Linux is too old.
    """
    with _copied(os.fsencode(os.path.realpath(__file__))):
        pass


@contextlib.contextmanager
def _overlay(directory: bytes, empty: int) -> Iterator[int]:
    """Give an overlay over a directory in which nothing is mounted; ``empty`` is the other layer,
    as it wants two.
    """
    with opened(HERE, directory) as source:
        layers = b"/proc/self/fd/%d:/proc/self/fd/%d" % (source, empty)
        # No attribute of a file may make the overlay show something else than what is there.
        options = {
            "source": directory,
            "lowerdir": layers,
            "redirect_dir": b"nofollow",
            "metacopy": b"off",
            "xino": b"off",
        }
        with filesystem(b"overlay", options) as overlay:
            mount_at(overlay, _ASIDE)
            yield overlay


@contextlib.contextmanager
def _copied(path: bytes) -> Iterator[int]:
    """Give a read-only mount of what lies at a path, without other mounts below it; it is attached
    nowhere.
    """
    with part(HERE, path) as tree:
        restrict(tree, READ_ONLY | NO_SETUID | NO_DEVICES)
        yield tree


def _put_over(view: bytes, path: bytes, tree: int) -> None:
    with opened(HERE, view + path) as place:
        mount_on(tree, place)
