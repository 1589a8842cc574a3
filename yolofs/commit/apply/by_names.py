"""Moving a directory name by name, where the filesystem cannot rename it: OverlayFS answers EXDEV
for a directory of its lower layer.

A directory of the same kind is made beside the target.  Everything in the old one is renamed into
it, one name after the other.  Only then does it get its own name.  Before that begins, the mode,
owner, times and extended attributes of all directories in it are noted.  So whoever finishes it
after a crash, or takes it back, can set them again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from yolofs.commit.apply.copy_log import Copied, ObjectByDevice
from yolofs.commit.apply.kept_copies import metadata_of
from yolofs.commit.plan.plan import MetadataBefore
from yolofs.store import copying
from yolofs.store.copying import at
from yolofs.system import syscalls
from yolofs.system.plain_files import open_plain, read_plain

HALF = b"-half"
"""The end of the name of a directory into which another is being moved."""
DirectoryListing: TypeAlias = dict[bytes, MetadataBefore]
"""Each directory, parents first, by its path in the one that is moved, with a slash before it; the
moved one itself by an empty path.
"""
OpenSpot: TypeAlias = tuple[int, bytes]
"""An open directory, and a name in it."""
_MOST_BYTES = 1 << 30


def listing_of(top: OpenSpot) -> DirectoryListing:
    """Return the mode, owner, times and extended attributes of each directory of a tree.

    Raises:
        OSError: one cannot be looked at.
    """
    found: DirectoryListing = {}
    todo = [b""]
    while todo:
        rel = todo.pop()
        with _opened(top, rel, as_it_is=True) as fd:
            metadata = copying.read_metadata(fd)
            st = metadata.st
            xattrs = tuple((os.fsencode(name), value) for name, value in metadata.xattrs)
            found[rel] = MetadataBefore(st.st_mode, st.st_uid, st.st_gid, st.st_atime_ns, st.st_mtime_ns, xattrs)
            with os.scandir(fd) as entries:
                names = [os.fsencode(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
            todo += [rel + b"/" + name for name in names]
    return found


def write(listing: DirectoryListing, path: bytes, *, durable: bool) -> None:
    """Write a listing to a file that is not there yet, whole or not at all."""
    fd = open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(fd, "wb") as file:
        file.write(msgspec.msgpack.encode(listing))
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(path + b".new", path)


def read(path: bytes) -> DirectoryListing | None:
    """Return the listing in a file, None if there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return msgspec.msgpack.decode(read_plain(path, _MOST_BYTES), type=DirectoryListing)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise OSError(errno.EIO, "the note about a directory is damaged", path) from error


def move(
    source: OpenSpot,
    target: OpenSpot,
    listing: DirectoryListing,
    note: Callable[[Sequence[Copied]], object] = lambda _: None,
) -> None:
    """Move the rest of a directory tree into another tree, and make its missing directories.

    The old directories are gone then; before that ``note`` is told the new one for each.  It can be
    done again after a crash at any moment.

    Raises:
        OSError: something cannot be moved; EEXIST if somebody else has a directory in its place.
    """
    for rel, was in listing.items():
        with _parent(target, rel) as (fd, name):
            try:
                os.mkdir(name, 0o700, dir_fd=fd)
            except FileExistsError:  # as before a crash, or in a directory that everybody may write to
                if os.stat(name, dir_fd=fd, follow_symlinks=False).st_uid not in (os.geteuid(), was.uid):
                    raise
        with contextlib.suppress(FileNotFoundError):  # it was emptied, and is gone already
            _move_names(source, target, rel, listing)
    for rel, was in reversed(listing.items()):
        with _opened(target, rel) as fd:
            copying.write_metadata(fd, metadata_of(was))
    note(list(_made_for(source, target, listing)))
    for rel in reversed(listing):
        with contextlib.suppress(FileNotFoundError), _parent(source, rel) as (fd, name):
            os.rmdir(name, dir_fd=fd)


def _made_for(source: OpenSpot, target: OpenSpot, listing: DirectoryListing) -> Iterator[Copied]:
    """Yield which new directory stands for which old one, as far as these are there still."""
    for rel in listing:
        with contextlib.suppress(FileNotFoundError), _parent(source, rel) as old, _parent(target, rel) as new:
            was, now = (_object_at(at(*place)) for place in (old, new))
            yield Copied(was, 1, now)


def _object_at(path: bytes) -> ObjectByDevice:
    return ObjectByDevice.at(path, os.lstat(path))


def _move_names(source: OpenSpot, target: OpenSpot, rel: bytes, listing: DirectoryListing) -> None:
    """Move what is no directory, or came only after the listing, from one directory to the
    other.
    """
    with _opened(source, rel) as src, _opened(target, rel) as dst:
        for name in map(os.fsencode, os.listdir(src)):
            if rel + b"/" + name not in listing:
                syscalls.rename_noreplace(src, name, dst, name)


@contextlib.contextmanager
def _parent(top: OpenSpot, rel: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the directory that one of a tree lies in, and its name there; no link is followed."""
    *above, name = top[1], *rel.split(b"/")[1:]
    with contextlib.ExitStack() as opened:
        fd = top[0]
        for one in above:
            fd = os.open(one, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            opened.callback(os.close, fd)
        yield fd, name


@contextlib.contextmanager
def _opened(top: OpenSpot, rel: bytes, *, as_it_is: bool = False) -> Iterator[int]:
    """Open a directory of a tree, which its owner may read, enter and change from then on, unless
    ``as_it_is``.
    """
    with _parent(top, rel) as (above, name):
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            path = b"/proc/self/fd/%d" % place
            st = os.fstat(place)
            if not as_it_is and st.st_mode & stat.S_IRWXU != stat.S_IRWXU and st.st_uid == os.geteuid():
                os.chmod(path, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(place)
        try:
            yield fd
        finally:
            os.close(fd)
