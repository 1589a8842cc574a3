"""A session is lent to a command that commits, undoes, aborts or restores, and taken back.

``docs/design/commit.md`` has the reasons.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from yolofs.daemon.loop_calls import Call
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.daemon.upkeep.collector import Collector
from yolofs.errors import YolofsError
from yolofs.fuse.mount import Mount
from yolofs.journal import cuts
from yolofs.journal.cuts import Cut
from yolofs.overlay import Invalidation, Overlay
from yolofs.session.opening.lock import MOUNT, note_holder
from yolofs.session.session import Session
from yolofs.store.collecting import remove_others

if TYPE_CHECKING:
    from yolofs.daemon.unfinished_commits import HalfWay  # with all that commits need

log = logging.getLogger("yolofs.daemon")


class Lending:
    """Lends an open, mounted session, and knows what it came back as."""

    def __init__(
        self,
        session: Session,
        overlay: Overlay,
        mount: Mount,
        collector: Collector,
        call: Call,
        *,
        call_at_rest: Call,
    ) -> None:
        """``call`` runs a function on the device loop, ``call_at_rest`` while no request is half
        carried out.
        """
        self._session = session
        self._overlay = overlay
        self._mount = mount
        self._collector = collector
        self._call = call
        self._call_at_rest = call_at_rest
        self._lent_journal: int | None = None
        """The key of the journal while the session is lent, else None; set on the device loop."""
        self._kept: tuple[set[int], int] | None = None
        """The store inodes that are to stay of those below a number, while the others are still to
        be removed.
        """
        self._interrupted_before: bytes | None = None
        """The interrupted commit that there was when the session was lent: somebody has put it
        there.
        """
        self._half_way: HalfWay | None = None
        """Set while base is half committed, or the journal of a commit that is done not put
        away.
        """
        self.finished: list[str] = []
        """Messages about commits that the daemon finished or took back after a borrower had died.
        """
        self.cuts: list[Cut] = list(session.journal.cuts)
        """What the journal was found to have lost at its end, by this mount."""

    @property
    def is_lent(self) -> bool:
        """Whether the session is lent, so that its journal may have ended; for any thread."""
        return self._lent_journal is not None

    @property
    def problem(self) -> str:
        """A warning about a half-done commit; "" if there is none."""
        return self._half_way.text if self._half_way is not None else ""

    def put_away_if_done(self) -> None:
        """Put the journal of a finished commit away, if that is still to be done.

        Raises:
            CommitError: it cannot be put away (yet).
        """
        if self._half_way is not None and self._half_way.is_done:
            self.take_back(LoanKind.COMMIT)
            if self._half_way is not None:
                raise self._half_way.error

    def lend(self) -> set[int]:
        """Serve no more requests until :meth:`take_back`; return the store inodes that somebody has
        open.
        """
        return self._call_at_rest(self._lend_on_loop)

    def _lend_on_loop(self) -> set[int]:
        if self._half_way is None:
            self._interrupted_before = self._session.interrupted_commit()
            self._lent_journal = self._session.journal.form.key
        self._mount.loop.pause()
        return self._overlay.let_go()

    def take_back(self, loan: LoanKind) -> None:
        """Show what has become of a session that was lent for ``loan``, and serve again.

        The journal tells whether it was done: a commit or abort ends it and starts another.
        """
        stale = self._call(lambda: self._take_back_on_loop(loan))
        self._mount.invalidate(stale)
        if self._kept is not None:
            kept, below, self._kept = *self._kept, None
            try:
                remove_others(self._session.store, kept, below=below)
            except OSError as error:  # the next mount tries again
                log.warning("store inodes that nothing shows any more could not be removed: %s", error)

    def _take_back_on_loop(self, loan: LoanKind) -> Invalidation:
        with or_end_mount(self._mount, "taking the session back"):
            try:
                self._settle()
            except (YolofsError, OSError) as error:
                from yolofs.daemon.unfinished_commits import HalfWay

                self._half_way = HalfWay(self._session, self._overlay, error)
                stale = Invalidation([], [], [], [], {}, set())
            else:
                stale = self._show_anew(loan)
        if self._mount.loop.is_paused:
            self._mount.loop.resume()
        return stale

    def _settle(self) -> None:
        """Take in what the borrower has done, and do what it has left to be done.

        Raises:
            YolofsError, OSError: base stands half way, or the journal that ended cannot be put
                away.
        """
        session = self._session
        note_holder(session.lock_fd, MOUNT)
        session.reopen()
        for cut in session.journal.cuts:  # the lender died while it wrote
            self.cuts.append(cut)
            log.warning("%s", cuts.sentence(cut, session.journal.path))
        directory = session.interrupted_commit()
        if directory is None:
            return
        if self._half_way is not None:  # the user says which way, and when
            session.check_no_interrupted_commit()
        if directory != self._interrupted_before:  # else it began elsewhere, and nothing is done by it
            from yolofs.daemon.unfinished_commits import finish_for_borrower

            told = finish_for_borrower(session)
            log.warning("%s", told)
            self.finished.append(told)

    def _show_anew(self, loan: LoanKind) -> Invalidation:
        """Show the state of a journal that was opened anew."""
        session = self._session
        is_done = session.journal.form.key != self._lent_journal
        state = session.present()
        session.base.elsewhere = self._half_way = None
        session.store.elsewhere = {}
        stale = self._overlay.reload(
            session.journal,
            state.tree,
            fresh_from=state.fresh_from,
            committed=is_done and loan is LoanKind.COMMIT,
            rewritten=loan is LoanKind.COMMIT,
        )
        self._lent_journal = None
        self._collector.state_replaced()
        if is_done or loan is LoanKind.GC:
            named = session.named_numbers()
            self._overlay.removal.free_when_closed(named)
            self._kept = named | self._overlay.shown_numbers(), session.store.next_ino
        return stale


@contextlib.contextmanager
def or_end_mount(mount: Mount, what: str) -> Iterator[None]:
    """End the mount if the block fails: going on in a state that is not the journal's would lose
    staged work.
    """
    try:
        yield
    except BaseException:
        log.critical("%s failed half-way: the mount ends; what is staged is safe", what)
        mount.loop.stop()
        raise
