"""The plan of a commit: what will be done to base, as frozen values that can be printed, stored and
replayed.

The steps come in this order, and ``docs/design/commit.md`` says why:

0. first: :class:`Rewrite` and :class:`SetMetadata` of files that base has under names that nobody
   has looked at
1. out: :class:`Park` what moves and :class:`Remove` what goes, children before parents, at their
   old base paths
2. :class:`Fetch`, of what an earlier commit keeps and an undo brings back
3. in: :class:`MakeDirectory`, :class:`Create`, :class:`Place`, parents before children, at their
   new paths
4. :class:`Duplicate`, of a file that is at its new path by now; :class:`Rewrite` and
   :class:`SetMetadata`, in place
5. :class:`Link`, which becomes a copy where it has to, and so comes when the file is what it is to
   be
6. :class:`FinishDirectory`, children before parents: metadata and times, which the steps before
   have moved

Numbers of slots (``number``) are unique in a plan: ``parked/NUMBER``, ``new/NUMBER`` and
``replaced/NUMBER`` in the commit's directory.  Inode numbers (``inode``) are those of the disk:
they tell, after a crash, whether a step was done.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, assert_never

import msgspec

from yolofs.errors import YolofsError
from yolofs.paths import ROOT, RelPath, StoreIno, display, parse_relpath

VERSION = 1


class MetadataBefore(msgspec.Struct, frozen=True):
    """The metadata that something in base had before the commit, so that it can be given back."""

    mode: int
    """The permission bits and the file type."""
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int
    xattrs: tuple[tuple[bytes, bytes], ...] = ()


class _Step(msgspec.Struct, frozen=True, tag=True):
    """What all steps have."""

    path: RelPath
    """Where it happens, relative to base, as the path is at that moment."""


class Park(_Step, frozen=True):
    """Move the base object at ``path`` out of the way; a :class:`Place` of the same number brings
    it back.
    """

    number: int
    inode: int


class Remove(_Step, frozen=True):
    """Move the base object at ``path`` to ``replaced/NUMBER``: the view does not have it."""

    number: int
    inode: int


class MakeDirectory(_Step, frozen=True):
    """Make a directory, open to its owner only; its :class:`FinishDirectory` gives it the metadata
    of ``ino``.
    """

    ino: StoreIno
    number: int = 0
    """0 in plans of earlier versions, which made the directory in its place."""


class Create(_Step, frozen=True):
    """Make a copy of store inode ``ino``, which is no directory, and put it in place at once."""

    ino: StoreIno
    number: int
    size: int
    """Of the store inode, in bytes; with ``mtime_ns`` it tells later whether the file was changed
    since.
    """
    mtime_ns: int
    replaced: int | None = None
    """The inode of what is replaced and goes to ``replaced/NUMBER``; None if nothing may be
    there.
    """
    home: RelPath | None = None
    """Where base has, before the first step, the file that this is a version of; given only if the
    file was renamed.
    """


class Place(_Step, frozen=True):
    """Move what was parked under ``number`` to ``path``."""

    number: int
    replaced: int | None = None
    """As for :class:`Create`."""


class Fetch(_Step, frozen=True):
    """Take what commit ``commit`` keeps in ``replaced/SLOT``; the :class:`Place` of the same number
    brings it in.
    """

    number: int
    commit: int
    slot: int
    inode: int
    inside: RelPath = ROOT
    """Its path in the directory that the slot holds, if it is not that itself."""
    home: RelPath | None = None
    """As for :class:`Create`."""


class Link(_Step, frozen=True):
    """Make ``path`` a hard link of ``existing`` (a copy, where the filesystem cannot)."""

    existing: RelPath
    number: int
    replaced: int | None = None
    """As for :class:`Create`."""


class Duplicate(_Step, frozen=True):
    """Make ``path`` a file with the data of ``existing`` and the metadata of store inode
    ``ino``.
    """

    existing: RelPath
    ino: StoreIno
    number: int
    replaced: int | None = None
    """As for :class:`Create`."""
    origin: RelPath | None = None
    """Where base has that data before the first step; None in plans of earlier versions."""


class Rewrite(_Step, frozen=True):
    """Write the data and metadata of store inode ``ino`` into the base file, so that its hard links
    stay.

    What it held before is copied to ``replaced/NUMBER`` first.
    """

    ino: StoreIno
    number: int
    inode: int
    is_first: bool = False
    """Whether it comes before all that moves.  If the file is no longer at ``path``, the step is
    done.
    """
    was: MetadataBefore | None = None
    """None in plans of earlier versions."""


class SetMetadata(_Step, frozen=True):
    """Give the base object at ``path``, which is no directory, the metadata of store inode
    ``ino``.
    """

    ino: StoreIno
    was: MetadataBefore
    inode: int | None = None
    """Given only if the step comes before all that moves, as for :class:`Rewrite`."""


class FinishDirectory(_Step, frozen=True):
    """Give a directory the metadata of store inode ``ino``, if given, and then the mtime
    ``mtime_ns``.
    """

    ino: StoreIno | None
    mtime_ns: int
    was: MetadataBefore | None = None
    """None for a directory that this commit made."""


Step: TypeAlias = (
    Park | Remove | Fetch | MakeDirectory | Create | Place | Link | Duplicate | Rewrite | SetMetadata | FinishDirectory
)


S = TypeVar("S", bound=_Step)


class Plan(msgspec.Struct, frozen=True, dict=True):
    """All that one commit does to the base directory ``root`` (absolute), in order."""

    root: bytes
    steps: tuple[Step, ...] = ()
    version: int = VERSION

    def of(self, kind: type[S]) -> list[S]:
        """Return the steps of one kind, in order.

        Nearly all steps of a large plan are of another kind than the one looked for, so they are
        told apart once for all who ask.
        """
        return self._by_kind.get(kind, [])

    @functools.cached_property
    def replacing(self) -> list[Create | Place | Link | Duplicate]:
        """The steps that put something in the place of something else."""
        kinds: list[Sequence[Create | Place | Link | Duplicate]] = [
            self.of(Create),
            self.of(Place),
            self.of(Link),
            self.of(Duplicate),
        ]
        return [step for steps in kinds for step in steps if step.replaced is not None]

    @functools.cached_property
    def _by_kind(self) -> dict[type[_Step], list[Any]]:
        found: defaultdict[type[_Step], list[Any]] = defaultdict(list)
        for step in self.steps:
            found[type(step)].append(step)
        return dict(found)

    def lines(self) -> Iterator[str]:
        """Yield one line for each step, with paths relative to base."""
        return map(describe_step, self.steps)

    def encode(self) -> bytes:
        """Return the plan as JSON; bytes become base64."""
        return msgspec.json.encode(self)

    @staticmethod
    def decode(text: bytes) -> Plan:
        """Return the plan that :meth:`encode` made ``text`` from.

        Raises:
            YolofsError: it is no plan, or one of a newer version, or it names what no commit could
                mean.
        """
        try:
            plan = msgspec.json.decode(text, type=Plan)
        except (msgspec.DecodeError, RecursionError) as error:
            raise YolofsError(f"this is not the plan of a commit: {error}") from None
        if plan.version != VERSION:
            raise YolofsError(f"this plan of a commit has version {plan.version}; only {VERSION} is known")
        try:
            _check(plan)
        except ValueError as error:
            raise YolofsError(f"this is not the plan of a commit: {error}") from None
        return plan


def paths_of_step(step: Step) -> tuple[RelPath, ...]:
    """Return the paths of base that a step is about: its own first, then where it takes something
    from.
    """
    if isinstance(step, Link):
        return step.path, step.existing
    if isinstance(step, Duplicate):
        return (step.path, step.existing, *([step.origin] if step.origin is not None else ()))
    return (step.path,)


def _check(plan: Plan) -> None:
    """Check what the types do not say.

    Raises:
        ValueError: a path leads out of base, a number is none, or two steps have the same slot.
    """
    if not plan.root.startswith(b"/") or b"\0" in plan.root or os.path.normpath(plan.root) != plan.root:
        raise ValueError(f"{display(plan.root)} is no absolute path of a directory")
    slots: set[int] = set()
    parked: set[int] = set()
    for step in plan.steps:
        home = getattr(step, "home", None)
        for path in (*paths_of_step(step), *([home] if home is not None else ())):
            parse_relpath(path)
            if not path and not isinstance(step, FinishDirectory):
                raise ValueError(f"{type(step).__name__} of base itself")
        ino = getattr(step, "ino", None)
        if ino is not None and ino < 1:
            raise ValueError(f"{ino} is no number of a store inode")
        number = getattr(step, "number", None)
        if isinstance(step, Place):
            if number not in parked:
                raise ValueError(f"nothing is parked under {number} for {display(step.path)}")
            parked.discard(number)
        elif number is not None and not (number == 0 and isinstance(step, MakeDirectory)):
            if number < 0 or number in slots:
                raise ValueError(f"{number} is no number of a slot, or that of two")
            slots.add(number)
            if isinstance(step, Park | Fetch):
                parked.add(number)
        if isinstance(step, Fetch) and (step.commit < 1 or step.slot < 0):
            raise ValueError(f"{step.commit} is no number of a commit, or {step.slot} of a slot of it")
        if isinstance(step, Fetch):
            parse_relpath(step.inside)


def describe_step(step: Step, root: bytes = b"") -> str:
    """Return one line that says what a step does; its paths are relative to base, or begin with
    ``root``.
    """

    def shown(path: RelPath) -> str:
        return display(os.path.join(root, path) if path else root) or "."

    path = shown(step.path)
    match step:
        case Park():
            return f"take {path} out of the way"
        case Remove():
            return f"remove {path}"
        case Fetch():
            return f"take {path} from what commit {step.commit} keeps"
        case MakeDirectory():
            return f"make directory {path}"
        case Create():
            return f"{'create' if step.replaced is None else 'replace'} {path}"
        case Place():
            return f"put {path} in its place"
        case Link():
            return f"link {path} to {shown(step.existing)}"
        case Duplicate():
            return f"copy {shown(step.existing)} to {path}"
        case Rewrite():
            return f"rewrite {path}"
        case SetMetadata():
            return f"set the metadata of {path}"
        case FinishDirectory():
            return f"set the metadata of directory {path}"
        case _:
            assert_never(step)


def directories_made(plan: Plan) -> frozenset[RelPath]:
    """Return the paths of the directories that a commit makes."""
    return frozenset(step.path for step in plan.steps if isinstance(step, MakeDirectory))
