"""A session: one directory (``yolofs/registry/`` has where it lies) and all that belongs to it,
mounted or not.

At any time one process at most changes a session: it holds the lock
(:attr:`SessionAccess.WRITE`).  Any number may look (:attr:`SessionAccess.READ`): the journal only
ever grows, and store inodes of older generations do not change.  A mount's daemon holds the lock as
long as it lives.  To commit or abort under a mount, a command asks it to pause and works with
:attr:`SessionAccess.LENT`, under the daemon's lock.
"""

from __future__ import annotations

import contextlib
import enum
import os
from typing import TYPE_CHECKING, Self

from yolofs.config.settings import Settings
from yolofs.journal import cuts
from yolofs.journal.journal import Journal
from yolofs.journal.records import Snapshot, Travel
from yolofs.journal.timeline import Timeline
from yolofs.paths import Generation, check_snapshot_name
from yolofs.registry.runtime import login_directory, runtime_root
from yolofs.registry.search import FoundProject
from yolofs.registry.state_directory import state_directory, state_of
from yolofs.session.archive import (
    begin_journal,
    commit_directory,
    commit_numbers,
    end_chapter,
    finish_put_away,
    give_up,
    interrupted_commit,
    numbers_of_ended_journals,
    replace_journal,
    store_numbers,
)
from yolofs.session.generations import PresentState, States
from yolofs.session.opening.lock import Holder, command_at_work, take_lock
from yolofs.session.opening.opening import finish_move, load_settings, locate, open_journal, wait_for_journal
from yolofs.session.opening.root import settle_root
from yolofs.state import checkpoint
from yolofs.state.regions import Regions
from yolofs.store import restored
from yolofs.store.base import Base
from yolofs.store.store import BASES, Store
from yolofs.system.clock import coarse_clock_ns
from yolofs.system.own_names import SESSION_LINK
from yolofs.system.plain_files import is_there

if TYPE_CHECKING:
    from yolofs.registry.start import StartedSession
    from yolofs.session.interrupted import Interrupted


class SessionAccess(enum.Enum):
    """What a process may do with a session that it opens."""

    READ = "read"
    WRITE = "write"
    LENT = "lent"


