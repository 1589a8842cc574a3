"""What may be on a disk after a power cut, told from all calls that were made before it.

The calls are kept as operations on objects (files, directories) and names, in their order.  What of
them has reached the disk is bounded by what was synced, and otherwise by one of these models, each
weaker than the one before:

* ``ALL``: everything, as after a kill.
* ``ORDERED``: names and attributes up to some moment, as on a filesystem with one journal (ext4,
  XFS); an fsync makes all of them up to then durable.  Data that was not synced may be there, or
  not, or a part of it, or zeros.
* ``LOOSE``: any names and attributes, as long as nothing depends on what is missing: a name on what
  happened to the same name before, what happens in a directory on where that is by then, a move of
  a directory on what happened in it; an fsync is for one object alone, and of a directory for its
  names.  Data as above.  No filesystem that journals is as bad as that.

Each device is on its own: a sync of one says nothing of what another has.
"""

from __future__ import annotations

import enum
import os
import random
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Attributes(NamedTuple):
    """What chmod, chown, utime and setxattr set."""

    mode: int
    """With the type."""
    owner: tuple[int, int]
    atime_ns: int
    mtime_ns: int
    xattrs: tuple[tuple[str, bytes], ...]


@dataclass(eq=False, slots=True)
class Thing:
    """A file, directory, link or fifo, as it was when it was first seen."""

    number: int
    """Its inode number, by which what was written on the disk knows it."""
    attributes: Attributes
    data: bytes = b""
    """Of a file; the target of a symlink."""
    names: dict[bytes, Thing] = field(default_factory=dict)
    """Of a directory."""
    device: int = 0
    birth_ns: int = 0
    """When it was made; 0 if the filesystem does not tell."""
    ctime_ns: int = 0

    @property
    def is_directory(self) -> bool:
        """Whether it is one."""
        return stat.S_ISDIR(self.attributes.mode)


class Named(NamedTuple):
    """Names came, went or changed places, at once."""

    names: tuple[tuple[Thing, bytes, Thing | None], ...]
    """Directory, name, and what it leads to from then on."""
    times: tuple[tuple[Thing, int], ...]
    """The times that the directories have by that."""
    made: Thing | None = None
    """What there was not before."""
    ctimes: tuple[tuple[Thing, int], ...] = ()
    """The resulting ctimes of the directories, and of the things named."""


class Written(NamedTuple):
    """A file has other data."""

    thing: Thing
    data: bytes
    mtime_ns: int
    ctime_ns: int


class Changed(NamedTuple):
    """Something has other attributes."""

    thing: Thing
    attributes: Attributes
    ctime_ns: int


class Synced(NamedTuple):
    """Something was waited for until it was durable; None: all there was."""

    thing: Thing | None
    device: int | None = None
    """All there was on that one; None: on all of them."""

    @property
    def is_barrier(self) -> bool:
        """Whether all there was is durable."""
        return self.thing is None


Operation: TypeAlias = Named | Written | Changed | Synced


class Model(enum.Enum):
    """What may be missing; see the module's docstring."""

    ALL = "all"
    ORDERED = "ordered"
    LOOSE = "loose"


class Image(NamedTuple):
    """What is on the disk."""

    names: dict[Thing, dict[bytes, Thing]]
    """Of each directory."""
    data: dict[Thing, bytes]
    """Of files that are not as they were first seen."""
    attributes: dict[Thing, Attributes]
    """Of what is not as it was first seen."""
    ctimes: dict[Thing, int]
    """The same."""

    def key(self) -> int:
        """Return what is another number for nearly every other image."""
        names = frozenset(
            (id(one), name, id(thing)) for one, some in self.names.items() for name, thing in some.items()
        )
        return hash((names, frozenset(self.data.items()), frozenset(self.attributes.items())))


