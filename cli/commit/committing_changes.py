"""Committing whole changes: they are shown and asked about, conflicts settled, and what is done
told.
"""

from __future__ import annotations

import click
import msgspec

from yolofs.cli.commit.commit_preview import CommitPreview, preview_commit
from yolofs.cli.commit.commit_request import CommitRequest
from yolofs.cli.commit.open_files import find_open_files, open_files_fields, say_open_files
from yolofs.cli.commit.report import (
    check_named,
    emit_document,
    emit_refusal,
    emit_taken,
    end_without_success_if,
    say_done,
    say_stays,
    say_unchanged,
    timeline_end_text,
    trusted_text,
    warn_of_cut_links,
    warn_of_unfinished,
)
from yolofs.cli.commit.settling import ConflictRequest, SettledConflicts, check_settled
from yolofs.cli.commit.tidying import remove_tidied, tidy_after_commit
from yolofs.cli.output import ask, check_can_ask, phases, say
from yolofs.cli.project.project import changing, reading
from yolofs.cli.same_command import same_command_with
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import ConflictError
from yolofs.os_errors import base_errors_said
from yolofs.session.commit import commit, look_at_base, marks_error
from yolofs.session.up_to import commit_up_to
from yolofs.system.gc_pause import no_garbage_collection


def commit_changes(project: bytes, asked: CommitRequest, wish: ConflictRequest, *, yes: bool, as_json: bool) -> None:
    """Commit what was asked for; what changed while the user looked at it is shown again.

    Raises:
        Exit: the answer is no, or nothing of what was named is done.
        ConflictError: base has changed, too, and what is wished does not settle that.
        UnnamedError: something that was named stays staged.
        YolofsError: as :func:`yolofs.session.commit.commit`.
    """
    while True:
        before = None if yes else _show_and_ask(project, wish, asked)
        if before is not None and not before.taken:
            check_named(before, asked.options(wish))
            end_without_success_if(bool(asked.paths))
            return
        with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection(), session.store.looking_once():
            with base_errors_said(session.base.root, without=session.directory, again="yolofs commit"):
                selection = asked.selection(session)
                shown, split = preview_commit(session, selection, asked.generation(session))
                if before is not None and before != shown:
                    wish.forget(before.taken, shown.taken)
                    say("something of it has changed meanwhile, here or in base; look again")
                    continue
                looked = look_at_base(session, split)
                if asked.up_to is None:
                    wish.take_base(looked.unchanged)
                settled = SettledConflicts()
                try:
                    if looked.conflicts and wish.is_given:
                        if asked.up_to is not None and looked.marked:  # what they were is about the present view
                            raise marks_error(looked.marked)
                        settled = wish.settle(session, looked, makes_again=asked.up_to is None)
                        if not as_json:  # said at once: that holds whatever becomes of the commit
                            settled.say(session)
                        selection = msgspec.structs.replace(selection, left_staged=settled.left)
                        shown, split = preview_commit(session, selection, asked.generation(session), is_again=True)
                        looked = look_at_base(session, split)
                    check_settled(settled, looked)
                except ConflictError as error:
                    error.root = session.base.root
                    if as_json:
                        emit_refusal(session, shown, looked.conflicts, settled.fields(session.base.root))
                    elif yes:
                        emit_taken(session, shown, looked.conflicts, unfolds=asked.unfolds)
                    raise
                if yes and shown.taken and not as_json:
                    try:
                        emit_taken(session, shown, looked.conflicts, settled.merged, unfolds=asked.unfolds)
                        warn_of_cut_links(session, split, looked)
                    except BrokenPipeError:  # as of `yolofs commit --yes | head`, which seems to have worked
                        say("nothing is committed, as the list was not read to its end")
                        raise
            written = find_open_files(session, shown.taken)
            try:
                with phases() as begin:
                    apply = commit if asked.up_to is None else commit_up_to
                    result = apply(
                        session,
                        split=split,
                        looked=looked,
                        changes=shown.taken,
                        force=bool(settled.ours),
                        progress=begin("committing"),
                        going_back=lambda: begin("taking the commit back"),
                    )
            except ConflictError as error:
                error.root = session.base.root
                raise
            directory = session.directory
            tidy_after_commit(session)
        remove_tidied(directory)
        break
    if as_json:
        fields = settled.fields(session.base.root) | {"open_files": open_files_fields(written)}
        emit_document(session, result, shown, looked.conflicts, fields)
        warn_of_unfinished(result.number, result.unfinished)
    else:
        say_done(session, result, shown, was_told=shown == before)
        say_open_files(written)
    settled.check(session)
    is_later = asked.up_to is not None and result.number is not None
    check_named(shown, wish.options if is_later else asked.options(wish), is_later=is_later)
    is_settled = settled.merged or settled.marked or settled.dropped
    end_without_success_if(bool(asked.paths) and result.number is None and not is_settled)


def _show_and_ask(project: bytes, wish: ConflictRequest, asked: CommitRequest) -> CommitPreview:
    """Show the changes that the commit takes and those that stay, ask at a terminal, and return
    them.

    Raises:
        Exit: the answer is no.
        UsageError: there is nobody to ask, or a path is nowhere.
    """
    with reading(project) as session:
        with base_errors_said(session.base.root, without=session.directory, again="yolofs commit"):
            shown, split = preview_commit(session, asked.selection(session), asked.generation(session))
            looked = look_at_base(session, split)
        if shown.taken:
            emit_taken(session, shown, looked.conflicts, unfolds=asked.unfolds)
            warn_of_cut_links(session, split, looked)
        say_unchanged(session, shown)
        if not shown.taken:
            say("nothing to commit")
        say_stays(session, shown)
        if shown.taken:
            check_can_ask(instead=same_command_with("commit", "--yes"))
        if asked.up_to is None:
            wish.take_base(looked.unchanged)
            wish.ask(session, split, looked)
        if shown.taken:
            question = wish.question(shown.taken, looked.conflicts, trusted_text(shown), timeline_end_text(session))
            if not (question and ask(question)):
                say("nothing committed")
                raise click.exceptions.Exit(1)
        return shown
