"""A commit that was interrupted: what is known of it, whether it may be finished here, and how to
give it up.

Until it is finished (or given up) base is neither what it was nor what the view showed, so nothing
else is done.  It is finished only by the same user and on the same machine: its seal
(:mod:`yolofs.registry.seal`) must fit, and its plan must still be one for base
(:mod:`yolofs.commit.plan.recheck`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence

import msgspec

from yolofs.commit import Plan, describe_step
from yolofs.commit.apply import step_log
from yolofs.commit.apply.commit_directory import BACK, MADE, PLAN, SETTLED, has_begun, read_ready
from yolofs.commit.apply.places import SEAL, hidden_prefix
from yolofs.commit.apply.ready import Ready
from yolofs.commit.apply.recovery.interrupted_progress import how_far
from yolofs.commit.plan.plan import Fetch, Park, Place
from yolofs.commit.plan.recheck import find_in_way, find_obstacle, find_other_mount, find_problem
from yolofs.errors import CommitError, TrustError, YolofsError, reason
from yolofs.paths import RelPath, display, split
from yolofs.registry import seal
from yolofs.registry.identity import identity_of
from yolofs.registry.seal import MACHINE_FILES, Sealer, began_ns, digest_of_file, read_plainly
from yolofs.registry.state_directory import state_directory
from yolofs.session.archive import CARRIED, CommitEnd, interrupted_commit
from yolofs.session.undo_notes import read_undoes
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.plain_files import is_there

CONTENTS = b"contents"
"""The file, in the directory of a commit that was given up, that lists its things with their paths.
"""
_NEXT = 5
"""How many of the next steps are told."""


class Interrupted(msgspec.Struct, frozen=True):
    """A commit that stopped half way."""

    number: int
    directory: bytes
    """Its own, with what base had."""
    root: bytes
    """The base of the session."""
    began_ns: int
    """When it began: as its seal says, or else when its plan was written."""
    problems: tuple[str, ...]
    """What does not fit, so that it may not be finished here: each in words to follow a colon."""
    is_mendable: bool = False
    """Whether it may fit once the user has put something right in base, the store or the state
    directory.
    """
    done: int = 0
    """How many steps are done for certain."""
    is_exact: bool = True
    """Whether no more of them are."""
    is_settled: bool = False
    """Whether all steps are done and durable in base, so that nothing of them can be taken back."""
    plan: Plan | None = None
    """What it is to do; None if that cannot be trusted, or cannot be done as base is now."""
    way_back: Plan | None = None
    """What of it may be undone: the same plan, also where the rest of it cannot be done."""
    shown_by: Plan | None = None
    """The plan that a mount shows by it what was before the commit, where nothing may be done or
    undone as things are mounted now.
    """
    goes_back: bool = False
    """Whether it was being taken back when it was interrupted."""
    undoes: int | None = None
    """Which commit it undoes, if it is an undo."""
    seals: CommitSeals | None = None
    in_way: str = ""
    """What would stop it if it went on now, in words, as far as that can be seen."""

    @property
    def replaced(self) -> bytes:
        """Where the things lie that base had before."""
        return os.path.join(self.directory, b"replaced")

    @property
    def steps_left(self) -> list[str]:
        """One line for each of the steps that come next."""
        steps = self.plan.steps if self.plan is not None else ()
        return [describe_step(step, self.root) for step in itertools.islice(steps, self.done, self.done + _NEXT)]

    @property
    def text(self) -> str:
        """One sentence about it."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.began_ns // 1_000_000_000))
        what, wanted = "a commit", "what the view was"
        if self.undoes is not None:
            what, wanted = f"the undo of commit {self.undoes}", f"as it was before commit {self.undoes}"
        begun = f"{what} was interrupted: commit {self.number} of {when}"
        if self.goes_back and self.way_back is not None:
            return f"{begun}, and so was taking it back, so base ({display(self.root)}) is partly {wanted}; {self.why}"
        if self.plan is None:
            then = "; it is to be taken back" if self.way_back is not None else ""
            return f"{begun}, which is not finished here: {'; '.join(self.problems)}{then}"
        if self.done == len(self.plan.steps):
            return f"{begun}, all steps done but not ended, so base ({display(self.root)}) is {wanted} already"
        steps = f"{'' if self.is_exact else 'at least '}{self.done} of {len(self.plan.steps)} steps done"
        return f"{begun}, {steps}, so base ({display(self.root)}) is partly {wanted}; {self.why}"

    @property
    def way(self) -> str:
        """Which way the next command would go: ``forward``, ``back``, or empty if neither."""
        if self.is_better_taken_back:
            return "back"
        return "forward" if self.plan is not None else ""

    @property
    def why(self) -> str:
        """Why that way, in words."""
        if self.goes_back and self.way_back is not None:
            return "taking it back goes on, as that was begun"
        obstacle = self.in_way or "; ".join(self.problems)
        if self.is_better_taken_back:
            return f"it cannot be finished ({obstacle}), so it has to be taken back"
        if self.plan is None:
            return f"it can neither be finished nor taken back ({obstacle})"
        if self.in_way:
            return f"it cannot be finished as base is ({obstacle}), and can no longer be taken back"
        return "it can be finished, as base is what the plan expects"

    @property
    def hint(self) -> str:
        """What to do about it."""
        if self.is_better_taken_back:
            other = "; or yolofs commit --continue" if self.plan is not None else ""
            return f"yolofs commit --roll-back takes it back (all stays staged){other}"
        if self.plan is not None and self.way_back is None:
            return "yolofs commit --continue"
        if self.plan is not None:
            return "yolofs commit --continue finishes it, yolofs commit --roll-back takes it back (all stays staged)"
        first = "put that right, then yolofs commit --continue; or " if self.is_mendable else ""
        kept = f"what base had lies in {display(self.replaced)}"
        return f"{first}yolofs commit --discard-interrupted, which keeps all files and gives the commit up; {kept}"

    @property
    def is_to_go_back(self) -> bool:
        """Whether it is to be taken back: that had begun already, or it cannot be finished."""
        return self.way_back is not None and (self.goes_back or self.plan is None)

    @property
    def is_better_taken_back(self) -> bool:
        """Whether a person should be told to take it back: it has to be, or what it would fail at
        is seen.
        """
        return self.is_to_go_back or (self.way_back is not None and bool(self.in_way))

    @property
    def error_of_way_back(self) -> YolofsError:
        """What to raise where it is to be taken back, and cannot be."""
        if not self.is_settled:
            return self.error
        return CommitError(
            f"commit {self.number} cannot be taken back any more: all its steps are done and durable in base"
            f" ({display(self.root)}); only what it leaves is to be put away",
            hint=f"yolofs commit --continue does that, and then yolofs undo {self.number} takes it back",
        )

    @property
    def error(self) -> YolofsError:
        """What to raise where it is in the way."""
        return (
            CommitError(self.text, hint=self.hint)
            if self.plan is not None or self.goes_back
            else TrustError(self.text, hint=self.hint)
        )