class Session(States):
    """An open session.  Use :meth:`open` (or :meth:`create`), and :meth:`close` or ``with``."""

    def __init__(
        self,
        found: FoundProject,
        access: SessionAccess,
        settings: Settings,
        root: bytes,
        journal: Journal,
        lock_fd: int,
    ) -> None:
        """Take over the journal and the lock; use :meth:`open`."""
        directory = found.session
        hidden = [os.path.join(found.project, SESSION_LINK), state_of(directory), state_directory()]
        base = Base(root, hidden=hidden, runtime=[runtime_root(), login_directory()])
        super().__init__(directory, base, Store(os.path.join(directory, b"files")), journal)
        self.project = found.project
        self.access = access
        self.settings = settings
        self.settings_problem = ""
        """What is wrong with ``.yolofs.toml``, for which the defaults stand in then: never to
        change anything.
        """
        self.in_use: frozenset[int] | None = frozenset() if access is SessionAccess.WRITE else None
        """The store inodes that a mount has open for somebody, None if that is not known."""
        self._lock_fd = lock_fd

    @property
    def regions(self) -> Regions:
        """Which part of base is the project's, and which is scratch."""
        return Regions.find(self.base, self.project, self.settings.scratch)

    # ---- opening and closing

    @classmethod
    def create(cls, project: bytes, state: bytes | None = None) -> StartedSession:
        """Start the session of ``project``, unless it has one; ``state`` as for
        :func:`yolofs.registry.start.start`.

        Raises:
            UsageError: ``project`` is no directory, or ``state`` cannot be used.
            TrustError: the project is somebody else's, or its state could be changed by others.
            OSError: it cannot be made.
        """
        from yolofs.registry.link import put_link  # sessions are seldom made
        from yolofs.registry.start import start
        from yolofs.system.git_exclude import exclude_from_git

        started = start(project, state)
        directory = started.found.session
        os.makedirs(os.path.join(directory, b"files"), 0o700, exist_ok=True)
        journal = os.path.join(directory, b"journal")
        if started.is_new and not is_there(journal):  # else the next open knows what it begins with
            Journal.create(journal).close()
        put_link(started.found.project, directory)
        exclude_from_git(started.found.project, SESSION_LINK)
        return started

    @classmethod
    def open(
        cls,
        project: bytes,
        access: SessionAccess,
        *,
        root: bytes | None = None,
        command: str = "",
        needs_settings: bool = True,
    ) -> Self:
        """Open the session of ``project``.

        ``command``: what the lock is taken for, to be told to others.
        ``root`` overrides the base directory that the session was last used with; while anything is
        staged it cannot change.  To look at a session that has a base directory its
        ``.yolofs.toml`` need not be in order (:attr:`settings_problem`).  Without
        ``needs_settings`` it need not be either: an undo takes back what brought the file.

        Raises:
            NoSessionError: it has none.
            TrustError: the session's directory could be changed by others.
            SessionBusyError: another process holds the lock.
            ConfigError, JournalError: a file of the session cannot be used.
        """
        found = locate(project)
        project, directory = found.project, found.session
        settings, problem = load_settings(
            project, directory, may_be_wrong=access is SessionAccess.READ or not needs_settings
        )
        lock_fd = take_lock(directory, command) if access is SessionAccess.WRITE else -1
        try:
            path = os.path.join(directory, b"journal")
            if access is SessionAccess.WRITE:
                finish_move(directory)
                finish_put_away(directory)
            else:
                wait_for_journal(directory, path)
            known = checkpoint.read(directory)
            journal = open_journal(
                path, known.known if known is not None else None, read_only=access is SessionAccess.READ
            )
            base_root = settle_root(
                directory,
                project,
                settings.root,
                root,
                is_empty=not journal.markers and not any(journal.segment_counts()),
                may_write=access is SessionAccess.WRITE and not problem,
            )
            session = cls(found, access, settings, base_root, journal, lock_fd)
            session.settings_problem = problem
            if journal.known_bytes:
                session._checkpoint = known
            if access is SessionAccess.WRITE:
                if journal.missing_records:  # before what only they named is collected
                    from yolofs.session.opening.salvage import go_on_without

                    go_on_without(directory, journal)
                session.collect()
                if session._has_archived_bases():
                    session._let_go_of_bases()
            return session
        except BaseException:
            if lock_fd >= 0:
                os.close(lock_fd)
            raise

    def close(self) -> None:
        """Close the journal and give the lock back."""
        self.journal.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    @property
    def lock_fd(self) -> int:
        """The descriptor that holds the lock, -1 without one: a process that is given a copy holds
        the lock too.
        """
        return self._lock_fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reopen(self) -> None:
        """Take in what another process did to the session with :attr:`SessionAccess.LENT`, even if
        it died over it.
        """
        self.journal.close()
        self.store.refresh()
        if self.access is SessionAccess.WRITE:
            finish_put_away(self.directory)
        self._read(Journal.open(self.journal.path, read_only=self.access is SessionAccess.READ))

    def refresh(self) -> bool:
        """Take in what another process has appended; return whether that was possible.

        It is not if the journal is another one by now, after a commit or an abort, or was cut.

        Raises:
            JournalError: the journal is damaged.
        """
        if not self.journal.goes_on:
            return False
        self.journal.refresh()
        self.store.owners.refresh()
        self.timeline = Timeline(at.marker for at in self.journal.markers)
        return True

    # ---- markers

    def snapshot(self, name: bytes = b"", *, if_changed: bool = False) -> Generation | None:
        """Write a P marker and return the new generation; None if ``if_changed`` and nothing has.

        Takes the time of one write, however much is staged.  The caller tells its overlay
        (``Overlay.mark``).

        Raises:
            UsageError: where generations are named, ``name`` means something else.
            CommitError, TrustError, SessionBusyError: a commit was interrupted, or goes on.
            OSError: the journal cannot be written.
        """
        check_snapshot_name(name)
        self.check_no_interrupted_commit()
        if if_changed and not self.has_unsnapshotted():
            return None
        marker = Snapshot(coarse_clock_ns(), name)
        self.journal.append(marker)
        return self.timeline.add(marker)

    def travel(self, text: str) -> tuple[Generation, Generation]:
        """Write a T marker to the generation that ``text`` names; return that one and the new one.

        What is not snapshotted is snapshotted first, so nothing is ever lost.  The caller tells its
        overlay (``Overlay.reload``).

        Raises:
            GenerationError: there is no such generation.
        """
        target = self.timeline.resolve(text)
        self.check_no_interrupted_commit()
        self.snapshot(if_changed=True)
        is_name = text != "-" and not text.isdigit()
        marker = Travel(coarse_clock_ns(), target, os.fsencode(text) if is_name else b"")
        self.journal.append(marker)
        return target, self.timeline.add(marker)

    # ---- the end of a journal

    def put_away(self, archive: bytes | None) -> None:
        """Start another journal.  The old one goes to the file ``archive``; None drops it, and what
        it staged.

        The new one is empty, unless there is one to follow beside ``archive``: what a commit leaves
        staged.

        Store inodes that no journal names any more are removed by the next :meth:`collect`.
        """
        path = self.journal.path
        self.journal.give_back()
        self.journal.close()
        checkpoint.remove(self.directory)
        if archive is None:
            replace_journal(path)
        else:
            os.rename(path, archive)
            end_chapter(self.directory, os.path.dirname(archive))
            begin_journal(path, os.path.dirname(archive))
        with contextlib.suppress(OSError):  # they were about the old one, as their key tells
            cuts.forget(path)
        if archive is None:
            restored.keep_for_undos(self.directory)
        self._read(Journal.open(path))
        self._let_go_of_bases()
        if archive is None:
            from yolofs.audit.audit import note_journal_end  # it takes the rules along, and hardly a command comes here

            note_journal_end(self.directory, is_commit=False)

    def _has_archived_bases(self) -> bool:
        """Tell whether a commit keeps all that the store keeps of base files: whoever put its
        journal away was killed before :meth:`_let_go_of_bases`.
        """
        try:
            return os.lstat(os.path.join(self.store.directory, BASES)).st_nlink > 1
        except OSError:
            return False

    def _let_go_of_bases(self) -> None:
        """Keep no more of base files than what is staged needs; an error is passed over."""
        from yolofs.state.kept_bases import retain  # imported late: looking at a session need not wait for it

        with contextlib.suppress(OSError):  # what is kept for nothing does no harm
            retain(self.store, self.state().staged.values())

    def commit_directory(self, number: int) -> bytes:
        """Return the directory of commit ``number``."""
        return commit_directory(self.directory, number)

    def next_commit(self) -> int:
        """Return the number of the next commit, from 1."""
        return max(commit_numbers(self.directory), default=0) + 1

    def interrupted_commit(self) -> bytes | None:
        """Return the directory of a commit that stopped half way, None if there is none.

        Base is partly committed then, so that no state can be shown before the commit is finished.
        """
        return interrupted_commit(self.directory)

    def interrupted(self) -> Interrupted | None:
        """Return what is known of the interrupted commit, None if there is none, or a process is
        still at work on it.

        If all its steps are done, the store reads from now on in base what the commit has put
        there.
        """
        if self.interrupted_commit() is None:
            return None
        at_work = self.at_work  # before the look at it: it may come to its end meanwhile
        from yolofs.commit.apply.linking import places_in_base
        from yolofs.session.interrupted import examine  # it takes all that commits need along

        found = examine(self.directory, self.base, self.store)
        if found is not None and found.plan is not None and found.is_settled:
            self.store.elsewhere = places_in_base(found.plan, found.directory)
        return found if at_work is None else None

    @property
    def at_work(self) -> Holder | None:
        """Who changes base just now, while others look at the session; None if nobody does."""
        if self.access is not SessionAccess.READ or self.interrupted_commit() is None:
            return None
        return command_at_work(self.directory)

    def check_no_interrupted_commit(self) -> None:
        """Raise CommitError if there is an interrupted commit, TrustError if it may not be finished
        here, SessionBusyError if a process is at work on it still.
        """
        at_work = self.at_work
        if at_work is not None:
            raise at_work.error
        found = self.interrupted()
        if found is not None:
            raise found.error

    def give_up(self, number: int) -> None:
        """Give interrupted commit ``number`` up: the journal goes to it, and an empty one follows.

        Raises:
            TrustError: the state directory is not the user's alone.
        """
        path = self.journal.path
        self.journal.close()
        checkpoint.remove(self.directory)
        give_up(self.directory, number)
        self._read(Journal.open(path))

    def skip_named_numbers(self) -> None:
        """Make sure that the store gives out no number that any journal names.

        A command that is lent a session has to do this before it makes store inodes.
        """
        self.store.skip_past(max(self.named_numbers(), default=0))

    def collect(self) -> int:
        """Remove store inodes that no journal names, and return how many: leftovers of a crash or
        an abort.

        Danger: whoever still shows one (an open handle of a mount) loses it; call it only without
        an overlay.
        """
        numbers = self.named_numbers()
        self.store.skip_past(max(numbers, default=0))
        from yolofs.store.collecting import remove_unreferenced  # imported late: looking at a session removes nothing

        return remove_unreferenced(self.store, numbers)

    def collect_unseen(self, present: PresentState) -> int:
        """Remove store inodes that the journal names and nothing can show any more, and return how
        many.

        They were made after the last marker and lost their last name after it.  Mostly they belong
        to files that were still open when the mount died.  ``present`` is :meth:`present`.

        Danger: as :meth:`collect`.
        """
        kept = store_numbers(self.journal.path + b".torn")
        unseen = [ino for ino in self.store.since(present.fresh_from) if ino not in present.tree.staged]
        surplus = [ino for ino in unseen if ino not in kept]
        for ino in surplus:
            self.store.remove(ino)
        return len(surplus)

    def named_numbers(self) -> set[int]:
        """Return the numbers of all store inodes that any journal names: this one, what was cut
        off, old ones.
        """
        return self.journal_numbers() | numbers_of_ended_journals(self.directory, passes_over_damage=True)
