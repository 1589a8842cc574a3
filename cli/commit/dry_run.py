"""What ``yolofs commit --dry-run`` and ``--script`` print."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator

import msgspec

from yolofs.cli.commit.commit_preview import CommitPreview, preview_commit
from yolofs.cli.commit.commit_request import CommitRequest
from yolofs.cli.commit.report import (
    check_named,
    emit_taken,
    end_without_success_if,
    say_stays,
    say_unchanged,
    warn_of_cut_links,
)
from yolofs.cli.commit.settling import ConflictRequest, SettledConflicts
from yolofs.cli.output import emit, emit_bytes, say
from yolofs.cli.project.project import reading_whole
from yolofs.commit import plan_commit
from yolofs.commit.plan.link_changes import may_change_links
from yolofs.commit.plan.plan_text import plan_lines
from yolofs.commit.plan.script import script
from yolofs.commit.select.selection import Selection
from yolofs.os_errors import base_errors_said
from yolofs.paths import Generation, RelPath, is_below
from yolofs.session.commit import conflict_error, look_at_base, marks_error
from yolofs.session.session import Session
from yolofs.session.up_to import check_up_to
from yolofs.state.tree import Tree
from yolofs.system.gc_pause import no_garbage_collection


def show_dry_run(project: bytes, asked: CommitRequest, wish: ConflictRequest, *, as_script: bool) -> None:
    """Print what a commit would do to base, and do nothing; ``as_script`` as a shell script.  It
    ends as the commit itself would.

    Raises:
        UsageError: a path or pattern lies outside base, or is empty.
        GenerationError: there is no such generation to commit up to.
        UnnamedError: something that was asked for would stay staged.
        YolofsError: as :func:`_dry_run_of`.
        Exit: nothing would be committed at the paths.
    """
    with reading_whole(project) as session, no_garbage_collection():
        selection, generation = asked.selection(session), asked.generation(session)
        shown, is_none = _dry_run_of(session, selection, generation, wish, as_script=as_script, unfolds=asked.unfolds)
    is_later = asked.up_to is not None and not is_none
    check_named(shown, wish.options if is_later else asked.options(wish), is_later=is_later)
    end_without_success_if(bool(asked.paths) and is_none)


def _dry_run_of(
    session: Session,
    selection: Selection,
    up_to: Generation | None,
    wish: ConflictRequest,
    *,
    as_script: bool,
    unfolds: bool,
) -> tuple[CommitPreview, bool]:
    """Print what a commit of a selection would do to base, path by path in its order, and do
    nothing.  Return what it would take and leave, and whether it would do nothing at all.  Where
    base has changed, too, print the changes as the refused commit lists them.

    ``up_to`` and ``wish`` as for a commit.  With ``unfolds`` each path has a line of its own.

    Raises:
        ConflictError: it would be refused, as base has changed, or some of it would stay staged.
        YolofsError: it would be refused for hard links.
    """
    with base_errors_said(session.base.root, without=session.directory, again="yolofs commit --dry-run"):
        shown, split = preview_commit(session, selection, up_to)
        looked = look_at_base(session, split)
        if up_to is None and not as_script:  # a script takes nothing out of the view
            wish.take_base(looked.unchanged)
        settled = SettledConflicts()
        if looked.conflicts:
            if not wish.is_given:
                if not as_script:
                    emit_taken(session, shown, looked.conflicts, unfolds=unfolds)
                raise conflict_error(looked)
            if looked.marked and (as_script or up_to is not None):  # neither can take marks out
                raise marks_error(looked.marked)
            settled = wish.decide(session, looked, makes_again=up_to is None and not as_script).settled
            told = frozenset((*settled.dropped, *_made_again(split.taken, settled.made_again)))
            if out := settled.left | told:
                shown, split = preview_commit(
                    session, msgspec.structs.replace(selection, left_staged=out), up_to, is_again=True
                )
                shown = _without_told(shown, told)
                looked = look_at_base(session, split)
        plan = plan_commit(split.taken, session.base, session.store, names=looked.names)
    is_nothing = not plan.steps or not (shown.taken or may_change_links(plan, session.base))
    if up_to is not None and not is_nothing:
        check_up_to(session, split, plan)
    if is_nothing:
        say("nothing to commit")
    elif not as_script:
        is_kept = None if unfolds else shown.marks.__contains__
        for text in plan_lines(plan, session.base, session.store, is_kept=is_kept):
            emit(text)
        warn_of_cut_links(session, split, looked)
    else:
        for line in script(plan, session.store, place=session.project):
            if sys.stdout.isatty():  # to be read: what could harm the terminal is spelled out
                emit(os.fsdecode(line))
            else:
                emit_bytes(line + b"\n")
    say_unchanged(session, shown)
    say_stays(session, shown)
    settled.foretell(session)
    return shown, is_nothing and not (settled.merged or settled.dropped)


def _without_told(shown: CommitPreview, told: Collection[RelPath]) -> CommitPreview:
    """Return what would stay staged, without the paths that another line already tells of."""

    def is_told(paths: Iterable[RelPath]) -> bool:
        return any(is_below(path, one) for path in paths for one in told)

    return msgspec.structs.replace(
        shown,
        stays=[change for change in shown.stays if not is_told(change.paths)],
        held_back=tuple(one for one in shown.held_back if not is_told(one.paths)),
    )


def _made_again(tree: Tree, directories: Collection[RelPath]) -> Iterator[RelPath]:
    """Yield the directories that would be made again, and the paths in them.  No plan over base as
    it is can describe these.
    """
    for path, _ in tree.walk() if directories else ():
        if any(is_below(path, directory) for directory in directories):
            yield path
