"""Drift: base changed under what is staged.  Whether one staged file or name has drifted, and
whether anything may have.

Which paths a commit would run over :mod:`yolofs.commit.merge.conflicts` tells; its docstring says
what can be told at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator
from collections.abc import Set as AbstractSet

from yolofs.journal.records import NOTHING, Fingerprint, owner_of
from yolofs.paths import RelPath, join
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.restored import InodeCtime, by_names
from yolofs.store.store import Store

_ACL = "system.posix_acl_access"
CLOCK_SLACK_NS = 10_000_000
"""Record times come from the kernel's coarse clock, which is up to a tick (10 ms) behind that of
file times.
"""


def has_changed(
    staged: Staged,
    base: Base,
    store: Store,
    restored: AbstractSet[InodeCtime] = frozenset(),
    unset: AbstractSet[InodeCtime] = frozenset(),
) -> bool:
    """Tell whether the base file behind a staged one does not look as it did at copy-up.

    Mode, user and group count, too, unless they are now the same on both sides.  ``restored`` are
    ctimes that are not the host's doing, and ``unset`` is what a commit could not make look as it
    was to, and nobody has changed since (:mod:`yolofs.store.restored`).

    Raises:
        OSError: base cannot be read.
    """
    if staged.base is None or staged.home is None:
        return False
    st = base.look(staged.home)
    if st is None:
        return True
    if stat.S_ISDIR(st.st_mode):
        # only a directory's names stay in base; a file may have had the number that the directory
        # has now
        if staged.origin is None or base.number(st) != staged.base.ino:
            return True
        if (st.st_ino, st.st_ctime_ns) in unset:
            return False
        may_have_others = staged.base.ctime_ns not in (0, st.st_ctime_ns) and not _is_known(st, restored)
        if may_have_others and _has_others_attributes(base.path(staged.home), st, store.path(staged.ino)):
            return True
    elif (base.number(st), st.st_size) == (staged.base.ino, staged.base.size) and (st.st_ino, st.st_ctime_ns) in unset:
        return False
    elif looks_changed(staged, st, base, restored):
        return True
    return staged.base.owner not in (None, owner_of(st)) and owner_of(st) != owner_of(store.lstat(staged.ino))


def _is_known(st: os.stat_result, restored: AbstractSet[InodeCtime]) -> bool:
    inode_ctime = st.st_ino, st.st_ctime_ns
    return inode_ctime in restored or by_names(inode_ctime) in restored


def _has_others_attributes(directory: bytes, st: os.stat_result, copy: bytes) -> bool:
    """Tell whether a directory of base has an extended attribute that its staged version has not:
    the host has given it, or the view has taken it away, which nobody wrote down.

    An access control list has the mode in it, so it counts only if both have the same mode.
    """
    if copying.has_only_labels(directory):
        return False
    theirs, ours = copying.read_base_metadata(directory, st=st), copying.read_metadata(copy)
    is_same_mode = stat.S_IMODE(st.st_mode) == stat.S_IMODE(ours.st.st_mode)
    return any(
        one not in ours.xattrs and not copying.is_label(one[0]) and (is_same_mode or one[0] != _ACL)
        for one in theirs.xattrs
    )


def looks_changed(staged: Staged, st: os.stat_result, base: Base, restored: AbstractSet[InodeCtime]) -> bool:
    """Tell whether the base file behind a staged one, with the attributes ``st``, looks as if its
    content, or its extended attributes, had changed since copy-up.

    ``restored`` as for :func:`has_changed`.
    """
    if staged.base is None:
        return False
    now = base.fingerprint(st)
    return not now.fits(staged.base) or (staged.base.is_touched(now) and (st.st_ino, st.st_ctime_ns) not in restored)


def is_later(
    here: os.stat_result | None,
    natural: RelPath | None,
    entry: Entry,
    tree: Tree,
    base: Base,
    in_use: Container[bytes | None],
    restored: AbstractSet[InodeCtime],
) -> bool:
    """Tell whether what base has at ``natural`` is not what it had when the view put something else
    there, all in it included.

    ``here`` are its attributes.  :attr:`Tree.was` tells, or else whether the ctime is later.  What
    is ``in_use``, shown elsewhere or staged, is known by other means; ``restored`` is as in
    :mod:`yolofs.store.restored`.  A directory is walked.

    Raises:
        OSError: base cannot be read.
    """
    if here is None or natural is None or not entry.since_ns:
        return False
    todo = [(natural, here, entry.since_ns + CLOCK_SLACK_NS, tree.was.get(natural))]
    while todo:
        rel, st, last_ns, was = todo.pop()
        if _is_another(st, was, last_ns, base):
            if (st.st_ino, st.st_ctime_ns) not in restored:
                return True
            was = None
            if by_names((st.st_ino, st.st_ctime_ns)) not in restored:
                last_ns = st.st_ctime_ns  # it came back whole then, with what is in it
        if stat.S_ISDIR(st.st_mode):
            unknown = NOTHING if was is not None else None  # all that was in it is known with it
            below = [path for name in base.names(rel) if (path := join(rel, name)) not in in_use]
            todo += [
                (path, inside, last_ns, tree.was.get(path, unknown))
                for path in below
                if (inside := base.look(path)) is not None
            ]
    return False


def _is_another(st: os.stat_result, was: Fingerprint | None, last_ns: int, base: Base) -> bool:
    """Tell whether a thing in base is not the former one; by its ctime, if little or nothing is
    known of that.
    """
    if was is not None and not is_as_it_was(st, was, base):
        return True
    return (was is None or was.owner is None) and st.st_ctime_ns > last_ns


def is_as_it_was(st: os.stat_result, was: Fingerprint, base: Base) -> bool:
    """Tell whether something in base is what it was, with the same mode and owner as far as they
    are known.

    Only that counts for a directory: its content is looked at by itself, and a directory made anew
    is no loss.
    """
    if was.owner is not None and was.owner != owner_of(st):
        return False
    if was == NOTHING or stat.S_ISDIR(st.st_mode):
        return was != NOTHING
    now = base.fingerprint(st)
    return now.fits(was) and not was.is_touched(now)


def is_gone(entry: Entry, natural: RelPath | None, here: os.stat_result | None) -> bool:
    """Tell whether base had something at a name when the view put something else there, and has
    nothing any more.

    ``natural`` is what the name shows of base without the entry, ``here`` what base has there.
    """
    return here is None and natural is not None and entry.had_base and not entry.is_tombstone


def homes_known(tree: Tree) -> Iterator[RelPath]:
    """Yield the base paths of which the view has a version with a fingerprint of the original.

    A version that a partial commit has left at another path has none: base got the file by that
    very commit.
    """
    return (staged.home for staged in tree.staged.values() if staged.home is not None and staged.base is not None)


def may_have_drifted(
    tree: Tree,
    base: Base,
    store: Store,
    restored: AbstractSet[InodeCtime],
    *,
    unset: AbstractSet[InodeCtime] = frozenset(),
) -> bool:
    """Return False if there surely is no drift, which is cheap to find; True means that there may
    be some.

    ``restored`` and ``unset`` as for :func:`is_later` and :func:`has_changed`.

    Raises:
        OSError: base cannot be read.
    """
    if any(has_changed(staged, base, store, restored, unset) for staged in tree.staged.values()):
        return True
    in_use: set[bytes | None] = set(homes_known(tree))
    in_use.update(_shown(tree))
    todo: list[tuple[Entry, RelPath | None]] = [(tree.root, tree.root.source)]
    while todo:
        parent, source = todo.pop()
        for name, entry in (parent.children or {}).items():
            if entry.children:
                todo.append((entry, entry.source))
            natural = join(source, name) if source is not None else None
            staged = entry.staged
            if staged is not None and staged.base is not None and staged.home == natural:
                continue  # it is where it was, and is what it was
            here = base.look(natural)
            if _is_cut_off(entry, base) or is_gone(entry, natural, here):
                return True
            is_shown = entry.source is not None and entry.source == natural
            if not is_shown and natural not in in_use and is_later(here, natural, entry, tree, base, in_use, restored):
                return True
    return False


def _shown(tree: Tree) -> Iterator[RelPath]:
    """Yield the base paths that names which stand in the tree show of base."""
    todo = [tree.root]
    while todo:
        for entry in (todo.pop().children or {}).values():
            if entry.children:
                todo.append(entry)
            if entry.source is not None:
                yield entry.source


def _is_cut_off(entry: Entry, base: Base) -> bool:
    """Tell whether a name leads to what base has no more, or lies in a directory that is gone."""
    if entry.is_tombstone:
        return False
    if entry.staged is None and base.look(entry.base) is None:
        return True
    directory = entry.parent.source if entry.parent is not None else None
    if directory is None:
        return False
    st = base.look(directory)
    return st is None or not stat.S_ISDIR(st.st_mode)
