"""The built-in table of files that something on the host executes, or goes by, without being told
to.

``docs/reference/preset.md`` is a copy of it for people; a test keeps the two equal.  What belongs
in it takes effect by itself (as one enters a directory, opens it, commits, logs in) or in programs
that have nothing to do with the project.  What does not: what the project is made of, and runs when
one builds, tests or starts it (``Makefile``, ``package.json``, ``.npmrc``, ``conftest.py``,
``.vscode/launch.json``, CI's workflows), and texts that agents read (``AGENTS.md``): they change
with ordinary work, and a warning at each commit is read by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolofs.hostcode import rows_of_homes, rows_of_projects, rows_of_systems, rows_of_tools
from yolofs.hostcode.mark import Mark
from yolofs.hostcode.row import Row, Topic

PUBLISHED = frozenset({b"dist-packages", b"node_modules", b"site-packages"})
"""Below these lies what others have published, which nobody opens or enters: ``**/`` does not count
there.
"""

GIT_ROWS = (
    Row("**/.git/hooks/**", Mark.GIT, "but for `*.sample`, which git does not run"),
    Row("**/.git/config", Mark.GIT, "if it has a setting that git's commands do not write, or that may run a program"),
    Row("**/.git/config.worktree", Mark.GIT, "as `config`"),
    Row("**/.git/commondir", Mark.GIT, "leads to another repository's settings"),
    Row("**/.git/index", Mark.GIT, "if by it `git checkout` would write outside of the work tree, or into `.git`"),
    Row("**/.git/rebase-merge/**", Mark.GIT, "`exec` lines of a rebase that is to go on"),
    Row("**/.git/sequencer/opts", Mark.GIT, "programs of a cherry-pick or revert that is to go on"),
    Row("**/.git/remotes/**", Mark.GIT, "addresses of remotes that have none in `config`; and so the next one"),
    Row("**/.git/branches/**", Mark.GIT),
    Row(
        "**/.git",
        Mark.GIT,
        "a file or link that leads elsewhere than to a submodule's or worktree's own directory, or a new one",
    ),
)
"""Of git's directories.  So is each directory that git would take for a repository, whatever its
name (bare repositories, ``.git/modules/…``), and each target of ``core.hooksPath`` and
``include.path`` in base."""

TOPICS: tuple[Topic, ...] = (
    Topic("Repositories", "git runs it at the next `git status`, commit or checkout there.", GIT_ROWS),
    *rows_of_projects.TOPICS,
    *rows_of_homes.TOPICS,
    *rows_of_tools.TOPICS,
    *rows_of_systems.TOPICS,
)


def rows() -> Iterator[Row]:
    """Yield the lines of the table that paths alone decide over, in their order; git's have a
    module of their own.
    """
    for topic in TOPICS:
        if topic.rows is not GIT_ROWS:
            yield from topic.rows
