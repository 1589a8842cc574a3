"""Taking a commit back, from the log and what is where: all of its steps, then what it leaves behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

from yolofs.commit import log
from yolofs.commit.files import BACK, OF_BASE, PLAN, SETTLED, drop, holds_something, read_ready, write_new
from yolofs.commit.interrupts import INTERRUPTED, no_interrupt
from yolofs.commit.log import Log
from yolofs.commit.making import StoreFiles
from yolofs.commit.plan import Plan, describe
from yolofs.commit.resume import FOUND
from yolofs.commit.rollback import BackSteps
from yolofs.commit.trees import remove_tree
from yolofs.errors import CommitError, RolledBackError, reason
from yolofs.paths import RelPath, display

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much."""
Restored: TypeAlias = Callable[[dict[int, int]], None]
"""Is told the ctimes of what is in its place again, by inode number."""


def take_back(
    plan: Plan, store: StoreFiles, parking: bytes, failure: BaseException, restored: Restored, *, durable: bool
) -> RolledBackError | CommitError:
    """Take a commit back that has failed just now; return what is to be said of that, or of what failed in it, too."""
    with no_interrupt():
        try:
            found = roll_back(plan, store, parking=parking, restored=restored, durable=durable)
        except (CommitError, OSError) as error:
            if isinstance(failure, CommitError):
                why = error.message if isinstance(error, CommitError) else reason(error)
                return CommitError(
                    f"{failure.message}; it could not be taken back either: {why}",
                    done=failure.done,
                    directory=parking,
                    hint="nothing is lost; mend that, then: yolofs commit --continue, or yolofs commit --roll-back",
                )
            raise
    is_interrupt = isinstance(failure, KeyboardInterrupt)
    what = "it was interrupted" if is_interrupt else getattr(failure, "message", None) or str(failure)
    taken_back = RolledBackError(
        f"the commit was taken back: {what}; {told_of(found, plan.root, parking)}", hint="yolofs commit"
    )
    if is_interrupt:
        taken_back.exit_code = INTERRUPTED
    return taken_back


def told_of(found: Sequence[RelPath], root: bytes, parking: bytes) -> str:
    """Say what has become of base."""
    text = "base is as it was, and all stays staged"
    if found:
        more = f" and {len(found) - 1} more" if found[1:] else ""
        place = display(os.path.join(parking, FOUND))
        text += f"; what the host had put at {display(os.path.join(root, found[0]))}{more} meanwhile lies in {place}"
    return text


def roll_back(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    check_root: Callable[[int], None] = lambda _: None,
    restored: Restored = lambda _: None,
    progress: Progress | None = None,
    durable: bool = True,
) -> list[RelPath]:
    """Take back what the commit in ``parking`` has done: base is as it was then; parameters as for :func:`resume`.

    ``restored`` is told of all that was moved or changed its ctime, by inode number, when it is in its place again.

    Returns the paths at which the host had put or changed something meanwhile, which lies in ``parking/found`` now.
    If there are none, ``parking`` is gone.

    Raises:
        CommitError: a step could not be undone; those after it are undone, and it can be tried again.
        OSError: the commit's directory or base cannot be opened.
    """
    total = len(plan.steps)
    if os.path.lexists(os.path.join(parking, SETTLED)):
        raise CommitError(
            f"all {total} steps of the commit are done and durable, so it is not taken back",
            done=total,
            directory=parking,
            hint="yolofs commit --continue",
        )
    with BackSteps(plan, store, parking, durable=durable) as steps:
        check_root(steps.root_fd)
        if not os.path.lexists(os.path.join(parking, BACK)):
            write_new(parking, BACK, b"", durable=durable)
        ready = read_ready(parking)
        if ready is not None:
            steps.recall_made(ready)
        steps.prepare(parking)
        lines = log.read(parking)
        with Log(parking) as done:
            for index in range(total - 1, -1, -1):
                said = lines[index] if index < len(lines) else None
                _undo_one(index, plan, steps, said, parking, is_next=index == len(lines))
                done.cut(index)
                if progress is not None:
                    progress(total - index, total)
        try:
            steps.finish()
            if durable:
                steps.sync()
            restored(steps.restored())
            steps.clear_backups()
            steps.remove_far()
        except OSError as error:
            raise _not_taken_back(error, parking, 0) from error
    _end_taken_back(parking)
    return steps.found


def _undo_one(
    index: int, plan: Plan, steps: BackSteps, said: log.Line | None, parking: bytes, *, is_next: bool
) -> None:
    try:
        steps.undo(plan.steps[index], said, is_next=is_next)
    except OSError as error:
        raise _not_taken_back(error, parking, index, f", to {describe(plan.steps[index], plan.root)}") from error


def _not_taken_back(error: OSError, parking: bytes, index: int, what: str = "") -> CommitError:
    where = f" ({display(os.fsencode(error.filename))})" if error.filename else ""
    return CommitError(
        f"step {index + 1} of the commit{what}, could not be undone: {reason(error)}{where}",
        done=index,
        directory=parking,
        hint="nothing is lost; mend that, then: yolofs commit --roll-back",
    )


def _end_taken_back(parking: bytes) -> None:
    """Remove the directory of a commit that was taken back, or all but what is still kept in it."""
    kept = [name for name in (*OF_BASE, FOUND) if holds_something(os.path.join(parking, name))]
    if not kept:
        drop(parking)
        return
    os.unlink(os.path.join(parking, PLAN))
    for name in os.listdir(parking):
        path = os.path.join(parking, name)
        if name not in kept:
            remove_tree(path)
