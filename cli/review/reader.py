"""What is reviewed, read from a session: the changes at once, the hunks of each when it is looked
at.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Iterable, Sequence

import msgspec

from yolofs.changes.changes import Change, ChangeKind, Side, compare
from yolofs.changes.hunks import FileHunks, hunks_of, read_text
from yolofs.cli.guard import hidden_by, visible_changes
from yolofs.cli.history.missing_paths import check_somewhere
from yolofs.cli.options import options
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import relative_paths, session_directory
from yolofs.cli.review.comparison import Comparison, ReviewableState, ReviewSubject
from yolofs.cli.review.first_look import first_changes
from yolofs.cli.rules.in_force import hiding
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.listing import PathDisplay, without_scratch
from yolofs.cli.show.marking import marks_of
from yolofs.errors import UsageError
from yolofs.journal.timeline import BASE
from yolofs.paths import Generation
from yolofs.session.looking_again import LaterState, look_again_if_gone
from yolofs.session.session import Session, SessionAccess
from yolofs.store.store import Store
from yolofs.system.gc_pause import no_garbage_collection

_MOST_LOOKS = 2000
"""At how many files another look is taken to see whether they have changed."""


class Reader:
    """Reads a session; any thread may call.  Of comparisons one is made at a time."""

    def __init__(self, project: bytes, subject: ReviewSubject) -> None:
        self.project = project
        self.subject = subject
        self._session: Session | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the session."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def compare(self, at: Generation | None = None, *, is_last: bool = True) -> Comparison:
        """Compare the states as they are now; of earlier ones that at ``at``, unless ``is_last``.

        Raises:
            GenerationError, UsageError: what the user wants to review does not exist.
            YolofsError: the session cannot be read.
        """
        with self._lock:
            session = self._fresh()
            old, new = session.timeline.parse_range(self.subject.range_text)
            steps = _steps(session, old, new)
            shown = len(steps) - 1
            if not is_last:
                shown = next((number for number, step in enumerate(steps) if step.generation == at), shown)
            return self._compare(session, old, steps, shown)

    def begin(self) -> Comparison | None:
        """Return what a first screen can show: the whole comparison, or the beginning of one that
        takes a while; None if neither is quick.

        Raises:
            YolofsError: the session cannot be read.
        """
        if self.subject.range_text != "all" or self.subject.paths:
            return None
        with self._lock, no_garbage_collection():
            session = self._fresh()
            session.check_no_interrupted_commit()
            changes = look_again_if_gone(session, lambda: first_changes(session))
            if changes:
                found = self._shown(session, changes, (), BASE, (ReviewableState(None, b""),), 0)
                return msgspec.structs.replace(found, is_partial=True)
        return self.compare()

    def with_marks(self, known: Comparison) -> Comparison:
        """Return a comparison with the marks of host code, and with folded lines; blocks while it
        reads these and asks git.
        """
        with self._lock:
            session = self._opened()
            marks = marks_of(session, known.changes)
            marked = msgspec.structs.replace(known, marks=marks, has_marks=True)
            return _folded(session, marked) if marked.is_present else marked

    def hunks(self, change: Change) -> FileHunks:
        """Return the hunks of a change as they are now; blocks while it is read."""
        return hunks_of(change, self.store)

    def texts(self, file: FileHunks) -> tuple[bytes, bytes] | None:
        """Return both versions of a file that is text, None if it is none or cannot be read any
        more.
        """
        with contextlib.suppress(OSError):
            store = self.store
            old, new = (read_text(side, store) for side in (file.change.old, file.change.new))
            return (old, new) if old is not None and new is not None else None
        return None

    def has_grown(self, shown: Iterable[Change]) -> bool:
        """Tell whether somebody has changed something since, as far as the journal and the files
        that are ``shown`` tell.
        """
        with self._lock:
            session = self._opened()
            before = session.journal.size
            with contextlib.suppress(OSError):
                if not session.journal.goes_on or os.stat(session.journal.path).st_size != before:
                    return True
        looked_at = itertools.islice(shown, _MOST_LOOKS)
        return any(_is_other(side) for change in looked_at for side in (change.old, change.new))

    @property
    def directory(self) -> bytes:
        """The session's directory."""
        return session_directory(self.project)

    @property
    def store(self) -> Store:
        """The store, whose files any thread may read while another one compares."""
        if self._session is not None:
            return self._session.store
        with self._lock:
            return self._opened().store

    def _opened(self) -> Session:
        if self._session is None:
            self._session = Session.open(self.project, SessionAccess.READ)
        return self._session

    def _fresh(self) -> Session:
        with connected(self.project) as client:
            if client is not None:
                client.flush()
        if self._session is not None and not self._session.refresh():
            old, self._session = self._session, Session.open(self.project, SessionAccess.READ)
            old.close()
        return self._opened()

    def _compare(self, session: Session, old: Generation, steps: tuple[ReviewableState, ...], at: int) -> Comparison:
        session.check_no_interrupted_commit()
        paths = relative_paths(session, self.subject.paths)
        check_somewhere(session, paths, self.subject.paths)

        def look() -> list[Change]:
            with session.base.looking_once(), no_garbage_collection():
                trees = session.states(old, steps[at].generation)
                again = LaterState(session).look if steps[at].generation is None else None
                return compare(*trees, session.base, session.store, paths=paths, again=again)

        changes = look_again_if_gone(session, look)
        return self._shown(session, changes, paths, old, steps, at)

    def _shown(
        self,
        session: Session,
        changes: list[Change],
        paths: Sequence[bytes],
        old: Generation,
        steps: tuple[ReviewableState, ...],
        at: int,
    ) -> Comparison:
        root, regions = session.base.root, session.regions
        everything = visible_changes(options().guard, changes, root)
        wanted = everything if self.subject.scratch or paths else without_scratch(everything, regions)
        hider = hiding(session.project, shows_all=self.subject.hidden) if wanted else None
        return Comparison(
            visible_changes(hider, wanted, root),
            {},
            regions,
            PathDisplay(root, session.base.relative(session.project)),
            old,
            steps,
            at,
            has_marks=False,
            scratch_left_out=len(everything) - len(wanted),
            hidden_left_out=len(hidden_by(hider, wanted, root)),
            is_part=bool(paths) or self.subject.range_text != "all",
        )