class Recording:
    """All that was done to some directories."""

    def __init__(self, tops: list[Thing], operations: list[Operation]) -> None:
        self.tops = tops
        self.operations = operations
        self._before = list(_walk(tops))
        self._needs = list(_needs(operations, tops))

    def image(self, end: int, model: Model, rng: random.Random) -> Image:
        """Return what may be on the disk if the power fails after the first ``end`` operations."""
        if model is Model.ALL:
            return self._build(end, [True] * end, {})
        synced, last_syncs = _synced(self.operations[:end], is_ordered=model is Model.ORDERED)
        if model is Model.ORDERED:
            cuts = {device: rng.randint(last, end) for device, last in sorted(last_syncs.items())}
            there = [index < cuts.get(device_of(self.operations[index]), end) for index in range(end)]
        else:
            there = self._loose(end, synced, rng)
        return self._build(end, there, self._data(end, synced, rng))

    def _loose(self, end: int, synced: set[int], rng: random.Random) -> list[bool]:
        likely = rng.choice((0.02, 0.3, 0.7, 0.97))
        wanted = set(synced)
        for index in range(end - 1, -1, -1):  # what is durable has all that it depends on
            if index in wanted and isinstance(self.operations[index], Named):
                wanted.update(self._needs[index])
        there = [False] * end
        for index in range(end):
            if index in wanted:
                there[index] = True
            elif all(there[need] for need in self._needs[index]):
                there[index] = rng.random() < likely
        for index in wanted:  # of a thing whose name is lost nobody sees that it was synced
            there[index] = all(there[need] for need in self._needs[index])
        return there

    def _data(self, end: int, synced: set[int], rng: random.Random) -> dict[Thing, bytes]:
        """Return the data of files that were not waited for, one of many ways in which it may have
        come.
        """
        writes: dict[Thing, list[int]] = {}
        for index, operation in enumerate(self.operations[:end]):
            if isinstance(operation, Written):
                writes.setdefault(operation.thing, []).append(index)
        found: dict[Thing, bytes] = {}
        whole = rng.random() < 0.2
        for thing, indices in writes.items():
            durable = max((number for number, index in enumerate(indices) if index in synced), default=-1)
            versions = [thing.data, *(self._written(index) for index in indices)][durable + 1 :]
            if len(versions) == 1 or whole:
                found[thing] = versions[-1]
                continue
            number = rng.randrange(len(versions))
            data = versions[number]
            if number:
                before = versions[number - 1]
                match rng.randrange(4):
                    case 0:  # the length is there, and not all of the data
                        data = before[: len(data)] + bytes(max(len(data) - len(before), 0))
                    case 1:
                        data = data[: rng.randint(min(len(before), len(data)), len(data))]
                    case _:
                        pass
            found[thing] = data
        return found

    def _written(self, index: int) -> bytes:
        operation = self.operations[index]
        assert isinstance(operation, Written)
        return operation.data

    def _build(self, end: int, there: list[bool], data: dict[Thing, bytes]) -> Image:
        image = Image({thing: dict(thing.names) for thing in self._before if thing.is_directory}, {}, {}, {})
        attributes = image.attributes
        for index in range(end):
            if not there[index]:
                continue
            match self.operations[index]:
                case Named(names, times, made, ctimes):
                    if made is not None and made.is_directory:
                        image.names.setdefault(made, {})
                    for directory, name, thing in names:
                        if thing is None:
                            del image.names[directory][name]
                        else:
                            image.names[directory][name] = thing
                    for directory, mtime_ns in times:
                        now = attributes.get(directory, directory.attributes)
                        attributes[directory] = now._replace(mtime_ns=mtime_ns)
                    image.ctimes.update(ctimes)
                case Written(thing, content, mtime_ns, ctime_ns):
                    image.data[thing] = content
                    attributes[thing] = attributes.get(thing, thing.attributes)._replace(mtime_ns=mtime_ns)
                    image.ctimes[thing] = ctime_ns
                case Changed(thing, now, ctime_ns):
                    attributes[thing] = now
                    image.ctimes[thing] = ctime_ns
                case Synced():
                    pass
        image.data.update(data)
        return image


def _walk(tops: list[Thing]) -> Iterator[Thing]:
    todo = list(tops)
    while todo:
        thing = todo.pop()
        yield thing
        todo.extend(thing.names.values())


def device_of(operation: Operation) -> int:
    """Return the device of an operation; 0 for a sync of all devices."""
    match operation:
        case Named(names):
            return names[0][0].device
        case Written(thing) | Changed(thing):
            return thing.device
        case Synced(thing, device):
            return thing.device if thing is not None else device or 0


def _synced(operations: list[Operation], *, is_ordered: bool) -> tuple[set[int], dict[int, int]]:
    """Return which operations are durable, and the number of the last sync of the journal of each
    device.
    """
    durable: set[int] = set()
    devices = {device_of(operation) for operation in operations} - {0}
    last = dict.fromkeys(devices, 0)
    of_thing: dict[Thing, list[int]] = {}
    for index, operation in enumerate(operations):
        match operation:
            case Synced(None, device):
                for one in devices if device is None else {device}:
                    durable.update(number for number in range(index) if device_of(operations[number]) == one)
                    last[one] = index
            case Synced(thing):
                assert thing is not None
                durable.update(of_thing.get(thing, ()))
                if is_ordered:
                    last[thing.device] = index
            case Named(names):
                for directory, _, _ in names:
                    of_thing.setdefault(directory, []).append(index)
            case Written(thing) | Changed(thing):
                of_thing.setdefault(thing, []).append(index)
    if is_ordered:
        for index, operation in enumerate(operations):
            if not isinstance(operation, Written) and index < last.get(device_of(operation), 0):
                durable.add(index)
    return durable, last


