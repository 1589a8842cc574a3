"""Commits and aborts a session: both end its journal."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec

from yolofs.changes.changes import Change, compare
from yolofs.commit import CommitOutcome, execute, find_conflicts, plan_commit
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.execution import before_it_begins
from yolofs.commit.apply.given_ctimes import Arrived, PutInPlace
from yolofs.commit.apply.interrupts import no_interrupt
from yolofs.commit.apply.linking import Spare, is_spare_never
from yolofs.commit.apply.ready import Looks, looks_of
from yolofs.commit.apply.step_log import ObjectIdentity
from yolofs.commit.merge.git_indexes import indexes_unchanged_here
from yolofs.commit.merge.gone_from_base import paths_without_content
from yolofs.commit.plan.last_check import check_rest
from yolofs.commit.plan.link_changes import may_change_links
from yolofs.commit.plan.overridden_names import OverriddenName, survey
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split, split_state, takes_all
from yolofs.errors import ConflictError, RolledBackError, YolofsError
from yolofs.journal.journal import Journal
from yolofs.journal.records import Keep, Snapshot
from yolofs.os_errors import base_errors_said, reason_and_path
from yolofs.paths import RelPath
from yolofs.progress import Progress
from yolofs.registry.seal import Sealer
from yolofs.session.archive import CARRIED, note_ended_journal
from yolofs.session.attribution import runs_of
from yolofs.session.authors import authors_of
from yolofs.session.forced_files import read_forced, write_forced
from yolofs.session.history.commit_counts import note_counts, note_runs_of_commit
from yolofs.session.interrupted import CommitSeals
from yolofs.session.merge import marked_paths
from yolofs.session.session import Session
from yolofs.state.link_names import find_name_near
from yolofs.state.tree import Tree
from yolofs.store import restored
from yolofs.system.clock import coarse_clock_ns
from yolofs.system.plain_files import make_directory
from yolofs.system.syscalls import fresh_ctime_ns


class CommitResult(msgspec.Struct, frozen=True):
    """What a commit did."""

    number: int | None
    """Of the commit; what base had before lies in ``commits/NUMBER/``.  None if there was nothing
    to commit.
    """
    steps: int
    """How many changes it took."""
    left_out: dict[RelPath, tuple[str, ...]]
    """What could not be carried over, as
    :attr:`yolofs.commit.apply.execution.CommitOutcome.left_out`.
    """
    held_back: tuple[HeldBack, ...] = ()
    """What was selected and stays staged all the same."""
    unfinished: str = ""
    """Why its journal could not be put away; the next command that opens the session does that
    first.
    """
    found: str = ""
    """Files that the host had put in the way of an interrupted commit, with their place now; empty
    if none.
    """


def split_staged(
    session: Session, selection: Selection | None, *, tree: Tree | None = None, may_leave_times: bool = True
) -> Split:
    """Return what a commit would take, and what it would leave staged; without ``selection`` it
    takes everything.

    ``tree`` is the present state, if the caller has it already: replaying the journal is a tenth of
    a commit.  ``may_leave_times`` is as of :func:`~yolofs.commit.select.split.split_state`; not
    with an earlier state, the rest of which is composed.
    """
    tree = tree if tree is not None else session.state()
    if selection is None or (not selection.unnamed and (selection.is_everything or takes_all(tree, selection))):
        return Split(tree, (), ())
    authors = authors_of(session.live_changes)
    return split_state(tree, session.base, session.store, selection, authors, may_leave_times=may_leave_times)


class BaseLook(NamedTuple):
    """What base has where a commit would change it."""

    names: list[OverriddenName]
    conflicts: list[RelPath]
    """The paths of the view at which base changed meanwhile, or that have the marks of a merge,
    sorted.
    """
    marked: list[RelPath]
    """Those that have marks."""
    unchanged: frozenset[RelPath]
    """Those at which the view has nothing of its own, so that base's version is to be taken."""
    without_content: frozenset[RelPath]
    """Those whose content was in base alone, and is gone from there: nobody can take what is
    staged.
    """


def look_at_base(session: Session, split: Split) -> BaseLook:
    """Return what base has where a commit of ``split`` would change it.

    Raises:
        OSError: base cannot be read.
    """
    names = list(survey(split.taken, session.base))
    known, unset = restored.read(session.directory), restored.read_unset(session.directory)
    conflicts = find_conflicts(split.taken, session.base, session.store, names=names, restored=known, unset=unset)
    marked = marked_paths(session, split.taken)
    unchanged = indexes_unchanged_here(split.taken, session.base, session.store, conflicts)
    without_content = paths_without_content(split.taken, session.base, session.store, conflicts)
    return BaseLook(names, sorted({*conflicts, *marked}), marked, unchanged, without_content)


