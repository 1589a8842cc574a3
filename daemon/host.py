"""A session with its mount, and what commands can ask of the two.

Plain blocking calls.  The caller makes one at a time (the server has a lock for that); the device
loop goes on serving meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from yolofs import __version__
from yolofs.access.questions import Decision, Operation
from yolofs.access.rule_notes import rule_changes
from yolofs.audit.audit import AuditLog, Point, last_ask
from yolofs.daemon import mountpoint
from yolofs.daemon.asks.auditor import Auditor
from yolofs.daemon.asks.broker import Broker
from yolofs.daemon.asks.notifier import Notifier
from yolofs.daemon.blockers import Blockers, mount_entry
from yolofs.daemon.follow.base_changes import BaseChanges
from yolofs.daemon.follow.rule_keeper import RuleKeeper
from yolofs.daemon.follow.rule_watch import wait_until_taken_up
from yolofs.daemon.lending import Lending, or_end_mount
from yolofs.daemon.loop_calls import Call
from yolofs.daemon.rpc import daemon_files as files
from yolofs.daemon.rpc.protocol import Info, LoanKind, quote
from yolofs.daemon.runs.live_runs import LiveRuns, RunResult
from yolofs.daemon.upkeep.collector import Collector
from yolofs.errors import DaemonError, MountError, YolofsError
from yolofs.fuse.loop.loop import LoopClosedError
from yolofs.fuse.mount import Mount
from yolofs.fuse.trace import TRACE_VARIABLE, Trace
from yolofs.fuse.transport_choice import transport_for
from yolofs.hostcode.git_work_trees import repository_of
from yolofs.journal import cuts
from yolofs.os_errors import explain_os_error
from yolofs.overlay import Invalidation, Overlay
from yolofs.paths import Generation, display
from yolofs.registry.link import put_link
from yolofs.registry.runtime import AGENT_SOCKET_NAME, MOUNT_NAME, SOCKET_NAME
from yolofs.registry.state_directory import open_state, state_of
from yolofs.rules import RuleBook, RuleIndex, Sources
from yolofs.rules.preset import installation
from yolofs.rules.rule_files import AskSettings, RuleFiles
from yolofs.sandbox import native_candidates, private_tmp
from yolofs.session import feedback
from yolofs.session.opening.lock import MOUNT
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Staged
from yolofs.system.git_exclude import exclude_from_git
from yolofs.system.mounts import unmount
from yolofs.system.own_names import SESSION_LINK

log = logging.getLogger("yolofs.daemon")
T = TypeVar("T")


class Host:
    """An open session, mounted.  Make it with :meth:`start`."""

    def __init__(self, session: Session, rule_files: RuleFiles, runtime: bytes) -> None:
        settings = session.settings.mount
        state = session.present()
        session.collect_unseen(state)
        self._session = session
        self._runtime = runtime
        self._started_ns = time.time_ns()
        self._is_closed = False
        self.collector = Collector()
        self._noted_count = session.journal.record_count
        self.mountpoint = os.path.join(runtime, MOUNT_NAME)
        self.socket_path = os.path.join(runtime, SOCKET_NAME)
        self.agent_socket_path = os.path.join(runtime, AGENT_SOCKET_NAME)
        self._overlay = Overlay(
            session.base,
            session.store,
            session.journal,
            state.tree,
            fresh_from=state.fresh_from,
            max_fds=min(settings.max_fds, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2),
        )
        self.rules = RuleKeeper(rule_files, self._put_in_force, self._take_up)
        self._book = RuleBook(*self.rules.sources.sets())
        make_transport = transport_for(settings.transport)
        self._auditor = Auditor(
            AuditLog(session.directory),
            lambda thread: self.runs.number_of(thread),
            self._record_count,
        )
        self.runs = LiveRuns(session.directory, self._auditor)
        self.broker = Broker(
            self._book,
            self.rules.install,
            self._auditor,
            timeout_s=rule_files.asks.timeout_s,
            default=Decision(rule_files.asks.default),
            unattended_s=rule_files.asks.unattended_s,
            last_id=last_ask(session.directory),
            hears_of_interrupts=make_transport.tells_interrupts,
        )
        self.notifier = Notifier(session.project, rule_files.asks.notify, lambda: wait_until_taken_up(self.rules))
        self._mount = Mount(
            self._overlay,
            self.mountpoint,
            allow_other=os.geteuid() == 0 if settings.allow_other == "auto" else settings.allow_other,
            staged_timeout_s=settings.staged_timeout,
            base_timeout_s=settings.base_timeout,
            watched_timeout_s=settings.watched_timeout,
            xattrs=settings.xattrs,
            spin_us=settings.spin_us,
            book=self._book,
            asker=self.broker,
            trace=_trace_from_environment(),
            run_of=self.runs.number_of,
            make_transport=make_transport,
        )
        self.base_changes = BaseChanges(session, self._overlay, self._mount, self._call)
        self._lending = Lending(
            session, self._overlay, self._mount, self.collector, self._call, call_at_rest=self._call_at_rest
        )
        self._blockers = Blockers(session.base, self._overlay, self.mountpoint, self._call)

    # ---- life

    @classmethod
    def start(cls, project: bytes, root: bytes | None, on_end: Callable[[], None]) -> Host:
        """Open the session of ``project``, clean up after a daemon that died, and mount.

        What the rules leave open is asked of :attr:`broker`, which somebody has to run.

        ``on_end`` is called on another thread once the mount has ended for whatever reason.  The
        process' umask becomes 0, as the kernel has applied the callers'; its switch interval and
        its garbage become the mount's.

        Raises:
            YolofsError: no session, locked, settings or rules that are wrong, a journal that cannot
                be trusted, an interrupted commit, or FUSE refuses.
        """
        session = Session.open(project, SessionAccess.WRITE, root=root, command=MOUNT)
        try:
            session.check_no_interrupted_commit()
            rule_files = RuleFiles(session.project, session.directory)
            rule_files.load()
            runtime = mountpoint.prepare(session.directory)
            try:
                host = cls(session, rule_files, runtime)
                host.runs.take_up()
                sys.setswitchinterval(session.settings.mount.switch_interval_ms / 1000)
                host.collector.disable_automatic_collection()
                os.umask(0)
                host._mount.start(on_end)
            except BaseException:
                mountpoint.take_away(runtime)
                raise
        except BaseException:
            session.close()
            raise
        return host

    def publish(self) -> None:
        """Tell the world where the mount and its socket are."""
        described = files.describe(
            os.getpid(), self._started_ns, self.socket_path, self.mountpoint, self._session.base.root
        )
        files.publish(self._session.directory, described)
        put_link(self._session.project, self._session.directory)
        exclude_from_git(self._session.project, SESSION_LINK, may_create=False)

    def close(self) -> None:
        """Unmount if that is not done yet, give the session back and remove every trace; twice does
        no harm.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._mount.is_serving and mount_entry(self.mountpoint) is not None:
            with contextlib.suppress(OSError):  # while somebody still serves what the kernel writes out
                unmount(self.mountpoint, lazy=True)
        try:
            self._mount.stop(unmount=mount_entry(self.mountpoint) is not None)
            self._write_checkpoint()
        finally:
            self._auditor.close()
            files.withdraw(self._session.directory)
            for path in (self.socket_path, self.agent_socket_path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            mountpoint.take_away(self._runtime)
            self._session.close()

    def _write_checkpoint(self) -> None:
        """Spare the next mount the replay of a long journal."""
        try:
            if self._session.write_checkpoint():
                log.info("wrote a checkpoint")
        except (OSError, YolofsError) as error:
            log.info("no checkpoint: %s", error)

    # ---- what can be asked

    @property
    def project(self) -> bytes:
        """The project's directory."""
        return self._session.project

    @property
    def record_count(self) -> int:
        """How many records the journal has; for any thread."""
        return self._session.journal.record_count

    @property
    def checkpointed_records(self) -> int:
        """How many of them a checkpoint spared at the mount."""
        return self._session.checkpointed_records

    def info(self) -> Info:
        """Return what this is; never waits."""
        session = self._session
        return Info(
            os.getpid(),
            __version__,
            quote(session.project),
            quote(session.base.root),
            quote(self.mountpoint),
            session.timeline.present,
            self._started_ns,
            self.warnings,
            quote(session.directory),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know.

        For example: the journal lost its end, rules are wrong or not in force everywhere, no notes
        can be taken, a commit was finished because its command had died.
        """
        problems = filter(None, [self._auditor.problem, self.notifier.problem, self._lending.problem])
        return (*self._told_cuts(), *self.rules.warnings, *self._lending.finished, *problems)

    def _told_cuts(self) -> list[str]:
        """Return what to say of this mount's cuts, until that is acknowledged or the journal has
        ended.
        """
        if not self._lending.cuts:
            return []
        journal = self._session.journal
        told = cuts.read(journal.path, journal.form.key)
        return [cuts.sentence(cut, journal.path) for cut in self._lending.cuts if cut in told]

    def note_length(self) -> None:
        """Have the journal's length noted if it has grown.  Waits for the device loop."""
        count = self._record_count()
        if count is not None and count != self._noted_count:
            self._noted_count = count
            self._call(self._note_on_loop)

    def _note_on_loop(self) -> None:
        if not self._lending.is_lent:
            self._session.journal.note_length()

    @property
    def lock_fd(self) -> int:
        """The descriptor that holds the session's lock: a copy of it holds the lock, too."""
        return self._session.lock_fd

    def _put_in_force(self, sources: Sources) -> None:
        """Put other rules in force; on return the kernel has forgotten what they hide, as far as
        nobody waits there.
        """
        index = RuleIndex(*sources.sets())
        changes = list(rule_changes(self.rules.sources.sets(), sources.sets()))

        def on_loop() -> Callable[[], Invalidation]:
            find_stale = self._mount.gate.replace_rules(index)
            self._auditor.rules_changed(changes)  # here, before there is a record of what they allow
            return find_stale

        find_stale = self._call_at_rest(on_loop)  # what was judged is done by then
        self._auditor.write()
        self.broker.rules_changed()
        self._mount.invalidate(find_stale())

    def hides(self, path: bytes) -> bool:
        """Tell whether the rules have programs in the view not know of an absolute path; never
        waits.
        """
        return self._book.at(path).seems_absent

    def noted_accesses(self) -> list[tuple[bytes, Operation]]:
        """Return what rules let be read, executed and listed; never waits."""
        return list(self._mount.gate.noted)  # at one go, as nothing of it is Python code

    def _take_up(self, asks: AskSettings) -> None:
        self.notifier.set_command(asks.notify)
        self.broker.settings_changed(asks.timeout_s, Decision(asks.default), asks.unattended_s)

    # ---- what sandboxes get straight from base

    @property
    def wants_native_binds(self) -> bool:
        """Whether the settings are for it, and runs can be made at all."""
        session = self._session
        return session.settings.run.native_binds and session.base.root == b"/"

    def open_state(self) -> int:
        """Open the state directory that the session lies in, and return its descriptor.

        Raises:
            TrustError: others could change what lies in it.
            OSError: it cannot be opened.
        """
        return open_state(state_of(self._session.directory))

    def native_candidates(self) -> dict[bytes, list[bytes]]:
        """Return where the rules have the view show base alone, and for each path what in it shows
        something else now, or has other rules.

        All are absolute paths.
        """
        base = self._session.base
        ruled = native_candidates.candidates(self._book, base, self._session.project)

        def on_loop() -> tuple[dict[bytes, list[bytes]], list[Staged]]:
            tree = self._overlay.tree
            return native_candidates.overridden(tree, base, ruled), native_candidates.staged_with_links(tree)

        found, files = self._call(on_loop)
        names = native_candidates.linked(base, files)
        return {path: [*some, *ruled[path], *names] for path, some in found.items()} if names is not None else {}

    def choose_tmp(self, wanted: str, home: bytes) -> private_tmp.TmpChoice:
        """Return what a run gets as ``/tmp`` that wants it "private", as in the "view", or "auto":
        as the user's own file says.

        ``home`` is the home directory of its command, which need not be the daemon's.
        """
        files = self.rules.files
        if (files.run_tmp if wanted == "auto" else wanted) != "private" or self._session.base.root != b"/":
            return private_tmp.TmpChoice()
        lived_in = [self._session.project, files.home, *filter(os.path.isabs, [home])]
        lived_in += filter(None, [repository_of(self._session.project)])
        return private_tmp.choose(self.rules.sources, lived_in, installation())

    def flush(self) -> None:
        """Have the kernel write out mmapped and cached writes, and note all refusals so far.

        Raises:
            CommitError: a commit is done, and its journal cannot be put away (yet).
        """
        self._lending.put_away_if_done()
        self._hand_over()

    def _hand_over(self) -> None:
        self._auditor.count()
        try:
            self._mount.flush()
        except OSError as error:
            what, hint = explain_os_error(error)
            raise DaemonError(f"the kernel could not write out what it holds back: {what}", hint=hint) from error

    def snapshot(self, name: bytes, *, if_changed: bool) -> Generation | None:
        """Snapshot, as :meth:`yolofs.session.session.Session.snapshot`."""
        session, overlay = self._session, self._overlay

        def on_loop() -> Generation | None:
            try:
                return session.snapshot(name, if_changed=if_changed)
            finally:  # after an error too: the marker may have been written, and a needless copy-up harms nobody
                overlay.mark(session.store.next_ino)

        self.flush()
        return self._call_at_rest(on_loop)

    def begin_run(self, command: tuple[bytes, ...], directory: bytes, *, snapshot: bool) -> tuple[int, Point]:
        """Note that a run begins; return its number, and the generation that it starts from.

        With ``snapshot`` what is not snapshotted yet is snapshotted first, so that the run's
        changes stand alone.
        """
        if snapshot:
            self.snapshot(b"", if_changed=True)
        before = self._point()
        return self.runs.begin(command, directory, before), before

    def end_run(self, number: int, code: int | None, name: bytes, *, snapshot: bool) -> RunResult:
        """Note the end of a run; with ``snapshot``, put all changes so far into a generation.

        If other runs go on, their changes so far are in it, too; but no generation is made for
        those alone.
        """
        newest = None
        try:
            self.flush()
            if snapshot:
                if number in self._overlay.recording.runs or self.runs.is_last(number):
                    self.snapshot(name, if_changed=True)
                newest = self._point()
        finally:
            result = self.runs.end(number, code, newest)
        return result

    def _point(self) -> Point:
        """Return the newest generation."""
        markers = self._session.journal.markers
        return Point(len(markers), markers[-1].marker.time_ns if markers else 0)

    def travel(self, text: str, *, force: bool) -> tuple[Generation, Generation]:
        """Travel, as :meth:`yolofs.session.session.Session.travel`; running programs see the new
        state on return.

        Raises:
            BusyFilesError: processes have files open for writing, and ``force`` is not given.
            GenerationError: there is no such generation.
        """
        self.flush()
        self._call(lambda: self._session.timeline.resolve(text))  # before anything that takes time
        if not force:
            self._blockers.wait_for_writers()
        result, stale = self._call_at_rest(lambda: self._travel_on_loop(text, force=force))
        self.collector.state_replaced()
        self._mount.invalidate(stale)
        return result

    def _travel_on_loop(self, text: str, *, force: bool) -> tuple[tuple[Generation, Generation], Invalidation]:
        session, overlay = self._session, self._overlay
        if not force:
            self._blockers.check_no_writers()
        tree = session.state(session.timeline.resolve(text))  # may fail, so before the marker
        try:
            result = session.travel(text)
        except BaseException:
            overlay.mark(session.store.next_ino)  # it may have snapshotted before it failed
            raise
        with or_end_mount(self._mount, "travel"):
            return result, overlay.reload(session.journal, tree, fresh_from=session.store.next_ino)

    def lend(self) -> set[int]:
        """Serve no more requests until :meth:`take_back`: another process works on the session.

        Returns the store inodes that somebody has open.
        """
        self.flush()
        in_use = self._lending.lend()
        self._auditor.count()  # of what was refused since the flush: the borrower may end the journal that it is about
        return in_use

    def _record_count(self) -> int | None:
        """Return how many records the journal has; None while it is lent, and may have ended.  For
        any thread.
        """
        return self._session.journal.record_count if not self._lending.is_lent else None

    def take_back(self, loan: LoanKind) -> None:
        """Show what has become of a session that was lent for ``loan``, and serve again."""
        self._lending.take_back(loan)

    def has_news(self) -> bool:
        """Tell whether the user has told something that no agent was told yet; for any thread.
        Blocks while it is read.
        """
        return bool(feedback.read(self._session.directory).new)

    def unmount(self, *, force: bool) -> None:
        """Take the mount away; :meth:`close` does the rest.

        Blocks, and raises, as :func:`yolofs.daemon.mountpoint.unmount`.
        """
        with contextlib.suppress(DaemonError):
            self._hand_over()
        mountpoint.unmount(self.mountpoint, self._blockers, force=force)

    # ---- inside

    def _call_at_rest(self, function: Callable[[], T]) -> T:
        return self._called(self._mount.call_at_rest, function)

    def _call(self, function: Callable[[], T]) -> T:
        return self._called(self._mount.call, function)

    @staticmethod
    def _called(call: Call, function: Callable[[], T]) -> T:
        try:
            return call(function)
        except LoopClosedError:
            raise DaemonError("the mount has just ended", hint="yolofs mount") from None
        except OSError as error:
            what, hint = explain_os_error(error)
            raise DaemonError(what, hint=hint) from error


def _trace_from_environment() -> Trace | None:
    """Return where the requests are to be counted, None if nobody wants to know."""
    path = os.environ.get(TRACE_VARIABLE)
    if not path:
        return None
    try:
        return Trace.create(os.fsencode(path))
    except OSError as error:
        raise MountError(
            f"the file that {TRACE_VARIABLE} names cannot be written: {display(os.fsencode(path))}: {error.strerror}",
            hint=f"unset {TRACE_VARIABLE}, or name a file in a directory that you may write to",
        ) from error
