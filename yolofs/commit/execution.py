"""Carrying a plan out: base becomes what the view shows.

::

    commits/N/seal          what tells that the plan was written here and for this; durable before the plan
    commits/N/plan.json     the plan, durable before anything is made
    commits/N/new/          what is being made
    commits/N/made          what was made, by identity (commit/ready); nothing of base is touched before it is durable
    commits/N/progress      one line for each step done (commit/log)
    commits/N/parked/       what is on its way from one path to another
    commits/N/replaced/     what base no longer has, by the number in the plan
    commits/N/done          written last, when all else is durable
    commits/N/given-up      written instead, if what is left of it is not to be done
    commits/N/settled       written when all steps are durable, if what is kept is about to be changed: no way back
    commits/N/back          written first, if what is done of it is to be undone
    commits/N/found         what the host had put in the way of that

``docs/design/commit.md`` has the order of the steps and the reasons.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import msgspec

from yolofs.commit import far, log
from yolofs.commit.log import Log
from yolofs.commit.making import StoreFiles
from yolofs.commit.places import hidden_far
from yolofs.commit.plan import Create, Plan, describe
from yolofs.commit.ready import Ready, decode
from yolofs.commit.resume import FOUND, ResumedSteps
from yolofs.commit.rollback import BackSteps
from yolofs.commit.separate import put_in_place
from yolofs.commit.steps import Steps
from yolofs.commit.trees import remove_tree
from yolofs.errors import CommitError, NotPreparedError, RolledBackError
from yolofs.paths import RelPath, display
from yolofs.plain_files import open_plain

PLAN = b"plan.json"
SEAL = b"seal"
MADE = b"made"
DONE = b"done"
BACK = b"back"
SETTLED = b"settled"
_OF_BASE = (b"parked", b"replaced")
"""The folders in which things of base lie."""
Restored: TypeAlias = Callable[[dict[int, int]], None]
"""Is told the ctimes of what is in its place again, by inode number."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
INTERRUPTED = 130
"""The exit code after Ctrl-C."""
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
                check = held.enter_context(_interrupted_between())
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
        raise _take_back(plan, store, parking, failure, restored, durable=durable) from failure


def _take_back(
    plan: Plan, store: StoreFiles, parking: bytes, failure: BaseException, restored: Restored, *, durable: bool
) -> RolledBackError | CommitError:
    """Take a commit back that has failed just now; return what is to be said of that, or of what failed in it, too."""
    with no_interrupt():
        try:
            found = roll_back(plan, store, parking=parking, restored=restored, durable=durable)
        except (CommitError, OSError) as error:
            if isinstance(failure, CommitError):
                reason = error.message if isinstance(error, CommitError) else _reason(error)
                return CommitError(
                    f"{failure.message}; it could not be taken back either: {reason}",
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


@contextlib.contextmanager
def _interrupted_between() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C do nothing at once, in the main thread; give what raises KeyboardInterrupt if it was pressed.

    So no step stays half done by it, and a commit whose steps are all done is closed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # a shell's "&" ignores it
        yield lambda: None
        return
    pressed = False

    def note(*_: object) -> None:
        nonlocal pressed
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Let Ctrl-C do nothing meanwhile, in the main thread: what is being done is not to stay half done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
        f"step {index + 1} of the commit{what}, could not be undone: {_reason(error)}{where}",
        done=index,
        directory=parking,
        hint="nothing is lost; mend that, then: yolofs commit --roll-back",
    )


def _end_taken_back(parking: bytes) -> None:
    """Remove the directory of a commit that was taken back, or all but what is still kept in it."""
    kept = [name for name in (*_OF_BASE, FOUND) if _holds_something(os.path.join(parking, name))]
    if not kept:
        drop(parking)
        return
    os.unlink(os.path.join(parking, PLAN))
    for name in os.listdir(parking):
        path = os.path.join(parking, name)
        if name not in kept:
            remove_tree(path)


def read_ready(parking: bytes) -> Ready | None:
    """Return what was written of a commit before its first step, None if nothing was."""
    try:
        with open(open_plain(os.path.join(parking, MADE), os.O_RDONLY), "rb") as file:
            return decode(file.read())
    except OSError:
        return None


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


def has_begun(parking: bytes) -> bool:
    """Tell whether the commit in a directory has touched anything of base, as far as can be told.

    Versions before wrote no ``made``, but the log at the same time as the first step.
    """
    if os.path.lexists(os.path.join(parking, MADE)) or log.lies_in(parking):
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
    with contextlib.suppress(OSError):  # what cannot be removed there is no reason to go on with a commit
        far.remove(parking, hidden_far(parking))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(parking, PLAN))
    shutil.rmtree(parking)


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
        f"the commit was not begun: {where}{_reason(error)}; base is as it was, and all stays staged", hint=hint
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
            f"to {describe(step, plan.root)}: {_reason(error)}",
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
