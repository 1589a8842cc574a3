"""Finishes a commit that was interrupted, takes it back, or gives it up."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple

from yolofs.commit import resume
from yolofs.commit.apply.commit_directory import write_new
from yolofs.commit.apply.recovery.back_in_place import HostChangesMeanwhile
from yolofs.commit.apply.recovery.taking_back import found_text, outcome_text, roll_back
from yolofs.commit.plan.plan import Plan, Remove, Rewrite
from yolofs.commit.undo.applied import Applied
from yolofs.errors import YolofsError
from yolofs.paths import RelPath, absolute, display, in_shell
from yolofs.progress import Progress
from yolofs.registry.seal import MACHINE_FILES
from yolofs.session.archive import CARRIED
from yolofs.session.commit import CommitResult, note_restored, noting_arrivals, put_away
from yolofs.session.interrupted import CONTENTS, examine, list_contents
from yolofs.session.session import Session
from yolofs.session.undo_notes import read_undoes
from yolofs.system.plain_files import is_there
from yolofs.text.enumeration import some_of


def finish_interrupted(
    session: Session, *, progress: Progress | None = None, machine_files: Sequence[bytes] = MACHINE_FILES
) -> CommitResult | None:
    """Finish the commit that a crash or an error interrupted; None if there was none.  Blocks.

    Until then base is neither as before nor as the view showed it, so nothing else can be done
    first.  The user has been asked.

    Raises:
        TrustError: it did not begin here, or what it needs is not there any more; nothing is done.
        CommitError: a step fails (again).
    """
    found = examine(session.directory, session.base, session.store, machine_files=machine_files)
    if found is None:
        return None
    plan = found.plan
    if plan is None or found.seals is None:
        raise found.error
    outcome = resume(
        plan,
        session.store,
        parking=found.directory,
        seals=found.seals,
        check_root=found.seals.check_root,
        arrived=noting_arrivals(
            session,
            is_needed=read_undoes(found.directory) is not None or is_there(os.path.join(found.directory, CARRIED)),
        ),
        progress=progress,
    )
    session.store.elsewhere = {}
    unfinished = put_away(session, found.directory)
    told = [found_text(outcome.found, found.root, found.directory), _edits_kept(found.number, found.directory, plan)]
    text = "; ".join(filter(None, told))
    return CommitResult(found.number, outcome.steps, outcome.left_out, unfinished=unfinished, found=text)


def _edits_kept(number: int, directory: bytes, plan: Plan) -> str:
    """Return what to say of files that the host had edited before an interrupted commit replaced,
    removed or wrote over them; empty if there are none.
    """
    applied = Applied(number, directory, plan)
    paths: list[RelPath] = []
    for step in plan.steps:
        if isinstance(step, Remove | Rewrite) or getattr(step, "replaced", None) is not None:
            slot: int = getattr(step, "number")  # noqa: B009 - each of these has one
            kept = applied.kept(slot)
            if kept is not None and not applied.is_kept_as_it_was(slot, kept):
                paths.append(step.path)
    if not paths:
        return ""
    names = [display(absolute(plan.root, path)) for path in paths]
    again = f"yolofs undo {number} {in_shell(absolute(plan.root, paths[0]))}"
    return f"the host had edited {some_of(names, 1)} meanwhile; that comes back by: {again}"


class TakenBack(NamedTuple):
    """A commit that was taken back."""

    number: int
    meanwhile: HostChangesMeanwhile
    """What the host had done meanwhile."""
    root: bytes
    """Of base."""
    directory: bytes
    """Where that lies, if there is any; else it is gone."""

    @property
    def text(self) -> str:
        """What has become of base."""
        return outcome_text(self.meanwhile, self.root, self.directory)


def roll_back_interrupted(
    session: Session, *, progress: Progress | None = None, machine_files: Sequence[bytes] = MACHINE_FILES
) -> TakenBack | None:
    """Take the commit back that a crash or an error interrupted; None if there was none.  Blocks.

    Base is as it was before it, and all stays staged.  A mount of the session must be paused
    meanwhile.

    Raises:
        TrustError: it did not begin here; nothing is done.
        CommitError: a step cannot be undone.
    """
    found = examine(session.directory, session.base, session.store, machine_files=machine_files)
    if found is None:
        return None
    if found.way_back is None or found.seals is None:
        raise found.error_of_way_back
    meanwhile = roll_back(
        found.way_back,
        session.store,
        parking=found.directory,
        check_root=found.seals.check_root,
        restored=lambda *restored: note_restored(session, found.directory, *restored),
        progress=progress,
    )
    return TakenBack(found.number, meanwhile, found.root, found.directory)


def discard_interrupted(session: Session) -> bytes | None:
    """Give an interrupted commit up, and return its directory; None if there was none.

    Base stays as it is, and no file is removed or moved.  What base had, and what was on its way,
    stays in the commit's directory.  A list there has the old path of each thing, and the content
    of the store. The journal goes there, too, as what is staged is about base as it was; the view
    is base again. A mount of the session must be paused meanwhile.

    Raises:
        TrustError: the state directory is not the user's alone.
    """
    directory = session.interrupted_commit()
    if directory is None:
        return None
    lines = [*list_contents(directory), *_staged(session)]
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, CONTENTS))
    write_new(directory, CONTENTS, "".join(f"{line}\n" for line in lines).encode())
    session.give_up(int(os.path.basename(directory)))
    return directory


def _staged(session: Session) -> list[str]:
    """Return one line for each staged file and the name that it had in the view; none if the
    journal is damaged.
    """
    try:
        staged = session.state().staged
    except YolofsError:
        return []
    place = session.base.path
    return [
        f"{display(session.store.path(ino))}\twas staged as {display(place(entry.path()))}"
        for ino in sorted(staged)
        for entry in staged[ino].names
    ]
