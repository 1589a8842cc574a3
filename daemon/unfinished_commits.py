"""A commit whose command died or gave up half way: it is finished or taken back, or the mount shows
what was before it.

``docs/design/commit.md`` has the reasons.  All of it runs on the device loop.
"""

from __future__ import annotations

import logging
import os

from yolofs.commit.apply.commit_directory import PLAN
from yolofs.commit.apply.linking import places_in_base
from yolofs.commit.apply.recovery.displaced import Displaced
from yolofs.commit.plan.plan import Plan
from yolofs.errors import CommitError, YolofsError, reason
from yolofs.overlay import Overlay
from yolofs.registry.seal import read_plainly
from yolofs.session.archive import commit_numbers
from yolofs.session.ending_interrupted import finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session

log = logging.getLogger("yolofs.daemon")


def finish_for_borrower(session: Session) -> str:
    """Finish the interrupted commit of a session, or take it back if that was begun or if it cannot
    be finished.

    Returns what is to be told of that, "" if there is none.

    Raises:
        TrustError: it did not begin here; nothing is done.
        CommitError: it can be neither finished nor taken back.
        OSError: its directory or base cannot be opened.
    """
    found = session.interrupted()
    if found is None:
        return ""
    if found.is_to_go_back:
        roll_back_interrupted(session)
        return _notice(found.number, "taken it back")
    try:
        finish_interrupted(session)
    except (CommitError, OSError) as error:
        still = session.interrupted()
        if still is None or still.way_back is None:  # all is durable already: the end alone is missing
            raise
        roll_back_interrupted(session)
        why = error.message if isinstance(error, CommitError) else reason(error)
        return _notice(found.number, f"taken it back, as it cannot be finished: {why}")
    return _notice(found.number, "finished it")


def _notice(number: int, what: str) -> str:
    return f"commit {number} was interrupted, as its command ended half way; the mount has {what}"


class HalfWay:
    """A commit that can neither be finished nor taken back for now: the mount shows what it showed
    before it, and is read-only.
    """

    def __init__(self, session: Session, overlay: Overlay, error: YolofsError | OSError) -> None:
        """Have the overlay show base as it was before the commit, wherever its files lie now;
        ``error`` is the reason.

        Raises:
            YolofsError, OSError: where base has its things cannot be told; nothing is changed.
        """
        found = session.interrupted()
        number = max(commit_numbers(session.directory))
        directory = session.commit_directory(number)
        plan = (
            found.way_back or found.plan or found.shown_by
            if found is not None
            else Plan.decode(read_plainly(os.path.join(directory, PLAN)) or b"")
        )
        if plan is None:
            raise error
        self.is_done = found is None
        """Whether the commit is done, and only its journal is not put away."""
        self._why = error.message if isinstance(error, YolofsError) else reason(error)
        self._number = number
        session.base.elsewhere = Displaced(plan, directory)
        if found is None or found.is_settled:
            session.store.elsewhere = places_in_base(plan, directory)
        overlay.freeze()
        log.critical("%s", self.text)

    @property
    def text(self) -> str:
        """What to tell the user."""
        if self.is_done:
            text = f"commit {self._number} is done, but its journal cannot be put away: {self._why}"
        else:
            text = f"commit {self._number} can neither be finished nor taken back: {self._why}"
        return f"{text}; until then the mount shows what it showed before, and is read-only"

    @property
    def error(self) -> CommitError:
        """What to raise of one that is done."""
        return CommitError(self.text, hint="fix that (make room, for example), and try again")
