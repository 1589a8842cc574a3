"""Carrying a plan out: base becomes what the view shows.

``docs/design/commit.md`` has the phases, the order of the steps and the reasons; :mod:`yolofs.commit.files` what lies
in the commit's directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Protocol

import msgspec

from yolofs.commit import log
from yolofs.commit.files import BACK, DONE, MADE, PLAN, SEAL, SETTLED, drop, read_ready, write_new
from yolofs.commit.interrupts import INTERRUPTED, interrupted_between
from yolofs.commit.log import Log
from yolofs.commit.making import StoreFiles
from yolofs.commit.plan import Create, Plan, describe
from yolofs.commit.resume import ResumedSteps
from yolofs.commit.separate import put_in_place
from yolofs.commit.steps import Steps
from yolofs.commit.taking_back import Progress, Restored, take_back
from yolofs.errors import CommitError, NotPreparedError, reason
from yolofs.paths import RelPath, display

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Seals(Protocol):
    """Who vouches for what is written of a commit (:mod:`yolofs.sessions.seal`); this package knows nothing of keys."""

    def of_plan(self, plan: bytes) -> bytes:
        """Return what is to lie beside a plan as ``seal``."""
        ...

    def of_end(self, steps: int) -> bytes:
        """Return what ``done`` is to hold."""
        ...


class Unsealed:
    """Vouches for nothing: for who executes a plan at once and has nobody finish it later, as tests do."""

    def of_plan(self, plan: bytes) -> bytes:  # noqa: ARG002 - the protocol's signature
        """Return nothing: no file is written."""
        return b""

    def of_end(self, steps: int) -> bytes:
        """Return the number of steps."""
        return b"%d\n" % steps


class Outcome(msgspec.Struct, frozen=True):
    """What a commit that went through did, and could not do."""

    steps: int
    """How many there were."""
    left_out: dict[RelPath, tuple[str, ...]] = {}
    """Paths whose ``owner``, ``group``, ``times``, ``hard link`` or ``xattr NAME`` could not be carried over."""


def execute(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    seals: Seals | None = None,
    restored: Restored = lambda _: None,
    progress: Progress | None = None,
    durable: bool = True,
) -> Outcome:
    """Do all that ``plan`` says, and return when base is what the view was.

    ``parking`` is the commit's own directory (``commits/N`` of a session, absolute; made if missing), best on the same
    filesystem as most of what changes.  ``seals`` vouches for the plan, without which nobody will finish it.
    ``restored`` is told what is in its place again if the commit is taken back.
    ``progress`` is called after each file made and each step with how many are done, and of how many.  Without
    ``durable`` the disk is not waited for: for tests, which expect no power failure.  Blocks.

    Raises:
        NotPreparedError: something could not be made, or put in its place; nothing of base was touched, and ``parking``
            is gone.
        RolledBackError: a step failed, or Ctrl-C; base is as it was.
        CommitError: a step failed, and so did taking back those before it; or all are done, and the end failed.
        OSError: the commit's directory or base cannot be opened, or a commit was there already; nothing was done.
    """
    os.makedirs(parking, 0o700, exist_ok=True)
    seals = seals if seals is not None else Unsealed()
    text = plan.encode()
    seal = seals.of_plan(text)
    try:
        if seal:  # before the plan: one that lies there without a seal is nobody's
            write_new(parking, SEAL, seal, durable=durable)
        write_new(parking, PLAN, text, durable=durable)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        drop(parking)
        raise _not_prepared(error, plan.root, "", "make room, and then: yolofs commit") from error
    counted = _Counted(plan, progress) if progress is not None else None
    with contextlib.ExitStack() as held:
        with Steps(plan, store, parking, durable=durable) as steps:
            try:
                _prepare(plan, steps, parking, counted, durable=durable)
                check = held.enter_context(interrupted_between())
            except BaseException as error:
                drop(parking)
                if isinstance(error, KeyboardInterrupt):
                    raise _ended_before() from None
                raise
            try:
                _do_from(0, plan, steps, parking, counted, check)
            except (CommitError, OSError, KeyboardInterrupt) as error:
                failure: BaseException = error
            else:
                _complete(plan, steps, parking, seals, durable=durable)
                return Outcome(len(plan.steps), steps.left_out)
        raise take_back(plan, store, parking, failure, restored, durable=durable) from failure


def resume(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    seals: Seals | None = None,
    check_root: Callable[[int], None] = lambda _: None,
    progress: Progress | None = None,
) -> Outcome:
    """Finish the commit in ``parking``, which a crash or an error interrupted; parameters as for :func:`execute`.

    The caller has checked that ``plan`` is to be trusted.  ``check_root`` is called with the descriptor of base before
    anything is done: what it raises ends this.

    Raises:
        CommitError: a step failed, as it may have before; those before it are done.
        OSError: the commit's directory or base cannot be opened.
    """
    with ResumedSteps(plan, store, parking, durable=True) as steps:
        check_root(steps.root_fd)
        ready = read_ready(parking)
        if ready is not None:
            steps.recall_made(ready)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(parking, BACK))
        done = min(len(log.read(parking)), len(plan.steps))
        for step in plan.steps[:done]:
            steps.recall(step)
        _do_from(done, plan, steps, parking, progress)
        _complete(plan, steps, parking, seals if seals is not None else Unsealed(), durable=True)
        return Outcome(len(plan.steps), steps.left_out)


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


def _ended_before() -> NotPreparedError:
    error = NotPreparedError("the commit was not begun, as it was interrupted; base is as it was, and all stays staged")
    error.exit_code = INTERRUPTED
    return error


def _prepare(plan: Plan, steps: Steps, parking: bytes, counted: _Counted | None, *, durable: bool) -> None:
    """Do all that comes before the first step.

    Raises:
        NotPreparedError: something could not be made, or it is plain that a step would fail.
    """
    try:
        steps.make(counted.made if counted is not None else lambda _: None)
    except OSError as error:
        hint = "make room, where that is what it lacks, and then: yolofs commit"
        raise _not_prepared(error, plan.root, " could not be made", hint) from error
    try:
        write_new(parking, MADE, steps.look().encode(), durable=durable)
    except OSError as error:
        hint = "mend that, or commit other paths: yolofs commit PATH..."
        raise _not_prepared(error, plan.root, "", hint) from error


def _not_prepared(error: OSError, root: bytes, what: str, hint: str) -> NotPreparedError:
    name = os.fsencode(error.filename) if error.filename is not None else None
    where = f"{display(os.path.join(root, name) if name else root)}{what}: " if name is not None else ""
    return NotPreparedError(
        f"the commit was not begun: {where}{reason(error)}; base is as it was, and all stays staged", hint=hint
    )


def _do_from(
    first: int,
    plan: Plan,
    steps: Steps,
    parking: bytes,
    progress: Progress | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Do the steps from ``first`` on, and log each; ``check`` is called before each, and may raise."""
    total = len(plan.steps)
    with Log(parking) as done:
        done.cut(first)
        for index in range(first, total):
            check()
            _do_one(index, plan, steps, parking)
            done.add(steps.seen(plan.steps[index]))
            if progress is not None:
                progress(index + 1, total)