def _steps(session: Session, old: Generation, new: Generation | None) -> tuple[ReviewableState, ...]:
    """Return the states on the way from one to another, the first after ``old``.

    Raises:
        UsageError: there is none.
    """
    timeline = session.timeline
    last = new if new is not None else timeline.present
    before = set(timeline.way_to(old))
    found = [number for number in timeline.way_to(last) if number not in before]
    nodes = timeline.nodes()
    steps = [ReviewableState(number, nodes[number].name) for number in found]
    if new is None:
        if not session.has_unsnapshotted() and steps:
            steps[-1] = ReviewableState(None, steps[-1].name)
        else:
            steps.append(ReviewableState(None, b""))
    elif not steps or steps[-1].generation != new:
        steps.append(ReviewableState(new, nodes[new].name))
    if not steps:
        raise UsageError("there is nothing between these generations", hint="yolofs timeline")
    return tuple(steps)


def _folded(session: Session, known: Comparison) -> Comparison:
    """Return a comparison with what lists fold in it."""
    from yolofs.cli.show.shortening import Shortener  # the first screen of a long list does without

    shortener = Shortener(session, known.path_display, "")
    groups = shortener.fold(known.changes, lambda change: change.path in known.marks, {}).groups
    gits = [shortener.group_text(group, lambda _: "") for group in groups if group.sort is Sort.GIT]
    return msgspec.structs.replace(
        known,
        folded={
            (change.path, change.kind is ChangeKind.DELETED): group.sort for group in groups for change in group.changes
        },
        told={Sort.GIT: "; ".join(gits)} if gits else {},
    )


def _is_other(side: Side | None) -> bool:
    """Tell whether what a change was read from has changed since."""
    if side is None or side.type == stat.S_IFDIR or side.data != side.meta:
        return False
    try:
        st = os.lstat(side.meta)
    except OSError:
        return True
    return (st.st_mtime_ns, st.st_size) != (side.mtime_ns, side.size)
