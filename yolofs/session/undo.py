"""Undoing a commit: base becomes what it was before it, and what the commit had applied is staged
again.

An undo is a commit of its own, of the :mod:`yolofs.commit.undo.inverse` of the other one.  So it
has the same phases, may be finished or taken back if it is interrupted, and may be undone.  The
view is the same before and after.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import msgspec

from yolofs.changes.changes import compare
from yolofs.commit import execute, plan_commit
from yolofs.commit.apply.commit_directory import PLAN, write_new
from yolofs.commit.apply.copy_log import FileNumbers
from yolofs.commit.apply.execution import before_it_begins
from yolofs.commit.apply.places import SEAL
from yolofs.commit.apply.ready import Looks, looks_of
from yolofs.commit.apply.step_log import ObjectIdentity
from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.plan.plan import Create, Fetch, Plan
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.compose import compose, foretell
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.staged_anew import ComposedRest
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.git_indexes_left import note_indexes
from yolofs.commit.undo.homes import find_homes
from yolofs.commit.undo.inverse import invert
from yolofs.commit.undo.kept_texts import keep_texts
from yolofs.commit.undo.left_by_commit import without_moves_taken_back
from yolofs.commit.undo.made_anew import MadeAnew
from yolofs.commit.undo.undoable_names import Inverse
from yolofs.errors import CommitError, ConflictError, NotPreparedError, RolledBackError, TrustError, YolofsError
from yolofs.journal.journal import Journal
from yolofs.journal.records import ChangeRecord as Recorded
from yolofs.journal.records import Keep, Snapshot
from yolofs.paths import RelPath, StoreIno, display
from yolofs.progress import Progress
from yolofs.registry.seal import Sealer, read_plainly
from yolofs.session.archive import CARRIED, commit_numbers, note_ended_journal
from yolofs.session.authors import authors_of
from yolofs.session.commit import note_arrived, put_away
from yolofs.session.generations import States
from yolofs.session.history.commit_counts import note_counts
from yolofs.session.history.ended_commits import EndedCommit, ended_commits, named
from yolofs.session.history.kept_size import forget_sizes
from yolofs.session.history.other_commits import OtherCommits, earlier_times, later_commits, made_anew_since
from yolofs.session.interrupted import CommitSeals
from yolofs.session.session import Session
from yolofs.session.undo_changes import changes_of_undo
from yolofs.session.undo_notes import UNDOES, Undoes
from yolofs.session.undo_part import part_of_undo
from yolofs.state.tree import Tree
from yolofs.store import restored
from yolofs.store.base import Base
from yolofs.store.scratch_store import scratch_store
from yolofs.store.store import Store
from yolofs.system.clock import coarse_clock_ns
from yolofs.system.plain_files import make_directory
from yolofs.system.work_directories import work_directory

_LOOKED_AT = 8
"""How many commits are read at first to find the last one that may be undone."""


class UndoResult(msgspec.Struct, frozen=True):
    """What an undo did."""

    number: int | None
    """Of the undo, which is a commit; None if there was nothing to undo."""
    undone: int
    """The commit that it undid."""
    steps: int
    is_whole: bool
    """Whether nothing of the commit is left in base."""
    stays: dict[RelPath, str]
    """What could not be taken back, by path in base, and why."""
    held_back: tuple[HeldBack, ...]
    """What was selected and stays, as it goes together with what was not."""
    copies: list[RelPath]
    """Where a hard link came back as a file of its own."""
    as_now: list[RelPath]
    """Paths that came back with the content they had at the undo, not with base's from before the
    commit.
    """
    left_out: dict[RelPath, tuple[str, ...]]
    """As :attr:`yolofs.commit.apply.execution.CommitOutcome.left_out`."""
    unfinished: str = ""
    """Why the journal could not be put away, though it is done; the next command does that."""


class PreparedUndo(msgspec.Struct):
    """An undo that is ready to be shown or done."""

    applied: Applied
    inverse: Inverse
    made_anew: MadeAnew
    tree: Tree
    """What is committed."""
    view: Tree
    """What is staged before."""
    drifted: list[RelPath]
    """The paths of base, of what was selected, that the host has changed and that are taken back by
    force.
    """
    stays: dict[RelPath, str]
    """What cannot be taken back of what was selected, by path in base, and why."""
    held_back: tuple[HeldBack, ...]
    copies: list[RelPath]
    as_now: list[RelPath]
    """These two as in :class:`Inverse`, of what was selected."""
    is_whole: bool
    """Whether nothing of the commit stays."""
    store: KeptAndStore
    seen: dict[FileNumbers, Looks]
    """The looks of the files that the commit had left in base, from before these were checked for
    drift.
    """


def choose_commit(session: Session, number: int | None) -> EndedCommit:
    """Return the commit to undo: that with a number, or the last one that is not undone and no
    undo.

    The undo of an undo applies a commit again, and counts as one.

    Raises:
        YolofsError: there is none, or it cannot be undone.
    """
    if number is None:
        for one in _newest_first(session):
            is_open = not (one.is_given_up or one.is_undone or one.takes_back)
            if is_open and (one.is_damaged or _has_something_to_undo(session, one)):
                return one
        raise YolofsError("there is no commit to undo", hint="yolofs commits --all lists what there is")
    found = next((one for one in ended_commits(session, since=number) if one.number == number), None)
    if found is None and 0 < number < session.next_commit():
        raise YolofsError(f"commit {number} is no longer kept, so it cannot be undone", hint="yolofs commits")
    if found is None:
        raise YolofsError(f"there is no commit {number}", hint="yolofs commits")
    if found.is_given_up:
        raise YolofsError(
            f"commit {number} was given up half way, so nobody knows which part of it is in base",
            hint=f"what base had lies in {display(os.path.join(found.directory, b'replaced'))}",
        )
    if found.is_undone:
        raise YolofsError(
            f"commit {number} is undone already, by {named(found.undone_by)}",
            hint=_what_became_of(session, found),
        )
    return found


def _what_became_of(session: Session, undone: EndedCommit) -> str:
    if undone.takes_back:
        return "what it had taken back is in base again: yolofs commits"
    if session.next_commit() > max(undone.undone_by) + 1:
        return "what it had applied was staged again then, and a later commit may have applied it: yolofs commits"
    return "what it had applied is staged: yolofs status; yolofs commit applies it again"


def _newest_first(session: Session) -> Iterator[EndedCommit]:
    """Yield the commits that have ended, newest first, and read few more than are asked for."""
    numbers = sorted(commit_numbers(session.directory), reverse=True)
    begin, count = 0, _LOOKED_AT
    while begin < len(numbers):
        part = numbers[begin : begin + count]
        commits = ended_commits(session, since=part[-1])
        yield from (one for one in reversed(commits) if one.number <= part[0])
        begin, count = begin + count, 2 * count


def _has_something_to_undo(session: Session, commit: EndedCommit) -> bool:
    """Tell whether anything of a commit is left that can be taken back."""
    is_last = commit.number + 1 == session.next_commit()
    if is_last or not (commit.undone_by or commit.undoes is not None):
        return True
    with work_directory(session.directory, "undo") as directory:
        try:
            into = scratch_store(os.path.join(directory, b"files"), session.store)
            prepared = prepare_undo(session, commit, force=True, into=into)
            return bool(plan_commit(prepared.tree, session.base, prepared.store).steps)
        except (YolofsError, OSError):
            return True


def prepare_undo(
    session: Session,
    commit: EndedCommit,
    *,
    selection: Selection | None = None,
    force: bool = False,
    into: Store | None = None,
    made: list[StoreIno] | None = None,
) -> PreparedUndo:
    """Return what undoing a commit comes to; with a ``selection`` only that part of it.

    Its store inodes are made in the session's store, or in ``into`` for a mere look; they are added
    to ``made``.

    Raises:
        ConflictError: the host has changed what the commit left, and ``force`` is not given.
        TrustError: the commit was not made here.
        YolofsError: its plan is damaged, or nothing of it can be taken back.
        OSError: base or what is kept cannot be read, or a store inode not be made.
    """
    plan = _checked_plan(session, commit)
    applied = Applied(commit.number, commit.directory, plan)
    others = OtherCommits(session, commit.number)
    anew, later = made_anew_since(others), later_commits(others)
    if any(one.undoes is not None for one in later):
        applied = without_moves_taken_back(applied, session.base, anew, later)
    seen = _looks_seen(applied, session.base)
    inverse = invert(
        applied,
        session.base,
        session.store,
        into=into,
        later=later,
        earlier_times=earlier_times(others),
        restored=restored.read_all(session.directory),
        anew=anew,
        force=force,
    )
    if made is not None:
        made += inverse.numbers
    store = KeptAndStore(into or session.store, os.path.dirname(commit.directory))
    if selection is not None and not selection.is_everything:
        selection = selection.with_other_names(compare(Tree(), inverse.tree(), session.base, store))
    view = session.state()
    part = part_of_undo(session, inverse, view, selection, into or session.store, store)
    if force:  # these are taken back whatever the host makes of them
        for path in inverse.drifted:
            if (st := session.base.look(path)) is not None:
                seen.pop((st.st_dev, st.st_ino), None)
    matters = _mattering(selection, applied)
    drifted = [path for path in inverse.drifted if matters(path)]
    if drifted and not force:
        raise _drift_error(commit.number, sorted(drifted))
    stays = {path: why for path, why in inverse.stays.items() if matters(path)}
    stays |= part.untold
    as_now, copies = (
        [path for path in paths if path not in stays and (selection is None or selection.has(path))]
        for paths in (inverse.as_now, inverse.copies)
    )
    return PreparedUndo(
        applied,
        inverse,
        anew,
        part.taken,
        view,
        drifted,
        stays,
        part.held_back,
        copies,
        as_now,
        part.is_whole and not inverse.stays and (force or not inverse.drifted),
        store,
        seen,
    )


def _looks_seen(applied: Applied, base: Base) -> dict[FileNumbers, Looks]:
    """Return what each regular file of base is at the paths of a commit."""
    paths = {path for step in applied.plan.steps for path in (step.path, applied.moves.after(step.path)) if path}
    found = filter(None, map(base.look, paths))
    return {(st.st_dev, st.st_ino): looks_of(st) for st in found if stat.S_ISREG(st.st_mode)}


def _only_of_selection(
    left_out: dict[RelPath, tuple[str, ...]], selection: Selection | None
) -> dict[RelPath, tuple[str, ...]]:
    return {path: what for path, what in left_out.items() if selection is None or selection.has(path)}


def _mattering(selection: Selection | None, applied: Applied) -> Callable[[RelPath], bool]:
    """Return what tells whether a path matters to a selection: what lies there is selected, or
    something in it, by this path or by that which it had before the commit.
    """
    if selection is None:
        return lambda _: True
    homes = {step.path: step.home for step in applied.plan.of(Create)}

    def matters(path: RelPath) -> bool:
        places = filter(None, (path, applied.moves.before(path), homes.get(path)))
        return any(selection.has(one) or selection.has_some_in(one) for one in places)

    return matters


def _drift_error(number: int, paths: list[RelPath]) -> ConflictError:
    count = "1 path" if len(paths) == 1 else f"{len(paths)} paths"
    return ConflictError(
        f"base has changed at {count} since commit {number}, so nothing is undone",
        paths=paths,
        hint=f"yolofs undo {number} PATH... takes back other paths alone; "
        f"yolofs undo {number} --force replaces what base has, and keeps that",
    )


def _checked_plan(session: Session, commit: EndedCommit) -> Plan:
    """Return the plan of a commit that this user made, in this session, over this base."""
    sealed, text = (read_plainly(os.path.join(commit.directory, name)) for name in (SEAL, PLAN))
    problems = ["its seal or its plan cannot be read"]
    if sealed is not None and text is not None:
        problems = Sealer.open(session.directory).problems(sealed, commit.number, text, has_ended=True)
        if commit.is_damaged:
            problems.append("what says that it was done is damaged, or gone")
    if problems:
        raise TrustError(
            f"commit {commit.number} is not undone: {problems[0]}",
            hint=f"what base had lies in {display(os.path.join(commit.directory, b'replaced'))}",
        )
    assert text is not None
    plan = Plan.decode(text)
    if plan.root != session.base.root:
        raise TrustError(
            f"commit {commit.number} was made to {display(plan.root)}, and the session's base is"
            f" {display(session.base.root)}",
            hint=f"what base had lies in {display(os.path.join(commit.directory, b'replaced'))}",
        )
    return plan


def undo(
    session: Session,
    commit: EndedCommit,
    *,
    selection: Selection | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> UndoResult:
    """Undo a commit, and start another journal with what is staged then.  Blocks.

    A mount of the session must be paused meanwhile.

    Raises:
        ConflictError, TrustError, YolofsError: as :func:`prepare_undo`; nothing was done.
        NotPreparedError: it could not be prepared; nothing was done.
        RolledBackError: it failed, and base is as it was before.
        CommitError: it failed half way, and nothing is lost.
    """
    session.check_no_interrupted_commit()
    session.skip_named_numbers()
    made: list[StoreIno] = []
    try:
        result = _undo(session, commit, selection, made, progress, force=force)
    except (NotPreparedError, RolledBackError) as error:
        _remove_inodes(session.store, made)
        error.message = error.message.replace("the commit was", f"the undo of commit {commit.number} was", 1)
        error.hint = error.hint.replace("commit other paths", "undo other paths")
        error.hint = error.hint.replace("yolofs commit", f"yolofs undo {commit.number}")
        raise
    except CommitError:  # what is half done needs them
        raise
    except YolofsError:
        _remove_inodes(session.store, made)
        raise
    if result.number is None:
        _remove_inodes(session.store, made)
    return result


def _remove_inodes(store: Store, numbers: Sequence[StoreIno]) -> None:
    for ino in numbers:
        store.remove(ino)


def _undo(
    session: Session,
    commit: EndedCommit,
    selection: Selection | None,
    made: list[StoreIno],
    progress: Progress | None,
    *,
    force: bool,
) -> UndoResult:
    """Undo a commit; the store inodes that are made for it are added to ``made``."""
    number = session.next_commit()
    directory = session.commit_directory(number)
    with before_it_begins(directory, session.base.root):
        prepared = prepare_undo(session, commit, selection=selection, force=force, made=made)
        inverse = prepared.inverse
        plan = plan_commit(prepared.tree, session.base, prepared.store)
        stays, held_back = prepared.stays, prepared.held_back
        result = UndoResult(
            None, commit.number, 0, prepared.is_whole, stays, held_back, prepared.copies, prepared.as_now, {}
        )
        if not plan.steps:
            return result
        composed = _left_staged(session, commit, prepared, made)
        seals = CommitSeals(Sealer.open(session.directory, make=True), number, plan.root, directory)
        make_directory(directory)
        forget_sizes(session.directory, {step.commit for step in plan.steps if isinstance(step, Fetch)})
        note = Undoes(
            commit.number,
            prepared.is_whole,
            sorted(inverse.numbers),
            list(commit.undone_by),
            commit.takes_back,
            inverse.directories_anew,
        )
        write_new(directory, UNDOES, msgspec.json.encode(note))
        note_ended_journal(directory, session.journal.path)
        note_indexes(directory, plan, os.path.dirname(directory))
        note_counts(directory, changes_of_undo(prepared.tree, session.base, prepared.store))
        if composed.records:
            _write_carried(directory, commit, composed.records)
    outcome = execute(
        plan,
        prepared.store,
        parking=directory,
        seals=seals,
        restored=lambda *found: _note_restored(session, *found),
        arrived=lambda came: note_arrived(session, came),
        progress=progress,
        seen=prepared.seen,
    )
    unfinished = put_away(session, directory)
    return msgspec.structs.replace(
        result,
        number=number,
        steps=outcome.steps,
        left_out=_only_of_selection(inverse.left_out, selection) | composed.left_out | outcome.left_out,
        unfinished=unfinished,
    )


def _note_restored(session: Session, found: set[ObjectIdentity], untimed: set[ObjectIdentity]) -> None:
    """Note the files that taking an undo back has put in their places; ``untimed``: those of them
    that could not get their times back.
    """
    restored.add(session.directory, {one.inode_ctime for one in found})
    restored.add_unset(session.directory, {one.inode_ctime for one in untimed})


def _left_staged(session: Session, commit: EndedCommit, prepared: PreparedUndo, made: list[StoreIno]) -> ComposedRest:
    """Return what is staged when the commit is undone, so that the view stays as it is."""
    earlier = _changes_of(session, commit)
    authors = authors_of(lambda: chain(earlier, session.live_changes()))
    composed = compose(
        prepared.tree,
        prepared.view,
        session.base,
        session.store,
        os.path.dirname(commit.directory),
        known=_store_inodes_in_base(prepared.applied, session.base, session.store),
        homes=find_homes(prepared.applied, session.base, prepared.tree, prepared.made_anew),
        sign=authors.sign,
        may_part=True,
    )
    made += composed.numbers
    keep_texts(composed.records, prepared.tree, prepared.store, session.store)
    if composed.numbers:  # copies of what base is about to lose
        session.store.sync()
    return composed


def check_left_staged(session: Session, prepared: PreparedUndo, into: Store) -> None:
    """Check, before anything is done, that what is to stay staged can be told; ``into``: as for
    :func:`prepare_undo`.

    Raises:
        HardLinksError: it cannot; :func:`undo` would refuse, too.
        OSError: base cannot be read.
    """
    commits = os.path.dirname(prepared.applied.directory)
    homes = find_homes(prepared.applied, session.base, prepared.tree, prepared.made_anew)
    foretell(prepared.tree, prepared.view, session.base, into, commits, homes=homes, may_part=True)


def _changes_of(session: Session, commit: EndedCommit) -> list[Recorded]:
    """Return the changes that led to a commit; they tell which runs made them.  None if its journal
    is damaged.
    """
    path = os.path.join(commit.directory, b"journal")
    try:
        with contextlib.closing(Journal.open(path, read_only=True)) as journal:
            return list(States(session.directory, session.base, session.store, journal).live_changes())
    except (YolofsError, OSError):
        return []


def _write_carried(directory: bytes, undone: EndedCommit, records: Sequence[Keep]) -> None:
    """Write the journal that is to follow, durably: what is staged when the commit is undone."""
    with Journal.create(os.path.join(directory, CARRIED)) as journal:
        did = b"left" if undone.takes_back else b"staged again"
        name = b"%b by the undo of commit %d" % (did, undone.number)
        journal.append(*records, Snapshot(coarse_clock_ns(), name))
        journal.sync()


def _store_inodes_in_base(applied: Applied, base: Base, store: Store) -> dict[RelPath, StoreIno]:
    """Return the store inodes that equal base's files, by path: the commit was made from them."""
    known: dict[RelPath, StoreIno] = {}
    for index, step in enumerate(applied.plan.steps):
        if not isinstance(step, Create):
            continue
        st = base.look(step.path)
        came = applied.came(index)
        if st is None or st.st_nlink > 1 or came is None or not came.may_be(base.on_disk(st.st_dev, st.st_ino)):
            continue
        try:
            source = store.lstat(step.ino)
        except FileNotFoundError:
            continue
        looks = [(one.st_size, one.st_mtime_ns, one.st_mode, one.st_uid, one.st_gid) for one in (st, source)]
        if looks[0] == looks[1] and applied.is_unchanged(index, st):
            known[step.path] = step.ino
    return known
