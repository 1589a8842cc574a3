"""The journals in ``commits/N``: the one that ended with it, and the one that follows."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import re
from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING

from yolofs.errors import JournalError, TrustError, YolofsError
from yolofs.journal import journal_length
from yolofs.journal.archive_index import numbers_of
from yolofs.journal.cuts import TORN_SUFFIX
from yolofs.journal.header import FORMAT
from yolofs.journal.journal import Journal
from yolofs.journal.journal_file import sync_directory_of
from yolofs.paths import StoreIno, display
from yolofs.session.undo_notes import read_undoes
from yolofs.store.store import Store
from yolofs.system.plain_files import is_there, naming, open_plain, read_note

if TYPE_CHECKING:
    from yolofs.registry.seal import Sealer

CARRIED = b"carried"
"""In the directory of a commit: the journal that is to follow it, with what it leaves staged."""
ENDS = b"ends"
"""In the directory of a commit: the first line of the journal that it ends, which no other has."""
_MOST_OF_LINE = 1 << 8
_STAGE_LINE = rb"(?m)^[SK] \d+ \S+ (\d+)"


def store_numbers(journal: bytes, start: int = 0) -> set[int]:
    """Return the numbers of all store inodes that a journal names from byte ``start`` on, in dead
    segments too.
    """
    numbers: set[int] = set()
    rest = b""
    try:
        fd = open_plain(journal, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return numbers
    with open(fd, "rb") as lines:
        lines.seek(start)
        while chunk := lines.read(1 << 24):
            chunk = rest + chunk
            whole, _, rest = chunk.rpartition(b"\n")
            numbers.update(map(int, re.findall(_STAGE_LINE, whole)))
    return numbers


def commit_directory(directory: bytes, number: int) -> bytes:
    """Return the directory of commit ``number`` of the session in ``directory``."""
    return os.path.join(directory, b"commits", b"%d" % number)


def commit_numbers(directory: bytes) -> list[int]:
    """Return the numbers of all commits of the session in ``directory``."""
    path = os.path.join(directory, b"commits")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        with naming(path), os.scandir(fd) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    finally:
        os.close(fd)
    return [int(name) for name in names if name.isascii() and name.isdigit() and not name.startswith("0")]


def numbers_of_ended_journals(
    directory: bytes, *, without: Container[int] = (), passes_over_damage: bool = False
) -> set[int]:
    """Return the numbers of all store inodes that are named by journals of a session that are no
    longer in force.

    These are the journals of its commits, except for those ``without``, and what was cut off the
    one in force.  If something else is in the place of one, nobody knows what it named: that is an
    error, or with ``passes_over_damage`` everything in the store.

    Raises:
        OSError: one of them cannot be read.
    """
    numbers_of_one = partial(_numbers_of_commit, directory, passes_over_damage=passes_over_damage)
    torn = store_numbers(os.path.join(directory, b"journal") + TORN_SUFFIX)
    commits = [number for number in commit_numbers(directory) if number not in without]
    if not commits:
        return torn
    journals = {number: os.path.join(commit_directory(directory, number), b"journal") for number in commits}
    may_note = not without  # else it is a question of what would be
    return torn | numbers_of(os.path.join(directory, b"commits"), journals, numbers_of_one, may_note=may_note)


def _numbers_of_commit(directory: bytes, number: int, *, passes_over_damage: bool) -> tuple[set[int], bool]:
    """Return the numbers that a commit names, and whether that stays so: nothing is to follow it
    any more.
    """
    commit = commit_directory(directory, number)
    try:
        numbers = store_numbers(os.path.join(commit, b"journal"))
    except OSError as error:
        if error.errno != errno.EINVAL or not passes_over_damage:
            raise
        return set(Store(os.path.join(directory, b"files"))), False
    carried = os.path.join(commit, CARRIED)
    if is_followed := is_there(carried):  # what is to follow may name more
        numbers |= store_numbers(carried)
    note = read_undoes(commit)
    if note is not None:  # its plan needs them
        numbers.update(note.numbers)
    return numbers, not is_followed


def inodes_without_journal(directory: bytes, *, without: Container[int] = ()) -> list[StoreIno]:
    """Return the store inodes of a session without a journal that no other journal of it names, in
    order.

    Those of the commits ``without`` do not count.

    Blocks while these are read.
    """
    try:
        store = list(Store(os.path.join(directory, b"files")))
    except FileNotFoundError:  # the whole session is gone, or on a disk that is not there
        return []
    named = numbers_of_ended_journals(directory, without=without) if store else set()
    return [ino for ino in store if ino not in named]


def journal_loss(directory: bytes) -> JournalError | None:
    """Return what is to be said of a session whose journal is missing; None if it has one, or needs
    none.

    It needs none if it has just been made, or if a commit or an abort died after it had put the old
    one away.  Then there is no staged file that only the missing journal could name.
    """
    path = os.path.join(directory, b"journal")
    if is_there(path):
        return None
    last = max(commit_numbers(directory), default=0)
    carried = os.path.join(commit_directory(directory, last), CARRIED)
    has_carried = last and is_there(carried)
    is_unplanned = has_carried and not is_there(os.path.join(os.path.dirname(carried), b"plan.json"))
    if has_carried and not is_unplanned:
        return None
    count = len(inodes_without_journal(directory, without={last} if is_unplanned else ()))
    if not count:
        return None
    which = "1 staged file, whose name" if count == 1 else f"{count} staged files, whose names"
    return JournalError(
        f"{display(path)} is missing, and there {'is' if count == 1 else 'are'} {which} only it knew",
        hint="put it back from a copy; or yolofs doctor --repair begins an empty one, and keeps these files in lost/",
    )


class CommitEnd(enum.Enum):
    """How a commit ended; the value is the file in its directory that says so."""

    DONE = b"done"
    GIVEN_UP = b"given-up"


def interrupted_commit(directory: bytes) -> bytes | None:
    """Return the directory of a commit of the session in ``directory`` that stopped half way, None
    if there is none.

    One that has not touched anything of base yet, as far as can be told, is none.  So is one if
    somebody else wrote that it is done or given up: the journal is not touched for that.
    """
    number = max(commit_numbers(directory), default=0)
    commit = commit_directory(directory, number)
    if _is_put_away(commit) or not (is_there(os.path.join(commit, b"plan.json")) or _has_lost_its_plan(commit)):
        return None
    return commit if end_of(directory, number) is None and not _was_never_begun(directory, number) else None


def _has_lost_its_plan(commit: bytes) -> bool:
    if not is_there(os.path.join(commit, b"made")):
        return False
    from yolofs.commit.apply.commit_directory import has_lost_its_plan  # imported late: hardly a session has that

    return has_lost_its_plan(commit)


def _was_never_begun(directory: bytes, number: int) -> bool:
    """Tell whether a commit, planned by this user for this session, ended before it touched
    anything of base.
    """
    from yolofs.commit.apply.commit_directory import (
        has_begun,
    )  # imported late: opening a session need not wait for all that commits import

    if has_begun(commit_directory(directory, number)):
        return False
    from yolofs.registry.seal import Sealer

    try:
        return _is_sealed(Sealer.open(directory), directory, number)
    except (YolofsError, FileNotFoundError, NotADirectoryError):
        return False


def _is_put_away(commit: bytes) -> bool:
    """Tell whether all that follows the end of a commit has been done, too.

    Its journal comes there once the file that says how it ended is durable; so the journal tells
    that, too, if somebody has removed the file.
    """

    def has(name: bytes) -> bool:
        return is_there(os.path.join(commit, name))

    return has(b"journal") and (has(CommitEnd.GIVEN_UP.value) or not has(CARRIED))


def note_ended_journal(commit: bytes, journal: bytes) -> None:
    """Note in the directory of a commit that is prepared which journal it ends; nobody waits for
    the disk.

    Raises:
        OSError: the journal cannot be read, or the note not be written.
    """
    from yolofs.commit.apply.commit_directory import write_new  # imported late, as below

    write_new(commit, ENDS, _first_line(journal), durable=False)


def _first_line(journal: bytes) -> bytes:
    with open(open_plain(journal, os.O_RDONLY), "rb") as file:
        return file.readline(_MOST_OF_LINE)


def _ends_another(commit: bytes, journal: bytes) -> bool:
    """Tell whether a commit has ended another journal than this one, as far as is known: an earlier
    version noted nothing.
    """
    noted = read_note(os.path.join(commit, ENDS), _MOST_OF_LINE)
    return noted is not None and noted.startswith(FORMAT) and noted != _first_line(journal)


def all_are_put_away(directory: bytes) -> bool:
    """Tell whether everything that follows the end of a commit has been done for each commit of the
    session in ``directory``.  If it has for the newest one, it has for all before it.
    """
    last = max(commit_numbers(directory), default=0)
    return not last or _is_put_away(commit_directory(directory, last))


def end_of(directory: bytes, number: int, *, has_to_look: bool = False) -> CommitEnd | None:
    """Return how a commit ended; None if it has not, or if that was not written by this user for
    this session.

    If it cannot be checked, because the user's key is missing, that is None, too, or with
    ``has_to_look`` an error.

    Raises:
        OSError: the disk does not tell.

    Danger: what follows an end puts the journal away, and another one in its place.
    """
    commit = commit_directory(directory, number)
    if not any(is_there(os.path.join(commit, end.value)) for end in CommitEnd):
        return None
    from yolofs.registry.seal import Sealer, read_plainly  # hardly a command comes here

    ends = {end: text for end in CommitEnd if (text := read_plainly(os.path.join(commit, end.value))) is not None}
    try:
        sealer = Sealer.open(directory)
    except (YolofsError, FileNotFoundError, NotADirectoryError):
        if has_to_look:
            raise
        return None
    if sealer.is_given_up(ends.get(CommitEnd.GIVEN_UP, b""), number):
        return CommitEnd.GIVEN_UP
    sealed = read_plainly(os.path.join(commit, b"seal"))
    if sealed is None or not sealer.is_end(ends.get(CommitEnd.DONE, b""), sealed):
        return None
    return CommitEnd.DONE if _is_sealed(sealer, directory, number) else None


def _is_sealed(sealer: Sealer, directory: bytes, number: int) -> bool:
    """Tell whether the plan of a commit, and what is to follow it, have a seal that fits."""
    from yolofs.registry.seal import digest_of_file, read_plainly

    commit = commit_directory(directory, number)
    sealed, plan = (read_plainly(os.path.join(commit, name)) for name in (b"seal", b"plan.json"))
    if sealed is None or plan is None:
        return False
    return not sealer.problems(sealed, number, plan, digest_of_file(os.path.join(commit, CARRIED)))


def give_up(directory: bytes, number: int) -> None:
    """Note, durably, that an interrupted commit is not to be finished, and put the journal away
    that it was to end.

    No other file is touched: what base had, and what was on its way, stays in the commit's
    directory.

    Raises:
        TrustError: the state directory is not the user's alone.
    """
    from yolofs.commit.apply.commit_directory import (
        write_new,
    )  # imported late: opening a session need not wait for all that commits import
    from yolofs.registry.seal import Sealer

    text = Sealer.open(directory, make=True).given_up(number)
    commit = commit_directory(directory, number)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(commit, CommitEnd.GIVEN_UP.value))  # by another hand
    write_new(commit, CommitEnd.GIVEN_UP.value, text)
    finish_put_away(directory)


def has_ended_journal(directory: bytes) -> bool:
    """Tell whether the journal of the session in ``directory`` is that of a commit that has ended
    since.

    What it says of base is not true any more.  Whoever committed is about to put it away, or died
    before.  If it is another one than the commit has ended, somebody has removed that.
    """
    last = max(commit_numbers(directory), default=0)
    commit, journal = commit_directory(directory, last), os.path.join(directory, b"journal")
    if not last or is_there(os.path.join(commit, b"journal")) or not is_there(journal):
        return False
    return end_of(directory, last) is not None and not _ends_another(commit, journal)


def commit_not_begun(directory: bytes) -> int | None:
    """Return the number of the commit that was stopped before it touched anything of base, and
    whose directory is still there; None if there is none.
    """
    last = max(commit_numbers(directory), default=0)
    commit = commit_directory(directory, last)
    if not last or _is_put_away(commit):
        return None
    if is_there(os.path.join(commit, b"plan.json")):
        return last if _was_never_begun(directory, last) else None
    from yolofs.commit.apply.commit_directory import is_left_over  # imported late, see above

    return last if is_there(os.path.join(directory, b"journal")) and is_left_over(commit) else None


def finish_put_away(directory: bytes) -> None:
    """Put the journal away for a commit that ended and died just before it could; make a new one if
    none is left.

    A commit that died before it touched anything of base is removed, as if it had never been.

    Raises:
        JournalError: it is missing, and staged files have lost their names with it
            (:func:`journal_loss`).

    Danger: records written between that death and this call would be put away with the commit, out
        of the view.
    """
    path = os.path.join(directory, b"journal")
    last = max(commit_numbers(directory), default=0)
    commit = commit_directory(directory, last)
    if commit_not_begun(directory) is not None:
        from yolofs.commit.apply.commit_directory import remove_before_it_begins

        remove_before_it_begins(commit)
        last = max(commit_numbers(directory), default=0)
        commit = commit_directory(directory, last)
    if has_ended_journal(directory):
        os.rename(path, os.path.join(commit, b"journal"))
    elif (lost := journal_loss(directory)) is not None:
        raise lost
    if not is_there(path):
        if last:
            end_chapter(directory, commit)
        begin_journal(path, commit if last else None)


def end_chapter(directory: bytes, commit: bytes) -> None:
    """Have all that was noted in a session so far belong to the commit in a directory, whose
    journal has been put away.

    Comes before the next journal: after a kill in between it is done again.
    """
    from yolofs.audit.audit import note_journal_end  # imported late: it takes the rules along
    from yolofs.state.kept_bases import put_in_archive

    put_in_archive(os.path.join(directory, b"files"), commit)
    is_given_up = is_there(os.path.join(commit, CommitEnd.GIVEN_UP.value))
    note_journal_end(directory, is_commit=not is_given_up, commit=int(os.path.basename(commit)))


def replace_journal(path: bytes) -> None:
    """Put an empty journal in the place of another one, durably and at once: no crash leaves none.

    On a full disk, where this is what makes room, the note of the old one's length becomes the new
    one; or it goes, where not even a rename is possible before.

    Raises:
        OSError: no journal can be made; the old one stays.
    """
    empty = path + b".next"

    def put() -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(empty)
        Journal.create(empty, spare=path + journal_length.LENGTH_SUFFIX).close()
        os.rename(empty, path)

    journal_length.in_reserve(path, put)
    sync_directory_of(path)


def begin_journal(path: bytes, commit: bytes | None) -> None:
    """Begin a journal where there is none: with what the commit in a directory leaves staged, if
    anything.

    The old journal has to be durably away first: after a power failure the new one might be taken
    for the old one.

    Raises:
        TrustError: there is something left staged, and no telling that this is it; no journal is
            made.
        OSError: the key cannot be read, or no journal be made.
    """
    carried = os.path.join(commit, CARRIED) if commit is not None else b""
    if commit is None or not is_there(carried):
        Journal.create(path).close()
        return
    number = int(os.path.basename(commit))
    end = end_of(os.path.dirname(path), number, has_to_look=True)
    if end is CommitEnd.GIVEN_UP:
        Journal.create(path).close()
        return
    if end is not CommitEnd.DONE:
        raise TrustError(
            f"what commit {number} left staged is not as it was sealed, so it is not put in force: {display(carried)}",
            hint="put it and the files beside it back from a backup; removing it gives up what was left staged",
        )
    for name in (carried, path):
        sync_directory_of(name)
    os.rename(carried, path)
    sync_directory_of(path)
