"""Sessions of earlier versions, which lay in the project as ``.yolofs/``: whether one can be
trusted, and moving it.

Anybody who can put files into the project can put such a directory there: a clone, an archive.  So
one is moved without a question only if it can do no more harm than the project's other files:
everything that is staged lies in the project or in a scratch directory, no learned rule opens
anything, and no commit was interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple, assert_never

import msgspec

from yolofs.commit.apply.trees import copy_tree
from yolofs.config.learned import read_learned
from yolofs.config.settings import Settings
from yolofs.errors import SessionBusyError, TrustError, YolofsError
from yolofs.journal.journal import Journal
from yolofs.journal.records import ChangeRecord, Delete, Keep, Rename, Stage
from yolofs.paths import RelPath, display, is_below
from yolofs.registry.identity import DirectoryIdentity, identity_of
from yolofs.registry.link import put_link
from yolofs.registry.private import private_directory, user_name
from yolofs.registry.registry import Registry, SessionEntry
from yolofs.registry.search import FoundProject
from yolofs.registry.start import choose_state, make_session, register, unregister
from yolofs.registry.state_directory import SESSIONS
from yolofs.session.archive import interrupted_commit
from yolofs.session.opening.lock import session_locked
from yolofs.session.opening.root import read_session_file
from yolofs.system.busy_trees import remove_tree
from yolofs.system.git_exclude import exclude_from_git
from yolofs.system.own_names import SESSION_LINK, disk_state_name
from yolofs.system.syscalls import sync_filesystem
from yolofs.text.enumeration import some_of

_FILES = frozenset(
    b"journal journal.torn journal.new session.json session.json.new rules.toml rules.toml.new rules.lock lock "
    b"audit.jsonl audit.jsonl.1 checkpoint checkpoint.new daemon.log daemon.log.1 daemon.json daemon.json.new "
    b".gitignore".split()
)
"""All that earlier versions kept beside the directories, and the link to the mountpoint."""
_LINK = b"mnt"
_DIRECTORIES = frozenset({b"files", b"commits"})
_OF_COMMIT = {b"plan.json", b"progress", b"done", b"journal", b"carried"}, {b"new", b"parked", b"replaced"}
"""Files and directories of one commit."""
_GOES_ON = frozenset(
    {b"journal", b"journal.torn", b"session.json", b"rules.toml", b"lock", b"audit.jsonl", *_DIRECTORIES}
)
"""The rest is of no use any more, and could say something else than what was looked at."""
_TIGHT = frozenset({"deny", "hidden", "ask"})
_SHOWN = 3


class EarlierSession(NamedTuple):
    """A ``.yolofs/`` that is held open: whoever may write to the project may put something else
    there meanwhile.
    """

    project: bytes
    fd: int

    @property
    def path(self) -> bytes:
        """Where it was when it was opened, for messages and to move it."""
        return os.path.join(self.project, SESSION_LINK)

    @property
    def place(self) -> bytes:
        """A path of that very directory, wherever it is, for this process alone."""
        return b"/proc/self/fd/%d/." % self.fd

    def is_at(self, path: bytes) -> bool:
        """Tell whether this directory lies at a path."""
        try:
            return os.path.samestat(os.lstat(path), os.fstat(self.fd))
        except FileNotFoundError:
            return False


@contextlib.contextmanager
def earlier_session(project: bytes) -> Iterator[EarlierSession]:
    """Hold the ``.yolofs/`` of a project open while it is looked at and moved.

    Raises:
        OSError: there is none, or it is a link.
    """
    path = os.path.join(project, SESSION_LINK)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    earlier = EarlierSession(project, fd)
    try:
        yield earlier
    except YolofsError as error:  # which names it as it was opened
        error.message = error.message.replace(os.fsdecode(earlier.place), display(path))
        raise
    finally:
        os.close(fd)


def check_earlier(earlier: EarlierSession) -> None:
    """Check that a ``.yolofs/`` is one that this user made, as far as its files can tell.

    Raises:
        TrustError: it is not, or has links in it.
    """
    path, top = earlier.path, earlier.place
    for place, kind in _all_in(top):
        why = _objection(os.lstat(place), kind, is_top=place == top)
        if why:
            raise TrustError(
                f"{display(path)} is not taken for a session that you made with an earlier version: "
                f"{display(path + place[len(top) :])} {why}",
                hint="look at it, and remove or rename it; then: yolofs init",
            )


def _all_in(path: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the session's directory and all in it, without the files of the store and the commits,
    each with the type that it has to have.

    0 stands for what no earlier version made.
    """
    yield path, stat.S_IFDIR
    for name in sorted(map(os.fsencode, os.listdir(path))):
        place = os.path.join(path, name)
        if name == _LINK:
            yield place, stat.S_IFLNK
        elif name not in _DIRECTORIES:
            yield place, stat.S_IFREG if name in _FILES else 0
        else:
            yield place, stat.S_IFDIR
            for below in sorted(map(os.fsencode, os.listdir(place))):
                yield os.path.join(place, below), stat.S_IFDIR
                if name == b"commits":
                    yield from _all_of_commit(os.path.join(place, below))


