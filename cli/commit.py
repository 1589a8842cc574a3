"""``yolofs commit``."""

from __future__ import annotations

import click

from yolofs.changes import Change
from yolofs.cli.jsonform import absolute, change_fields, text_fields
from yolofs.cli.listing import Place, emit_changes, summary
from yolofs.cli.output import ask, check_can_ask, emit_json, progress, say, warn
from yolofs.cli.project import changing, find_project, reading
from yolofs.daemon.protocol import LoanKind
from yolofs.errors import UsageError
from yolofs.paths import display
from yolofs.session import Access, Session
from yolofs.session_commit import CommitResult, commit, finish_interrupted
from yolofs.timeline import BASE


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Also where base changed under what is staged: base's version is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; needs --yes.")
def command(yes: bool, force: bool, as_json: bool) -> None:
    """Apply what is staged to the real files, after asking.

    It first shows what that is. Snapshots end with it: the view is then what base is. What base had before is kept in
    .yolofs/commits. With a mount, programs wait for the time of the commit and then go on. Refuses if base changed
    under what is staged.
    """
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint="yolofs commit --yes --json")
    if not yes:
        check_can_ask(instead="yolofs commit --yes")
    project = find_project()
    _finish_interrupted(project)
    while True:
        shown = None if yes else _show_and_ask(project)
        if shown == []:
            return
        with changing(project, LoanKind.COMMIT) as (session, _):
            changes = _changes(session)
            if shown is not None and shown != changes:
                say("what is staged has changed meanwhile; look again")
                continue
            if yes and not as_json:
                _emit(session, changes)
            with progress("committing") as update:
                result = commit(session, force=force, progress=update)
        break
    _report(session, result, changes, as_json=as_json)


def _show_and_ask(project: bytes) -> list[Change]:
    """Show what is staged and ask whether to commit it; return it, an empty list if there is nothing to do.

    Raises:
        Abort: the answer is no.
    """
    with reading(project) as session:
        changes = _changes(session)
        _emit(session, changes)
        if not changes:
            say("nothing to commit")
            return []
        if not ask(f"apply {summary(changes)}?"):
            say("nothing committed")
            raise click.exceptions.Exit(1)
        return changes


def _changes(session: Session) -> list[Change]:
    with progress("comparing") as update:
        return session.compare(BASE, progress=update)


def _emit(session: Session, changes: list[Change]) -> None:
    emit_changes(changes, Place(session.base.root, session.base.relative(session.project)))


def _finish_interrupted(project: bytes) -> None:
    """Finish a commit that was said yes to and then interrupted."""
    with Session.open(project, Access.READ) as session:
        if session.interrupted_commit() is None:
            return
    with changing(project, LoanKind.COMMIT) as (session, _), progress("finishing the interrupted commit") as update:
        result = finish_interrupted(session, progress=update)
    if result is not None:
        say(f"commit {result.number}, which was interrupted, is finished")


def _report(session: Session, result: CommitResult, changes: list[Change], *, as_json: bool) -> None:
    root = session.base.root
    left_out = {absolute(root, path): aspects for path, aspects in sorted(result.left_out.items())}
    if as_json:
        document = {
            "commit": result.number,
            "steps": result.steps,
            "changes": [change_fields(change, root, session.regions) for change in changes],
            "left_out": [{**text_fields("path", path), "aspects": list(aspects)} for path, aspects in left_out.items()],
        }
        emit_json(document)
        return
    for path, aspects in left_out.items():
        warn(f"{display(path)}: {', '.join(aspects)} could not be carried over")
    if result.number is None:
        say("nothing to commit")
    else:
        say(f"commit {result.number} done; what base had before: {display(session.commit_directory(result.number))}")
