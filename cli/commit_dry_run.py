"""What ``yolofs commit --dry-run`` and ``--script`` print."""

from __future__ import annotations

import os
import sys

from yolofs.cli.commit_report import look, say_stays, say_unchanged
from yolofs.cli.output import emit, emit_bytes, say
from yolofs.commit import describe, plan_commit
from yolofs.commit.script import script
from yolofs.paths import Generation
from yolofs.selection import Selection
from yolofs.session import Session
from yolofs.session_commit import conflict_error, look_at_base


def dry_run_of(
    session: Session, selection: Selection, up_to: Generation | None, *, force: bool, as_script: bool
) -> None:
    """Print what a commit of a selection would do to base, step by step, and do nothing; ``up_to`` as for a commit.

    Raises:
        ConflictError: it would be refused, as base has changed.
        CommitError, TrustError: a commit was interrupted, and nothing can be told before that has an end.
    """
    session.check_no_interrupted_commit()
    shown, parts = look(session, selection, up_to)
    looked = look_at_base(session, parts)
    if looked.conflicts and not force:
        raise conflict_error(looked)
    plan = plan_commit(parts.taken, session.base, session.store, names=looked.names)
    if not plan.steps:
        say("nothing to commit")
    elif not as_script:
        for step in plan.steps:
            emit(describe(step, plan.root))
    else:
        for line in script(plan, session.store, place=session.project):
            if sys.stdout.isatty():  # to be read: what could harm the terminal is spelled out
                emit(os.fsdecode(line))
            else:
                emit_bytes(line + b"\n")
    say_unchanged(session, shown)
    say_stays(session, shown)
