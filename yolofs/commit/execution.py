"""Carrying a plan out: base becomes what the view shows.

::

    commits/N/seal          what tells that the plan was written here and for this; durable before the plan
    commits/N/plan.json     the plan, durable before anything is made
    commits/N/new/          what is being made
    commits/N/made          empty; written when the new files are durable, and nothing of base is touched before
    commits/N/progress      one line for each step done: its index, from 0
    commits/N/parked/       what is on its way from one path to another
    commits/N/replaced/     what base no longer has, by the number in the plan
    commits/N/done          written last, when all else is durable
    commits/N/given-up      written instead, if what is left of it is not to be done

``docs/design/commit.md`` has the order of the steps and the reasons.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from yolofs.commit.making import StoreFiles
from yolofs.commit.plan import Create, Plan, describe
from yolofs.commit.resume import ResumedSteps
from yolofs.commit.separate import put_in_place
from yolofs.commit.steps import Steps
from yolofs.errors import CommitError, NotPreparedError
from yolofs.paths import RelPath, display

PLAN = b"plan.json"
SEAL = b"seal"
MADE = b"made"
DONE = b"done"
_PROGRESS = b"progress"
_OF_BASE = (b"parked", b"replaced")
"""The folders in which things of base lie."""
Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


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
    progress: Progress | None = None,
    durable: bool = True,
) -> Outcome:
    """Do all that ``plan`` says, and return when base is what the view was.

    ``parking`` is the commit's own directory (``commits/N`` of a session, absolute; made if missing), best on the same
    filesystem as most of what changes.  ``seals`` vouches for the plan, without which nobody will finish it.
    ``progress`` is called after each file made and each step with how many are done, and of how many.  Without
    ``durable`` the disk is not waited for: for tests, which expect no power failure.  Blocks.

    Raises:
        NotPreparedError: a new file could not be made; nothing of base was touched, and ``parking`` is gone.
        CommitError: a step failed; those before it are done.
        OSError: the commit's directory or base cannot be opened, or a commit was there already; nothing was done.
    """
    os.makedirs(parking, 0o700, exist_ok=True)
    seals = seals if seals is not None else Unsealed()
    text = plan.encode()
    seal = seals.of_plan(text)
    if seal:  # before the plan: one that lies there without a seal is nobody's
        write_new(parking, SEAL, seal, durable=durable)
    write_new(parking, PLAN, text, durable=durable)
    counted = _Counted(plan, progress) if progress is not None else None
    with Steps(plan, store, parking, durable=durable) as steps:
        try:
            steps.make(counted.made if counted is not None else lambda _: None)
            write_new(parking, MADE, b"", durable=durable)
        except BaseException as error:  # Ctrl-C, too
            drop(parking)
            if isinstance(error, OSError):
                raise _not_prepared(error) from error
            raise
        _do_from(0, plan, steps, parking, counted)
        _complete(plan, steps, parking, seals, durable=durable)
        return Outcome(len(plan.steps), steps.left_out)


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
        if os.path.lexists(os.path.join(parking, MADE)):
            steps.recall_made()
        done = count_done(parking)
        for step in plan.steps[:done]:
            steps.recall(step)
        _do_from(done, plan, steps, parking, progress)
        _complete(plan, steps, parking, seals if seals is not None else Unsealed(), durable=True)
        return Outcome(len(plan.steps), steps.left_out)


def has_begun(parking: bytes) -> bool:
    """Tell whether the commit in a directory has touched anything of base, as far as can be told.

    Versions before wrote no ``made``, but the log at the same time as the first step.
    """
    if any(os.path.lexists(os.path.join(parking, name)) for name in (MADE, _PROGRESS)):
        return True
    return any(_holds_something(os.path.join(parking, name)) for name in _OF_BASE)


def _holds_something(folder: bytes) -> bool:
    try:
        return bool(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False


def drop(parking: bytes) -> None:
    """Remove the directory of a commit that has not begun: in it are copies alone, and its plan, which goes first.

    Raises:
        OSError: something in it cannot be removed; it is no commit any more all the same.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(parking, PLAN))
    shutil.rmtree(parking)


def count_done(parking: bytes) -> int:
    """Return how many steps of a commit are done for certain: as many as there are whole lines in their order."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(os.path.join(parking, _PROGRESS), flags), "rb") as file:
            lines = file.read().split(b"\n")[:-1]
    except OSError:  # none is known for certain then, and each is looked at
        return 0
    done = 0
    while done < len(lines) and lines[done] == b"%d" % done:
        done += 1
    return done


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


def _not_prepared(error: OSError) -> NotPreparedError:
    what = f"{display(os.fsencode(error.filename))} could not be made: " if error.filename else ""
    return NotPreparedError(
        f"the commit was not begun: {what}{_reason(error)}; base is as it was, and all stays staged",
        hint="make room, where that is what it lacks, and then: yolofs commit",
    )


def _do_from(first: int, plan: Plan, steps: Steps, parking: bytes, progress: Progress | None) -> None:
    """Do the steps from ``first`` on, and log each."""
    total = len(plan.steps)
    path = os.path.join(parking, _PROGRESS)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(log, sum(len(b"%d\n" % index) for index in range(first)))
        for index in range(first, total):
            _do_one(index, plan, steps, parking)
            os.write(log, b"%d\n" % index)
            if progress is not None:
                progress(index + 1, total)
    finally:
        os.close(log)


def _do_one(index: int, plan: Plan, steps: Steps, parking: bytes) -> None:
    step = plan.steps[index]
    try:
        steps.do(step)
    except OSError as error:
        raise CommitError(
            f"the commit stopped at step {index + 1} of {len(plan.steps)}, to {describe(step)}: {_reason(error)}",
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
        put_in_place(copies)
        steps.discard_leftovers()
        write_new(parking, DONE, seals.of_end(total), durable=durable)
    except OSError as error:
        where = f" ({display(os.fsencode(error.filename))})" if error.filename else ""
        raise CommitError(
            f"all {total} steps of the commit are done, but it could not be closed: {_reason(error)}{where}",
            done=total,
            directory=parking,
            hint=f"what base had before lies in {display(parking)}",
        ) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def write_new(directory: bytes, name: bytes, content: bytes, *, durable: bool = True) -> None:
    """Write a file that must not be there yet, whole or not at all."""
    path = os.path.join(directory, name)
    if os.path.lexists(path):
        raise FileExistsError(f"there was a commit already: {display(path)} exists")
    fd = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(path + b".new", path)
    if durable:
        for above in (directory, os.path.dirname(directory)):
            _sync_directory(above)


def _sync_directory(path: bytes) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
