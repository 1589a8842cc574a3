"""Carrying a plan out: base becomes what the view shows.

::

    commits/N/plan.json     the plan, durable before the first step
    commits/N/progress      one line for each step done: its index, from 0
    commits/N/new/          what is being made
    commits/N/parked/       what is on its way from one path to another
    commits/N/replaced/     what base no longer has, by the number in the plan
    commits/N/done          written last, when all else is durable

``docs/design/commit.md`` has the order of the steps and the reasons.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from yolofs.commit.making import StoreFiles
from yolofs.commit.plan import Plan, describe
from yolofs.commit.resume import ResumedSteps
from yolofs.commit.separate import put_in_place
from yolofs.commit.steps import Steps
from yolofs.errors import CommitError
from yolofs.paths import RelPath, display

_PLAN = b"plan.json"
_PROGRESS = b"progress"
_DONE = b"done"


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
    progress: Callable[[int, int], None] | None = None,
    durable: bool = True,
) -> Outcome:
    """Do all that ``plan`` says, and return when base is what the view was.

    ``parking`` is the commit's own directory (``.yolofs/commits/N``, absolute; made if missing), best on the same
    filesystem as most of what changes.  ``progress`` is called after each step with the steps done and all steps.
    Without ``durable`` the disk is not waited for: for tests, which expect no power failure.  Blocks.

    Raises:
        CommitError: a step failed; those before it are done.
        OSError: the commit's directory or base cannot be opened, or a commit was there already; nothing was done.
    """
    os.makedirs(parking, 0o700, exist_ok=True)
    _write_new(parking, _PLAN, plan.encode(), durable=durable)
    with Steps(plan, store, parking, durable=durable) as steps:
        _do_from(0, plan, steps, parking, progress)
        _complete(plan, steps, parking, durable=durable)
        return Outcome(len(plan.steps), steps.left_out)


def resume(store: StoreFiles, *, parking: bytes, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Finish the commit in ``parking``, which a crash or an error interrupted; parameters as for :func:`execute`.

    Raises:
        CommitError: a step failed, as it may have before; those before it are done.
        YolofsError: the plan cannot be read.
        OSError: the commit's directory or base cannot be opened.
    """
    with open(os.path.join(parking, _PLAN), "rb") as file:
        plan = Plan.decode(file.read())
    with ResumedSteps(plan, store, parking, durable=True) as steps:
        done = _count_done(os.path.join(parking, _PROGRESS))
        for step in plan.steps[:done]:
            steps.recall(step)
        _do_from(done, plan, steps, parking, progress)
        _complete(plan, steps, parking, durable=True)
        return Outcome(len(plan.steps), steps.left_out)


def _count_done(path: bytes) -> int:
    """Return how many steps are done for certain: as many as there are whole lines in their order."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return 0
    done = 0
    while done < len(lines) and lines[done] == b"%d" % done:
        done += 1
    return done


def _do_from(first: int, plan: Plan, steps: Steps, parking: bytes, progress: Callable[[int, int], None] | None) -> None:
    """Do the steps from ``first`` on, and log each."""
    total = len(plan.steps)
    path = os.path.join(parking, _PROGRESS)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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
            hint=f"nothing is lost; mend that and go on with yolofs commit (what base had: {display(parking)})",
        ) from error


def _complete(plan: Plan, steps: Steps, parking: bytes, *, durable: bool) -> None:
    """Make everything durable, tidy up what is kept, and say that it is done."""
    total = len(plan.steps)
    try:
        copies = steps.copy_apart()
        steps.release()
        if durable:
            steps.sync()
        put_in_place(copies)
        steps.discard_leftovers()
        _write_new(parking, _DONE, b"%d\n" % total, durable=durable)
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


def _write_new(directory: bytes, name: bytes, content: bytes, *, durable: bool) -> None:
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
