"""Where a commit works: its own folders, and the directories of base, by names in them that are
open.

No path is followed twice: the directory of a spot stays open, and no symbolic link leads to a
directory of base (:mod:`yolofs.commit.apply.directories`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple, Self

from yolofs.commit.apply import unset_metadata
from yolofs.commit.apply.directories import Directories
from yolofs.commit.apply.other_devices import Folder
from yolofs.commit.apply.unset_metadata import UNSET
from yolofs.commit.plan.kept_objects import KeptObject
from yolofs.commit.plan.plan import Fetch, Plan
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.store.copying import PathDescriptor, at, path_descriptor
from yolofs.system.plain_files import make_directory, read_plain
from yolofs.system.syscalls import open_by_no_link

_MOST_KEPT = 64
"""How many directories of earlier commits are open at a time."""

SEAL = b"seal"
"""The file in a commit's directory that vouches for its plan."""
_MOST_SEAL_BYTES = 1 << 20

COPIED = b"-copied"
"""The end of the name of a whole copy on the device that it goes to."""


_PART = b"-part"
"""The end of the name of a copy that is being made; a copy that has its final name is whole."""
_OLD = b"-old"
"""The end of the name of what is replaced on another device, where the system cannot exchange two
names.
"""


class Spot(NamedTuple):
    """A name in a folder of the commit, or in a directory of base."""

    directory: Folder | RelPath
    name: bytes


def hidden_prefix(directory: bytes) -> bytes:
    """Return how names in base start that the commit in ``directory`` sets things aside under; a
    number follows.

    Nobody can foresee them: another user who took one in a shared directory would block the commit.
    They come from its seal, which nobody else can read or make, and which is durable before any of
    them is used.  Without a seal (in tests) they come from the path.
    """
    import hashlib  # takes a while, and only commits want it

    try:
        known = read_plain(os.path.join(directory, SEAL), _MOST_SEAL_BYTES)
    except FileNotFoundError:
        known = directory
    return b".yolofs-%b-" % hashlib.blake2b(known, digest_size=8).hexdigest().encode()


def far_folder_prefix(directory: bytes) -> bytes:
    """Return the beginning of the names of the folders in base in which the commit in ``directory``
    makes what goes to their device.
    """
    return hidden_prefix(directory) + b"new"


def spot_of_copy(spot: Spot) -> Spot:
    """Return the spot that something gets when all of it has been copied to the device that it goes
    to.
    """
    return Spot(spot.directory, spot.name + COPIED)


class Places:
    """The folders of one commit and its base.  Close it, or use it in a ``with``."""

    def __init__(self, plan: Plan, directory: bytes) -> None:
        """Prepare the folders in ``directory``, the commit's own (an absolute path).

        Raises:
            OSError: it cannot be prepared, or base cannot be opened.
        """
        self._plan = plan
        self._parking = directory
        self._aside = hidden_prefix(directory)
        self._parked = _make_folder(directory, b"parked")
        self._new = _make_folder(directory, b"new")
        self._replaced = _make_folder(directory, b"replaced")
        self._device = os.fstat(self._new.fd).st_dev
        self._directories = Directories(plan.root)
        self._kept: dict[bytes, Folder] = {}
        """The directories in which earlier commits keep what is fetched, as far as they were asked
        for.
        """
        self.left_out: dict[RelPath, tuple[str, ...]] = {}
        """What could not be carried over: path to names such as ``owner``."""
        self._unset = UNSET
        """The name of the file with these notes, for a process that goes on after a kill."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, _: object) -> None:
        """Close all.  What has failed already is not hidden by a mode that cannot be given back
        then.
        """
        try:
            self._directories.close()
        except OSError as error:
            if failure is None:
                raise
            failure.add_note(f"besides, the mode of a directory could not be given back: {error}")
        finally:
            for folder in (self._parked, self._new, self._replaced, *self._kept.values()):
                os.close(folder.fd)
            self._kept.clear()

    @property
    def root_fd(self) -> int:
        """The descriptor (O_PATH) of base, which stays this object's."""
        return self._directories.open(ROOT)

    def _kept_at(self, step: Fetch) -> Spot:
        """Return where an earlier commit keeps what a step fetches."""
        path = KeptObject(step.commit, step.slot, step.inside).path(os.path.dirname(self._parking))
        directory, name = os.path.split(path)
        folder = self._kept.get(directory)
        if folder is None:
            if len(self._kept) == _MOST_KEPT:
                os.close(self._kept.pop(next(iter(self._kept))).fd)
            folder = Folder(directory, open_by_no_link(directory, os.O_RDONLY | os.O_DIRECTORY))
            self._kept[directory] = folder
        return Spot(folder, name)

    def _fd(self, spot: Spot) -> int:
        return spot.directory.fd if isinstance(spot.directory, Folder) else self._directories.open(spot.directory)

    def _at(self, spot: Spot) -> bytes:
        return at(self._fd(spot), spot.name)

    def _reach(self, path: RelPath) -> tuple[Spot, os.stat_result]:
        """Return the spot of a base path that is to stay there, and what it is; its directory may
        be entered now.
        """
        spot = Spot(*split(path)) if path else Spot(ROOT, b".")
        parent = split(path)[0]
        st = self._directories.within(parent, lambda fd: os.stat(spot.name, dir_fd=fd, follow_symlinks=False))
        return spot, st

    @contextlib.contextmanager
    def _thing_at(self, path: RelPath) -> Iterator[tuple[PathDescriptor, os.stat_result]]:
        """Give what is at a base path for the time of a block, and what it is.

        Danger: somebody may exchange the name for a link at any moment.  So what is looked at and
        then changed is this, and not what the path leads to.  An error of the block names the path.
        """
        spot, _ = self._reach(path)
        with path_descriptor(self._at(spot)) as thing:
            try:
                yield thing, os.fstat(thing.fd)
            except OSError as error:
                if error.filename == thing.path:
                    error.filename = path
                raise

    def _unlocked(self, spot: Spot) -> int:
        """Return the descriptor of a spot's directory, which may be written in if it is ours."""
        if not isinstance(spot.directory, Folder):
            self._directories.unlock(spot.directory)
        return self._fd(spot)

    def _spelled(self, spot: Spot) -> bytes:
        if isinstance(spot.directory, Folder):
            return os.path.join(spot.directory.path, spot.name)
        return join(spot.directory, spot.name)

    def _beside(self, path: RelPath, number: int) -> Spot:
        """Return a hidden name beside ``path``, for what is not to be seen half-made."""
        return Spot(split(path)[0], self._aside + b"%d" % number)

    def _part_of(self, spot: Spot) -> Spot:
        """Return where to make a copy that gets its name at ``spot`` when it is whole.

        It lies in the same directory: a directory that forbids its owner to write cannot be renamed
        to another one.
        """
        return Spot(spot.directory, spot.name + _PART)

    def _away(self, path: RelPath, number: int) -> Spot:
        """Return a hidden name beside ``path``, for what is replaced there and cannot be renamed to
        the session.
        """
        beside = self._beside(path, number)
        return Spot(beside.directory, beside.name + _OLD)

    def _note(self, path: RelPath, left_out: tuple[str, ...]) -> None:
        new = tuple(one for one in left_out if one not in self.left_out.get(path, ()))
        if new:
            self.left_out[path] = self.left_out.get(path, ()) + new
            unset_metadata.add(self._parking, self._unset, path, new)


def _make_folder(directory: bytes, name: bytes) -> Folder:
    path = os.path.join(directory, name)
    make_directory(path)
    return Folder(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
