"""``yolofs commit``."""

from __future__ import annotations

import click

from yolofs.cli.commit_dry_run import dry_run_of
from yolofs.cli.commit_interrupted import discard, finish_what_was_interrupted, go_back, go_on
from yolofs.cli.commit_report import (
    Shown,
    check_named,
    emit_document,
    emit_refusal,
    emit_taken,
    look,
    say_stays,
    say_unchanged,
)
from yolofs.cli.guard import PathGuard
from yolofs.cli.jsonform import absolute
from yolofs.cli.listing import summary
from yolofs.cli.output import ask, check_can_ask, progress, say, warn
from yolofs.cli.project import changing, find_project, reading, relative_paths
from yolofs.cli.rules_in_force import hiding
from yolofs.daemon.protocol import LoanKind
from yolofs.errors import ConflictError, UsageError
from yolofs.garbage import no_garbage_collection
from yolofs.paths import display
from yolofs.regions import Region
from yolofs.selection import Selection
from yolofs.session import Session
from yolofs.session_commit import CommitResult, commit, look_at_base


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=bytes))
@click.option("--outside", is_flag=True, help="Also what lies outside the project.")
@click.option("--scratch", is_flag=True, help="Also what lies in scratch directories.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be done to which real file, in order, and do nothing.")
@click.option("--script", "as_script", is_flag=True, help="Print that as a shell script, and do nothing.")
@click.option("--force", is_flag=True, help="Also where base changed under what is staged: base's version is replaced.")
@click.option("--continue", "goes_on", is_flag=True, help="Finish a commit that was interrupted, and nothing else.")
@click.option(
    "--roll-back",
    "goes_back",
    is_flag=True,
    help="Take a commit back that was interrupted: base is what it was, and all stays staged.",
)
@click.option(
    "--discard-interrupted",
    "gives_up",
    is_flag=True,
    help="Give a commit up that was interrupted: base stays as it is, what is staged leaves the view, no file is lost.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; needs --yes.")
def command(
    paths: tuple[bytes, ...],
    outside: bool,
    scratch: bool,
    yes: bool,
    dry_run: bool,
    as_script: bool,
    force: bool,
    goes_on: bool,
    goes_back: bool,
    gives_up: bool,
    as_json: bool,
) -> None:
    """Apply what is staged to the real files, after asking.

    It takes what lies in the project, and first shows what that is. With PATH it takes exactly what changed at or below
    these paths, wherever they lie; one that is nowhere, neither staged nor in base, is an error. The rest stays staged,
    and the view is the same before and after. What can only be applied together, such as both ends of a rename, stays
    where only a part of it is selected: if that is PATH itself, the exit code is 16. New directories come along with
    what is in them. Where nothing is staged nothing is asked, and the exit code is 0.

    What gives the host a setuid or setgid file, or a command in a directory of your PATH, stays staged unless PATH is
    that very file (or the renamed directory that it lies in), whatever else is given: the exit code is 16 then.

    --dry-run says which steps it would take, in their order, and --script prints them as a shell script; both ask
    nothing, and do nothing.

    Snapshots end with it: what stays staged is the first generation of a new timeline. What base had before is kept in
    .yolofs/commits. With a mount, programs wait for the time of the commit and then go on. Refuses if base changed
    under what is to be applied.

    A commit that fails on its way is taken back: base is as it was, and all stays staged (exit code 18, or 17 if it had
    not touched base yet). So is one that is ended by Ctrl-C (130). One that was interrupted by a crash has to be
    finished or taken back before anything else: it is shown, and asked about, which --yes does not answer. --continue
    finishes it without asking, --roll-back takes it back. All only where it began: on the same machine, as the same
    user, in the same session, over the same base directory, by the plan as it was written.
    """
    if as_json and (dry_run or as_script):
        raise UsageError("--dry-run and --script print no JSON", hint="yolofs commit --yes --json")
    if dry_run and as_script:
        raise UsageError("--dry-run and --script print different things", hint="leave one of them out")
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint="yolofs commit --yes --json")
    if paths and (outside or scratch):
        raise UsageError("paths say exactly what is to be committed", hint="leave out --outside and --scratch")
    if goes_on or goes_back or gives_up:
        _check_alone(paths, outside, scratch, force, as_json, dry_run, as_script, goes_on + goes_back + gives_up > 1)
        if gives_up:
            discard(find_project(), asks=not yes)
        else:
            go_on(find_project()) if goes_on else go_back(find_project())
        return
    project = find_project()
    if dry_run or as_script:
        with reading(project) as session, no_garbage_collection():
            selection = _selection(session, paths, outside=outside, scratch=scratch)
            dry_run_of(session, selection, force=force, as_script=as_script)
        return
    finish_what_was_interrupted(project, may_ask=not yes)
    guard = hiding(project)
    while True:
        before = None if yes else _show_and_ask(project, guard, paths, outside=outside, scratch=scratch)
        if before is not None and not before.taken:
            check_named(before)
            return
        with changing(project, LoanKind.COMMIT) as (session, _), no_garbage_collection():
            selection = _selection(session, paths, outside=outside, scratch=scratch)
            shown, parts = look(session, selection)
            if before is not None and before != shown:
                say("what is staged has changed meanwhile; look again")
                continue
            looked = look_at_base(session, parts)
            if as_json and looked.conflicts and not force:
                emit_refusal(session, shown, looked.conflicts)
            elif yes and not as_json:
                try:
                    emit_taken(session, shown, guard, looked.conflicts)
                except BrokenPipeError:  # as of `yolofs commit --yes | head`, which seems to have worked
                    say("nothing is committed, as nobody reads the list of it to its end")
                    raise
            try:
                with progress("committing") as update:
                    result = commit(session, parts=parts, looked=looked, force=force, progress=update)
            except ConflictError as error:
                error.root = session.base.root
                raise
        break
    if as_json:
        emit_document(session, result, shown, looked.conflicts)
    else:
        _report(session, result, shown)
    check_named(shown)