def _do_one(index: int, plan: Plan, steps: Steps, parking: bytes) -> None:
    step = plan.steps[index]
    try:
        steps.do(step)
    except OSError as error:
        raise CommitError(
            f"the commit stopped at step {index + 1} of {len(plan.steps)}, "
            f"to {describe(step, plan.root)}: {reason(error)}",
            done=index,
            directory=parking,
            hint=f"nothing is lost; mend that, then: yolofs commit --continue (what base had: {display(parking)})",
        ) from error


def _complete(plan: Plan, steps: Steps, parking: bytes, seals: Seals, *, durable: bool) -> None:
    """Make everything durable, tidy up what is kept, and say that it is done."""
    total = len(plan.steps)
    try:
        copies = steps.copy_apart()
        steps.release()
        if durable:
            steps.sync()
        is_settled = os.path.lexists(os.path.join(parking, SETTLED))
        if (copies or steps.has_leftovers) and not is_settled:  # from here on there is no way back
            write_new(parking, SETTLED, b"", durable=durable)
        put_in_place(copies)
        steps.discard_leftovers()
        steps.remove_far()
        write_new(parking, DONE, seals.of_end(total), durable=durable)
    except OSError as error:
        where = f" ({display(os.fsencode(error.filename))})" if error.filename else ""
        raise CommitError(
            f"all {total} steps of the commit are done, but it could not be closed: {reason(error)}{where}",
            done=total,
            directory=parking,
            hint=f"what base had before lies in {display(parking)}",
        ) from error
