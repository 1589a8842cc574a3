"""What happened in a ``.git``, in a few words: "1 commit on main, index"."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.cli.show.folding import is_time_alone
from yolofs.cli.show.git_new_objects import MOST_COMMITS, MOST_PACKED_BYTES, NewObjects, Read, read_side
from yolofs.paths import RelPath, display, join
from yolofs.store.interfaces import StoreFiles
from yolofs.text.git_commits import branch_of, parse_packed, parse_ref

_REFS = b"refs/"
_HEADS, _TAGS, _REMOTES, _STASH = b"refs/heads/", b"refs/tags/", b"refs/remotes/", b"refs/stash"
_TOLD_REFS = (_HEADS, _TAGS, _REMOTES, _STASH)
_UNREADABLE = b"?"
"""Stands for the value of a ref whose file is no small regular one: nothing else has it."""
_PACKED = b"packed-refs"
_OBJECTS, _PACKS = b"objects/", b"objects/pack/"
_MOST_REF_BYTES = 1 << 12
_MOST_NAMED = 3
_HEX = frozenset(b"0123456789abcdef")
_SILENT = (b"logs", b"refs")
_DECIDES = frozenset({b"info/exclude", b"info/attributes", b"info/grafts", b"shallow", b"objects/info/alternates"})
"""What git goes by: named before all other files, however many there are."""
_OF_PACKS = re.compile(
    rb"pack/(pack-[0-9a-f]+\.\w+|multi-pack-index\S*|tmp_\w+)|info/(packs|commit-graphs?(/.*)?)"
).fullmatch
_REWRITTEN = re.compile(rb"pack/multi-pack-index.*|info/.*").fullmatch
"""Below ``objects``, what git itself writes anew under the same name."""
_OWN_NOTES = frozenset({b"HEAD", b"FETCH_HEAD", b"ORIG_HEAD", b"index", b"COMMIT_EDITMSG", b"MERGE_MSG", b"AUTO_MERGE"})
"""What git notes for itself in a repository, and in each of its worktrees."""
_NOTES = _OWN_NOTES | {b"packed-refs", b"info/refs"}
_OPERATIONS = {
    "merge": re.compile(rb"MERGE_(HEAD|MODE|RR)"),
    "rebase": re.compile(rb"REBASE_HEAD|rebase-(merge|apply)/[^/]+"),
    "cherry-pick": re.compile(rb"CHERRY_PICK_HEAD"),
    "revert": re.compile(rb"REVERT_HEAD"),
    "bisect": re.compile(rb"BISECT_[A-Z_]+"),
}
"""What takes several commands of git, and the files that are there meanwhile."""
_WORKTREE = re.compile(rb"worktrees/([^/]+)(?:/(.+))?")
_COMMON = b"../.."
"""Where the directory of a worktree says that the repository is."""


class GitDirectory:
    """The changes in one ``.git``."""

    def __init__(self, top: RelPath, changes: Sequence[Change], store: StoreFiles, read: Read) -> None:
        """``top`` is the ``.git``; ``read`` returns what either state has at a path that did not
        change.
        """
        self._top = top
        self._store = store
        self._read = read
        self._changes = {one.path[len(top) + 1 :]: one for change in changes for one in _halves(change)}
        self._old = self._packed_refs(is_new=False)
        self._new = self._packed_refs(is_new=True)

    def summary(self) -> str:
        """Return what happened; "2 files" if nothing more can be told."""
        with NewObjects(self._top, self._changes, self._store, self._read) as found:
            branches, objects = self._of_branches(found), self._of_objects(found)
        words = [*branches, *self._of_other_refs(), *self._of_head()]
        if self._has_other(b"index"):
            words.append("index")
        words += [*self._of_operations(), *self._of_worktrees()]
        words += objects
        others = sorted(name for name, change in self._changes.items() if self._is_other(name, change))
        words += [display(name) for name in others if name in _DECIDES]
        rest = [display(name) for name in others if name not in _DECIDES]
        if rest:
            words.append(_some_or_count(rest, "other files"))
        return ", ".join(words) or "nothing but its own notes"

    def _of_objects(self, found: NewObjects) -> list[str]:
        """Return what happened to objects, apart from new ones and such that are in a pack now: git
        makes them, and never writes to them again.
        """
        removed = changed = packed = 0
        for name, change in self._changes.items():
            if not name.startswith(_OBJECTS) or _is_directory(change.new or change.old):
                continue
            if change.kind is ChangeKind.DELETED:
                in_pack = name.startswith(_PACKS)
                is_kept = found.has_repacked(name) if in_pack else found.has_packed(name[len(_OBJECTS) :])
                packed, removed = packed + is_kept, removed + (not is_kept)
            changed += _is_object(name[len(_OBJECTS) :]) and self._is_written_over(name, change)
        told = [
            f"{count} object file{_plural_s(count)} {what}"
            for count, what in ((removed, "removed"), (changed, "changed"))
            if count
        ]
        if not packed:
            return told
        return ["packed" if found.has_packs else "unpacked", *told]

    def _is_written_over(self, name: bytes, change: Change) -> bool:
        if change.new is None or (change.metadata == (Aspect.TIME,) and not change.content):
            return False
        if change.new.type != stat.S_IFREG:
            return True
        return change.kind is not ChangeKind.ADDED and not _REWRITTEN(name[len(_OBJECTS) :])

    # ---- refs

    def _of_branches(self, found: NewObjects) -> list[str]:
        moved = self._moved(_HEADS)
        known = {old for _, (old, _) in self._moved(_REFS) if old is not None}
        told = []
        for ref, (old, new) in moved[:_MOST_NAMED]:
            name = display(ref[len(_HEADS) :])
            if new is None:
                told.append(f"branch {name} deleted")
            else:
                told.append(_branch_text(name, old, *found.commits_to(new, known)))
        return told + ([f"{len(moved) - _MOST_NAMED} more branches"] if len(moved) > _MOST_NAMED else [])

    def _of_other_refs(self) -> list[str]:
        words = []
        tags = self._moved(_TAGS)
        if tags:
            words.append(
                _some_or_count(
                    [f"tag {display(ref[len(_TAGS) :])} {_change_of_ref(*values)}" for ref, values in tags], "tags"
                )
            )
        if self._moved(_REMOTES):
            words.append("remote branches")
        words += [f"stash {_change_of_ref(*values, moved='changed')}" for _, values in self._moved(_STASH)]
        others = [one for one in self._moved(_REFS) if not one[0].startswith(_TOLD_REFS)]
        if others:
            words.append(
                _some_or_count([f"{display(ref)} {_change_of_ref(*values)}" for ref, values in others], "other refs")
            )
        if self._old is None or self._new is None:
            words.append(display(_PACKED))
        return words

    def _of_head(self) -> list[str]:
        value = self._head(b"HEAD")
        return [f"HEAD {value}"] if value is not None else []

    def _head(self, name: bytes) -> str | None:
        """Return what became of a HEAD, None if it names what it named before."""
        change = self._changes.get(name)
        if change is None or change.new is None:
            return "deleted" if change is not None else None
        old, new = (self._value(name, change, is_new=is_new) for is_new in (False, True))
        if old is not None and old == new != _UNREADABLE:
            return None
        branch = branch_of(new or b"")
        return f"on {display(branch)}" if branch is not None else "on no branch"

    def _of_operations(self) -> list[str]:
        """Return what takes several commands, and has begun, ended, or gone on."""
        words = []
        for operation, files in _OPERATIONS.items():
            kinds = {change.kind for name, change in self._changes.items() if files.fullmatch(name)}
            if kinds:
                is_one = len(kinds) == 1
                began, ended = is_one and ChangeKind.ADDED in kinds, is_one and ChangeKind.DELETED in kinds
                words.append(f"{operation} {'begun' if began else 'ended' if ended else 'in progress'}")
        return words

    def _of_worktrees(self) -> list[str]:
        """Return what happened to the directories in which git notes each worktree."""
        told: dict[bytes, None] = {}
        for name in self._changes:
            if (found := _WORKTREE.fullmatch(name)) is not None:
                told.setdefault(found[1])
        words = []
        for worktree in told:
            top, shown = b"worktrees/" + worktree, display(worktree)
            itself, head = self._changes.get(top), self._head(top + b"/HEAD")
            if itself is not None and itself.kind in (ChangeKind.ADDED, ChangeKind.DELETED):
                words.append(f"new worktree {shown}" if itself.new is not None else f"worktree {shown} removed")
            elif head is not None:
                words.append(f"HEAD of worktree {shown} {head}")
            elif self._has_other(top + b"/index"):
                words.append(f"index of worktree {shown}")
        return [_some_or_count(words, "worktrees")] if words else []

    def _moved(self, prefix: bytes) -> list[tuple[bytes, tuple[bytes | None, bytes | None]]]:
        """Return the refs that have other values now, by name, with both."""
        names = {name for name in self._changes if name.startswith(prefix)}
        if self._old is not None and self._new is not None:
            packed = {ref for ref, _ in self._old.items() ^ self._new.items()}
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
        """Return what a ref names in one of the states: by its own file, else by the packed
        ones.
        """
        packed = self._new if is_new else self._old
        if change is None:
            loose = self._read(join(self._top, ref)) if packed is not None and ref in packed else None
        else:
            side = change.new if is_new else change.old
            loose = self._content(side, _MOST_REF_BYTES) if side is not None else None
            if loose is None and side is not None:
                return _UNREADABLE
        if loose is not None:
            return parse_ref(loose)
        return packed.get(ref) if packed is not None else _UNREADABLE

    # ---- files

    def _has_other(self, name: bytes) -> bool:
        """Tell whether more of a file than its time differs."""
        change = self._changes.get(name)
        return change is not None and not is_time_alone(change)

    def _is_other(self, name: bytes, change: Change) -> bool:
        """Tell whether nothing else tells of a change: an agent may put anything into ``.git``."""
        if _is_directory(change.new or change.old) or name in _NOTES or change.metadata == (Aspect.TIME,):
            return False
        if any(files.fullmatch(name) for files in _OPERATIONS.values()):
            return False
        if (worktree := _WORKTREE.fullmatch(name)) is not None:
            return not self._is_of_worktree(worktree[1], worktree[2] or b"", change)
        first, _, rest = name.partition(b"/")
        if first == b"objects":
            return not _is_object(rest)
        return first not in _SILENT

    def _is_of_worktree(self, worktree: bytes, rest: bytes, change: Change) -> bool:
        """Tell whether a file is a note of git's own about a worktree."""
        if rest in _OWN_NOTES or rest.startswith(b"logs/"):
            return True
        itself = self._changes.get(b"worktrees/" + worktree)
        if itself is None or itself.kind not in (ChangeKind.ADDED, ChangeKind.DELETED):
            return False
        if rest == b"commondir":
            return change.new is None or (self._content(change.new, _MOST_REF_BYTES) or b"").strip() == _COMMON
        return rest == b"gitdir"

    def _packed_refs(self, *, is_new: bool) -> dict[bytes, bytes] | None:
        """Return the packed refs of one of the states, None if they cannot be read."""
        change = self._changes.get(_PACKED)
        if change is None:
            return parse_packed(self._read(join(self._top, _PACKED)) or b"")
        side = change.new if is_new else change.old
        content = self._content(side, MOST_PACKED_BYTES) if side is not None else b""
        return parse_packed(content) if content is not None else None

    def _content(self, side: Side, most_bytes: int) -> bytes | None:
        return read_side(side, self._store, most_bytes)


