"""The commits of a session that have ended, and what became of them: whether later ones undo them.

Each is read from its own directory, by what its seal proves.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from yolofs.commit.apply.places import SEAL
from yolofs.registry.seal import Sealer, began_ns, read_plainly
from yolofs.session.archive import CommitEnd, commit_directory, commit_numbers
from yolofs.session.session import Session
from yolofs.session.undo_notes import Undoes, read_undoes
from yolofs.system.plain_files import is_there


class EndedCommit(msgspec.Struct, frozen=True):
    """A commit that has ended."""

    number: int
    directory: bytes
    began_ns: int
    is_given_up: bool = False
    is_damaged: bool = False
    """Whether its end was written, and nothing proves any more that it was this user: it cannot be
    undone.
    """
    undoes: Undoes | None = None
    """What it undoes, if it is an undo."""
    undone_by: tuple[int, ...] = ()
    """The undos that are in force, oldest first; each of a part, if there are several."""
    is_undone: bool = False
    """Whether nothing of it is left in base."""
    takes_back: bool = False
    """Whether it took another one back; the undo of an undo does not, it applies a commit again."""


def ended_commits(
    session: Session, *, last: int | None = None, since: int = 0, also: Collection[int] = ()
) -> list[EndedCommit]:
    """Return the commits of a session that have ended, oldest first; or of the ``last`` ones alone,
    or of those ``since`` a number and of some that ``also`` have.

    Only later commits tell what became of one, so earlier ones need not be read.

    Raises:
        TrustError: the state directory is not the user's alone.
    """
    found: dict[int, EndedCommit] = {}
    numbers = sorted(number for number in commit_numbers(session.directory) if number >= since or number in also)
    numbers = numbers[-last if last is not None else 0 :]
    sealer = Sealer.open(session.directory, make=True) if numbers else None
    for number in numbers:
        assert sealer is not None
        one = ended_commit(session.directory, number, sealer)
        if one is not None:
            undone = found.get(one.undoes.commit) if one.undoes is not None else None
            takes_back = one.takes_back and not (undone is not None and undone.takes_back)
            found[number] = msgspec.structs.replace(one, takes_back=takes_back)
    _note_undos(found)
    return list(found.values())


def as_if_undone(ended: Iterable[EndedCommit], number: int) -> list[EndedCommit]:
    """Return some commits, oldest first, as they will be when all of one of them is undone."""
    found = {one.number: msgspec.structs.replace(one, undone_by=(), is_undone=one.number == number) for one in ended}
    _note_undos(found)
    return list(found.values())


def _note_undos(found: dict[int, EndedCommit]) -> None:
    """Note of each commit what became of it by those that undo others."""
    for number in sorted(found, reverse=True):  # an undo that was itself undone is not in force
        one = found[number]
        if one.undoes is None or one.is_undone or one.is_damaged or one.undoes.commit not in found:
            continue
        of = found[one.undoes.commit]
        found[of.number] = msgspec.structs.replace(of, undone_by=(number, *of.undone_by))
        if _whole_undos(found, found[of.number]):
            found[of.number] = msgspec.structs.replace(found[of.number], is_undone=True)
    _note_undone_with_what_they_applied(found)


def _whole_undos(found: Mapping[int, EndedCommit], one: EndedCommit) -> list[int]:
    """Return the undos of a commit, of those in force, after which nothing of it was left."""
    in_force = set(one.undone_by)
    undos = [(number, found[number].undoes) for number in one.undone_by]
    return [number for number, of in undos if of is not None and of.is_whole and in_force.issuperset(of.earlier_undos)]


def _note_undone_with_what_they_applied(found: dict[int, EndedCommit]) -> None:
    """Note of each commit that has applied another one again, in whole or in part, by undoing its
    undo, that it is undone if the other one was since: nothing else was in it.
    """
    for number, one in found.items():
        undo = found.get(one.undoes.commit) if one.undoes is not None else None
        applied = found.get(undo.undoes.commit) if undo is not None and undo.undoes is not None else None
        if one.is_undone or applied is None or not applied.is_undone:
            continue
        if any(whole > number for whole in _whole_undos(found, applied)):
            found[number] = msgspec.structs.replace(one, is_undone=True, undone_by=applied.undone_by)


def ended_commit(session: bytes, number: int, sealer: Sealer) -> EndedCommit | None:
    """Return a commit of the session in a directory, as far as it tells of itself; None if it has
    not ended.

    One whose seal or end is damaged, or gone, has ended if the journal that it ended lies there.
    Later commits tell what became of it.
    """
    directory = commit_directory(session, number)
    sealed, done, given_up = (
        read_plainly(os.path.join(directory, name)) or b""
        for name in (SEAL, CommitEnd.DONE.value, CommitEnd.GIVEN_UP.value)
    )
    is_given_up = sealer.is_given_up(given_up, number)
    is_damaged = not is_given_up and not sealer.is_end(done, sealed)
    journal = os.path.join(directory, b"journal")
    if is_damaged and not is_there(journal):
        return None
    undoes = read_undoes(directory)
    takes_back = undoes is not None and not undoes.applies_again
    began = began_ns(sealed) or (os.lstat(journal).st_mtime_ns if is_damaged else 0)
    return EndedCommit(number, directory, began, is_given_up, is_damaged, undoes, takes_back=takes_back)


def count_ended(session: bytes, numbers: Iterable[int]) -> int:
    """Return how many commits of these numbers have ended, by the names in their directories alone.

    The remains of a commit that was taken back do not count.
    """
    directories = [commit_directory(session, number) for number in numbers]
    ends = (b"journal", *(end.value for end in CommitEnd))
    return sum(any(is_there(os.path.join(one, end)) for end in ends) for one in directories)


def named(numbers: Sequence[int]) -> str:
    """Return the numbers of commits as people read them."""
    words = ", ".join(map(str, numbers[:-1])) + " and " if len(numbers) > 1 else ""
    return f"commit{'s' if words else ''} {words}{numbers[-1]}"
