"""Carrying a plan out: base becomes what the view shows.

``docs/design/commit.md`` has the phases, the order of the steps and the reasons;
:mod:`yolofs.commit.apply.commit_directory` what lies in the commit's directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

import msgspec

from yolofs.commit.apply import copy_log, step_log, unset_metadata
from yolofs.commit.apply.commit_directory import (
    BACK,
    DONE,
    MADE,
    PLAN,
    SETTLED,
    has_begun,
    read_ready,
    remove_before_it_begins,
    write_new,
)
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.given_ctimes import Arrived, find_what_came, note_before
from yolofs.commit.apply.interrupts import interrupted_between, no_interrupt, stopped_by_user
from yolofs.commit.apply.kept_copies import copies_noted, names_in, note_kept_copies, put_in_place
from yolofs.commit.apply.linking import Spare, is_spare_never
from yolofs.commit.apply.places import SEAL
from yolofs.commit.apply.ready import Looks
from yolofs.commit.apply.recovery.found_files import paths_found
from yolofs.commit.apply.recovery.resume import ResumedSteps
from yolofs.commit.apply.recovery.taking_back import TellRestored, take_commit_back
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.steps import Steps
from yolofs.commit.apply.unset_metadata import UNSET
from yolofs.commit.plan.plan import Create, FinishDirectory, Plan, Step, describe_step
from yolofs.errors import CommitError, NotPreparedError, RolledBackError, reason
from yolofs.os_errors import reason_and_path
from yolofs.paths import RelPath, display, in_shell
from yolofs.progress import Progress
from yolofs.store.interfaces import StoreFiles
from yolofs.system import stop_signals
from yolofs.system.closed_directories import closed_directory
from yolofs.system.plain_files import is_there, make_directory

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Seals(Protocol):
    """Who vouches for what is written of a commit (:mod:`yolofs.registry.seal`); this package knows
    nothing of keys.
    """

    def of_plan(self, plan: bytes) -> bytes:
        """Return what is to lie beside a plan as ``seal``."""
        ...

    def of_end(self, steps: int) -> bytes:
        """Return what ``done`` is to hold."""
        ...


class Unsealed:
    """Vouches for nothing: for a plan that is executed at once and never finished later, as in
    tests.
    """

    def of_plan(self, plan: bytes) -> bytes:  # noqa: ARG002 - the protocol's signature
        """Return nothing: no file is written."""
        return b""

    def of_end(self, steps: int) -> bytes:
        """Return the number of steps."""
        return b"%d\n" % steps


class CommitOutcome(msgspec.Struct, frozen=True):
    """What a commit that went through did, and could not do."""

    steps: int
    """How many there were."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """Paths whose ``owner``, ``group``, ``times``, ``hard link`` or ``xattr NAME`` could not be
    carried over.
    """
    found: tuple[RelPath, ...] = ()
    """Where the host had put or changed something while it was interrupted: that lies in the folder
    ``found``.
    """


def execute(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    seals: Seals | None = None,
    restored: TellRestored = lambda *_: None,
    arrived: Arrived | None = None,
    progress: Progress | None = None,
    going_back: Callable[[], Progress | None] = lambda: None,
    is_spare: Spare = is_spare_never,
    seen: Mapping[FileNumbers, Looks] = {},
    durable: bool = True,
) -> CommitOutcome:
    """Do all that ``plan`` says, and return when base is what the view was.

    ``parking`` is the commit's own directory (``commits/N`` of a session, absolute; made if
    missing), best on the same filesystem as most of what changes.  ``seals`` vouches for the plan,
    without which nobody will finish it.  If the commit is taken back, ``restored`` is called with
    what is in its place again.  Before the commit is done, ``arrived`` is called with what the
    steps have put in place or changed.  ``progress`` is called after each file made and each step
    with how many are done, and of how many; ``going_back`` is called if the commit is taken back,
    and returns the same for that.  ``is_spare`` tells which store inodes may be put into base
    themselves, and ``seen`` what base was when the caller looked for drift, as
    :class:`~yolofs.commit.apply.host_edits.AsSeen` wants it.  Without ``durable`` the disk is not
    waited for: for tests, which expect no power failure.  Blocks.

    Raises:
        NotPreparedError: something could not be made, or put in its place; nothing of base was
            touched, and ``parking`` is gone.
        RolledBackError: a step failed, or Ctrl-C; base is as it was.  If its ``may_not_link`` is
            set, nothing is left of the commit, and it may be tried again without ``is_spare``.
        CommitError: a step failed, and so did taking back those before it; or all are done, and the
            end failed.
        FileExistsError: a commit was there already; nothing was done.
    """
    seals = seals if seals is not None else Unsealed()
    text = plan.encode()
    seal = seals.of_plan(text)
    counted = _Counted(plan, progress) if progress is not None else None
    with contextlib.ExitStack() as held, contextlib.ExitStack() as opened:
        with before_it_begins(parking, plan.root):
            make_directory(parking)
            if seal:  # before the plan: one that lies there without a seal is nobody's
                write_new(parking, SEAL, seal, durable=durable)
            write_new(parking, PLAN, text, durable=durable)
            steps = opened.enter_context(Steps(plan, store, parking, durable=durable))
        with opened:
            try:
                stop_signals.hear()
                _prepare(plan, steps, parking, counted, is_spare, seen, durable=durable)
                check = held.enter_context(interrupted_between())
            except BaseException as error:
                _drop(parking)
                ended = _ended_before(error) if isinstance(error, KeyboardInterrupt) else error
                if isinstance(ended, NotPreparedError) and not _is_dropped(parking):
                    raise _not_dropped(ended, parking) from error
                if ended is not error:
                    raise ended from None
                raise
            try:
                _do_from(0, plan, steps, parking, counted, check)
            except (CommitError, OSError, KeyboardInterrupt) as error:
                failure: BaseException = error
                opened.__exit__(type(error), error, None)  # which must neither hide it nor end the taking back
            else:
                _complete(plan, steps, parking, seals, arrived, durable=durable)
                return CommitOutcome(len(plan.steps), steps.left_out)
        told = take_commit_back(plan, store, parking, failure, restored, progress=going_back(), durable=durable)
        if isinstance(told, RolledBackError):
            told.may_not_link = steps.may_not_link and _is_gone(parking)
        raise told from failure


@contextlib.contextmanager
def before_it_begins(parking: bytes, root: bytes) -> Iterator[None]:
    """If the system refuses something in a block, or on Ctrl-C, end the commit before it begins;
    nothing is left of it.

    Raises:
        NotPreparedError: the commit was ended in this way.
        FileExistsError: a commit was there already.
    """
    try:
        yield
    except FileExistsError:
        raise
    except BaseException as error:
        _drop(parking)
        if isinstance(error, KeyboardInterrupt):
            raise _ended_before(error) from None
        if not isinstance(error, OSError):
            raise
        raise _not_prepared(error, root, parking, "", _again(parking, root, error)) from error


def resume(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    seals: Seals | None = None,
    check_root: Callable[[int], None] = lambda _: None,
    arrived: Arrived | None = None,
    progress: Progress | None = None,
) -> CommitOutcome:
    """Finish the commit in ``parking``, which a crash or an error interrupted; parameters as for
    :func:`execute`.

    The caller has checked that ``plan`` is to be trusted.  ``check_root`` is called with the
    descriptor of base before anything is done: what it raises ends this.

    Raises:
        CommitError: a step failed, as it may have before, or Ctrl-C; those before it are done.
        OSError: the commit's directory or base cannot be opened.
    """
    with interrupted_between() as check, ResumedSteps(plan, store, parking, durable=True) as steps:
        check_root(steps.root_fd)
        ready = read_ready(parking)
        is_back = is_there(os.path.join(parking, BACK))
        if ready is not None:
            steps.recall_made(ready)
        if is_back:
            steps.put_swapped_back(ready)
        steps.forget_unmade(is_back=is_back)
        steps.left_out.update(unset_metadata.read(parking, UNSET))
        lines = (
            step_log.read(parking)[: len(plan.steps)] if not is_back else []
        )  # the disk may know what the log does not
        is_durable = is_there(os.path.join(parking, SETTLED))
        try:
            with _kept_true(parking, lines):
                if not is_durable:
                    _take_lost_out(plan, steps, lines, parking)
                for index in range(len(lines)):
                    check()
                    _do_one(index, plan, parking, steps.recall)
                    if not is_durable:
                        _do_one(index, plan, parking, partial(_redo, steps, lines, index))
                    elif steps.is_finished(plan.steps[index]):
                        lines[index] = steps.logged(plan.steps[index])
            _do_from(len(lines), plan, steps, parking, progress, check)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(parking, BACK))
        except KeyboardInterrupt as stopped:
            raise stopped_by_user("finishing the commit", parking, stopped) from None
        _complete(
            plan, steps, parking, seals or Unsealed(), arrived, durable=True, knows_all=False, is_again=is_durable
        )
        return CommitOutcome(len(plan.steps), steps.left_out, tuple(paths_found(parking, plan)))


def _take_lost_out(plan: Plan, steps: ResumedSteps, lines: list[step_log.LoggedStep], parking: bytes) -> None:
    """Take the lines out of the log that tell of moves that a power failure has undone, and of what
    was done in place to what these move.

    This comes before any of the moves is done again: after a kill in between nobody would know.

    Raises:
        OSError: the log cannot be written.
    """
    lost: list[int] = []

    def look(step: Step) -> None:
        lost.extend(steps.lost_with(step, lines))

    for index in steps.moves_of_changed:
        if index < len(lines):
            _do_one(index, plan, parking, look)
    for index in lost:
        if index < len(lines):
            lines[index] = step_log.LoggedStep()
    if lost:
        step_log.replace(parking, lines)


def _redo(steps: ResumedSteps, lines: list[step_log.LoggedStep], index: int, step: Step) -> None:
    """Do a step again if need be; ``lines`` are those of the log."""
    if steps.redo(step, lines[index]):
        lines[index] = steps.logged(step)


@contextlib.contextmanager
def _kept_true(parking: bytes, lines: list[step_log.LoggedStep]) -> Iterator[None]:
    """Have the log say what its lines have become by the end of a block, however that ends.

    What was done again has another ctime, and if it was copied again another inode number.
    """
    before = list(lines)
    try:
        yield
    finally:
        if lines != before:
            step_log.replace(parking, lines)


class _Counted:
    """Counts files made and steps done together."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._progress = progress
        self._made = 0
        self._total = len(plan.steps) + sum(isinstance(step, Create) for step in plan.steps)

    def made(self, _: Create) -> None:
        self._made += 1
        self._progress(self._made, self._total)

    def __call__(self, done: int, total: int) -> None:
        self._progress(self._total - total + done, self._total)


