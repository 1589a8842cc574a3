"""Which commits are kept.  The settings limit their number, their age, and the size of what base
had before; the newest one is always kept.

A commit that is not kept any more cannot be undone.  Commits go from the oldest on.  A commit that
was given up half way is never among them, and none without a proof of its end: its kept files were
never put back, and perhaps nobody else has them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from yolofs.commit.apply import commit_directory as commit_directories
from yolofs.commit.apply.commit_directory import GOING_PREFIX
from yolofs.config.settings import KeepCommits
from yolofs.journal.journal_length import LENGTH_SUFFIX, in_reserve
from yolofs.journal.records import Keep, Stage
from yolofs.registry.seal import Sealer
from yolofs.session.archive import commit_directory, commit_numbers, numbers_of_ended_journals
from yolofs.session.dead_generations import NEW
from yolofs.session.history.ended_commits import EndedCommit, ended_commit
from yolofs.session.history.kept_size import NO_SIZE, Size, sizes_of_commits
from yolofs.session.journal_copy import MERGED_JOURNAL
from yolofs.session.session import Session
from yolofs.store.collecting import bytes_besides
from yolofs.store.store import NEW_BASES
from yolofs.system.disk_usage import size_of
from yolofs.system.plain_files import is_there
from yolofs.system.work_directories import left_behind, remove_left_behind

_DAY_NS = 86_400 * 10**9


def surplus(session: bytes, keep: KeepCommits, now_ns: int) -> list[EndedCommit]:
    """Return those commits of the session in a directory that are not kept any more, oldest first.

    Reads the newest, and from the oldest on until one is kept: as much with any number of commits.

    Raises:
        TrustError: the state directory is not the user's alone.
    """
    numbers = sorted(commit_numbers(session))
    if not numbers:
        return []
    sealer = Sealer.open(session, make=True)
    while numbers and not _is_proved(ended_commit(session, numbers[-1], sealer)):
        numbers.pop()
    too_many = _too_many(numbers, sizes_of_commits(session), keep)
    gone: list[EndedCommit] = []
    for at, number in enumerate(numbers[:-1]):
        one = ended_commit(session, number, sealer)
        if one is None or one.is_damaged:
            continue
        if at >= too_many and now_ns - one.began_ns <= keep.days * _DAY_NS:
            break
        if not one.is_given_up:
            gone.append(one)
    return gone


def _is_proved(commit: EndedCommit | None) -> bool:
    return commit is not None and not commit.is_damaged


def _too_many(numbers: Sequence[int], sizes: Mapping[int, Size], keep: KeepCommits) -> int:
    """Return how many commits from the oldest on are more than are kept, by count and size."""
    size = 0
    for newer, number in enumerate(reversed(numbers)):
        size += sizes.get(number, NO_SIZE).kept
        if newer and (newer >= keep.count or size > keep.gib * 2**30):
            return len(numbers) - newer
    return 0


def freed_by(session: Session, gone: Sequence[EndedCommit], now_ns: int, *, generations: bool) -> int:
    """Return how many bytes of the disk it would free if some commits went, and dead
    ``generations`` too.

    These are also those of commits that were put aside before, of store inodes that nothing would
    name any more, of :func:`half_written`, and of what killed commands have left in directories of
    their own.
    """
    directories = [*(one.directory for one in gone), *left_behind(session.directory)]
    aside = sum(commit_directories.size_of_gone(path, now_ns) for path in _gone_in(session.directory))
    without = {0, *(one.number for one in gone)}
    named = numbers_of_ended_journals(session.directory, without=without, passes_over_damage=True)
    if generations:
        named.update(record.ino for record in session.live_changes() if isinstance(record, Stage | Keep) and record.ino)
    else:
        named |= session.journal_numbers()
    half = sum(os.lstat(path).st_blocks * 512 for path in half_written(session))
    return sum(map(size_of, directories)) + aside + half + bytes_besides(session.store, named)


def half_written(session: Session) -> list[bytes]:
    """Return the journals, and the file of what base had, that a command was killed over before
    they were in their place; nothing reads them.
    """
    names = [session.journal.path + end + more for end in (NEW, MERGED_JOURNAL) for more in (b"", LENGTH_SUFFIX)]
    names.append(os.path.join(session.store.directory, NEW_BASES))
    return [name for name in names if is_there(name)]


def remove_half_written(session: Session) -> None:
    """Remove :func:`half_written`; the caller holds the session's lock.

    Raises:
        OSError: one cannot be removed.
    """
    for path in half_written(session):
        os.unlink(path)


def put_aside(commits: Iterable[EndedCommit]) -> None:
    """Take commits out of their session, in no time; :func:`remove_gone` removes them.

    Raises:
        OSError: the disk failed.
    """
    for commit in commits:
        above, name = os.path.split(commit.directory)
        journal = os.path.join(os.path.dirname(above), b"journal")
        in_reserve(journal, partial(os.rename, commit.directory, os.path.join(above, GOING_PREFIX + name)))


def remove_gone(directory: bytes, now_ns: int) -> None:
    """Remove what was put aside in the session in ``directory``, and what killed commands have left
    in directories of their own; what tells of things on a disk that is not mounted stays for a
    while.  Blocks.

    Raises:
        OSError: something cannot be removed; all else is.
    """
    failure: OSError | None = None
    try:
        remove_left_behind(directory)
    except OSError as error:
        failure = error
    for path in _gone_in(directory):
        try:
            while is_there(path):
                with contextlib.suppress(FileNotFoundError):  # another command removes it, too: the caller has no lock
                    if not commit_directories.remove_gone(path, now_ns):
                        break
        except OSError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _gone_in(directory: bytes) -> list[bytes]:
    """Return what was put aside in the session in ``directory``."""
    commits = os.path.dirname(commit_directory(directory, 1))
    names = os.listdir(commits) if os.path.isdir(commits) else []
    return [os.path.join(commits, name) for name in names if name.startswith(GOING_PREFIX)]