def conflict_error(looked: BaseLook) -> ConflictError:
    """Return the error for paths at which base has changed under the commit, or a merge has left
    marks.
    """
    conflicts = [path for path in looked.conflicts if path not in set(looked.marked)]
    conflicts = [path for path in conflicts if path not in looked.unchanged] or conflicts
    if not conflicts:
        return marks_error(looked.marked)
    is_one = len(conflicts) == 1
    if looked.without_content.issuperset(conflicts):
        return ConflictError(
            f"the content of {len(conflicts)} path{'' if is_one else 's'} was in base alone, and is gone from there, so"
            " nothing is committed",
            paths=conflicts,
            hint="bring that back, or drop what is staged there: yolofs commit --theirs",
        )
    return ConflictError(
        f"base has changed at {len(conflicts)} path{'' if is_one else 's'} since {'it' if is_one else 'they'}"
        " changed in the view, so nothing is committed",
        paths=conflicts,
        hint="yolofs commit --merge merges text; --ours replaces what base has, and keeps that; --theirs drops what is"
        " staged there; yolofs diff -- PATH shows the difference; yolofs commit PATH… takes other paths alone",
    )


def marks_error(marked: Sequence[RelPath]) -> ConflictError:
    """Return the error for files with marks of a merge."""
    what = "1 file has" if len(marked) == 1 else f"{len(marked)} files have"
    return ConflictError(
        f"{what} the marks of a merge (<<<<<<< staged … >>>>>>> base) in the view, so nothing is committed",
        paths=list(marked),
        hint='take them out: yolofs run -- "$EDITOR" PATH; then: yolofs commit; or drop what is staged: yolofs commit'
        " --theirs PATH",
    )


def commit(
    session: Session,
    *,
    selection: Selection | None = None,
    split: Split | None = None,
    looked: BaseLook | None = None,
    changes: Sequence[Change] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    going_back: Callable[[], Progress | None] = lambda: None,
) -> CommitResult:
    """Apply what is staged to base, and start another journal; the old one is kept with the commit.

    With a ``selection`` only that part of it: the rest stays staged, as the first records of the
    new journal and its first generation.  The view is the same before and after.  ``split`` is what
    :func:`split_staged` made of the selection since this session was opened, and ``looked`` what
    :func:`look_at_base` found then; without them both are asked here.  ``changes`` are those that a
    comparison found in what is taken.  If there are none, it is committed only for hard links that
    differ: times of directories and links, and what was written back as it was, stay staged.

    ``force`` overrides conflicts: what changed in base since it was copied up is replaced.  Blocks.
    A mount of the session must be paused meanwhile.  ``going_back`` is called if the commit is
    taken back, and returns what is told how far that has come.

    Raises:
        ConflictError: paths changed in base; nothing was done.
        YolofsError: base would not have the names that the view shows; nothing was done.
        CommitError: a step failed half way, and nothing is lost; or an interrupted commit has to be
            finished first (:mod:`yolofs.session.ending_interrupted`).
        NotPreparedError: the host takes something away that the plan needs; nothing was done.
        TrustError: the state directory is not the user's alone, or a commit was interrupted that
            did not begin here; nothing was done.
    """
    session.check_no_interrupted_commit()
    with base_errors_said(session.base.root, without=session.directory, again="yolofs commit"):
        split = split if split is not None else split_staged(session, selection)
        looked = looked if looked is not None else look_at_base(session, split)
        names, conflicts = looked.names, looked.conflicts
        if conflicts and not force:
            raise conflict_error(looked)
        plan = plan_commit(split.taken, session.base, session.store, names=names)
        if not plan.steps or (changes is not None and not changes and not may_change_links(plan, session.base)):
            return CommitResult(None, 0, {}, split.held_back)
        if split.rest:
            check_rest(plan, session.state(), session.base, Tree(split.rest), split.stands_for)
        done = changes if changes is not None else compare(Tree(), split.taken, session.base, session.store)
    number = session.next_commit()
    directory = session.commit_directory(number)
    changed = frozenset(conflicts)

    def carry_out(is_spare: Spare) -> CommitOutcome:
        with before_it_begins(directory, plan.root):
            seals = CommitSeals(Sealer.open(session.directory, make=True), number, plan.root, directory)
            make_directory(directory)
            if split.rest:
                _write_rest(directory, number, split.rest)
            note_ended_journal(directory, session.journal.path)
            note_counts(directory, done)
            note_runs_of_commit(directory, runs_of(done, session.journal, session.live_changes))
            if conflicts:
                here = [name.natural_st for name in names if name.natural_st is not None and name.path in changed]
                write_forced(directory, (session.base.on_disk(st.st_dev, st.st_ino) for st in here))
        return execute(
            plan,
            session.store,
            parking=directory,
            seals=seals,
            restored=lambda *found: note_restored(session, directory, *found),
            arrived=noting_arrivals(session, is_needed=bool(split.rest)),
            progress=progress,
            going_back=going_back,
            is_spare=is_spare,
            seen=_looks_seen(names, changed),
        )

    try:
        outcome = carry_out(_spare(session, split.rest))
    except RolledBackError as error:
        if not error.may_not_link:
            raise
        outcome = carry_out(is_spare_never)  # quotas by project, for example: nothing is left of the first attempt
    unfinished = put_away(session, directory)
    if not (split.rest or unfinished):
        with contextlib.suppress(OSError):  # nothing is staged that it could matter to
            restored.keep_for_undos(session.directory)
    return CommitResult(number, outcome.steps, outcome.left_out, split.held_back, unfinished)


