"""Whether the host has changed a file that a commit is about to replace, remove or write over,
since the commit has looked for drift.

Nobody has agreed to the loss of such an edit, and no list has shown it.  So the commit ends before
it begins, or is taken back.  Only regular files are compared, each with what it was on its own
device; directories change with each name in them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.ready import Looks, looks_of
from yolofs.paths import RelPath

CHANGED = "the host has changed it while the commit ran"


class AsSeen:
    """What the files of base were that a commit is about to change."""

    def __init__(self, seen: Mapping[FileNumbers, Looks]) -> None:
        """``seen``: by device and inode number, what each file was when it was looked at for drift;
        of others nothing is known before :meth:`note`.
        """
        self._seen = seen
        self._looks: dict[FileNumbers, Looks] = {}

    def note(self, path: RelPath, st: os.stat_result) -> None:
        """Take note of what a file is, before the first step.

        Raises:
            OSError: it is not what it was when it was looked at for drift.
        """
        if not stat.S_ISREG(st.st_mode):
            return
        file = st.st_dev, st.st_ino
        looks = looks_of(st)
        if self._seen.get(file, looks) != looks:
            raise OSError(errno.ESTALE, CHANGED, path)
        self._looks[file] = looks

    def check(self, st: os.stat_result) -> None:
        """Check that a file is still what was noted.

        Raises:
            OSError: it is not.
        """
        if self._looks.get((st.st_dev, st.st_ino), looks_of(st)) != looks_of(st):
            raise OSError(errno.ESTALE, CHANGED)

    @property
    def is_known(self) -> bool:
        """Whether anything was noted: not by a process that goes on with a commit."""
        return bool(self._looks)

    def forget(self, st: os.stat_result) -> None:
        """Forget a file: from now on a step has changed it."""
        self._looks.pop((st.st_dev, st.st_ino), None)