def _drop(parking: bytes) -> None:
    with no_interrupt(), contextlib.suppress(OSError):  # then the next command removes it
        remove_before_it_begins(parking)


def _is_dropped(parking: bytes) -> bool:
    """Tell whether the next command is certain not to take a commit's directory for a commit that
    has begun.
    """
    try:
        return not has_begun(parking)
    except OSError:
        return False


def _is_gone(parking: bytes) -> bool:
    """Tell whether a commit's directory is gone for certain."""
    try:
        return not is_there(parking)
    except OSError:
        return False


def _ended_before(stopped: KeyboardInterrupt) -> NotPreparedError:
    error = NotPreparedError("the commit was not begun, as it was interrupted; base is as it was, and all stays staged")
    error.exit_code = stop_signals.exit_code_of(stopped)
    return error


def _not_dropped(error: NotPreparedError, parking: bytes) -> CommitError:
    """Return what is to be said where all was prepared and cannot be put away: the next command
    takes it for begun.
    """
    stopped = CommitError(
        f"{error.message}; what was prepared cannot be removed either, so the commit counts as interrupted",
        directory=parking,
        hint="nothing is lost; fix that, then: yolofs commit --roll-back, or yolofs commit --continue",
    )
    if error.exit_code != NotPreparedError.exit_code:  # a signal's
        stopped.exit_code = error.exit_code
    return stopped