class CommitSeals:
    """Vouches for what is written of one commit."""

    def __init__(self, sealer: Sealer, number: int, root: bytes, directory: bytes, sealed: bytes = b"") -> None:
        """``directory``: the commit's own; ``sealed``: its seal, where it has one already."""
        self._sealer = sealer
        self._number = number
        self._root = root
        self._carried = os.path.join(directory, CARRIED)
        self._sealed = sealed

    def of_plan(self, plan: bytes) -> bytes:
        """Return the seal of a plan."""
        base = seal.SealedBase(self._root, identity_of(self._root))
        carried = digest_of_file(self._carried)
        self._sealed = self._sealer.sealed(self._number, base, plan, carried, time.time_ns())
        return self._sealed

    def of_end(self, steps: int) -> bytes:
        """Return what says that the commit is done."""
        return self._sealer.end(self._sealed, steps)

    def check_root(self, fd: int) -> None:
        """Check that an open directory is the base that the commit began in.

        Raises:
            TrustError: it is another one.
        """
        problems = self._sealer.base_problems(self._sealed, seal.SealedBase(self._root, identity_of(fd)))
        if problems:
            raise TrustError(f"commit {self._number} is not finished here: {problems[0]}")


def examine(
    directory: bytes, base: Base, store: Store, *, machine_files: Sequence[bytes] = MACHINE_FILES
) -> Interrupted | None:
    """Return the interrupted commit of the session in ``directory``, None if there is none; changes
    nothing.

    Whatever lies there may have been put there by anybody.
    """
    commit = interrupted_commit(directory)
    if commit is None:
        return None
    number = int(os.path.basename(commit))
    sealed, text = (read_plainly(os.path.join(commit, name)) for name in (SEAL, PLAN))
    began = (began_ns(sealed) if sealed is not None else None) or _mtime_ns(os.path.join(commit, PLAN))
    undoes = read_undoes(commit)
    found = Interrupted(number, commit, base.root, began, (), undoes=undoes.commit if undoes is not None else None)
    try:
        if text is None:
            raise _MisfitError("its plan cannot be read")
        if sealed is None:
            raise _MisfitError("it has no seal, so nobody knows who planned it")
        sealer = _sealer(directory, machine_files)
        problems = sealer.problems(sealed, number, text, digest_of_file(os.path.join(commit, CARRIED)))
        if not problems and is_there(os.path.join(commit, CommitEnd.DONE.value)):
            problems = ["the note that it is done was changed"]
        if problems:
            raise _MisfitError(*problems)
        problems = sealer.base_problems(sealed, seal.SealedBase(base.root, identity_of(base.root)))
        if problems:
            raise _MendableError(*problems)
        plan = _checked(text, base)
        made = _what_was_made(commit)
    except _MisfitError as misfit:
        is_mendable = isinstance(misfit, _MendableError)
        return msgspec.structs.replace(found, problems=tuple(misfit.args), is_mendable=is_mendable)
    is_settled = is_there(os.path.join(commit, SETTLED))
    found = msgspec.structs.replace(found, is_settled=is_settled)
    problem = find_other_mount(plan, made.mounts)
    if problem:
        return msgspec.structs.replace(found, problems=(problem,), is_mendable=True, shown_by=plan)
    logged = min(len(step_log.read(commit)), len(plan.steps))
    done, is_exact = how_far(plan, base, commit, made)
    found = msgspec.structs.replace(
        found,
        done=done,
        is_exact=is_exact,
        way_back=plan if not is_settled else None,
        goes_back=is_there(os.path.join(commit, BACK)),
        seals=CommitSeals(sealer, number, base.root, commit, sealed),
    )
    obstacle = find_obstacle(plan, base, store, done=logged, is_settled=is_settled)
    if obstacle:
        return msgspec.structs.replace(found, problems=(obstacle,), is_mendable=True)
    inodes = {one.inode for one in made.made.values()}
    in_way = find_in_way(plan, base, done=logged, made=inodes) if not is_settled else ""
    return msgspec.structs.replace(found, plan=plan, in_way=in_way)


