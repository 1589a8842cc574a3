"""Copies of files that a commit keeps and that still have other names: they take the files' places.

What was removed is in the folder ``replaced`` by a rename.  If it was one of several names of a
file, the link count of the file would include it for ever, and programs that look at link counts
would miss a name.  So each such file gets a copy in ``replaced``, which takes the place of its
names there.  So does a file that the commit had changed before its last name was removed: what is
kept is what base had before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from yolofs.commit.apply.copy_log import Copied, FileNumbers, ObjectByDevice
from yolofs.commit.plan.plan import MetadataBefore
from yolofs.store import copying
from yolofs.store.restored import InodeCtime
from yolofs.system import syscalls
from yolofs.system.open_trees import OpenTree
from yolofs.system.plain_files import read_note, replace_note

_NameAndFile: TypeAlias = tuple[bytes, int, int]


class BeforeWriting(NamedTuple):
    """What a file was before the commit wrote to it."""

    copy: bytes
    """The path of a copy, which may have another mode."""
    was: MetadataBefore | None
    """Its metadata; None in plans of earlier versions."""


Original: TypeAlias = BeforeWriting | MetadataBefore | None
"""What a file was before the commit changed it in place, or its metadata, if only that was changed.
None if that cannot be told.
"""

_GONE = (FileNotFoundError, NotADirectoryError)
_PREFIX = b"apart-"
_NOTE = b"parted"
"""In a commit's directory: for each name in ``replaced`` that has a copy now, the file that it was
a name of.
"""
DIRECTORIES_NOTE = b"directories-in-replaced"
"""In the folder ``new``: the modes and times that directories in ``replaced`` are to have once
names in them have got copies; paths are relative to the commit's directory.
"""
_MOST_BYTES = 1 << 30


class _DirectoryAsItWas(msgspec.Struct, frozen=True, array_like=True):
    """A directory in ``replaced``, as it was in base."""

    mode: int
    atime_ns: int
    mtime_ns: int


class KeptCopy(NamedTuple):
    """A copy that is to take the place of some names of a file."""

    copy: bytes
    names: list[bytes]
    """The file's paths in ``replaced``."""
    file: FileNumbers


def copy_kept_files(
    replaced: bytes,
    new: bytes,
    originals: Callable[[], Mapping[FileNumbers, Original]],
    first: Collection[int],
    files_of_copies: Mapping[bytes, FileNumbers],
) -> list[KeptCopy]:
    """Copy, into the folder ``new``, the files in ``replaced`` that have names elsewhere too, or
    were changed before they were moved there; return the copies.

    Both folders are on one device.  A copy is what the file was before the commit.  ``originals``
    tells that for files changed in place.  It is called only if there are files to copy, or if
    files were changed ``first``, a list of inode numbers.  ``files_of_copies`` is what
    :func:`files_of_kept_copies` returns.  What cannot be copied (the disk is full, it is another
    user's) stays the link that it is.  Copies of an earlier attempt are removed.  Blocks: a copy
    takes as long as the file is large.

    Raises:
        OSError: ``new`` cannot be worked in.
    """
    for name in os.listdir(new):
        if name.startswith(_PREFIX):
            os.unlink(os.path.join(new, name))
    copies: list[KeptCopy] = []
    files = _files_with_names_elsewhere(replaced)
    known = originals() if files or first else {}
    if first:
        known_names = {name for _, names in files for name in names}
        files += [one for one in _files_changed(replaced, known, files_of_copies) if known_names.isdisjoint(one[1])]
    for file, names in files:
        copy = os.path.join(new, _PREFIX + b"%d" % len(copies))
        original = known.get(file, names[0])
        if original is not None and _may_copy(names[0], original, copy):
            copies.append(KeptCopy(copy, names, file))
    return copies


def _files_changed(
    replaced: bytes, known: Mapping[FileNumbers, Original], files_of_copies: Mapping[bytes, FileNumbers]
) -> list[tuple[FileNumbers, list[bytes]]]:
    """Return the files in ``replaced`` that are, or are copies of, what is ``known`` to have been
    changed in place, and all their paths.
    """
    found: dict[FileNumbers, tuple[FileNumbers, list[bytes]]] = {}
    for path, st in files_below(replaced):
        kept = st.st_dev, st.st_ino
        file = files_of_copies.get(os.path.relpath(path, replaced), kept)
        if file in known:
            found.setdefault(kept, (file, []))[1].append(path)
    return list(found.values())


def files_of_kept_copies(directory: bytes) -> dict[bytes, FileNumbers]:
    """Return the files of base of which the commit keeps a copy, by the paths of their names in
    ``replaced``.

    Raises:
        OSError: that cannot be read.
    """
    text = read_note(os.path.join(directory, _NOTE), _MOST_BYTES)
    try:
        found = msgspec.json.decode(text, type=list[_NameAndFile]) if text is not None else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {name: (device, inode) for name, device, inode in found}


