"""How lists of a session's changes are made short, and what stands for what is folded away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yolofs.changes.changes import Change
from yolofs.cli.options import options
from yolofs.cli.show import folding
from yolofs.cli.show.folding import Folded, Group, Sort
from yolofs.cli.show.listing import PathDisplay
from yolofs.hostcode.git_ignored import Repositories
from yolofs.hostcode.mark import is_marked
from yolofs.paths import join
from yolofs.session.session import Session
from yolofs.state.regions import Region
from yolofs.state.tree import Tree
from yolofs.store.interfaces import StoreFiles

if TYPE_CHECKING:
    from yolofs.hostcode.mark import Marks


class Shortener(msgspec.Struct, frozen=True):
    """Makes lists of changes of a session short."""

    session: Session
    path_display: PathDisplay
    unfold: str
    """What shows each change: an option, or a command."""
    tree: Tree | None = None
    """The state that the changes lead to; None for what the view shows now."""
    store: StoreFiles | None = None
    """Where that state's files are; None for the session's store."""

    def fold(self, changes: Iterable[Change], is_kept: Callable[[Change], bool], marks: Marks) -> Folded:
        """Return changes made short; what ``is_kept`` has a line of its own, as what is marked.

        Blocks while git is asked what it ignores.
        """
        # an agent asks from the sandbox: ignore files that it must not read would answer it
        repositories = Repositories(self.session.base, self.session.directory) if options().guard is None else None
        regions = self.session.regions  # follows links: once for all of the changes

        def may_fold(change: Change) -> bool:
            return self.path_display.holds(change) and regions.of_all(change.paths) is not Region.SCRATCH

        def is_outside(change: Change) -> bool:
            return regions.of_all(change.paths) is Region.OUTSIDE

        return folding.fold(
            changes,
            in_project=may_fold,
            is_outside=is_outside,
            is_kept=is_kept,
            marks=marks,
            repositories=repositories,
        )

    def line(self, group: Group, show: Callable[[Change], str]) -> str:
        """Return what stands for a group of changes; ``show`` returns a path for the terminal."""
        return f"{self.group_text(group, show)}  ({folding.group_counts_text(group)}; {self.unfold})"

    def group_text(self, group: Group, show: Callable[[Change], str]) -> str:
        """Return what has happened in a group of changes, without their number."""
        begin = group.sort.value
        if group.top is not None:
            begin += folding.shown_top(group.top, self.path_display.project)
        if group.sort is Sort.GIT and group.top is not None and self._may_read(group):
            from yolofs.cli.show.git_summary import GitDirectory  # these take long, for a few lists
            from yolofs.cli.show.state_texts import StateTexts

            store = self.store if self.store is not None else self.session.store
            told = GitDirectory(group.top, group.changes, store, StateTexts(self.session, self.tree, store)).summary()
        else:
            told = folding.names_text(group, show)
        return f"{begin}: {told}"

    def _may_read(self, group: Group) -> bool:
        """Tell whether the caller may read all files that say what happened in a ``.git``."""
        guard = options().guard
        if guard is None or group.top is None:
            return True
        paths = [path for change in group.changes for path in change.paths]
        return all(guard.may_read(self.session.base.path(path)) for path in (*paths, join(group.top, b"packed-refs")))


class ChangesSetApart(msgspec.Struct, frozen=True):
    """The changes that are shown each, and those that are told together, in the same order."""

    first: list[Change]
    groups: list[Group]

    @property
    def last(self) -> list[Change]:
        """What the groups hold."""
        return [change for group in self.groups for change in group.changes]


def set_apart(changes: Sequence[Change], shortener: Shortener, marks: Marks) -> ChangesSetApart:
    """Return changes without those that a short list tells together, and these; what is marked is
    never among them.

    Blocks while git is asked what it ignores.
    """
    groups = shortener.fold(changes, lambda change: is_marked(change, marks), {}).groups
    told = {id(change) for group in groups for change in group.changes}
    return ChangesSetApart([change for change in changes if id(change) not in told], groups)
