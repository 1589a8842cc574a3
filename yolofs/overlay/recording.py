"""Recording changes: into the journal first, then into the tree.

So memory always equals a replay, and a crash in between leaves at most a store inode without a
reference.  The store inode is there before its record.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

import msgspec

from yolofs.journal.records import ChangeRecord, Stage
from yolofs.overlay.inodes import Inode
from yolofs.overlay.layers import Layers, os_error
from yolofs.state.tree import Entry, Staged


class Recording:
    """Writes the records of a view's changes, and marks them with the run that made them."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self.run_of_request: Callable[[], int] | None = None
        """Gives the run that the change is made by, 0 for none; None where there are no runs."""
        self.runs: set[int] = set()
        """The runs that have made records."""
        self.is_frozen = False
        """Whether nothing may be changed for now."""

    def record(self, *changes: ChangeRecord) -> Entry | None:
        """Write records to the journal, apply them, and return the entry of the last one's path, if
        it has one.

        Raises:
            OSError: the journal could not be written, or all is frozen (EROFS); nothing has changed
                then.
        """
        if self.is_frozen:
            raise os_error(errno.EROFS)
        run = self.run_of_request() if self.run_of_request is not None else 0
        if run:
            extra = (("run", b"%d" % run),)
            changes = tuple(msgspec.structs.replace(change, extra=(*change.extra, *extra)) for change in changes)
            self.runs.add(run)
        layers = self._layers
        layers.journal.append(*changes)
        tree = layers.tree
        entry = None
        for change in changes:
            entry = tree.apply(change)
            if run and isinstance(change, Stage):
                staged = tree.staged[change.ino]
                if len(staged.names) <= len(changes):  # else it has names that no record of this run tells
                    self._note_run(staged, run)
        return entry

    def sign(self, staged: Staged) -> None:
        """Record that this request changes a store inode that is written in place, if another run
        is known for it.

        So the records of each run name all that it has changed; each run needs one for each store
        inode.
        """
        run = self.run_of_request() if self.run_of_request is not None else 0
        if run in staged.runs or not (run or staged.runs):
            return
        if staged.names:
            now = self._layers.stamp_clock.now_ns()
            self.record(*[Stage(now, entry.path(), staged.ino, origin=staged.origin) for entry in staged.names])
        self._note_run(staged, run)

    @staticmethod
    def _note_run(staged: Staged, run: int) -> None:
        if run not in staged.runs:
            staged.runs = (*staged.runs, run)


def tell_of_entries(directory: Inode, entry: Entry | None) -> None:
    """Tell a directory's inode, and those above it, of the entries that a record made for them.

    ``entry`` is the directory's own.  To be called after each record that gives a name its first
    entry.
    """
    inode: Inode | None = directory
    while inode is not None and entry is not None and inode.entry is not entry:
        inode.entry = entry
        inode, entry = inode.parent, entry.parent
