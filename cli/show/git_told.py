"""What happened in a ``.git``, in a few words: "1 commit on main, index"."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Sequence

from yolofs.changes.changes import Aspect, Change, Kind, Side
from yolofs.paths import RelPath, display, join
from yolofs.store.store import StoreFiles
from yolofs.text.git_commits import MOST_OBJECT_BYTES, branch_of, parents_of, parse_packed, parse_ref

_HEADS, _TAGS, _REMOTES, _STASH = b"refs/heads/", b"refs/tags/", b"refs/remotes/", b"refs/stash"
_PACKED = b"packed-refs"
_MOST_REF_BYTES = 1 << 12
_MOST_PACKED_BYTES = 1 << 22
_MOST_COMMITS = 1_000
_MOST_NAMED = 3
_HEX = frozenset(b"0123456789abcdef")
_SILENT = (b"logs", b"refs")
_NOTES = frozenset(
    {b"HEAD", b"packed-refs", b"COMMIT_EDITMSG", b"ORIG_HEAD", b"FETCH_HEAD", b"MERGE_MSG", b"AUTO_MERGE", b"index"}
)

Read = Callable[[RelPath], bytes | None]


class GitDirectory:
    """The changes in one ``.git``."""

    def __init__(self, top: RelPath, changes: Sequence[Change], store: StoreFiles, read: Read) -> None:
        """``top`` is the ``.git``; ``read`` returns what either state has at a path that did not change."""
        self._top = top
        self._store = store
        self._read = read
        self._changes = {one.path[len(top) + 1 :]: one for change in changes for one in _halves(change)}
        self._old = _Refs(self._side_content(_PACKED, is_new=False))
        self._new = _Refs(self._side_content(_PACKED, is_new=True))

    def tell(self) -> str:
        """Return what happened; as little as "2 files" where that is all that can be told."""
        words = [*self._of_branches(), *self._of_other_refs(), *self._of_head()]
        if b"index" in self._changes:
            words.append("index")
        removed = sum(
            change.kind is Kind.DELETED and not _is_directory(change.old) and name.startswith(b"objects/")
            for name, change in self._changes.items()
        )
        if removed:
            words.append(f"{removed} object file{'s' if removed > 1 else ''} removed")
        others = [name for name, change in self._changes.items() if self._is_other(name, change)]
        if others:
            words.append(_few([display(name) for name in sorted(others)], "other files"))
        return ", ".join(words) or "nothing but its own notes"

    # ---- refs

    def _of_branches(self) -> list[str]:
        moved = self._moved(_HEADS)
        told = [self._of_branch(display(ref[len(_HEADS) :]), *values) for ref, values in moved[:_MOST_NAMED]]
        return told + ([f"{len(moved) - _MOST_NAMED} more branches"] if len(moved) > _MOST_NAMED else [])

    def _of_branch(self, name: str, old: bytes | None, new: bytes | None) -> str:
        if new is None:
            return f"branch {name} deleted"
        count, ends = self._new_commits(new)
        commits = f"{count} commit{'s' if count > 1 else ''}"
        if old is None:
            return f"new branch {name}" + (f" with {commits}" if count else "")
        if not count:
            return f"{name} moved"
        return f"{commits} on {name}" if old in ends else f"{name} rewritten, with {count} new commit{_s(count)}"

    def _of_other_refs(self) -> list[str]:
        words = []
        tags = self._moved(_TAGS)
        if tags:
            words.append(_few([f"tag {display(ref[len(_TAGS) :])} {_became(*values)}" for ref, values in tags], "tags"))
        if self._moved(_REMOTES):
            words.append("remote branches")
        if self._moved(_STASH):
            words.append("stash")
        return words

    def _of_head(self) -> list[str]:
        change = self._changes.get(b"HEAD")
        if change is None or change.new is None:
            return ["HEAD deleted"] if change is not None else []
        value = parse_ref(self._content(change.new, _MOST_REF_BYTES) or b"") or b""
        branch = branch_of(value)
        return [f"HEAD on {display(branch)}" if branch is not None else "HEAD on no branch"]

    def _moved(self, prefix: bytes) -> list[tuple[bytes, tuple[bytes | None, bytes | None]]]:
        """Return the refs that have other values now, by name, with both."""
        names = {name for name in self._changes if name.startswith(prefix)}
        old_packed, new_packed = self._old.packed, self._new.packed
        packed = (ref for ref in {*old_packed, *new_packed} if old_packed.get(ref) != new_packed.get(ref))
        names.update(ref for ref in packed if ref.startswith(prefix))
        found = []
        for name in sorted(names):
            change = self._changes.get(name)
            if change is not None and _is_directory(change.new or change.old):
                continue
            old, new = self._value(name, change, is_new=False), self._value(name, change, is_new=True)
            if old != new:
                found.append((name, (old, new)))
        return found

    def _value(self, ref: bytes, change: Change | None, *, is_new: bool) -> bytes | None:
        """Return what a ref names in one of the states: by its own file, else by the packed ones."""
        packed = self._new.packed if is_new else self._old.packed
        if change is None:
            loose = self._read(join(self._top, ref)) if ref in packed else None
        else:
            side = change.new if is_new else change.old
            loose = self._content(side, _MOST_REF_BYTES) if side is not None else None
        return parse_ref(loose) if loose is not None else packed.get(ref)

    def _new_commits(self, tip: bytes) -> tuple[int, set[bytes]]:
        """Return how many new commits lead to a tip, and all that they stand on, themselves among it."""
        seen: set[bytes] = set()
        ends: set[bytes] = {tip}
        todo = [tip]
        while todo and len(seen) < _MOST_COMMITS:
            name = todo.pop()
            change = self._changes.get(b"objects/" + name[:2] + b"/" + name[2:])
            if name in seen or change is None or change.new is None or change.kind is not Kind.ADDED:
                continue
            parents = parents_of(self._content(change.new, MOST_OBJECT_BYTES) or b"")
            if parents is not None:
                seen.add(name)
                ends.update(parents)
                todo.extend(parents)
        return len(seen), ends

    # ---- files

    def _is_other(self, name: bytes, change: Change) -> bool:
        """Tell whether nothing else tells of a change: an agent may put anything into ``.git``."""
        if _is_directory(change.new or change.old) or name in _NOTES or change.metadata == (Aspect.TIME,):
            return False
        first, _, rest = name.partition(b"/")
        if first == b"objects":
            return not _is_object(rest)
        return first not in _SILENT

    def _side_content(self, name: bytes, *, is_new: bool) -> bytes:
        change = self._changes.get(name)
        if change is None:
            return self._read(join(self._top, name)) or b""
        side = change.new if is_new else change.old
        return (self._content(side, _MOST_PACKED_BYTES) if side is not None else None) or b""

    def _content(self, side: Side, most_bytes: int) -> bytes | None:
        return read_side(side, self._store, most_bytes)


def _halves(change: Change) -> tuple[Change, ...]:
    """Return a rename as what has gone and what has come; anything else as it is."""
    if change.kind is not Kind.RENAMED or change.old_path is None:
        return (change,)
    return (
        Change(Kind.DELETED, change.old_path, old=change.old),
        Change(Kind.ADDED, change.path, new=change.new, content=True),
    )


class _Refs:
    """The packed refs of a state."""

    def __init__(self, content: bytes) -> None:
        self.packed = parse_packed(content)


def read_side(side: Side, store: StoreFiles, most_bytes: int = _MOST_PACKED_BYTES) -> bytes | None:
    """Return the content of a small regular file; None if it is none, or cannot be read."""
    if side.type != stat.S_IFREG or side.data is None or side.size > most_bytes:
        return None
    with contextlib.suppress(OSError), open(side.open(store), "rb") as file:
        return file.read(most_bytes)
    return None


def _is_object(rest: bytes) -> bool:
    directory, _, name = rest.partition(b"/")
    if directory in (b"pack", b"info"):
        return b"/" not in name
    return len(directory) == 2 and bool(name) and _HEX.issuperset(directory + name)


def _is_directory(side: Side | None) -> bool:
    return side is not None and side.type == stat.S_IFDIR


def _became(old: bytes | None, new: bytes | None) -> str:
    return "deleted" if new is None else "added" if old is None else "moved"


def _few(words: Sequence[str], what: str) -> str:
    return ", ".join(words) if len(words) <= _MOST_NAMED else f"{len(words)} {what}"


def _s(count: int) -> str:
    return "s" if count > 1 else ""
