"""Which directories (and a few files) a sandbox may get straight from base, as the view can show
nothing else there.

The rules must say read-only at such a directory and everywhere below, whatever the names, except
for paths that are told apart; the override tree must leave it alone.
:mod:`yolofs.daemon.runs.native_survey` finds out what else lies there,
:mod:`yolofs.sandbox.native_mountable` what is mounted there.  ``docs/design/native-binds.md`` says
why all of this is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from yolofs.paths import is_below
from yolofs.rules import RuleBook, RuleState
from yolofs.state.link_names import find_names
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store.base import Base

_LIVE = (b"/dev", b"/proc", b"/run", b"/sys")
"""Never bound straight from base, whatever a rule says: nobody has put the files there."""
_FILES = (b"/etc/ld.so.cache", b"/etc/locale.alias")
"""What nearly every program opens before it does anything: an open and a release each time, in the
view.
"""
_LINKS = (b"/bin", b"/lib", b"/lib32", b"/lib64", b"/libx32", b"/sbin")
"""Links by which every program is found, and each of its libraries: a request each time, as the
kernel keeps none.
"""
_OVERRIDDEN_LIMIT = 1_000
"""If more names than this are overridden, nothing is bound."""
_NAMES_LOOKED_AT = 5_000
"""Among how many names of base the names of a file with hard links are looked for, as the gate
does.
"""


def candidates(book: RuleBook, base: Base, project: bytes) -> dict[bytes, list[bytes]]:
    """Return the absolute paths that qualify, by the rules and by base, each with the paths in it
    that have other rules.

    These are directories, none inside another one, except below a path with other rules; and those
    of :data:`_FILES` and :data:`_LINKS` with the same rules, wherever they lie.

    ``project`` is the session's, where everything goes through the view.  Looks at base, a few
    system calls for each.
    """
    found: dict[bytes, list[bytes]] = {}
    mostly = book.mostly(RuleState.READ_ONLY)
    for path in sorted(mostly, key=len):
        is_directory = os.path.isdir(path) and os.path.realpath(path) == path
        if is_directory and _is_apart(path, base, project) and not _is_told(path, found):
            found[path] = mostly[path]
    files = [path for path in _FILES if os.path.isfile(path) and os.path.realpath(path) == path]
    links = [path for path in _LINKS if os.path.islink(path)]
    for path in files + links:
        if _qualifies(path, book, base, project):
            found[path] = []
    return found


def _qualifies(path: bytes, book: RuleBook, base: Base, project: bytes) -> bool:
    return book.at(path).state is RuleState.READ_ONLY and _is_apart(path, base, project)


def _is_told(path: bytes, found: Mapping[bytes, Iterable[bytes]]) -> bool:
    """Tell whether a path lies in a found directory, but in none that it leaves out."""
    around = (left_out for top, left_out in found.items() if is_below(path, top))
    return any(not any(is_below(path, other) for other in left_out) for left_out in around)


def _is_apart(path: bytes, base: Base, project: bytes) -> bool:
    rel = base.relative(path)
    if not rel or base.is_hidden(rel):
        return False
    inside = (project, *map(base.path, base.hidden | base.pseudo))
    around = (*_LIVE, project, *map(base.path, base.pseudo))
    return not (any(is_below(other, path) for other in inside) or any(is_below(path, other) for other in around))


def overridden(tree: Tree, base: Base, paths: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Return what the tree overrides at and below some paths: for each, absolute paths that must
    not be bound.

    Those that the view has elsewhere, or not at all, are left out.  A directory in which only names
    came or went is told as its ``.``.
    """
    found = {}
    for path in paths:
        rel = base.relative(path)
        shown = tree.resolve(rel) if rel is not None else None
        if shown is not None and shown.staged is None and shown.base == rel:
            found[path] = list(islice(_overridden(shown.entry, path), _OVERRIDDEN_LIMIT)) if shown.entry else []
            if len(found[path]) == _OVERRIDDEN_LIMIT:
                found[path] = [path]
    return found


def _overridden(top: Entry, path: bytes) -> Iterator[bytes]:
    todo = [(top, path)]
    while todo:
        entry, path = todo.pop()
        if entry.staged is not None or entry.base != entry.path():
            yield path
            continue
        if entry.touched_ns:
            yield path + b"/."
        todo += [(child, path + b"/" + name) for name, child in (entry.children or {}).items()]


def staged_with_links(tree: Tree) -> list[Staged]:
    """Return the staged files that base has names for at which no entry stands."""
    return [staged for staged in tree.linked.values() if tree.unseen(staged)]


def linked(base: Base, files: Sequence[Staged]) -> list[bytes] | None:
    """Return the names that base has for these files, as absolute paths; None where not all were
    found.
    """
    if not files:
        return []
    try:
        found = [base.path(rel) for rel in find_names(base, files, limit=_NAMES_LOOKED_AT)]
    except OSError:
        return None
    return found if len(found) >= sum(staged.links for staged in files) else None
