"""The hunks that a review has chosen, read once more from the session: its screen may be older."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from yolofs.changes.changes import Change
from yolofs.changes.hunks import FileHunks, hunks_of
from yolofs.changes.picks import LineNumbers
from yolofs.cli.review.change_tree import Key
from yolofs.cli.review.effects import PickedOrAll, Stop
from yolofs.cli.show.listing import PathDisplay
from yolofs.errors import StaleHunkError, YolofsError
from yolofs.paths import RelPath
from yolofs.session.session import Session

FEW = 100
"""Up to this number of changes, their paths are passed on, so that only these are compared."""


def gather_picks(
    session: Session, what: Mapping[Key, tuple[Change, PickedOrAll]], stop: Stop | None = None
) -> tuple[list[FileHunks], dict[str, LineNumbers | None]]:
    """Return the hunks of what is wanted, and the picks of them.

    The session is open for writing, so that nobody else writes to what was read.

    Raises:
        LookStoppedError: it is not wanted any more.
        StaleHunkError: one does not exist any more.
    """
    files: list[FileHunks] = []
    picks: dict[str, LineNumbers | None] = {}
    for change, wanted in what.values():
        if stop is not None:
            stop.check()
        file = hunks_of(change, session.store)
        files.append(file)
        known = {hunk.id for hunk in file.hunks}
        if wanted is not None and not known.issuperset(wanted):
            gone = tuple(name for name in wanted if name not in known)
            raise _stale(session, [change.path], gone)
        picks.update(wanted if wanted is not None else dict.fromkeys(known))
    if not picks:
        raise YolofsError("there is nothing to pick")
    return files, picks


@contextlib.contextmanager
def stale_by_path(session: Session, files: Iterable[FileHunks]) -> Iterator[None]:
    """Have hunks that do not exist any more be told by their paths: a review shows no ids."""
    try:
        yield
    except StaleHunkError as error:
        paths = [file.path for file in files if any(hunk.id in error.ids for hunk in file.hunks)]
        if not paths:
            raise
        raise _stale(session, paths, error.ids) from error


def _stale(session: Session, paths: Sequence[RelPath], ids: Sequence[str]) -> StaleHunkError:
    first = path_display_of(session).show_path(paths[0])
    said = f"{first} has changed since it was" if len(paths) == 1 else f"{len(paths)} have changed since they were"
    return StaleHunkError(f"{said} looked at" + (f": {first} …" if len(paths) > 1 else ""), ids=ids)


def path_display_of(session: Session) -> PathDisplay:
    """Return how a review shows the paths of a session."""
    return PathDisplay(session.base.root, session.base.relative(session.project))


def paths_of(what: Mapping[Key, tuple[Change, PickedOrAll]]) -> tuple[RelPath, ...]:
    """Return where the hunks are to be looked for; nothing for everywhere."""
    if len(what) > FEW:
        return ()
    return tuple(dict.fromkeys(path for change, _ in what.values() for path in change.paths))