def _prepare(
    plan: Plan,
    steps: Steps,
    parking: bytes,
    counted: _Counted | None,
    is_spare: Spare,
    seen: Mapping[FileNumbers, Looks],
    *,
    durable: bool,
) -> None:
    """Do all that comes before the first step.

    Raises:
        NotPreparedError: something could not be made, or it is plain that a step would fail.
    """
    try:
        steps.make(counted.made if counted is not None else lambda _: None, is_spare)
    except OSError as error:
        hint = (
            _make_room(parking, plan.root, error)
            if error.errno in _NO_ROOM
            else "fix that, or commit other paths: yolofs commit PATH..."
        )
        raise _not_prepared(error, plan.root, parking, " could not be made", hint) from error
    try:
        made = steps.look(seen).encode()
    except OSError as error:
        hint = f"{'make room' if error.errno in _NO_ROOM else 'fix that'}, or commit other paths: yolofs commit PATH..."
        raise _not_prepared(error, plan.root, parking, "", hint) from error
    try:
        write_new(parking, MADE, made, durable=durable)
    except OSError as error:  # no other path would go through
        raise _not_prepared(error, plan.root, parking, "", _again(parking, plan.root, error)) from error


def _again(parking: bytes, root: bytes, error: OSError) -> str:
    """Return what to do where the commit's own files cannot be written."""
    return _make_room(parking, root, error) if error.errno in _NO_ROOM else "fix that, and then: yolofs commit"


def _make_room(parking: bytes, root: bytes, error: OSError) -> str:
    session = _session_of(parking)
    where = f"{display(session)} lies"
    directory = os.path.dirname(_named(error, root, parking))
    while not os.path.isdir(directory):  # it is new, too
        directory = os.path.dirname(directory)
    with contextlib.suppress(OSError):
        if os.lstat(directory).st_dev != os.lstat(session).st_dev:
            where = f"{display(session)} or {display(directory)} lies"
    return f"make room where {where}, then: yolofs commit"


