"""The store: a flat, sharded directory of store inodes, each a real file of any type, named by its
number.

::

    files/00/1 ... files/00/255, files/01/256 ... files/ff/65535, files/100/65536 ...

The shard is the number divided by 256, in hex, at least two digits.  A store inode has the type,
mode, owner, times and xattrs that the view shows; a directory here is always empty, since names
live in the override tree.

A number is never given out twice while a journal names it.  So that this holds after store inodes
were removed, whoever opens the store tells it what the journal names, by ``next_ino`` or
:meth:`Store.skip_past`.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import cast

import msgspec

from yolofs.paths import StoreIno
from yolofs.store import copying
from yolofs.store.owners import OWNERS_LEFT_OUT, Owners, shown, shown_source
from yolofs.store.shards import (
    SHARD_BITS,
    list_shards,
    make_private_directory,
    make_shard,
    path_of_shard,
)
from yolofs.system import syscalls

BASES = b"bases"
"""The file of what base had (:mod:`yolofs.state.kept_bases`): in the store, or in the directory of
the commit that ended its journal.
"""
NEW_BASES = BASES + b".new"
"""The same while it is written anew."""
_is_ino = re.compile(rb"[1-9][0-9]{0,17}").fullmatch
_SHARD_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_OPEN_SHARDS = 16
_MINE = stat.S_IRUSR | stat.S_IWUSR


class Store:
    """The store inodes below one directory (``files/`` of a session).

    One thread calls, except for :meth:`copy_into` and :meth:`open`, which any may.

    Attributes:
        directory: the path that the shards are in.
    """

    def __init__(self, directory: bytes, *, next_ino: int = 1) -> None:
        """Open a store, making the directory if it is missing.

        The next number is ``next_ino``, or above the highest one present if that is more.

        Raises:
            OSError: the directory cannot be made or listed.
        """
        self.directory = directory
        self._prefixes: dict[int, bytes] = {}
        self._looks: dict[int, os.stat_result] | None = None
        self._open_shards: dict[int, int] = {}
        """The descriptors of shards, while many of their store inodes are looked at."""
        self.elsewhere: Mapping[int, bytes] = {}
        """The base paths of store inodes that a commit has moved into base, while the old state is
        still shown.
        """
        self.is_closed = False
        """Whether nothing may be made in it for now."""
        self._modes = Lock()  # held while a mode is widened: see _widened
        make_private_directory(directory)
        self.owners = Owners(directory)
        """Whom those store inodes belong to in the view that could not be given to them."""
        self._shards = set(list_shards(directory))
        self._next = max(next_ino, self._highest() + 1)

    @property
    def next_ino(self) -> StoreIno:
        """The number that :meth:`reserve` gives out next."""
        return StoreIno(self._next)

    def refresh(self) -> None:
        """Take in the store inodes that another process has made."""
        self.owners.refresh()
        self._shards = set(list_shards(self.directory))
        self.skip_past(self._highest())

    def skip_past(self, ino: int) -> None:
        """Give out no number up to and including ``ino``, because a journal names it."""
        self._next = max(self._next, ino + 1)

    def path(self, ino: int) -> bytes:
        """Return the path of a store inode; does not look whether it exists."""
        return self.elsewhere[ino] if ino in self.elsewhere else self.own_path(ino)

    def lstat(self, ino: int) -> os.stat_result:
        """Return the attributes of a store inode, with the owner that it shows.

        Raises:
            OSError: there is none.
        """
        looks = self._looks
        if looks is None:
            return self._shown(ino, os.lstat(self.path(ino)))
        st = looks.get(ino)
        if st is None:
            there = os.lstat(self.elsewhere[ino]) if ino in self.elsewhere else self._look(ino)
            st = looks[ino] = self._shown(ino, there)
        return st

    def metadata(self, ino: int) -> copying.Metadata:
        """Return all that a store inode has besides its data, with the owner that it shows.

        Raises:
            OSError: it cannot be read.
        """
        path = self.path(ino)
        return copying.read_metadata(path, st=self._shown(ino, os.lstat(path)))

    def shown_owner(self, ino: int) -> tuple[int, int] | None:
        """Return the user and group that a store inode shows, None if they are its own."""
        return self.owners.of.get(ino)

    def _shown(self, ino: int, st: os.stat_result) -> os.stat_result:
        owner = self.owners.of.get(ino)
        return st if owner is None else shown(st, owner)

    def _look(self, ino: int) -> os.stat_result:
        """Look at a store inode from its shard, which saves a quarter of what the whole path
        takes.
        """
        shard = ino >> SHARD_BITS
        try:
            fd = self._open_shards.get(shard)
            if fd is None:
                while len(self._open_shards) >= _MOST_OPEN_SHARDS:
                    os.close(self._open_shards.pop(next(iter(self._open_shards))))
                fd = self._open_shards[shard] = os.open(path_of_shard(self.directory, shard), _SHARD_FLAGS)
            return os.lstat(b"%d" % ino, dir_fd=fd)
        except OSError:
            return os.lstat(self.own_path(ino))  # what it raises names the whole path

    @contextlib.contextmanager
    def looking_once(self) -> Iterator[None]:
        """Have each store inode looked at once in the block, for a command that asks of the same
        several times.

        Danger: nobody else may change a store inode meanwhile.
        """
        self._looks = {}
        try:
            yield
        finally:
            self._looks = None
            while self._open_shards:
                os.close(self._open_shards.popitem()[1])

    def own_path(self, ino: int) -> bytes:
        """Return the path in the store itself, which removing needs: :attr:`elsewhere` is base."""
        shard = ino >> SHARD_BITS
        prefix = self._prefixes.get(shard)
        if prefix is None:
            prefix = self._prefixes[shard] = b"%b/%02x/" % (self.directory, shard)
        return b"%b%d" % (prefix, ino)

    def holds(self, path: object) -> bool:
        """Tell whether a path, as an :class:`OSError` names it, is one of a store inode."""
        return isinstance(path, bytes) and path.startswith(self.directory + b"/")

    def __iter__(self) -> Iterator[StoreIno]:
        """Yield the numbers of all store inodes present, in order."""
        for shard in self.shards:
            yield from sorted(self.in_shard(shard))

    @property
    def shards(self) -> list[int]:
        """The shards that this store has made or found, in order."""
        return sorted(self._shards)

    def since(self, first: int) -> Iterator[StoreIno]:
        """Yield the numbers of all store inodes present, from ``first`` on, in order."""
        for shard in self.shards:
            if shard >= first >> SHARD_BITS:
                yield from sorted(ino for ino in self.in_shard(shard) if ino >= first)

    # --- making store inodes ---

    def reserve(self) -> StoreIno:
        """Return a number that is free, in a shard that exists.  It counts as taken whether used or
        not.

        Raises:
            OSError: EROFS while :attr:`is_closed`.
        """
        if self.is_closed:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        ino = self._next
        shard = ino >> SHARD_BITS
        if shard not in self._shards:
            make_shard(self.directory, shard)
            self._shards.add(shard)
        self._next = ino + 1
        return StoreIno(ino)

    def create_file(self, mode: int) -> tuple[StoreIno, int, os.stat_result]:
        """Make an empty regular file with exactly these permission bits, whatever the umask.

        Returns its number, a descriptor for reading and writing, which the caller owns, and its
        attributes.
        """
        ino = self.reserve()
        path = self.path(ino)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            st = os.fstat(fd)
            if stat.S_IMODE(st.st_mode) != mode:
                os.fchmod(fd, mode)
                st = os.fstat(fd)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise
        return ino, fd, st

    def create_dir(self, mode: int) -> tuple[StoreIno, os.stat_result]:
        """Make a directory with exactly these permission bits; return its number and attributes."""
        ino = self.reserve()
        path = self.path(ino)
        os.mkdir(path, mode)
        st = os.lstat(path)
        if stat.S_IMODE(st.st_mode) == mode:
            return ino, st
        return self._with_mode(ino, mode), os.lstat(path)

    def create_symlink(self, target: bytes) -> StoreIno:
        """Make a symlink."""
        ino = self.reserve()
        os.symlink(target, self.path(ino))
        return ino

    def create_special(self, mode: int, rdev: int = 0) -> StoreIno:
        """Make a fifo, socket or device; ``mode`` holds the type and exactly the permission bits.

        Raises:
            PermissionError: it is a device and this process may not make one.
        """
        ino = self.reserve()
        os.mknod(self.path(ino), stat.S_IFMT(mode) | 0o600, rdev)
        return self._with_mode(ino, stat.S_IMODE(mode))

    def _with_mode(self, ino: StoreIno, mode: int) -> StoreIno:
        try:
            os.chmod(self.path(ino), mode)
        except BaseException:
            self.remove(ino)
            raise
        return ino

    # --- copying ---

    def copy_up(self, src: bytes, *, data: bool = True) -> StoreIno:
        """Make a store inode that is a copy of ``src``, a path of any type in base or in this
        store.

        Without ``data`` a regular file becomes one hole of the same size.  What cannot be carried
        over for lack of permission (an xattr) is left out, except for the owner, which the store
        inode then shows (:attr:`owners`).  Blocks while bytes are copied; for large files let
        another thread run :meth:`copy_into`.

        Raises:
            OSError: ``src`` cannot be read or the copy not written; no store inode is left behind.
        """
        ino = self.reserve()
        self.copy_into(ino, src, data=data)
        return ino

    def copy_into(self, ino: StoreIno, src: bytes, *, data: bool = True) -> tuple[str, ...]:
        """Do the copying of :meth:`copy_up` for a number from :meth:`reserve`; return what was left
        out.
        """
        source = self.open_source(src, data=data)
        try:
            return self.note_left_out(ino, copying.write_copy(source, self.path(ino)), source.metadata.st)
        finally:
            source.close()

    def copy_file(self, source: copying.CopySource, *, keep: int | None = None) -> tuple[StoreIno, int]:
        """Make a store inode that is a copy of a regular file, or of its first ``keep`` bytes.

        Returns its number and a descriptor for reading and writing, which the caller owns; raises
        as :meth:`copy_up`.
        """
        ino = self.reserve()
        fd, left_out = copying.write_file(source, self.path(ino), keep=keep)
        if left_out:
            self.note_left_out(ino, left_out, source.metadata.st)
        return ino, fd

    def give(self, ino: int, metadata: copying.Metadata, *, times: bool = True) -> tuple[str, ...]:
        """Give a store inode metadata; return what could not be carried over and does not show.

        Raises:
            OSError: as :func:`yolofs.store.copying.write_metadata`.
        """
        left_out = copying.write_metadata(self.path(ino), metadata, times=times)
        if not OWNERS_LEFT_OUT.isdisjoint(left_out):
            return self.note_left_out(ino, left_out, metadata.st)
        self.owners.forget(ino)
        return left_out

    def note_left_out(self, ino: int, left_out: tuple[str, ...], st: os.stat_result) -> tuple[str, ...]:
        """Let a store inode show the owner of ``st`` if it could not be given that; return what
        else was left out.
        """
        if OWNERS_LEFT_OUT.isdisjoint(left_out):
            return left_out
        self.owners.note(ino, st.st_uid, st.st_gid)
        return tuple(one for one in left_out if one not in OWNERS_LEFT_OUT)

    def rename(self, ino: int, new: int) -> None:
        """Give a store inode another number, one from :meth:`reserve`.

        Raises:
            OSError: it cannot be renamed.
        """
        owner = self.owners.of.get(ino)
        if owner is not None:
            self.owners.note(new, *owner)
        os.rename(self.path(ino), self.path(new))

    def open_source(self, src: bytes, *, data: bool) -> copying.CopySource:
        """Open what is to be copied, a path in base or in this store; the caller closes it.

        Raises:
            OSError: it cannot be read.
        """
        if not src.startswith(self.directory + b"/"):
            # base is only ever read: its modes are not ours to widen
            return copying.open_source(src, data=data, is_base=True)
        source = self._open_inode(src, data=data)
        owner = self.owners.of.get(int(os.path.basename(src))) if self.owners.of else None
        return source if owner is None else shown_source(source, owner)

    def _open_inode(self, path: bytes, *, data: bool) -> copying.CopySource:
        with self._modes:
            st = os.lstat(path)
            if not _is_closed_to_us(st):
                return copying.open_source(path, data=data)
            with _widened(path, st):
                source = copying.open_source(path, data=data)
            return msgspec.structs.replace(source, metadata=msgspec.structs.replace(source.metadata, st=st))

    def sync(self) -> None:
        """Wait until all that is in the store is durable.

        Raises:
            OSError: the disk failed.
        """
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            syscalls.sync_filesystem(fd)
        finally:
            os.close(fd)

    # --- using store inodes ---

    def open(self, ino: int, flags: int) -> int:
        """Open a store inode whatever its mode, as whoever holds it open may go on after a chmod.

        The mode of a file that this (ordinary) user owns but may not open is widened for that
        moment.

        Raises:
            OSError: as open(2); ELOOP for a symlink.
        """
        path = self.path(ino)
        if ino in self.elsewhere and flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags)
        except PermissionError as error:
            if error.errno != errno.EACCES or os.lstat(path).st_uid != os.geteuid() or ino in self.elsewhere:
                raise
        with self._modes, _widened(path, os.lstat(path)):
            return os.open(path, flags)

    def hold(self, ino: int) -> int:
        """Return a descriptor with which a store inode of any type outlives its removal, until it
        is closed.

        It is good for nothing else.  -1 if there is no such store inode, or no descriptor to be
        had.
        """
        try:
            return os.open(self.path(ino), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return -1

    def remove(self, ino: int) -> None:
        """Remove a store inode of any type.

        Its number is not given out anew.  Its blocks are freed when nobody has it open any more
        (:meth:`hold`).

        Raises:
            FileNotFoundError: there is none.
        """
        path = self.own_path(ino)
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rmdir(path)

    def remove_links(self, inos: Iterable[int]) -> None:
        """Remove store inodes, files all, that have another name elsewhere; quick where they come
        in order.

        One that is not there is passed over.

        Raises:
            OSError: one cannot be removed; others may be gone.
        """
        for shard, numbers in itertools.groupby(inos, key=lambda ino: ino >> SHARD_BITS):
            try:
                fd = os.open(path_of_shard(self.directory, shard), _SHARD_FLAGS)
            except FileNotFoundError:
                continue
            try:
                for ino in numbers:
                    try:
                        os.unlink(b"%d" % ino, dir_fd=fd)
                    except FileNotFoundError:
                        continue
                    except OSError:
                        self.remove(ino)  # what it raises names the whole path
            finally:
                os.close(fd)

    def drop_if_empty(self, shard: int) -> None:
        """Remove a shard in which nothing lies."""
        with contextlib.suppress(OSError):  # ENOTEMPTY, as a rule
            os.rmdir(path_of_shard(self.directory, shard))
            self._shards.discard(shard)

    def in_shard(self, shard: int) -> list[StoreIno]:
        """Return the numbers in one shard; a file that is not ours is passed over."""
        names = os.listdir(path_of_shard(self.directory, shard))
        numbers = [int(name) for name in names if _is_ino(name)]
        return cast("list[StoreIno]", [ino for ino in numbers if ino >> SHARD_BITS == shard])

    def _highest(self) -> int:
        """Return the highest number that is present, or that :attr:`owners` tells of."""
        noted = max(self.owners.of, default=0)
        for shard in sorted(self._shards, reverse=True):
            present = self.in_shard(shard)
            if present:
                return max(noted, *present)
        return noted


def _is_closed_to_us(st: os.stat_result) -> bool:
    """Tell whether a store inode is ours and its mode does not let us read it (as root we may all
    the same).
    """
    return st.st_uid == os.geteuid() and not st.st_mode & stat.S_IRUSR and not stat.S_ISLNK(st.st_mode)


@contextlib.contextmanager
def _widened(path: bytes, st: os.stat_result) -> Iterator[None]:
    """Let the owner read and write a store inode inside the block.

    The caller holds the lock: another thread that took the widened mode for the real one would keep
    it.  A crash inside the block leaves the file readable and writable to its owner, nobody else.
    """
    os.chmod(path, stat.S_IMODE(st.st_mode) | _MINE)
    try:
        yield
    finally:
        os.chmod(path, stat.S_IMODE(st.st_mode))


@contextlib.contextmanager
def gone_on_failure(store: Store, numbers: Sequence[StoreIno]) -> Iterator[None]:
    """Remove those store inodes again that a block makes, should it fail; ``numbers`` are looked at
    then.
    """
    try:
        yield
    except BaseException:
        for ino in numbers:
            with contextlib.suppress(OSError):  # it may not have been made; else it goes when nothing names it
                store.remove(ino)
        raise
