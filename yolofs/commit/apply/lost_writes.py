"""What a disk may have lost of the files that a commit is made from.

A disk reports once that it could not write something.  From then on the kernel calls its pages of
that clean: no later sync writes them, or tells.  If blocks are shared, a copy has the data on the
disk, not the data in the kernel's memory.
"""

from __future__ import annotations

import contextlib
import os
import stat

from yolofs.commit.apply.linking import Spare
from yolofs.commit.plan.plan import Create, Plan, Rewrite
from yolofs.store import copying, file_data
from yolofs.store.interfaces import StoreFiles


def make_anew(plan: Plan, store: StoreFiles, folder: bytes, is_spare: Spare) -> None:
    """Have copies of what the kernel still has take the place of the store inodes of a plan, so
    that the next sync has to write them or fails again.

    Writing them once more in their places is not enough: ext4 takes blocks for written to that are
    not.  ``folder`` is the path of one of the commit, where the store lies, too.  What cannot be
    copied is left, as is what others need (``is_spare``): somebody may have it open.  Blocks, for
    as long as it takes to copy all.
    """
    for step in plan.steps:
        if isinstance(step, Create | Rewrite) and is_spare(step.ino):
            with contextlib.suppress(OSError):
                _make_anew(step.ino, store, os.path.join(folder, b"again-%d" % step.number))


def _make_anew(ino: int, store: StoreFiles, copy: bytes) -> None:
    path = store.own_path(ino)
    st = os.lstat(path)
    if not stat.S_ISREG(st.st_mode) or st.st_nlink != 1:
        return
    source = store.open(ino, os.O_RDONLY)
    try:
        target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            for start, stop in file_data.extents(source, st.st_size):
                file_data.copy_by_hand(source, target, start, stop)
            os.ftruncate(target, st.st_size)
        finally:
            os.close(target)
        if not copying.write_metadata(copy, copying.read_metadata(source, st=st)):
            os.rename(copy, path)
    finally:
        os.close(source)
