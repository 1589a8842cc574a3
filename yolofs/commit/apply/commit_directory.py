"""The files in a commit's directory, and whether it has begun.

::

    commits/N/seal          tells that the plan was written here and for this; durable before it
    commits/N/plan.json     the plan, durable before anything is made
    commits/N/new/          what is being made
    commits/N/made          what was made, by identity (``ready``); durable before base is touched
    commits/N/progress      one line for each step done (``step_log``)
    commits/N/parked/       what is on its way from one path to another
    commits/N/replaced/     what base no longer has, by the number in the plan
    commits/N/done          written last, when all else is durable
    commits/N/given-up      written instead, if what is left of it is not to be done
    commits/N/unset         what could not be set of metadata (``unset_metadata``)
    commits/N/unset-back    the same of taking it back
    commits/N/copied        what was copied to another device, and as what (``copy_log``)
    commits/N/parted        of which files of base ``replaced`` has a copy (``kept_copies``)
    commits/N/settled       written when all steps are durable: there is no way back any more
    commits/N/back          written first, if what is done of it is to be undone
    commits/N/found         what the host had put in the way of that

The plan's steps and the folders ``new``, ``parked`` and ``replaced`` belong to
:mod:`yolofs.commit.apply.steps`.
"""

from __future__ import annotations

import contextlib
import errno
import os

from yolofs.commit.apply import other_devices, step_log
from yolofs.commit.apply.places import SEAL, far_folder_prefix
from yolofs.commit.apply.ready import Ready, decode_ready
from yolofs.paths import display
from yolofs.system.busy_trees import remove_tree
from yolofs.system.disk_usage import size_of
from yolofs.system.plain_files import is_there, read_plain, sync_directory

PLAN = b"plan.json"
MADE = b"made"
DONE = b"done"
BACK = b"back"
SETTLED = b"settled"
GOING_PREFIX = b"gone-"
"""The beginning of the name of a commit's directory that is being removed."""
LONGEST_WAIT_NS = 90 * 86_400 * 10**9
"""For so long is noted what a commit has left on a disk that is not mounted."""
_TELLS_OF_FAR = (SEAL, other_devices.NOTE)
OF_BASE = (b"parked", b"replaced")
"""The folders in which things of base lie."""
_MOST_READY = 1 << 30
"""The largest size of ``made``: some five million files."""


class DamagedNoteError(OSError):
    """What was written of a commit before its first step cannot be understood; the disk did not
    fail.
    """


def has_begun(parking: bytes) -> bool:
    """Tell whether the commit in a directory has touched anything of base, as far as that can be
    told.

    Earlier versions wrote no ``made``; they wrote the log at the same time as the first step.
    """
    if is_there(os.path.join(parking, MADE)) or step_log.lies_in(parking):
        return True
    return any(holds_something(os.path.join(parking, name)) for name in OF_BASE)


def has_lost_its_plan(parking: bytes) -> bool:
    """Tell whether a commit has begun, and its plan is not there any more: somebody has removed it.

    If yolofs itself removes a plan, ``made`` is gone before that, or the commit was taken back.
    """
    is_begun = is_there(os.path.join(parking, MADE)) and not is_there(os.path.join(parking, PLAN))
    return is_begun and not is_there(os.path.join(parking, BACK))


def is_left_over(parking: bytes) -> bool:
    """Tell whether a commit's directory is that of one that ended before it had a plan, and keeps
    nothing of value.
    """
    ends = (PLAN, DONE, b"given-up", b"journal")
    if has_lost_its_plan(parking):
        return False
    if any(is_there(os.path.join(parking, name)) for name in ends):
        return False
    return not any(holds_something(os.path.join(parking, name)) for name in (*OF_BASE, b"found"))


