"""The hunks of what differs between two states of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from yolofs.changes.changes import Change, compare
from yolofs.changes.hunks import FileHunks, hunks_of, read_text
from yolofs.changes.picks import Picks, check_picks, refuse_missing
from yolofs.paths import RelPath, is_below_any
from yolofs.progress import Check, Progress, go_on
from yolofs.session.looking_again import LaterState
from yolofs.session.selecting.separate_changes import changes_apart
from yolofs.session.session import Session, SessionAccess
from yolofs.state.regions import Region
from yolofs.state.tree import Tree

_ORDER = (Region.PROJECT, Region.OUTSIDE, Region.SCRATCH)


class Hunks:
    """The hunks of what differs between an old state and the view, as they are when this is
    made.
    """

    def __init__(
        self,
        session: Session,
        old: Tree,
        *,
        new: Tree | None = None,
        paths: Sequence[RelPath] = (),
        progress: Progress | None = None,
        known: Iterable[FileHunks] = (),
        only_apart: bool = False,
        check: Check = go_on,
    ) -> None:
        """Compare the states; ``new`` is the view, unless it is given.

        With ``only_apart`` nothing is compared but the ``paths``, if what is there depends on no
        other change (:attr:`is_apart`).  ``check`` is called before each change that :meth:`find`
        reads.

        With ``paths`` the hunks are those of what lies at or below these.  ``known`` were read
        since nobody else can write to the session, and are not read again.  Blocks while files are
        read of which both states have their own copy.
        """
        self._store = session.store
        self._known = {(file.change.path, file.change.kind): file for file in known}
        self._regions = session.regions
        self._paths = frozenset(paths)
        self._session = session
        self._check = check
        self._trees = old, new if new is not None else session.state()
        apart = changes_apart(*self._trees, session.base, session.store, paths) if only_apart else None
        is_followed = new is None and session.access is SessionAccess.READ  # else nobody else can write to it
        again = LaterState(session).look if is_followed else None
        self.is_apart = apart is not None
        """Whether only the changes at the paths are known, as they depend on no others."""
        self.changes: Sequence[Change] = (
            apart
            if apart is not None
            else compare(*self._trees, session.base, session.store, progress=progress, again=again)
        )
        """All changes, also those at other paths unless :attr:`is_apart`; a renamed directory is
        one.
        """

    @property
    def wanted(self) -> list[int]:
        """Which of the changes are at the wanted paths, by their place in the list."""
        return [index for index, change in enumerate(self.changes) if self._is_wanted(change)]

    def apart(self, found: Iterable[FileHunks]) -> Hunks:
        """Return the hunks of some changes alone, if these depend on no others; else these."""
        found = tuple(found)
        old, new = self._trees
        paths = [path for file in found for path in file.change.paths]
        if self.is_apart or changes_apart(old, new, self._session.base, self._store, paths) is None:
            return self
        return Hunks(self._session, old, new=new, paths=paths, known=found, only_apart=True, check=self._check)

    def files(self) -> Iterator[FileHunks]:
        """Yield the hunks of each change at the wanted paths, sorted by path; blocks while it reads
        each.
        """
        return (self.read(self.changes[index]) for index in self.wanted)

    def read(self, change: Change) -> FileHunks:
        """Return the hunks of one change; blocks while it reads both versions."""
        known = self._known.get((change.path, change.kind))
        if known is not None and known.change == change:
            return known
        return hunks_of(change, self._store)

    def texts(self, file: FileHunks) -> tuple[bytes, bytes] | None:
        """Return both versions of a file whose hunks are about lines (of one that is not there,
        nothing), else None.

        Raises:
            OSError: it cannot be read any more.
        """
        versions = [read_text(side, self._store) for side in (file.change.old, file.change.new)]
        return (versions[0], versions[1]) if versions[0] is not None and versions[1] is not None else None

    def find(self, picks: Picks) -> dict[int, FileHunks]:
        """Return the hunks of the changes of which any is picked, by their places in the list.

        Raises:
            StaleHunkError: a hunk that was picked does not exist (any more).
            UsageError: lines are picked that a hunk does not have.
        """
        found: dict[int, FileHunks] = {}
        missing = set(picks)
        for index in sorted(self.wanted, key=self._farness):
            if not missing:
                break
            self._check()
            file = self.read(self.changes[index])
            if here := missing.intersection(hunk.id for hunk in file.hunks):
                missing -= here
                check_picks({name: picks[name] for name in here}, [file])
                found[index] = file
        refuse_missing(name for name in picks if name in missing)
        return found

    def _farness(self, index: int) -> int:
        """Tell what is looked at later: scratch directories may be large, and are seldom meant."""
        return _ORDER.index(self._regions.of_all(self.changes[index].paths))

    def _is_wanted(self, change: Change) -> bool:
        return not self._paths or any(is_below_any(path, self._paths) for path in change.paths)
