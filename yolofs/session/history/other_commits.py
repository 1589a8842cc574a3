"""What the commits before and after one mean for its undo: what they have changed, applied again,
or made anew.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from yolofs.commit.apply import copy_log
from yolofs.commit.apply.commit_directory import DamagedNoteError
from yolofs.commit.plan.plan import Plan
from yolofs.commit.undo.applied import Applied, read_plan
from yolofs.commit.undo.commits_around import EarlierTimes, LaterCommit, opened_slots
from yolofs.commit.undo.made_anew import AnewOfCommit, MadeAnew
from yolofs.errors import YolofsError
from yolofs.session.archive import commit_directory, commit_numbers
from yolofs.session.history.ended_commits import EndedCommit, as_if_undone, ended_commits
from yolofs.session.session import Session
from yolofs.session.undo_notes import read_undoes
from yolofs.system.disks import OnDisk

_DAMAGED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ELOOP, errno.EFBIG})
"""What is said of a file that is gone, or is no plain file."""


class OtherCommits:
    """The commits of a session that matter to the undo of one; those before it only if they are
    undos, or undone.
    """

    def __init__(self, session: Session, number: int) -> None:
        """Read what each says of itself: of the earlier ones only whether it is an undo.

        Raises:
            TrustError: the state directory is not the user's alone.
            OSError: the disk failed.
        """
        self.session = session
        self.number = number
        notes = {
            one: read_undoes(commit_directory(session.directory, one)) for one in commit_numbers(session.directory)
        }
        about = {note.commit for note in notes.values() if note is not None}
        undos = {one for one, note in notes.items() if note is not None}
        self.ended = ended_commits(session, since=number, also=undos | about)
        """Those that have ended, oldest first."""
        self.first_undone = min(about, default=number)
        """Nothing is undone of those before it."""

    @property
    def since(self) -> list[EndedCommit]:
        """The commit itself and the later ones, oldest first."""
        return [one for one in self.ended if one.number >= self.number]


def later_commits(others: OtherCommits) -> list[LaterCommit]:
    """Return the commits after one that are in force; a commit and the undo of all of it are as if
    neither were.

    Those that take back what this one has applied, or apply what it has taken back, take it back,
    too, whatever undo of whatever undo they are.

    One whose plan or notes are damaged is left out: what it has changed counts as drift then.
    """
    number = others.number
    ended = {one.number: one for one in others.since if not one.is_given_up}
    origins = _origins(others.ended)
    gone = {one.number for one in ended.values() if one.is_undone}
    gone |= {undo for one in ended.values() if one.is_undone for undo in one.undone_by}
    above = [one for one in ended.values() if one.number > number and one.number not in gone]
    later: list[LaterCommit] = []
    for one in above:
        of = one.undoes.commit if one.undoes is not None else None
        takes_back = number in ended and _takes_back(one, ended[number], origins)
        with _passing_over_damage():
            later.append(LaterCommit.read(one.number, one.directory, takes_back=takes_back, undoes=of, before=number))
    for one in ended.values():
        undone = ended.get(one.undoes.commit) if one.undoes is not None else None
        if undone is not None and undone.undoes is not None and undone.undoes.commit == number and not one.is_undone:
            opened = frozenset[int]()
            with _passing_over_damage():
                opened = opened_slots(read_plan(undone.directory), number)
            later.append(LaterCommit(one.number, (), applies_again=True, opened=opened))
    return later


def _origins(ended: Iterable[EndedCommit]) -> dict[int, int]:
    """Return which commit each of some commits, oldest first, is about in the end: itself, or what
    the one is about that it undoes.
    """
    origins: dict[int, int] = {}
    for one in ended:
        of = one.undoes.commit if one.undoes is not None else one.number
        origins[one.number] = origins.get(of, of)
    return origins


def _takes_back(one: EndedCommit, other: EndedCommit, origins: Mapping[int, int]) -> bool:
    """Tell whether a commit undoes another one that came before, or what that has applied or taken
    back.
    """
    return origins[one.number] == origins[other.number] and one.takes_back != other.takes_back


def earlier_times(others: OtherCommits) -> EarlierTimes:
    """Return the times that directories had before earlier commits that stay undone when this one
    is undone.

    An undo gives no time of its own, so those are left out whose commit is still kept.
    """
    session, number = others.session, others.number
    undone = {one.number for one in as_if_undone(others.ended, number) if one.is_undone and one.number < number}

    def plans(commits: Sequence[EndedCommit], wanted: Container[int]) -> Iterator[tuple[Plan, bool]]:
        numbers = {one.number for one in commits if not one.is_given_up}
        for one in commits:
            is_wanted = one.number in wanted and one.number < number and not one.is_given_up
            if not is_wanted or (one.undoes is not None and one.undoes.commit in numbers):
                continue
            with _passing_over_damage():
                yield read_plan(one.directory), one.number in undone

    def all_since() -> Iterator[tuple[Plan, bool]]:
        return plans(ended_commits(session, since=others.first_undone), range(min(undone), number))

    return EarlierTimes((plan for plan, _ in plans(others.ended, undone)), all_since)


@contextlib.contextmanager
def _passing_over_damage() -> Iterator[None]:
    """Pass over a commit whose files are damaged or gone, but over no disk that fails."""
    try:
        yield
    except (YolofsError, DamagedNoteError):
        pass
    except OSError as error:
        if error.errno not in _DAMAGED:
            raise


def made_anew_since(others: OtherCommits) -> MadeAnew:
    """Return what the commits and undos after a commit have made anew, in force or not."""
    session = others.session
    disk = session.base.on_disk(os.lstat(session.directory).st_dev, 0).disk
    found: list[AnewOfCommit] = []
    for one in others.since:
        if one.number == others.number:
            continue
        copies = copy_log.read(one.directory)
        directories = one.undoes.anew if one.undoes is not None else {}
        if (copies or directories) and not one.is_given_up:
            kept = {ino: OnDisk(disk, inode) for ino, inode in directories.items()}
            with _passing_over_damage():
                found.append(AnewOfCommit(Applied.read(one.number, one.directory), copies, kept))
    return MadeAnew(found)
