"""``yolofs commit``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from yolofs.cli.commit.commit_request import CommitRequest
from yolofs.cli.commit.committing_changes import commit_changes
from yolofs.cli.commit.dry_run import show_dry_run
from yolofs.cli.commit.hunk_commit import HunkOptions, commit_by_hunk, commit_picked
from yolofs.cli.commit.hunk_option import hunk_option, picks_of_option
from yolofs.cli.commit.interrupted import continue_commit, finish_what_was_interrupted, give_commit_up, roll_commit_back
from yolofs.cli.commit.settling import ConflictRequest
from yolofs.cli.completion.completing import generations, staged_paths
from yolofs.cli.path_types import PATH
from yolofs.cli.project.project import find_project
from yolofs.cli.same_command import same_command_with
from yolofs.errors import UsageError


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=PATH, shell_complete=staged_paths)
@click.option("--outside", is_flag=True, help="Take what lies outside the project, too.")
@click.option("--scratch", is_flag=True, help="Take what lies in scratch directories, too.")
@click.option(
    "--exclude",
    "excludes",
    metavar="PATTERN",
    multiple=True,
    help="Leave out what fits PATTERN: a path with the wildcards *, ? and [...]; **/NAME fits anywhere. Repeatable.",
)
@click.option(
    "--up-to",
    metavar="GENERATION",
    shell_complete=generations,
    help="Take what the view showed at that generation (a number or name); later changes stay staged.",
)
@click.option("-p", "--patch", "by_hunk", is_flag=True, help="Ask about each hunk, at a terminal.")
@hunk_option("Take this hunk alone (yolofs hunks); with PATH, look for it there.")
@click.option("--trusted", is_flag=True, help="Take what the host would run or trust, too, without naming each file.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change on a line of its own.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be done to which real file, in order, and do nothing.")
@click.option("--script", "as_script", is_flag=True, help="Print the steps as a shell script, and do nothing.")
@click.option(
    "--merge", "merges", is_flag=True, help="Where base has changed, too: merge text, mode, owner and attributes."
)
@click.option(
    "--ours",
    "--force",
    "force",
    is_flag=True,
    help="Where base has changed, too: replace base's version by the staged one.",
)
@click.option("--theirs", is_flag=True, help="Where base has changed, too: drop what is staged there.")
@click.option("--continue", "goes_on", is_flag=True, help="Finish an interrupted commit, and do nothing else.")
@click.option(
    "--roll-back",
    "goes_back",
    is_flag=True,
    help="Take an interrupted commit back: base is as before, and all stays staged.",
)
@click.option(
    "--discard-interrupted",
    "gives_up",
    is_flag=True,
    help="Give an interrupted commit up: base stays as it is, staged changes leave the view, no file is lost.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; needs --yes.")
def command(
    paths: tuple[bytes, ...],
    outside: bool,
    scratch: bool,
    excludes: tuple[str, ...],
    up_to: str | None,
    by_hunk: bool,
    words: tuple[str, ...],
    trusted: bool,
    unfolds: bool,
    yes: bool,
    dry_run: bool,
    as_script: bool,
    merges: bool,
    force: bool,
    theirs: bool,
    goes_on: bool,
    goes_back: bool,
    gives_up: bool,
    as_json: bool,
) -> None:
    """Apply what is staged to the real files, after asking.

    commit first shows what it takes: what changed in the project, folded as in `yolofs status`;
    --unfold lists each change. With PATH it takes exactly what changed at or below these paths,
    wherever they lie; a PATH that is neither staged nor in base is an error. Either name of a
    renamed file takes the rename. A file in a new directory takes the directory along. The rest
    stays staged, and the view is the same before and after. If nothing is staged, commit asks
    nothing, and the exit code is 0.

    Some changes can only be applied together, such as those of all names of a file with hard links.
    If you select only a part of them, all of them stay staged; if PATH is such a part itself, the
    exit code is 16.

    What the host would run or trust later is listed apart: setuid and setgid files, devices,
    commands in your PATH, git's hooks, `.envrc`, tasks of editors, start files of shells, `~/.ssh`
    and others (see the page on built-in rules, and the setting host_code). It stays staged (exit
    code 16), unless PATH is that very file (or the renamed directory that it lies in), or --trusted
    is given.

    --up-to takes what the view showed at a generation (`yolofs timeline`); later changes stay
    staged. --exclude leaves out what fits a pattern. Patterns are relative to where you are, as
    PATH is; a pattern that fits a directory fits everything in it. If base has something excluded
    in a deleted directory, the whole deletion stays staged.

    --dry-run says what would be done to which real file, in order; with --unfold also to each file
    in a new directory. --script (with or without --dry-run) prints the steps as a shell script.
    Both ask nothing, change nothing, and end with the exit code of the commit. With --merge, --ours
    or --theirs, --dry-run also says what would become of each path that has changed in base, too.

    A commit ends the timeline, as the question says: what stays staged is the first generation of a
    new one. You can look at the old generations as long as the commit is kept (`yolofs timeline`,
    `log`, `diff --run N`). .yolofs/commits keeps what base had before. Programs in the mount wait
    during the commit and then go on; commit names those that have a committed file open for
    writing: base may have only a part of what they were writing.

    If base has changed at a path that is to be applied, the commit asks about it at a terminal, and
    refuses elsewhere. --merge merges text three ways; where both sides changed the same lines, the
    view gets both between marks, and the file stays staged until the marks are gone. --ours takes
    what is staged, and keeps base's version with the commit; it makes a directory again that base
    no longer has. --theirs drops what is staged there, and keeps it as a generation (yolofs log).
    Together with --merge, --ours or --theirs settles only what does not merge. PATH limits all
    three. If a path stays staged because base has changed, the exit code is 9.

    --patch (-p) asks about one hunk after the other, as `git add -p` does: first about what is
    deleted, what lies outside the project and what the host would run. --hunk takes hunks by their
    ids; it takes a file that the host would run only if PATH names the file, too, or with
    --trusted. With --up-to the hunks are those of that generation. The rest of each file stays
    staged. A hunk that cannot go without others stays staged, and the exit code is 16; an id that
    no longer exists is refused (20).

    A commit that fails takes itself back: base is as it was, and all stays staged (exit code 18, or
    17 if it had not touched base yet). So does one that you end with Ctrl-C (130). A commit that a
    crash interrupted has to be finished or taken back before anything else: commit shows it and
    asks, and --yes does not answer that question. --continue finishes it without asking,
    --roll-back takes it back. Both work only where the commit began: on the same machine, as the
    same user, in the same session, over the same base directory, by the plan as it was written.
    """
    if goes_on or goes_back or gives_up:
        others = (paths, outside, scratch, excludes, trusted, up_to, merges, force, theirs, as_json, dry_run, as_script)
        _check_alone(*others, by_hunk, words, goes_on + goes_back + gives_up > 1)
        if gives_up:
            give_commit_up(find_project(), asks=not yes)
        else:
            continue_commit(find_project()) if goes_on else roll_commit_back(find_project())
        return
    if by_hunk or words:
        _check_hunks(words, excludes, merges=merges, theirs=theirs, as_script=as_script, regions=outside or scratch)
        wanted = HunkOptions(paths, excludes, scratch, up_to, trusted, force, yes, dry_run, as_json)
        if not by_hunk:
            commit_picked(find_project(), picks_of_option(words), wanted)
            return
        if words or as_json:
            raise UsageError("--patch asks which hunks to take", hint="yolofs commit -p")
        commit_by_hunk(wanted)
        return
    if as_json and (dry_run or as_script):
        raise UsageError("--dry-run and --script print no JSON", hint="yolofs commit --yes --json")
    if as_json and not yes:
        raise UsageError("--json leaves no place for a question", hint=same_command_with("commit", "--yes"))
    if paths and (outside or scratch):
        raise UsageError("paths say exactly what is to be committed", hint="leave out --outside and --scratch")
    wish = ConflictRequest(merge=merges, ours=force, theirs=theirs)
    if as_script and (merges or theirs):
        raise UsageError("a script merges nothing", hint="leave out --merge and --theirs, or print no --script")
    if up_to is not None and (merges or theirs):
        raise UsageError("--up-to merges nothing: what came after stays staged", hint="leave out --merge and --theirs")
    project = find_project()
    asked = CommitRequest(paths, outside, scratch, excludes, trusted, up_to, unfolds)
    if dry_run or as_script:
        show_dry_run(project, asked, wish, as_script=as_script)
        return
    finish_what_was_interrupted(project, may_ask=not yes)
    commit_changes(project, asked, wish, yes=yes, as_json=as_json)


def _check_hunks(
    words: Sequence[str], excludes: Sequence[str], *, merges: bool, theirs: bool, as_script: bool, regions: bool
) -> None:
    """Check that no option is given that cannot be combined with hunks.

    Raises:
        UsageError: something is.
    """
    if merges or theirs:
        option = "--merge" if merges else "--theirs"
        raise UsageError(
            f"hunks are parts of what is staged, and {option} changes that",
            hint=f"yolofs commit {option} PATH first, or yolofs review, which shows what comes of it",
        )
    if as_script:
        raise UsageError(
            "a script takes whole changes only", hint="yolofs commit --dry-run -p; yolofs commit --script PATH"
        )
    if words and (excludes or regions):
        raise UsageError(
            "--hunk says exactly what is taken",
            hint=f"leave out {'--exclude' if excludes else '--outside and --scratch'}; or yolofs commit -p",
        )


def _check_alone(*others: object) -> None:
    """Check that an option about an interrupted commit stands alone.

    Raises:
        UsageError: it is not.
    """
    if any(others):
        raise UsageError(
            "--continue, --roll-back and --discard-interrupted go with no other option: they take what was interrupted"
            " as it is",
            hint="yolofs commit --continue, or yolofs commit --roll-back",
        )
