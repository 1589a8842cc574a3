"""Which new files of a commit are the store inodes themselves: these get a name in base, instead of
copies.

A link costs a seventh of a copy, and takes no space.  The store keeps its name until all steps are
durable, so that a commit that is taken back or given up loses nothing.  Then that name goes.
``docs/design/commit.md`` says which files may not, and why.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from typing import TypeAlias

from yolofs.commit.apply.commit_directory import read_ready
from yolofs.commit.apply.ready import Ready
from yolofs.commit.plan.moves import Moves
from yolofs.commit.plan.plan import Create, Plan
from yolofs.paths import RelPath, split
from yolofs.store.copying import at
from yolofs.store.interfaces import StoreFiles
from yolofs.store.owners import GivableOwners
from yolofs.system.rename_domains import rename_domain
from yolofs.text.git_index_format import SIGNATURE, may_be_index

Spare: TypeAlias = Callable[[int], bool]
"""Tells whether nobody but the commit needs a store inode: nothing shows it afterwards, and nobody
has it open.
"""
_OWNERS = stat.S_IRUSR | stat.S_IWUSR
_BLOCK_BYTES = 512
_LOOK = b"look"
"""The name of a file that is made to see how the disk numbers hard links, and removed at once."""
_SPACE_BYTES = 1 << 16
"""How much more than its size a file may take on the disk, as it takes whole blocks."""


def is_spare_never(_: int) -> bool:
    """Tell that every store inode is needed."""
    return False


class Linking:
    """Decides of one commit which store inodes get a name in base."""

    def __init__(self, plan: Plan, store: StoreFiles, folder: int, moves: Moves, is_spare: Spare) -> None:
        """``folder``: an open one of the commit, where the store lies, too."""
        self._root = plan.root
        self._store = store
        self._moves = moves
        self._is_spare = is_spare
        self._device = os.fstat(folder).st_dev
        self._folder = folder
        self._domain = rename_domain(at(folder, b"."))
        self._is_near: dict[RelPath, bool] = {}
        self._giving = GivableOwners()
        self._knows_files: bool | None = None
        """Whether the disk shows one inode number by all names of a file; None if that was not
        looked at.
        """

    def look(self, step: Create) -> os.stat_result | None:
        """Return what the store inode of a step is, if that itself may get the step's name in base.

        Raises:
            OSError: there is none.
        """
        if step.replaced is not None or not self._is_spare(step.ino):
            return None
        if may_be_index(step.path, SIGNATURE):  # git replaces it, and an undo is to see that it has but looked
            return None
        directory = split(step.path)[0]
        is_near = self._is_near.get(directory)
        if is_near is None:
            is_near = self._is_near[directory] = self._lies_near(directory)
        if not is_near:
            return None
        st = self._store.lstat(step.ino)
        if not self._is_as_a_copy(st):
            return None
        if self._knows_files is None:
            self._knows_files = shows_one_number(self._folder)
        return st if self._knows_files else None

    def _is_as_a_copy(self, st: os.stat_result) -> bool:
        """Tell whether a store inode is all that a copy of it would be, and is not to be opened up
        for reading.
        """
        return (
            stat.S_ISREG(st.st_mode)
            and st.st_nlink == 1
            and st.st_dev == self._device
            and st.st_mode & _OWNERS == _OWNERS
            and self._giving.may_give(st.st_uid, st.st_gid)
            and st.st_blocks * _BLOCK_BYTES <= st.st_size + _SPACE_BYTES
        )

    def _lies_near(self, directory: RelPath) -> bool:
        """Tell whether a link may lead from the store to a directory, as it is after the commit."""
        ground = self._moves.ground(directory)
        try:
            return self._domain.leads_to(rename_domain(os.path.join(self._root, ground)))
        except OSError:
            return False


def shows_one_number(folder: int) -> bool:
    """Tell whether the disk of an open folder can give a file another name, and shows the same
    inode number by both.

    Disks in user space that find files by their names (sshfs, mergerfs) may give each name a number
    of its own.  A file is not known again by its number there when it has got another name.

    Raises:
        OSError: nothing can be made in the folder.
    """
    one, other = _LOOK, _LOOK + b"-linked"
    os.close(os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder))
    try:
        os.link(one, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    else:
        numbers = {os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino for name in (one, other)}
        os.unlink(other, dir_fd=folder)
        return len(numbers) == 1
    finally:
        os.unlink(one, dir_fd=folder)


def places_in_base(plan: Plan, directory: bytes) -> dict[int, bytes]:
    """Return where in base the store inodes are that the commit in a directory has put there, by
    their numbers.

    All of its steps are done.
    """
    ready: Ready | None = None
    with contextlib.suppress(OSError):  # then whoever looks for them finds them missing
        ready = read_ready(directory)
    made = ready.made if ready is not None else {}
    linked = {number for number, one in made.items() if one.is_link}
    steps = (step for step in plan.steps if isinstance(step, Create) and step.number in linked)
    return {step.ino: os.path.join(plan.root, step.path) for step in steps}