def _branch_text(name: str, old: bytes | None, count: int, ends: set[bytes]) -> str:
    """Return what became of a branch: ``count`` new commits, which stand on ``ends``."""
    commits = f"{count} commit{_plural_s(count)}" if count < MOST_COMMITS else f"{MOST_COMMITS} commits or more"
    if old is None:
        return f"new branch {name}" + (f" with {commits}" if count else "")
    if not count:
        return f"{name} moved"
    if old in ends:
        return f"{commits} on {name}"
    return f"{name} rewritten, with {count} new commit{_plural_s(count)}"


def _halves(change: Change) -> tuple[Change, ...]:
    """Return a rename as what has gone and what has come; anything else as it is."""
    if change.kind is not ChangeKind.RENAMED or change.old_path is None:
        return (change,)
    return (
        Change(ChangeKind.DELETED, change.old_path, old=change.old),
        Change(ChangeKind.ADDED, change.path, new=change.new, content=True),
    )


def _is_object(rest: bytes) -> bool:
    directory, _, name = rest.partition(b"/")
    if directory in (b"pack", b"info"):
        return _OF_PACKS(rest) is not None
    return len(directory) == 2 and bool(name) and _HEX.issuperset(directory + name)


def _is_directory(side: Side | None) -> bool:
    return side is not None and side.type == stat.S_IFDIR


def _change_of_ref(old: bytes | None, new: bytes | None, *, moved: str = "moved") -> str:
    return "deleted" if new is None else "added" if old is None else moved


def _some_or_count(words: Sequence[str], what: str) -> str:
    return ", ".join(words) if len(words) <= _MOST_NAMED else f"{len(words)} {what}"


def _plural_s(count: int) -> str:
    return "s" if count > 1 else ""
