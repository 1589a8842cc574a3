"""``yolofs diff``."""

from __future__ import annotations

import click

from yolofs.cli.completion.completing import runs
from yolofs.cli.history.ranges import PathsCommand, paths_given
from yolofs.cli.history.versions import ranges_and_versions
from yolofs.cli.without_click.diff import DiffForm, show_diff
from yolofs.errors import UsageError


@click.command(cls=PathsCommand)
@click.argument(
    "words", metavar="[RANGE | GENERATION:PATH GENERATION:PATH]", nargs=-1, shell_complete=ranges_and_versions
)
@click.option(
    "--run",
    "run",
    type=int,
    metavar="N",
    shell_complete=runs,
    help="Show only what run N changed, even before a commit.",
)
@click.option("--scratch", is_flag=True, help="Include changes in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Include paths that a rule hides.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change that status folds, at a terminal too.")
@click.option("--list", "as_list", is_flag=True, help="Print one line for each change, none folded.")
@click.option("--stat", "as_stat", is_flag=True, help="Print how many lines changed in each file.")
@click.option("--name-only", "as_names", is_flag=True, help="Print only the paths of changed files.")
@click.option("-w", "--ignore-all-space", "ignores_space", is_flag=True, help="Leave out changes of white space alone.")
@click.option("--word-diff", "by_words", is_flag=True, help="Show which words changed: [-old-]{+new+}.")
@click.option(
    "--binary", "shows_binary", is_flag=True, help="Print binary files at a terminal too, not only their sizes."
)
@click.option("--no-pager", "is_unpaged", is_flag=True, help="Use no pager, even at a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the changes as a JSON document.")
def command(
    words: tuple[str, ...],
    run: int | None,
    scratch: bool,
    shows_hidden: bool,
    unfolds: bool,
    as_list: bool,
    as_stat: bool,
    as_names: bool,
    ignores_space: bool,
    by_words: bool,
    shows_binary: bool,
    is_unpaged: bool,
    as_json: bool,
) -> None:
    """Print what changed as a patch that `git apply` takes.

    RANGE is one generation (what it changed), A..B, A.. (up to now), ..B (from base), or all
    (everything that a commit would apply). A generation is a number, the name of a snapshot, base,
    or - for where you were before the last travel. Given GENERATION:PATH twice, diff compares the
    two; :PATH alone is what the view shows now. --run N shows what that run did, even if the real
    files have changed since.

    `yolofs diff src` shows what changed in src, and `yolofs diff 3 src` what generation 3 changed
    there. A word that could be a RANGE is one: put -- before a PATH of that name.

    Paths are relative to the project, or, if something outside it changed, to the base directory;
    stderr says so. stderr also lists what a patch cannot express, such as an empty directory or an
    owner. diff leaves out changes in scratch directories without --scratch or their PATH, and paths
    that a rule hides without --hidden.

    What status folds into one line (the inside of a .git, what git ignores, compiled Python code)
    comes last. At a terminal diff folds it too, unless a PATH or --unfold asks for it.

    At a terminal the patch comes through a pager (YOLOFS_PAGER, PAGER, or less), in colour. It only
    says how large a binary file is; --binary prints a patch of it, too. Into a pipe or a file the
    patch is always whole. With --word-diff the output is for people, in a pipe as well: no program
    can apply it.
    """
    form = _form(as_list=as_list, as_stat=as_stat, as_names=as_names, by_words=by_words, as_json=as_json)
    if ignores_space and form not in (DiffForm.PATCH, DiffForm.WORDS, DiffForm.STAT):
        raise UsageError(f"-w is about lines, and {form.value} shows none", hint="yolofs diff -w, with --stat perhaps")
    show_diff(
        words,
        paths_given(),
        run=run,
        form=form,
        scratch=scratch,
        shows_hidden=shows_hidden,
        unfolds=unfolds,
        ignores_space=ignores_space,
        shows_binary=shows_binary,
        is_unpaged=is_unpaged,
    )


def _form(*, as_list: bool, as_stat: bool, as_names: bool, by_words: bool, as_json: bool) -> DiffForm:
    """Return the one form that was asked for.

    Raises:
        UsageError: there are several.
    """
    flags = {
        DiffForm.LIST: as_list,
        DiffForm.STAT: as_stat,
        DiffForm.NAMES: as_names,
        DiffForm.WORDS: by_words,
        DiffForm.JSON: as_json,
    }
    asked = [form for form, is_asked in flags.items() if is_asked]
    if len(asked) > 1:
        raise UsageError(
            f"{asked[0].value} and {asked[1].value} are two forms of the same output", hint="leave one of them out"
        )
    return asked[0] if asked else DiffForm.PATCH
