"""Drift as people and programs are told of it: the paths at which base changed under what is
staged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from yolofs.changes.changes import Change, compare
from yolofs.cli.output import emit, paint, say
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay
from yolofs.journal.journal_file import may_have_marks
from yolofs.journal.timeline import BASE
from yolofs.paths import RelPath, absolute
from yolofs.progress import Progress
from yolofs.session.looking_again import LaterState, look_again_if_gone
from yolofs.session.session import Session
from yolofs.state.drift import may_have_drifted
from yolofs.state.tree import Tree
from yolofs.store import restored
from yolofs.system.gc_pause import no_garbage_collection

if TYPE_CHECKING:  # takes long, and there seldom is any
    from yolofs.commit.merge.drift_descriptions import Drift

_UNITS = ((86400 * 365, "y"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Drifts:
    """Finds the drift of a session that is compared with base, by the same looks at base."""

    def __init__(self, session: Session) -> None:
        """Look at nothing yet."""
        self._session = session
        self._tree = Tree()
        self._paths: list[RelPath] = []
        self._marked: frozenset[RelPath] = frozenset()
        self.unlisted: tuple[RelPath, ...] = ()
        """Paths with drift that are in no list: nothing differs from base there, or it is listed by
        another path.
        """

    def compare(self, *, progress: Progress | None) -> list[Change]:
        """Return what is staged, as ``Session.compare`` does, and find out where base changed,
        too.
        """
        return look_again_if_gone(self._session, lambda: self._compare(progress))

    def _compare(self, progress: Progress | None) -> list[Change]:
        session = self._session
        before, self._tree = session.states(BASE, None)
        with session.base.looking_once(), no_garbage_collection():
            again = LaterState(session).look
            changes = compare(before, self._tree, session.base, session.store, progress=progress, again=again)
            is_staged = bool(changes or self._tree.root.children)
            known = restored.read(session.directory) if is_staged else set()
            unset = restored.read_unset(session.directory) if is_staged else set()
            if is_staged and may_have_drifted(self._tree, session.base, session.store, known, unset=unset):
                from yolofs.commit import find_conflicts
                from yolofs.commit.merge.git_indexes import indexes_unchanged_here

                paths = find_conflicts(self._tree, session.base, session.store, restored=known, unset=unset)
                unchanged = indexes_unchanged_here(self._tree, session.base, session.store, paths)
                self._paths = [path for path in paths if path not in unchanged]
            if changes and may_have_marks(session.journal.path):
                from yolofs.session.merge import marked_paths

                self._marked = frozenset(marked_paths(session, self._tree))
                self._paths = sorted(self._marked.union(self._paths))
        if self._paths:
            listed = {path for change in changes for path in change.paths}
            self.unlisted = tuple(path for path in self._paths if path not in listed)
        return changes

    def of(self, changes: Iterable[Change], is_shown: Callable[[RelPath], bool]) -> Sequence[Drift]:
        """Return the drift at the paths of some changes, and at paths without a change that are to
        be shown.
        """
        if not self._paths:
            return ()
        from yolofs.commit.merge.drift_descriptions import describe_drift

        shown = {path for change in changes for path in change.paths}
        shown.update(filter(is_shown, self.unlisted))
        paths = [path for path in self._paths if path in shown]
        return describe_drift(self._tree, self._session.base, self._session.store, paths, self._marked)


def emit_drift(drift: Sequence[Drift], path_display: PathDisplay) -> None:
    """Write a line for each path at which base changed, too, and say what to do."""
    if not drift:
        return
    emit()
    emit("changed in base, too:")
    sign = paint("!", "bold", "red")
    now_ns = time.time_ns()
    for one in drift:
        emit(f"{sign}  {path_display.show_path(one.path)}   {drift_text(one, now_ns)}")
    if all(one.is_without_content for one in drift):
        say("note: bring it back in base, or drop what is staged there: yolofs commit --theirs")
        return
    say(
        "note: yolofs commit --merge merges text, --ours takes what is staged, --theirs what base has;"
        " with PATH only there"
    )


def drift_text(drift: Drift, now_ns: int) -> str:
    """Return how old both sides are, such as ``base 3 min ago, staged 2 h ago``."""
    staged = f"{'deleted here' if drift.is_deleted else 'staged'} {_age(drift.staged_ns, now_ns)}".rstrip()
    match drift.how.value:
        case "gone":
            return f"gone from base{', content and all' if drift.is_without_content else ''}, {staged}"
        case "marked":
            return f"it has the marks of a merge, {staged}"
        case "replaced":
            return f"replaced in base {_age(drift.base_ns, now_ns)}, {staged}"
        case _:
            return f"base {_age(drift.base_ns, now_ns)}, {staged}"


def drift_fields(drift: Iterable[Drift], root: bytes) -> list[dict[str, Any]]:
    """Return drift with absolute paths, as the host names them."""
    return [
        {
            **text_fields("path", absolute(root, one.path)),
            "how": one.how.value,
            "base_ns": one.base_ns,
            "staged_ns": one.staged_ns,
            "deleted": one.is_deleted,
        }
        for one in drift
    ]


def _age(time_ns: int | None, now_ns: int) -> str:
    """Return how long ago a time was, in its largest unit; nothing if there is none."""
    if time_ns is None:
        return ""
    seconds = max(0, now_ns - time_ns) // 1_000_000_000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