def note_kept_copies(directory: bytes, names: Mapping[bytes, FileNumbers]) -> None:
    """Note durably, in a commit's directory, which files the names in ``replaced`` that get
    copies were names of.

    Raises:
        OSError: it cannot be written.
    """
    if not names:
        return
    known = {**files_of_kept_copies(directory), **names}
    text = msgspec.json.encode([(name, *of) for name, of in known.items()])
    replace_note(os.path.join(directory, _NOTE), text)


def names_in(copies: list[KeptCopy], replaced: bytes) -> dict[bytes, FileNumbers]:
    """Return, for each name that gets a copy, the file that it was a name of, by its path in
    ``replaced``.
    """
    return {os.path.relpath(name, replaced): one.file for one in copies for name in one.names}


def copies_noted(copies: Iterable[KeptCopy]) -> list[Copied]:
    """Return what is to be noted of copies that are about to take their names' places."""
    found: list[Copied] = []
    for one in copies:
        copy = ObjectByDevice.at(one.copy, os.lstat(one.copy))
        found.append(Copied(ObjectByDevice(one.file, 0), max(2, len(one.names)), copy))
    return found


def names_of_several(place: bytes, name: bytes) -> dict[bytes, FileNumbers]:
    """Return the names at a place, or below it, of files with several names, each with its file;
    ``name`` stands for the place.
    """
    try:
        st = os.lstat(place)
    except FileNotFoundError:
        return {}
    if not stat.S_ISDIR(st.st_mode):
        return {name: (st.st_dev, st.st_ino)} if syscalls.has_several_names(place, st) else {}
    found = ((path, st) for path, st in files_below(place) if syscalls.has_several_names(path, st))
    return {os.path.join(name, os.path.relpath(path, place)): (st.st_dev, st.st_ino) for path, st in found}


def inode_ctimes_of(place: bytes, name: bytes, names: Iterable[bytes]) -> Iterator[InodeCtime]:
    """Yield the inode ctimes of the files that :func:`names_of_several` has returned the ``names``
    of.
    """
    with OpenTree(place) as tree:
        for one in names:
            st = tree.lstat(one[len(name) :])
            yield st.st_ino, st.st_ctime_ns


def remove_names_of_several(place: bytes) -> Iterator[tuple[InodeCtime, InodeCtime]]:
    """Remove the names, in what lies at a place, of files that have others; yield the inode ctimes
    of each file before and after.

    Names in directories that forbid it stay, as do those of which the disk tells nothing then.

    Raises:
        OSError: the disk failed.
    """
    with OpenTree(place) as tree:
        for name in names_of_several(place, b""):
            with (
                contextlib.suppress(PermissionError),
                tree.place(b"/" + name if name else b"") as (directory, own),
                copying.path_descriptor(copying.at(directory, own)) as thing,
            ):
                st = os.fstat(thing.fd)
                os.unlink(own, dir_fd=directory)
                after = _ctime_of_open(thing.fd)
                if after is not None:
                    yield (st.st_ino, st.st_ctime_ns), (st.st_ino, after)


class Ctimes(NamedTuple):
    """The ctime, in ns, of a file before a copy took the place of some of its names, and after."""

    before: int
    after: int | None
    """None where the disk does not tell by the name that went."""


def put_in_place(copies: list[KeptCopy], new: bytes) -> dict[int, Ctimes]:
    """Let copies, which are durable, take the place of the names that they are made for.

    Return what that did to the ctimes of the files, by inode number.  A crash leaves each name
    either; doing it all again does the rest.  Directories keep the modes and times that they had in
    base.

    ``new``: the folder that the copies are in.

    Raises:
        OSError: the disk failed.
    """
    ctimes: dict[int, Ctimes] = {}
    directories = _note_directories(copies, new)
    for directory, was in directories.items():
        _open_up(directory, was)
    for kept in copies:
        try:
            with _opened(kept.names[0]) as name:
                before = os.fstat(name.fd).st_ctime_ns
                _put_one(kept)
                ctimes[kept.file[1]] = Ctimes(before, _ctime_of_open(name.fd))
        except _GONE:
            _put_one(kept)
    for directory, was in directories.items():
        with contextlib.suppress(*_GONE), _opened(directory) as there:
            if stat.S_IMODE(os.fstat(there.fd).st_mode) != was.mode:
                os.chmod(there.path, was.mode)
            copying.may_set_ns(there, was.atime_ns, was.mtime_ns)
    return ctimes