def _session_of(parking: bytes) -> bytes:
    return os.path.dirname(os.path.dirname(parking))


def _named(error: OSError, root: bytes, parking: bytes) -> bytes:
    """Return the path that an error is about; an error that names none is about the commit's
    directory.
    """
    if isinstance(error.filename, str | bytes):
        return os.path.join(root, os.fsencode(error.filename)) if error.filename else root
    return parking


def _not_prepared(error: OSError, root: bytes, parking: bytes, what: str, hint: str) -> NotPreparedError:
    path = _named(error, root, parking)
    closed = closed_directory(path) if error.errno == errno.EACCES else None
    if closed is not None:  # nearly always it is the only thing in the way
        hint = hint.replace("fix that", f"chmod u+rwx {in_shell(closed)}", 1)
    where = f"{display(path)}{what}"
    return NotPreparedError(
        f"the commit was not begun: {where}: {reason(error)}; base is as it was, and all stays staged", hint=hint
    )


def _do_from(
    first: int,
    plan: Plan,
    steps: Steps,
    parking: bytes,
    progress: Progress | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Do the steps from ``first`` on, and log each; ``check`` is called before each, and may
    raise.
    """
    total = len(plan.steps)
    with Log(parking) as done:
        done.cut(first)
        for index in range(first, total):
            check()
            step = plan.steps[index]
            if isinstance(step, Create) and (made := steps.linked_from(step)) is not None:
                _do_one(index, plan, parking, steps.do)
                done.add_unflushed(steps.identity_of_linked(made))
            else:
                done.flush()
                _do_one(index, plan, parking, steps.do)
                done.add(steps.logged(step))
            if progress is not None:
                progress(index + 1, total)


def _do_one(index: int, plan: Plan, parking: bytes, do: Callable[[Step], None]) -> None:
    step = plan.steps[index]
    try:
        do(step)
    except OSError as error:
        raise CommitError(
            f"the commit stopped at step {index + 1} of {len(plan.steps)}, "
            f"to {describe_step(step, plan.root)}: {reason(error)}",
            done=index,
            directory=parking,
            hint="nothing is lost; fix that, then: yolofs commit --continue, or yolofs commit --roll-back",
        ) from error


def _complete(
    plan: Plan,
    steps: Steps,
    parking: bytes,
    seals: Seals,
    arrived: Arrived | None,
    *,
    durable: bool,
    knows_all: bool = True,
    is_again: bool = False,
) -> None:
    """Make everything durable, tidy up what is kept, and say that it is done.

    ``knows_all``: this process has done all steps; ``is_again``: this had begun before.
    """
    total = len(plan.steps)
    try:
        copies = steps.copy_kept_files()
        steps.release()
        if durable:
            steps.sync()
        is_settled = is_there(os.path.join(parking, SETTLED))
        if (copies or steps.has_leftovers or steps.has_links) and not is_settled:  # from here on there is no way back
            write_new(parking, SETTLED, b"", durable=durable)
        note_kept_copies(parking, names_in(copies, os.path.join(parking, b"replaced")))
        copy_log.add(parking, copies_noted(copies), durable=durable)
        noted = note_before(parking, copies, plan) if arrived is not None else []
        ctimes = put_in_place(copies, os.path.join(parking, b"new"))
        had_leftovers = steps.has_leftovers
        steps.discard_leftovers()
        if is_again:  # a leftover may have gone, and its directory not have got its time back
            for step in plan.steps:
                if isinstance(step, FinishDirectory) and not steps.has_time_given(step):
                    steps.give_time_again(step)
            steps.release()
        if (
            had_leftovers or is_again
        ) and durable:  # and the times that their directories have got back: nobody will look again
            steps.sync()
        steps.release_store()
        if arrived is not None:
            found = find_what_came(plan, parking, ctimes, noted, steps.left_out if knows_all else None)
            inode_ctimes = steps.inode_ctimes_of_copies() | found.inode_ctimes | steps.inode_ctimes_of_links()
            arrived(found._replace(inode_ctimes=steps.with_swept(inode_ctimes)))
        steps.discard_notes()
        write_new(parking, DONE, seals.of_end(total), durable=durable)
    except OSError as error:
        raise CommitError(
            f"all {total} steps of the commit are done, but it could not be closed: {reason_and_path(error)}",
            done=total,
            directory=parking,
            hint=f"{'make room' if error.errno in _NO_ROOM else 'fix that'}, then: yolofs commit --continue",
        ) from error