def _check_alone(*others: object) -> None:
    """Check that what is to become of an interrupted commit is all that was asked for.

    Raises:
        UsageError: it is not.
    """
    if any(others):
        raise UsageError(
            "--continue, --roll-back and --discard-interrupted stand alone: they take what was interrupted as it is",
            hint="yolofs commit --continue, or yolofs commit --roll-back",
        )


def _selection(session: Session, paths: tuple[bytes, ...], *, outside: bool, scratch: bool) -> Selection:
    """Return what the user asked for."""
    flags = {Region.PROJECT: True, Region.OUTSIDE: outside, Region.SCRATCH: scratch}
    wanted = frozenset(region for region, is_wanted in flags.items() if is_wanted)
    return Selection(session.regions, wanted, tuple(relative_paths(session, paths)))


def _show_and_ask(
    project: bytes, guard: PathGuard | None, paths: tuple[bytes, ...], *, outside: bool, scratch: bool
) -> Shown:
    """Show what would be committed and what not, and ask; return what was shown.

    Raises:
        Exit: the answer is no.
        UsageError: there is nobody to ask, or a path is nowhere.
    """
    with reading(project) as session:
        shown, parts = look(session, _selection(session, paths, outside=outside, scratch=scratch))
        if shown.taken:
            check_can_ask(instead="yolofs commit --yes")
        emit_taken(session, shown, guard, look_at_base(session, parts).conflicts)
        say_unchanged(session, shown)
        if not shown.taken:
            say("nothing to commit")
        say_stays(session, shown)
        if shown.taken and not ask(f"apply {summary(shown.taken)}?"):
            say("nothing committed")
            raise click.exceptions.Exit(1)
        return shown


def _report(session: Session, result: CommitResult, shown: Shown) -> None:
    say_unchanged(session, shown)
    for path, aspects in sorted(result.left_out.items()):
        warn(f"{display(absolute(session.base.root, path))}: {', '.join(aspects)} could not be carried over")
    if result.number is None:
        say("nothing to commit")
    else:
        say(f"commit {result.number} done; what base had before: {display(session.commit_directory(result.number))}")
    say_stays(session, shown)