class _MisfitError(Exception):
    """Something does not fit; the arguments say what."""


class _MendableError(_MisfitError):
    """What does not fit is in base or in the store, or the state directory is another one: it may
    be put right.
    """


def _sealer(directory: bytes, machine_files: Sequence[bytes]) -> Sealer:
    try:
        return Sealer.open(directory, machine_files=machine_files)
    except FileNotFoundError:
        key = display(os.path.join(state_directory(), seal.KEY))
        raise _MendableError(f"there is no key of yours ({key}) that it could have been sealed with") from None
    except (YolofsError, OSError) as error:
        raise _MendableError(f"your key cannot be read ({error})") from None


def _checked(text: bytes, base: Base) -> Plan:
    """Return a sealed plan, if it is one for this base."""
    try:
        plan = Plan.decode(text)
    except YolofsError as error:
        raise _MisfitError(error.message) from None
    problem = find_problem(plan, base, closed=[state_directory()])
    if problem:
        raise _MendableError(problem)
    return plan


def _what_was_made(commit: bytes) -> Ready:
    """Return the identities that a commit has noted, without which neither way is safe.

    Empty if nothing was written yet, or if an earlier version made the commit, whose log has no
    identities either.
    """
    place = display(os.path.join(commit, MADE))
    try:
        ready = read_ready(commit)
        lines = step_log.read(commit) if ready is None else []
        knows_none = bool(lines) and not any(line.came or line.went for line in lines)
        if ready is None and has_begun(commit) and not knows_none:
            raise _MendableError(f"the note that it made before its first step is gone ({place})")
        return ready or Ready()
    except OSError as error:
        raise _MendableError(
            f"the note that it made before its first step cannot be read ({place}: {reason(error)})"
        ) from None


def _mtime_ns(path: bytes) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


# ---- giving it up


def list_contents(directory: bytes) -> list[str]:
    """Return a line for each thing of base in a commit's directory: its old path, and the one it
    was to get.

    The plan need not be trusted for that: nothing is done by it.
    """
    try:
        plan = Plan.decode(read_plainly(os.path.join(directory, PLAN)) or b"")
    except YolofsError:
        return []
    return list(_contents(plan, directory))


def _contents(plan: Plan, directory: bytes) -> Iterator[str]:
    targets = {step.number: step.path for step in plan.steps if isinstance(step, Place)}
    for step in plan.steps:
        number = getattr(step, "number", None)
        if number is None:
            continue
        if is_there(os.path.join(directory, b"replaced/%d" % number)):
            yield f"replaced/{number}\twas {_in(plan, step.path)}"
        if isinstance(step, Fetch) and is_there(os.path.join(directory, b"parked/%d" % number)):
            yield f"parked/{number}\twas kept by commit {step.commit}, and was to become {_in(plan, step.path)}"
        if not isinstance(step, Park):
            continue
        to = f"was {_in(plan, step.path)}, and was to become {_in(plan, targets.get(step.number, step.path))}"
        if is_there(os.path.join(directory, b"parked/%d" % number)):
            yield f"parked/{number}\t{to}"
        else:
            aside = b"%b%d" % (hidden_prefix(directory), number)
            places = [os.path.join(plan.root, above, aside) for above in _above(step.path)]
            yield from (f"{display(place)}\t{to}" for place in places if _is_seen(place))


def _is_seen(place: bytes) -> bool:
    """Tell whether something lies at a place in base, as far as this user may look."""
    try:
        return is_there(place)
    except PermissionError:
        return False


def _above(path: RelPath) -> Iterator[RelPath]:
    while path:
        path = split(path)[0]
        yield path


def _in(plan: Plan, path: RelPath) -> str:
    return display(os.path.join(plan.root, path))
