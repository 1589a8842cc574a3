"""Which commits are kept: so many, so long, and so much of what base had before; never less than
the newest.

A commit that is not kept any more cannot be undone.  Commits go from the oldest on.  One that was
given up half way is never among them: what it keeps was never put back, and perhaps nobody else has
it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

from yolofs.commit.apply.commit_directory import GONE
from yolofs.commit.apply.trees import remove_tree
from yolofs.config.settings import KeepCommits
from yolofs.journal.length import SUFFIX as LENGTH_SUFFIX
from yolofs.journal.records import Keep, Stage
from yolofs.session.archive import commit_directory, numbers_of_ended_journals
from yolofs.session.beside import MERGED_JOURNAL
from yolofs.session.dead_generations import NEW
from yolofs.session.kept_size import NOTHING, sizes_of_commits
from yolofs.session.session import Session
from yolofs.session.undo import Ended, ended_commits
from yolofs.system.disk_usage import size_of
from yolofs.system.plain_files import is_there

_DAY_NS = 86_400 * 10**9


def surplus(commits: Sequence[Ended], keep: KeepCommits, now_ns: int) -> list[Ended]:
    """Return those of some commits, oldest first, that are not kept any more."""
    size = 0
    sizes = sizes_of_commits(os.path.dirname(os.path.dirname(commits[-1].directory))) if commits else {}
    for at in range(len(commits) - 1, -1, -1):
        size += sizes.get(commits[at].number, NOTHING).kept
        newer = len(commits) - 1 - at
        is_old = now_ns - commits[at].began_ns > keep.days * _DAY_NS
        if newer and (newer >= keep.count or is_old or size > keep.gib * 2**30):
            return [one for one in commits[: at + 1] if not one.is_given_up]
    return []


def surplus_of(session: Session) -> list[Ended]:
    """Return the commits of a session that its settings do not keep any more.

    Raises:
        TrustError: the state directory is not the user's alone.
    """
    return surplus(ended_commits(session), session.settings.keep_commits, time.time_ns())


def freed_by(session: Session, gone: Sequence[Ended], *, generations: bool) -> int:
    """Return how many bytes of the disk it would free if some commits went, and dead
    ``generations`` too.

    These are also those of commits that were put aside before, of store inodes that nothing would
    name any more, and of :func:`half_written`.
    """
    directories = [*(one.directory for one in gone), *_gone_in(session.directory)]
    named = numbers_of_ended_journals(session.directory, without={0, *(one.number for one in gone)})
    if generations:
        named.update(record.ino for record in session.live_changes() if isinstance(record, Stage | Keep) and record.ino)
    else:
        named |= session.journal_numbers()
    half = sum(os.lstat(path).st_blocks * 512 for path in half_written(session))
    return sum(map(size_of, directories)) + half + session.store.bytes_besides(named)


def half_written(session: Session) -> list[bytes]:
    """Return the journals that a command was killed over before they were in their place; nothing
    reads them.
    """
    names = [session.journal.path + end + more for end in (NEW, MERGED_JOURNAL) for more in (b"", LENGTH_SUFFIX)]
    return [name for name in names if is_there(name)]


def remove_half_written(session: Session) -> None:
    """Remove :func:`half_written`; the caller holds the session's lock.

    Raises:
        OSError: one cannot be removed.
    """
    for path in half_written(session):
        os.unlink(path)


def put_aside(commits: Iterable[Ended]) -> None:
    """Take commits out of their session, in no time; :func:`remove_gone` removes them.

    Raises:
        OSError: the disk failed.
    """
    for commit in commits:
        above, name = os.path.split(commit.directory)
        os.rename(commit.directory, os.path.join(above, GONE + name))


def remove_gone(directory: bytes) -> None:
    """Remove what was put aside in the session in ``directory``.  Blocks.

    Raises:
        OSError: something cannot be removed.
    """
    for path in _gone_in(directory):
        while is_there(path):
            with contextlib.suppress(FileNotFoundError):  # another command removes it, too: the caller has no lock
                remove_tree(path)


def _gone_in(directory: bytes) -> list[bytes]:
    """Return what was put aside in the session in ``directory``."""
    commits = os.path.dirname(commit_directory(directory, 1))
    names = os.listdir(commits) if os.path.isdir(commits) else []
    return [os.path.join(commits, name) for name in names if name.startswith(GONE)]