def _all_of_commit(directory: bytes) -> Iterator[tuple[bytes, int]]:
    files, directories = _OF_COMMIT
    for name in sorted(map(os.fsencode, os.listdir(directory))):
        kind = stat.S_IFREG if name in files else stat.S_IFDIR if name in directories else 0
        yield os.path.join(directory, name), kind


def _objection(st: os.stat_result, kind: int, *, is_top: bool) -> str:
    if st.st_uid != os.geteuid():
        return f"belongs to {user_name(st.st_uid)}"
    if stat.S_ISLNK(st.st_mode) and kind != stat.S_IFLNK:
        return "is a symbolic link"
    if is_top and st.st_mode & 0o077:
        return f"has mode {stat.S_IMODE(st.st_mode):04o}, and not 0700"
    if kind != stat.S_IFMT(st.st_mode):
        return "is not what an earlier version made" if not kind else "is of another type than an earlier version made"
    if kind != stat.S_IFLNK and st.st_mode & 0o022:
        return "may be written to by others"
    if kind == stat.S_IFREG and st.st_nlink > 1:
        return "is no plain file of its own"
    return ""


def objections(earlier: EarlierSession) -> list[str]:
    """Return what in a ``.yolofs/`` could do harm if somebody else had put it there, a line each;
    none: nothing could.

    Raises:
        JournalError, ConfigError, YolofsError: a file of it cannot be read.
    """
    path = earlier.place
    found = []
    content = read_session_file(path)
    if content is not None and content.has_moved_journal:
        found.append("its session.json names another journal, as no earlier version did")
    if interrupted_commit(path) is not None:
        found.append("a commit was interrupted, and would write to base when it is finished")
    rules = [line for line in read_learned(path) if line.state not in _TIGHT]
    if rules:
        found.append(f"its rules open something: {some_of([f'{line.key} = {line.state}' for line in rules], _SHOWN)}")
    outside = [display(place) for place in _staged_outside(path, earlier.project)]
    if outside:
        found.append(f"it stages changes outside of the project: {some_of(outside, _SHOWN)}")
    return found


def _staged_outside(path: bytes, project: bytes) -> list[bytes]:
    """Return the absolute paths that the journal tells of and that lie neither in the project nor
    in scratch.
    """
    content = read_session_file(path)
    root = os.path.realpath(content.root_path) if content is not None else b"/"
    scratch = [os.path.realpath(os.path.expanduser(os.fsencode(top))) for top in Settings.defaults().scratch]
    inside = (project, *scratch)
    found: dict[bytes, None] = {}
    journal = os.path.join(path, b"journal")
    if not os.path.exists(journal):
        return []
    with Journal.open(journal, read_only=True) as records:
        for record in records.read():
            for rel in _paths(record) if isinstance(record, Stage | Delete | Rename | Keep) else ():
                place = _resolved(os.path.join(root, rel))
                if not any(is_below(place, top) for top in inside):
                    found[place] = None
    return list(found)


