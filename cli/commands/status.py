"""``yolofs status``."""

from __future__ import annotations

import click

from yolofs.cli.without_click.status import show_status


@click.command()
@click.option("--scratch", is_flag=True, help="Include changes in scratch directories.")
@click.option("--hidden", "shows_hidden", is_flag=True, help="Include paths that a rule hides.")
@click.option("--unfold", "unfolds", is_flag=True, help="List each change on a line of its own.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document; it folds nothing.")
def command(scratch: bool, shows_hidden: bool, unfolds: bool, as_json: bool) -> None:
    """Show the mount, and what a commit would change.

    It prints one line for each change: A added, M modified, D deleted, R renamed, T of another
    type, X metadata only. A new, deleted or renamed directory is one line, and so are all changes
    of times alone. In the project, each of these is one line too: all changes in a .git, what git
    ignores, and compiled Python code; --unfold lists each change. The real files, not the staged
    ones, decide what git ignores. The deletion of a file that git tracks always has a line of its
    own.

    Other changes outside the project are listed apart. status leaves out changes in scratch
    directories (/tmp and others, see the setting `scratch`), and changes on paths that a rule
    hides; a commit still lists and takes the hidden ones. What the host would run or trust
    later (setuid files, commands on your PATH, hooks, start files of shells and others) comes
    last, with the reason in brackets; a commit takes it only if you name it, or with --trusted.

    A line marked ! is a path that has changed in base, too, since it was staged. The line says when
    each side changed.
    """
    show_status(scratch=scratch, shows_hidden=shows_hidden, unfolds=unfolds, as_json=as_json)
