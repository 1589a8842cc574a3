"""Takes a commit back, by its log and the files at their places: first its steps, then its
leftovers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

from yolofs.commit.apply import step_log, unset_metadata
from yolofs.commit.apply.commit_directory import (
    BACK,
    OF_BASE,
    PLAN,
    SETTLED,
    holds_something,
    read_ready,
    remove_before_it_begins,
    write_new,
)
from yolofs.commit.apply.interrupts import interrupted_between, no_interrupt, stopped_by_user
from yolofs.commit.apply.recovery.back_in_place import HostChangesMeanwhile
from yolofs.commit.apply.recovery.found_files import FOUND, paths_found
from yolofs.commit.apply.recovery.rollback import RollbackSteps
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.unset_metadata import UNSET_BACK
from yolofs.commit.plan.plan import Plan, describe_step
from yolofs.commit.plan.recheck import find_other_mount
from yolofs.errors import CommitError, RolledBackError
from yolofs.os_errors import reason_and_path
from yolofs.paths import RelPath, absolute, display
from yolofs.progress import Progress
from yolofs.store.interfaces import StoreFiles
from yolofs.system.busy_trees import remove_tree
from yolofs.system.plain_files import is_there
from yolofs.system.stop_signals import exit_code_of
from yolofs.text.enumeration import some_of

TellRestored: TypeAlias = Callable[[set[step_log.ObjectIdentity], set[step_log.ObjectIdentity]], None]
"""Called with the identities of restored things, and of those among them that could not get their
old times.
"""


def take_commit_back(
    plan: Plan,
    store: StoreFiles,
    parking: bytes,
    failure: BaseException,
    restored: TellRestored,
    *,
    progress: Progress | None = None,
    durable: bool,
) -> RolledBackError | CommitError:
    """Take back a commit that has just failed; return an error that tells of that, or of a failure
    to do so.
    """
    with no_interrupt():
        try:
            meanwhile = roll_back(plan, store, parking=parking, restored=restored, progress=progress, durable=durable)
        except (CommitError, OSError) as error:
            return CommitError(
                f"{_failure_text(failure)}; it could not be taken back either: {_failure_text(error)}",
                done=failure.done if isinstance(failure, CommitError) else 0,
                directory=parking,
                hint="nothing is lost; fix that, then: yolofs commit --continue, or yolofs commit --roll-back",
            )
    taken_back = RolledBackError(
        f"the commit was taken back: {_failure_text(failure)}; {outcome_text(meanwhile, plan.root, parking)}",
        hint="yolofs commit",
    )
    if isinstance(failure, KeyboardInterrupt):
        taken_back.exit_code = exit_code_of(failure)
    return taken_back


def _failure_text(failure: BaseException) -> str:
    """Return what to say of a failure."""
    if isinstance(failure, KeyboardInterrupt):
        return "it was interrupted"
    if isinstance(failure, OSError):
        return f"the commit stopped: {reason_and_path(failure)}"
    return getattr(failure, "message", str(failure))


def outcome_text(meanwhile: HostChangesMeanwhile, root: bytes, parking: bytes) -> str:
    """Say what has become of base."""
    missing = ["what the host took away"] if meanwhile.gone_with_directory or meanwhile.left_in_commit else []
    missing += ["what is lost"] if meanwhile.lost else []
    text = f"base is as it was{', but for ' if missing else ''}{' and '.join(missing)}, and all stays staged"
    if meanwhile.left_out:
        aspects = dict.fromkeys(aspect for some in meanwhile.left_out.values() for aspect in some)
        text += f"; {', '.join(aspects)} of {_shown(sorted(meanwhile.left_out), root)} could not be given back"
    if meanwhile.found:
        text += f"; {found_text(meanwhile.found, root, parking)}"
    if meanwhile.gone_with_directory:
        text += (
            f"; what base had at {_shown(meanwhile.gone_with_directory, root)} went with the directory that the"
            " commit had put it into, which the host has moved or removed"
        )
    if meanwhile.lost:
        text += (
            f"; what base had at {_shown(meanwhile.lost, root)} is lost: it was kept in"
            f" {display(os.path.join(parking, OF_BASE[1]))}, and somebody has removed it there"
        )
    if meanwhile.written_by_host:
        text += f"; what the host has meanwhile made of {_shown(meanwhile.written_by_host, root)} is staged there now"
    if meanwhile.given_metadata:
        text += (
            "; the mode, owner, time or attribute that the host has given"
            f" {_shown(meanwhile.given_metadata, root)} meanwhile stays"
        )
    if meanwhile.left_in_commit:
        text += (
            f"; what base had at {_shown(meanwhile.left_in_commit, root)} lies in {display(parking)},"
            " as its directory is gone"
        )
    return text


def found_text(found: Sequence[RelPath], root: bytes, parking: bytes) -> str:
    """Return a sentence on files of the host's that were in a commit's way, and on their place now;
    empty if there are none.
    """
    if not found:
        return ""
    return f"what the host had put at {_shown(found, root)} meanwhile lies in {display(os.path.join(parking, FOUND))}"


def _shown(paths: Sequence[RelPath], root: bytes) -> str:
    return some_of([display(absolute(root, path)) for path in paths], 1)


def roll_back(
    plan: Plan,
    store: StoreFiles,
    *,
    parking: bytes,
    check_root: Callable[[int], None] = lambda _: None,
    restored: TellRestored = lambda *_: None,
    progress: Progress | None = None,
    durable: bool = True,
) -> HostChangesMeanwhile:
    """Take back what the commit in ``parking`` has done: base is as it was then; parameters as for
    :func:`yolofs.commit.apply.execution.resume`.

    ``restored`` is told of all that was moved, or changed its ctime, when it is in its place again.

    Returns what the host had done meanwhile: what it had put or changed lies in ``parking/found``
    now.  If that is nothing, ``parking`` is gone.

    Raises:
        CommitError: a step could not be undone, or Ctrl-C; those after it are undone, and it can be
            tried again.
        OSError: the commit's directory or base cannot be opened.
    """
    total = len(plan.steps)
    if is_there(os.path.join(parking, SETTLED)):
        raise CommitError(
            f"all {total} steps of the commit are done and durable, so it is not taken back",
            done=total,
            directory=parking,
            hint="yolofs commit --continue",
        )
    with interrupted_between() as check, RollbackSteps(plan, store, parking, durable=durable) as steps:
        check_root(steps.root_fd)
        ready = read_ready(parking)
        problem = find_other_mount(plan, ready.mounts) if ready is not None else ""
        if problem:
            raise CommitError(
                problem,
                done=total,
                directory=parking,
                hint="nothing is lost; fix that, then: yolofs commit --roll-back",
            )
        is_again = is_there(os.path.join(parking, BACK))
        if not is_again:
            write_new(parking, BACK, b"", durable=durable)
        steps.left_out.update(unset_metadata.read(parking, UNSET_BACK))
        if ready is not None:
            steps.recall_made(ready)
        steps.recall_parked()
        if is_again:
            steps.put_swapped_back(ready)
        lines = step_log.read(parking)
        with Log(parking) as done:
            for index in range(total - 1, -1, -1):
                _check_interrupt(check, parking)
                said = lines[index] if index < len(lines) else None
                _undo_one(index, plan, steps, said, parking, is_next=index == len(lines))
                done.cut(index)
                if progress is not None:
                    progress(total - index, total)
        try:
            steps.finish()
            if durable:
                steps.sync()
            restored(*steps.restored())
            steps.clear_backups()
            steps.remove_far()
        except OSError as error:
            raise _not_taken_back(error, parking, 0, "taking the commit back could not be ended") from error
    found = paths_found(parking, plan)  # what was found before this was interrupted, too
    _end_taken_back(parking)
    return steps.meanwhile._replace(found=found, left_out=steps.left_out)


def _check_interrupt(check: Callable[[], None], parking: bytes) -> None:
    try:
        check()
    except KeyboardInterrupt as stopped:
        raise stopped_by_user("taking the commit back", parking, stopped) from None


def _undo_one(
    index: int, plan: Plan, steps: RollbackSteps, said: step_log.LoggedStep | None, parking: bytes, *, is_next: bool
) -> None:
    try:
        steps.undo(plan.steps[index], said, is_next=is_next)
    except OSError as error:
        what = f"step {index + 1} of the commit, to {describe_step(plan.steps[index], plan.root)}, could not be undone"
        raise _not_taken_back(error, parking, index, what) from error


def _not_taken_back(error: OSError, parking: bytes, index: int, what: str) -> CommitError:
    return CommitError(
        f"{what}: {reason_and_path(error)}",
        done=index,
        directory=parking,
        hint="nothing is lost; fix that, then: yolofs commit --roll-back",
    )


def _end_taken_back(parking: bytes) -> None:
    """Remove the directory of a commit that was taken back, or all but what is still kept in it."""
    kept = [name for name in (*OF_BASE, FOUND) if holds_something(os.path.join(parking, name))]
    if not kept:
        remove_before_it_begins(parking)
        return
    os.unlink(os.path.join(parking, PLAN))
    for name in sorted(os.listdir(parking), key=lambda name: name == BACK):  # that last, see has_lost_its_plan
        path = os.path.join(parking, name)
        if name not in kept:
            remove_tree(path)