def _needs(operations: list[Operation], tops: list[Thing]) -> Iterator[tuple[int, ...]]:
    """Yield of each operation the numbers of those without which it cannot be."""
    of_name: dict[tuple[Thing, bytes], int] = {}
    places = _Places(tops)
    made: dict[Thing, int] = {}
    of_attributes: dict[Thing, int] = {}
    of_number: dict[tuple[int, int], int] = {}
    """What has taken something of that device and inode number away."""
    for index, operation in enumerate(operations):
        needs: set[int] = set()
        match operation:
            case Named(names, _, new):
                if new is not None:
                    needs.add(of_number.get((new.device, new.number), -1))
                for directory, name, thing in names:
                    before = of_name.get((directory, name), -1)
                    needs.update({before, made.get(directory, -1)}, places.moves_above(directory))
                    gone = _leads_to(operations, before, directory, name)
                    if gone is not None:
                        of_number[gone.device, gone.number] = index
                        if gone.is_directory:  # it has to be empty, or is moved with all that is in it
                            needs.update(places.done_in(gone))
                    if thing is not None and thing is not new:
                        needs.add(made.get(thing, -1))
                for directory, name, thing in names:
                    of_name[directory, name] = index
                    places.note(index, directory, thing)
                if new is not None:
                    made[new] = index
            case Written(thing):
                needs.add(made.get(thing, -1))
            case Changed(thing):
                needs.update({made.get(thing, -1), of_attributes.get(thing, -1)})
                of_attributes[thing] = index
            case Synced():
                pass
        needs.discard(-1)
        yield tuple(needs)


class _Places:
    """Where directories are, and what was done in them and to them."""

    def __init__(self, tops: list[Thing]) -> None:
        self._above = {child: thing for thing in _walk(tops) for child in thing.names.values() if child.is_directory}
        self._moves: dict[Thing, int] = {}
        self._done: dict[Thing, list[int]] = {}

    def note(self, index: int, directory: Thing, thing: Thing | None) -> None:
        """Note that a name in a directory leads to something since an operation."""
        self._done.setdefault(directory, []).append(index)
        if thing is not None and thing.is_directory:
            self._above[thing] = directory
            self._moves[thing] = index

    def moves_above(self, directory: Thing) -> Iterator[int]:
        """Yield what has brought a directory to where it is."""
        above: Thing | None = directory
        while above is not None:
            if above in self._moves:
                yield self._moves[above]
            above = self._above.get(above)

    def done_in(self, directory: Thing) -> Iterator[int]:
        """Yield what was done in a directory and those in it."""
        for one, done in self._done.items():
            above: Thing | None = one
            while above is not None and above is not directory:
                above = self._above.get(above)
            if above is directory:
                yield from done


def _leads_to(operations: list[Operation], index: int, directory: Thing, name: bytes) -> Thing | None:
    """Return what a name led to since an operation."""
    if index < 0:
        return directory.names.get(name)
    operation = operations[index]
    assert isinstance(operation, Named)
    return next(thing for above, one, thing in operation.names if (above, one) == (directory, name))


# ---- putting it on a real disk


class Recorded(NamedTuple):
    """What was recorded of a thing and a real disk cannot be given."""

    number: int
    birth_ns: int
    ctime_ns: int


def put(image: Image, top: Thing, path: bytes, known: dict[tuple[int, int], Recorded]) -> None:
    """Fill an empty directory with an image's content of ``top``; note the stand-in for each
    recorded thing.

    A directory on another device than the one that it lies in is there already: a disk is mounted
    there.  ``known``: what was recorded, by the device and inode number of what stands for it.
    """
    links: dict[Thing, bytes] = {}
    directories = [(top, path)]
    for thing, place in directories:
        for name, child in image.names.get(thing, {}).items():
            target = place + b"/" + name
            first = links.get(child)
            if first is not None:
                os.link(first, target, follow_symlinks=False)
                continue
            if child.device == thing.device:
                _make(child, target, image)
            if child.is_directory:
                directories.append((child, target))
            else:
                links[child] = target
    for thing, place in (*links.items(), *reversed(directories)):
        if thing.is_directory:
            _give(place, image.attributes.get(thing, thing.attributes))
        st = os.lstat(place)
        ctime_ns = image.ctimes.get(thing, thing.ctime_ns)
        known[st.st_dev, st.st_ino] = Recorded(thing.number, thing.birth_ns, ctime_ns)


def _make(thing: Thing, path: bytes, image: Image) -> None:
    attributes = image.attributes.get(thing, thing.attributes)
    mode = attributes.mode
    if stat.S_ISDIR(mode):
        os.mkdir(path, 0o700)
        return
    if stat.S_ISREG(mode):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, image.data.get(thing, thing.data))
        os.close(fd)
    elif stat.S_ISLNK(mode):
        os.symlink(thing.data, path)
    else:
        os.mknod(path, mode)
    _give(path, attributes)


def _give(path: bytes, attributes: Attributes) -> None:
    if attributes.owner != (os.geteuid(), os.getegid()):
        os.chown(path, *attributes.owner, follow_symlinks=False)
    for name, value in attributes.xattrs:
        os.setxattr(path, name, value, follow_symlinks=False)
    if not stat.S_ISLNK(attributes.mode):
        os.chmod(path, stat.S_IMODE(attributes.mode))
    os.utime(path, ns=(attributes.atime_ns, attributes.mtime_ns), follow_symlinks=False)