@contextlib.contextmanager
def _opened(path: bytes) -> Iterator[copying.PathDescriptor]:
    """Hold what is at a path in what is kept.  Whoever had a directory in there open can write to
    it still, so no link is followed.

    Raises:
        NotADirectoryError: somebody has put a link in the place of a directory.
        OSError: as open(2).
    """
    try:
        fd = syscalls.open_by_no_link(path, os.O_PATH)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
        raise
    try:
        yield copying.PathDescriptor(fd)
    finally:
        os.close(fd)


def _ctime_of_open(fd: int) -> int | None:
    """Return the ctime in ns of an open file of which a name has gone; None if it was the name that
    the disk knows the file by: some disks in user space find files by names alone.
    """
    try:
        return syscalls.fresh_ctime_ns(fd)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):
            raise
        return None


def _open_up(directory: bytes, was: _DirectoryAsItWas) -> None:
    """Make a directory of ours writable that forbids that."""
    if was.mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    with contextlib.suppress(*_GONE), _opened(directory) as kept:
        if os.fstat(kept.fd).st_uid == os.geteuid():
            os.chmod(kept.path, was.mode | stat.S_IRWXU)


def _note_directories(copies: list[KeptCopy], new: bytes) -> dict[bytes, _DirectoryAsItWas]:
    """Note durably the modes and times of the directories of the names, before any name is
    replaced; return them by path, with those that were noted before a crash.
    """
    place, parking = os.path.join(new, DIRECTORIES_NOTE), os.path.dirname(new)
    text = read_note(place, _MOST_BYTES)
    try:
        noted = msgspec.json.decode(text, type=dict[bytes, _DirectoryAsItWas]) if text is not None else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        noted = {}
    inside = {os.path.relpath(os.path.dirname(name), parking) for one in copies for name in one.names}
    found: dict[bytes, _DirectoryAsItWas] = {}
    for directory in inside:
        if b"/" in directory:  # those names that lie in the folder of what is kept are in none of base's
            with contextlib.suppress(*_GONE), _opened(os.path.join(parking, directory)) as kept:
                st = os.fstat(kept.fd)
                found[directory] = _DirectoryAsItWas(stat.S_IMODE(st.st_mode), st.st_atime_ns, st.st_mtime_ns)
    found |= noted
    if found != noted:
        replace_note(place, msgspec.json.encode(found))
    return {os.path.join(parking, directory): was for directory, was in found.items()}


def _put_one(kept: KeptCopy) -> None:
    link = kept.copy + b"-link"
    try:
        for name in (*kept.names[1:], kept.names[0]):
            with _opened(os.path.dirname(name)) as directory:
                if name != kept.names[0]:
                    os.link(kept.copy, link, follow_symlinks=False)
                made = link if name != kept.names[0] else kept.copy
                os.rename(made, os.path.basename(name), dst_dir_fd=directory.fd)
    except (PermissionError, *_GONE):  # they are in another user's directory, or that is gone
        for path in (link, kept.copy):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _files_with_names_elsewhere(replaced: bytes) -> list[tuple[FileNumbers, list[bytes]]]:
    names: dict[FileNumbers, list[bytes]] = {}
    counts: dict[FileNumbers, int] = {}
    for path, st in files_below(replaced):
        if syscalls.has_several_names(path, st):
            file = st.st_dev, st.st_ino
            names.setdefault(file, []).append(path)
            counts[file] = st.st_nlink
    return [(file, paths) for file, paths in names.items() if counts[file] > len(paths)]


def files_below(root: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield all below ``root`` that is no directory; of directories that cannot be listed,
    nothing.
    """
    with OpenTree(root) as tree:
        for path, st in tree.below(passes_over=True):
            if not stat.S_ISDIR(st.st_mode):
                yield root + path, st


def _may_copy(path: bytes, original: bytes | BeforeWriting | MetadataBefore, copy: bytes) -> bool:
    """Make ``copy`` what the file at ``path`` was; tell whether it is all that.  If not, there is
    nothing.
    """
    try:
        if isinstance(original, MetadataBefore):
            with _opened(path) as file:
                copying.copy_node(file, copy)
            left_out = copying.write_metadata(copy, metadata_of(original))
        elif isinstance(original, BeforeWriting):
            left_out = copying.copy_node(original.copy, copy)
            if original.was is not None:
                left_out = copying.write_metadata(copy, metadata_of(original.was))
        else:
            left_out = copying.copy_node(original, copy)
        if not left_out:
            return True
    except OSError:  # the same as if something had to be left out
        pass
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    return False


def metadata_of(was: MetadataBefore) -> copying.Metadata:
    """Return the metadata that something had before, in the form in which it is written."""
    times = {"st_atime_ns": was.atime_ns, "st_mtime_ns": was.mtime_ns}
    st = os.stat_result((was.mode, 0, 0, 1, was.uid, was.gid, 0, 0, 0, 0), times)
    return copying.Metadata(st, tuple((os.fsdecode(name), value) for name, value in was.xattrs))