def _looks_seen(names: Sequence[OverriddenName], replaced: Container[RelPath]) -> dict[FileNumbers, Looks]:
    """Return what each regular file of base was when it was looked at for drift.

    Left out are those that the user has said are to be ``replaced``, whatever the host makes of
    them.
    """
    known = {
        (st.st_dev, st.st_ino): looks_of(st)
        for name in names
        for st in (name.natural_st, name.source_st)
        if st is not None and stat.S_ISREG(st.st_mode)
    }
    for name in names:
        if name.natural_st is not None and name.path in replaced:
            known.pop((name.natural_st.st_dev, name.natural_st.st_ino), None)
    return known


def _spare(session: Session, rest: Sequence[Keep]) -> Spare:
    """Return what tells which store inodes a commit may put into base themselves.

    They are those that nothing that stays staged shows and nobody has open: through an open one,
    base could be written to.
    """
    if session.in_use is None:
        return is_spare_never
    needed = session.in_use.union(record.ino for record in rest if record.ino is not None)
    return lambda ino: ino not in needed


def put_away(session: Session, directory: bytes) -> str:
    """Put the journal of a commit that is done away; return why not, if that fails: its command is
    to say both.
    """
    with no_interrupt():
        try:
            session.put_away(os.path.join(directory, b"journal"))
        except YolofsError as error:
            return error.message
        except OSError as error:
            return reason_and_path(error)
    return ""


def note_restored(session: Session, directory: bytes, found: set[ObjectIdentity], untimed: set[ObjectIdentity]) -> None:
    """Note the files that taking a commit back has put in their places, except for those that the
    host had changed.

    ``untimed``: those of them that could not get their times back.
    """
    forced = read_forced(directory)
    if forced is None:  # all of it may be the host's then
        return
    base = session.base
    ours = {one for one in found if not forced.has(base.on_disk(one.device, one.inode))}
    restored.add(session.directory, {one.inode_ctime for one in ours})
    restored.add_unset(session.directory, {one.inode_ctime for one in ours & untimed})


def _write_rest(directory: bytes, number: int, rest: tuple[Keep, ...]) -> None:
    """Write the journal that is to follow this commit, durably, before anything is done to base."""
    with Journal.create(os.path.join(directory, CARRIED)) as journal:
        journal.append(*rest, Snapshot(coarse_clock_ns(), b"left by commit %d" % number))
        journal.sync()


def note_arrived(session: Session, came: PutInPlace) -> None:
    """Note what a commit has put in place, so that it is not taken for the host's later.

    A file that had lost names when the commit was interrupted is looked for.

    Raises:
        OSError: it cannot be noted.
    """
    inode_ctimes = set(came.inode_ctimes)
    for before in came.files_that_lost_names:
        file = session.base.on_disk(before.device, before.inode)
        name = find_name_near(session.base, [file], RelPath(before.near))
        st = session.base.look(name)
        if name is not None and st is not None and before.is_same(st):
            inode_ctimes.add((before.inode, fresh_ctime_ns(session.base.path(name))))
    restored.add(session.directory, inode_ctimes)
    restored.add_unset(session.directory, {inode_ctime for inode_ctime in inode_ctimes if inode_ctime[0] in came.unset})


def noting_arrivals(session: Session, *, is_needed: bool) -> Arrived | None:
    """Return a function that notes a commit's new things, so that none is taken for the host's
    later.

    None if it is not needed: to know what has come means reading the whole log.
    """
    return (lambda came: note_arrived(session, came)) if is_needed else None


def abort(session: Session) -> None:
    """Drop everything that is staged, snapshots too: the view is base again.

    A mount of the session must be paused meanwhile.  Store inodes that its open files still show go
    with them, or when the session is opened next.

    Raises:
        YolofsError: a commit was interrupted.
    """
    session.check_no_interrupted_commit()
    session.put_away(None)
