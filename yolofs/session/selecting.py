"""What is done with a selection of hunks: it is committed, dropped or edited, and everything else stays as it is.

An *old* state (base, or a generation) and the view are compared; the hunks of what differs are what is picked from.  In
all that changes something the session is open for writing, and a mount of it paused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks, Hunk
from yolofs.changes.picks import Picks
from yolofs.paths import Generation, RelPath
from yolofs.session.session import Session
from yolofs.state.tree import Tree


class HeldHunk(msgspec.Struct, frozen=True):
    """A hunk that was picked and stays as it is all the same."""

    hunk: Hunk
    reason: str
    """In words, to follow a colon."""
    needs: tuple[str, ...] = ()
    """The ids of the hunks that have to be picked with it."""


class Hunks:
    """The hunks of what differs between an old state and the view, as they are when this is made."""

    def __init__(
        self,
        session: Session,
        old: Tree,
        *,
        new: Tree | None = None,
        paths: Sequence[RelPath] = (),
        max_text_bytes: int | None = None,
    ) -> None:
        """Compare the states; ``new`` is the view, unless it is given.  With ``paths`` only what lies at or below these.

        Blocks while files are read of which both states have their own copy.
        """
        raise NotImplementedError

    @property
    def changes(self) -> Sequence[Change]:
        """All changes, also those at other paths."""
        raise NotImplementedError

    def files(self) -> Iterator[FileHunks]:
        """Yield the hunks of each change at the wanted paths, sorted by path; blocks while it reads each."""
        raise NotImplementedError

    def texts(self, file: FileHunks) -> tuple[bytes, bytes] | None:
        """Return both versions of a file whose hunks are about lines, None of any other.

        Raises:
            OSError: it cannot be read any more.
        """
        raise NotImplementedError


class Dropped(msgspec.Struct, frozen=True):
    """What dropping hunks has done."""

    changes: tuple[Change, ...]
    """What that has changed in the view, before it and after."""
    before: Generation
    """What the view showed before."""
    held: tuple[HeldHunk, ...] = ()
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """What of a path could not be brought back, as :attr:`yolofs.session.restore.Restored.left_out`."""


def drop_hunks(session: Session, old: Tree, picks: Picks, name: bytes, *, paths: Sequence[RelPath] = ()) -> Dropped:
    """Stage of the picked hunks what the old state has; all others stay as they are.

    What was there before is a generation, ``name`` is that of the new one.  Durable when it returns; a crash leaves
    either all of it or nothing.  Blocks.

    Raises:
        StaleHunkError: a hunk that was picked does not exist (any more); nothing is done.
        HardLinksError: it would part the names (hard links) of one file; nothing is done.
        CommitError: a commit was interrupted.
        OSError: something cannot be read or written; nothing is done.
    """
    raise NotImplementedError


class Selected(msgspec.Struct, frozen=True):
    """A state in which base has the picked hunks, and no others."""

    tree: Tree
    held: tuple[HeldHunk, ...]
    generation: Generation
    """Of that state, once it is kept."""
    paths: tuple[RelPath, ...]
    """The paths of what is picked, in either state."""

    def keep(self) -> None:
        """Have the session know that state as a generation, durably; the view stays what it is.

        Only what then commits it needs that: else nothing of it is left behind.
        """
        raise NotImplementedError


@contextlib.contextmanager
def select_hunks(session: Session, picks: Picks, *, paths: Sequence[RelPath] = ()) -> Iterator[Selected]:
    """Make the state to commit, for the time of the block; unless it is kept, nothing of it stays.

    It is committed by :func:`yolofs.session.up_to.commit_up_to`.

    Raises:
        StaleHunkError, HardLinksError, CommitError, OSError: as :func:`drop_hunks`.
    """
    raise NotImplementedError


def stage_text(session: Session, path: RelPath, text: bytes, name: bytes) -> Generation:
    """Have a regular file of the view hold a text from now on; return the generation of what it was before.

    Mode, owner and attributes stay, and so do its other names.  ``name`` is that of the new generation.

    Raises:
        UsageError: there is no regular file.
        CommitError: a commit was interrupted.
        OSError: it cannot be written; nothing is done.
    """
    raise NotImplementedError
