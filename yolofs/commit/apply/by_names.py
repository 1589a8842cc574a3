"""Moving a directory name by name, where the filesystem renames none: OverlayFS says EXDEV of those that it has below.

A directory of the same kind is made beside the target, whatever is in the old one is renamed into it, one name after
the other, and only then does it get its own name.  Before that begins, what all directories in it are is written down,
so that whoever goes on after a crash, either way, can give them that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TypeAlias

import msgspec

from yolofs.commit.apply.part_links import metadata_of
from yolofs.commit.plan.plan import Attributes
from yolofs.store import copying
from yolofs.system import syscalls
from yolofs.system.plain_files import open_plain, read_plain

HALF = b"-half"
"""How the name ends of a directory into which another is being moved."""
Listing: TypeAlias = dict[bytes, Attributes]
"""Each directory, by its path in the one that is moved, parents first; itself under the empty path."""
_MOST_BYTES = 1 << 30


def listing_of(top: bytes) -> Listing:
    """Return what the directories of a tree are.

    Raises:
        OSError: one cannot be looked at.
    """
    found: Listing = {}
    todo = [b""]
    while todo:
        rel = todo.pop()
        path = top + rel
        metadata = copying.read_metadata(path)
        st = metadata.st
        xattrs = tuple((os.fsencode(name), value) for name, value in metadata.xattrs)
        found[rel] = Attributes(st.st_mode, st.st_uid, st.st_gid, st.st_atime_ns, st.st_mtime_ns, xattrs)
        with os.scandir(path) as entries:
            todo += [rel + b"/" + entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def write(listing: Listing, path: bytes, *, durable: bool) -> None:
    """Write a listing to a file that is not there yet, whole or not at all."""
    fd = open_plain(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(fd, "wb") as file:
        file.write(msgspec.msgpack.encode(listing))
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.rename(path + b".new", path)


def read(path: bytes) -> Listing | None:
    """Return the listing in a file, None if there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return msgspec.msgpack.decode(read_plain(path, _MOST_BYTES), type=Listing)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise OSError(errno.EIO, "what was noted of a directory is damaged", path) from error


def move(source: bytes, target: bytes, listing: Listing) -> None:
    """Move what is left in the directories of a tree to others, which are made where they are not there yet.

    The old ones are gone then.  It can be done again after a crash at any moment.

    Raises:
        OSError: something cannot be moved.
    """
    for rel in listing:
        with contextlib.suppress(FileExistsError):
            os.mkdir(target + rel, 0o700)
        _open_up(target + rel)
        with contextlib.suppress(FileNotFoundError):  # it was emptied, and is gone already
            _open_up(source + rel)
            _move_names(source, target, rel, listing)
    for rel, was in reversed(listing.items()):
        copying.write_metadata(target + rel, metadata_of(was))
    for rel in reversed(listing):
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(source + rel)


def _open_up(directory: bytes) -> None:
    st = os.lstat(directory)
    if st.st_mode & stat.S_IRWXU != stat.S_IRWXU and st.st_uid == os.geteuid():
        os.chmod(directory, stat.S_IMODE(st.st_mode) | stat.S_IRWXU)


def _move_names(source: bytes, target: bytes, rel: bytes, listing: Listing) -> None:
    """Move what is no directory, or came only after the listing, from one directory to the other."""
    fds = [os.open(top + rel, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC) for top in (source, target)]
    try:
        for name in map(os.fsencode, os.listdir(fds[0])):
            if rel + b"/" + name not in listing:
                syscalls.rename_noreplace(fds[0], name, fds[1], name)
    finally:
        for fd in fds:
            os.close(fd)