def holds_something(folder: bytes) -> bool:
    """Tell whether there is anything in a folder; False if there is no such folder."""
    try:
        return bool(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_ready(parking: bytes) -> Ready | None:
    """Return what was written of a commit before its first step, None if nothing was.

    Danger: without it, whatever lies in base would be taken for what the commit has put there.

    Raises:
        DamagedNoteError: it is damaged.
        OSError: it cannot be read.
    """
    path = os.path.join(parking, MADE)
    try:
        ready = decode_ready(read_plain(path, _MOST_READY))
    except FileNotFoundError:
        return None
    if ready is None:
        raise DamagedNoteError(errno.EIO, "the note made before the first step is damaged", path)
    return ready


def remove_before_it_begins(parking: bytes) -> None:
    """Remove the directory of a commit that has not begun: it holds only copies, and the plan.

    It is no longer a commit from the first moment on: if a kill leaves a part of it, that is
    removed with old commits (:func:`remove_gone`).  So is what cannot be removed on another device
    now, or lies on a disk that is not mounted.

    Raises:
        OSError: something in it cannot be removed; it is no commit any more all the same.
    """
    try:
        is_all_gone = _has_removed_far(parking)
    except OSError:  # no reason to go on with a commit
        is_all_gone = False
    above, name = os.path.split(parking)
    with contextlib.suppress(OSError):
        os.rename(parking, os.path.join(above, GOING_PREFIX + name))
        parking = os.path.join(above, GOING_PREFIX + name)
    for name in (MADE, PLAN):  # see has_lost_its_plan
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(parking, name))
    _remove_all(parking, but_tells_of_far=not is_all_gone)


def remove_gone(parking: bytes, now_ns: int) -> bool:
    """Remove a commit's directory that was put aside, but first its folders on other devices.

    What :func:`waits_for_disk` stays for a later call; return whether nothing does.

    Raises:
        OSError: something cannot be removed; what tells of it stays.
    """
    _has_removed_far(parking)
    waits = waits_for_disk(parking, now_ns)
    _remove_all(parking, but_tells_of_far=waits)
    return not waits


def waits_for_disk(parking: bytes, now_ns: int) -> bool:
    """Tell whether what tells of a commit's folders on other devices has to stay, as they may lie
    on a disk that is not mounted.

    A disk that is away for :data:`LONGEST_WAIT_NS` counts as thrown away.

    Raises:
        OSError: a disk does not tell.
    """
    if is_there(os.path.join(parking, DONE)):  # then they went before that
        return False
    if not other_devices.may_be_elsewhere(parking, far_folder_prefix(parking)):
        return False
    return now_ns - os.lstat(os.path.join(parking, other_devices.NOTE)).st_mtime_ns < LONGEST_WAIT_NS


def size_of_gone(parking: bytes, now_ns: int) -> int:
    """Return how many bytes of the disk :func:`remove_gone` would free.

    Raises:
        OSError: a disk does not tell.
    """
    if not waits_for_disk(parking, now_ns):
        return size_of(parking)
    stays = {os.path.join(parking, name) for name in _TELLS_OF_FAR}
    return size_of(parking, without=stays) - os.lstat(parking).st_blocks * 512


def _has_removed_far(parking: bytes) -> bool:
    """Remove a commit's folders on other devices; tell whether all of them are gone for certain."""
    name = far_folder_prefix(parking)
    other_devices.remove(parking, name)
    return not other_devices.may_be_elsewhere(parking, name)


def _remove_all(parking: bytes, *, but_tells_of_far: bool) -> None:
    if not but_tells_of_far:
        remove_tree(parking)
        return
    for name in os.listdir(parking):
        if name not in _TELLS_OF_FAR:
            remove_tree(os.path.join(parking, name))


def write_new(directory: bytes, name: bytes, content: bytes, *, durable: bool = True) -> None:
    """Write a file that must not be there yet, whole or not at all.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be written.
    """
    path = os.path.join(directory, name)
    if is_there(path):
        raise FileExistsError(f"there was a commit already: {display(path)} exists")
    fd = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(path + b".new", path)
    if durable:
        for above in (directory, os.path.dirname(directory)):
            sync_directory(above)