def _resolved(path: bytes) -> bytes:
    """Return where a path leads, except for its last component: a link of the project may be on the
    way.
    """
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _paths(record: ChangeRecord) -> Iterator[RelPath]:
    match record:
        case Stage():
            found = (record.path, record.origin)
        case Delete():
            found = (record.path, None)
        case Rename():
            found = (record.src, record.dst)
        case Keep():
            yield from filter(None, (record.source, record.home, record.had))
            found = (record.path, record.origin)
        case _:
            assert_never(record)
    yield from (path for path in found if path is not None)


def _check_in_place(earlier: EarlierSession) -> None:
    if not earlier.is_at(earlier.path):
        raise SessionBusyError(f"{display(earlier.path)} has been moved just now", hint="run the same command again")


def move_into_state(earlier: EarlierSession, named: bytes | None = None) -> FoundProject:
    """Move the session of an earlier version into the user's state directory, or into the one that
    is ``named``.

    Raises:
        SessionBusyError: it is in use, by a daemon of that version, for instance.
        TrustError: the state directory could be changed by others, or somebody has put something
            else in its place.
        OSError: it cannot be moved; it is where it was.
    """
    project, place = earlier.project, earlier.place
    _check_in_place(earlier)
    check_earlier(earlier)
    with session_locked(place):
        _check_in_place(earlier)  # before we had the lock
        state, _ = choose_state(project, named)
        identity = identity_of(project)
        for stale in _entries_of(identity):  # of a try that was killed
            if stale.is_about_to_move:
                unregister(stale)
        _leave_behind(place)
        session_id = os.urandom(6).hex().encode()
        make_session(state, session_id)
        session = os.path.join(state, SESSIONS, session_id)
        entry = SessionEntry.make(session, project, identity)
        moving = msgspec.structs.replace(entry, is_moving=True)
        register(moving, state)  # before: until the directory is moved, the one in the project counts
        try:
            _rename(earlier, session)
        except OSError as error:
            if error.errno != errno.EXDEV:  # another disk, or the same one by another mount
                unregister(moving)
                os.rmdir(session)
                raise
            _copy(place, session)
            register(entry, state)
            aside = os.path.join(project, disk_state_name(time.time_ns()))  # which no view shows
            _rename(earlier, aside)
            for name in map(os.fsencode, os.listdir(place)):
                remove_tree(os.path.join(place, name))
            os.rmdir(aside)
        else:
            register(entry, state)
    put_link(project, session)
    exclude_from_git(project, SESSION_LINK)
    return FoundProject(project, entry)


def _rename(earlier: EarlierSession, target: bytes) -> None:
    os.rename(earlier.path, target)
    if not earlier.is_at(target):
        raise TrustError(
            f"somebody has put something else in the place of {display(earlier.path)} while that was moved; it is "
            f"{display(target)} now",
            hint=f"look at it, and at who may write to {display(earlier.project)}; then remove it, and try again",
        )


def _copy(path: bytes, session: bytes) -> None:
    """Copy a session into a directory made for it, durably; the journal last, as it tells that all
    is there.
    """
    names = sorted(map(os.fsencode, os.listdir(path)), key=lambda name: name == b"journal")
    for name in names:
        copy_tree(os.path.join(path, name), os.path.join(session, name))
        with private_directory(session) as copied:
            sync_filesystem(copied)


def _leave_behind(path: bytes) -> None:
    for name in map(os.fsencode, os.listdir(path)):
        if name not in _GOES_ON:
            os.unlink(os.path.join(path, name))


def _entries_of(identity: DirectoryIdentity) -> list[SessionEntry]:
    with Registry.open() as registry:
        return [entry for entry in registry.of_inode(identity.inode) if entry.identity.is_same(identity)]
