"""The state of a review's screen: the changes, what is accepted, and the cursor."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from yolofs.changes.changes import Change
from yolofs.changes.hunks import Hunk
from yolofs.cli.review.accepted import Accepted, AcceptedPart, Before
from yolofs.cli.review.change_tree import Key, Node, NodeTree, Section, key_of, sections
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.effects import (
    Carried,
    Compare,
    DoneInView,
    Drop,
    Load,
    Page,
    PickedOrAll,
    ReviewEffect,
)
from yolofs.cli.show.listing import PathDisplay
from yolofs.paths import RelPath

_KEPT_VIEWS = 64
"""The lines of so many changes are kept, those looked at last."""
LOOKING = "looking at what the commit would do; q stops that"
DROPPING = "dropping"
LOOKING_AGAIN = "looking again; q stops that"
NO_PLACE = PathDisplay(b"/", None)
_MOST_STEPS_BACK = 1000


class Focus(enum.Enum):
    """On which side keys work."""

    LIST = "list"
    DIFF = "diff"


class ReviewMode(enum.Enum):
    """What keys are for."""

    LIST = "list"
    SEARCH = "search"
    NOTE = "note"
    """Whether to drop it, and what the agent is told."""
    LEAVE = "leave"
    PAGE = "page"


def arrange_changes(comparison: Comparison) -> NodeTree:
    """Return the changes of a comparison as a tree; of 20,000 that takes a tenth of a second."""
    return NodeTree(comparison.changes, sections(comparison), comparison.path_display)


class _Done(NamedTuple):
    """Something that was done in the view, and what was accepted before of the same paths."""

    done: DoneInView
    before: list[Before]


class ReviewState:
    """What is shown, what is accepted, and how far the user has come."""

    def __init__(self) -> None:
        self.comparison: Comparison | None = None
        self.tree = NodeTree((), lambda _: Section.PROJECT, NO_PLACE)
        self.accepted = Accepted(self.tree)
        self.focus = Focus.LIST
        self.mode = ReviewMode.LIST
        self.row = 0
        self.top = 0
        """The first row of the list that is on the screen."""
        self.line = 0
        """The line of the diff that the cursor is on."""
        self.line_top = 0
        self.aside = 0
        """How far the lines are moved to the left, in bytes, from where each begins by itself."""
        self._line_ranges: dict[Key, set[tuple[int, int]]] = {}
        """Where lines are accepted one by one: ranges of lines of the old text, as hunks get other
        ids with each change of their file.
        """
        self.message = ""
        self.busy = ""
        """What is being done; keys that would do something else wait for it."""
        self.typed = ""
        """What was typed so far: a search, a note."""
        self.searched = ""
        self.tells = True
        """Whether the agent is told of a drop."""
        self.page = Page("", ())
        self.page_top = 0
        self.page_at = 0
        """Which of the page's choices the cursor is on."""
        self.page_follows = True
        """Whether the page scrolls so that the cursor is on the screen."""
        self._ours: frozenset[RelPath] = frozenset()
        """Paths at which the staged version is to replace base's, as chosen on the page, until it
        is left.
        """
        self.is_too_small = False
        """Whether the terminal has no room for what keys ask, so that they do nothing."""
        self.list_width, self.room = 0, 0
        """How many cells the list has on the screen, and how many rows it and the lines have, as
        drawn.
        """
        self.is_comparing = True
        self._is_old = False
        """Whether something was done since the comparison, so that it is not what differs now."""
        self._walking_to: int | None = None
        """The state that was asked for and is not there yet."""
        self._views: OrderedDict[Key, DiffView] = OrderedDict()
        self._unreadable: Change | None = None
        """Its lines could not be read when the cursor came to it."""
        self._history: list[list[Before] | _Done] = []
        self._dropping: Drop | None = None
        self._back: tuple[RelPath, ...] = ()
        """What was taken back, until a comparison has it: there the cursor goes."""

    # ---- what there is

    @property
    def rows(self) -> Sequence[Node]:
        """The rows of the list."""
        return self.tree.rows

    @property
    def node(self) -> Node | None:
        """The row that the cursor is on."""
        return self.rows[self.row] if self.row < len(self.rows) else None

    @property
    def view(self) -> DiffView | None:
        """The lines of the change that the cursor is on; None if it is none, or they are not read
        yet.
        """
        change = self.change
        return self._views.get(key_of(change)) if change is not None else None

    @property
    def change(self) -> Change | None:
        """The change that the cursor is on."""
        return self.node.change if self.node is not None else None

    @property
    def is_unreadable(self) -> bool:
        """Whether the lines of the change that the cursor is on could not be read."""
        return self.change is not None and self.change == self._unreadable and self.view is None

    @property
    def hunk(self) -> Hunk | None:
        """The hunk that the cursor is in."""
        return self.view.hunk_of(self.line) if self.view is not None and self.view.count else None

    @property
    def dropping_title(self) -> str:
        """What is about to be dropped."""
        return self._dropping.title if self._dropping is not None else ""

    @property
    def can_change(self) -> bool:
        """Whether what is shown is the present, so that it can be accepted and dropped."""
        known = self.comparison
        return known is not None and known.is_present and not known.is_partial

    def shown_changes(self) -> list[Change]:
        """Return the changes that must not become others unnoticed: the one shown, and what is
        accepted.
        """
        found = [part.change for part in self.parts().values()]
        return [self.change, *found] if self.change is not None else found

    def is_split(self, hunk: Hunk, key: Key) -> bool:
        """Tell whether the lines of a hunk are accepted one by one."""
        return bool(self._split_at(hunk, key) or self.accepted.lines_of(key, hunk))

    def _split_at(self, hunk: Hunk, key: Key) -> set[tuple[int, int]]:
        """Return the ranges of what was split that a hunk is in."""
        end = hunk.old_start + len(hunk.old_lines)
        return {one for one in self._line_ranges.get(key, ()) if one[0] <= end and hunk.old_start <= one[1]}

    def wanted(self) -> dict[Key, tuple[Change, PickedOrAll]]:
        """Return all that is accepted."""
        return {key: (part.change, part.picks) for key, part in self.parts().items()}

    def parts(self) -> dict[Key, AcceptedPart]:
        """Return what is accepted of each change."""
        return {key: part for key in self.accepted if (part := self.accepted.of(key)) is not None}

    def accepted_since(self, parts: Mapping[Key, AcceptedPart], comparison: Comparison) -> list[Key]:
        """Return what was accepted after ``parts`` were, and is something else in a comparison that
        was begun with these.
        """
        late = [(key, part) for key, part in self.parts().items() if parts.get(key) is not part]
        now = {key_of(change): change for change in comparison.changes} if late else {}
        return [key for key, part in late if key in now and now[key] != part.change]

    # ---- what comes in

    def compared(
        self, comparison: Comparison, changed: Iterable[Key] = (), tree: NodeTree | None = None
    ) -> ReviewEffect | None:
        """Take another comparison; ``changed`` is what of the accepted has become something else.

        ``tree`` is what :func:`arrange_changes` makes of it, if the caller has that already.
        """
        self.is_comparing = comparison.is_partial or not comparison.has_marks
        self._is_old = False
        if comparison.at == self._walking_to:
            self._walking_to = None
        before, known = self.node, self.tree
        path_display = before.change.path if before is not None and before.change is not None else None
        was_partial = self.comparison is not None and self.comparison.is_partial
        self.comparison = comparison
        tree = tree if tree is not None else arrange_changes(comparison)
        tree.open_as(known, is_partial=was_partial)
        if comparison.is_last:
            was = len(self.accepted.stale)
            self.accepted.move_to(tree, changed)
            self._line_ranges = {key: ranges for key, ranges in self._line_ranges.items() if key in tree.by_key}
            self._leave_out_code(tree)
            if (more := len(self.accepted.stale) - was) > 0:
                has, them = ("has", "it") if more == 1 else ("have", "them")
                said = f"{more} of what you had accepted {has} changed since (!): look at {them} again"
                self.message = f"{self.message}; {said}" if self.message else said
        self._forget_views(tree)
        self.tree = tree
        line, top, aside = self.line, self.line_top, self.aside
        back = self._first_of(self._back)
        if back is not None:
            self.row = tree.show(back)
        else:
            self._keep_place(before, path_display)
        if back is not None or not comparison.is_partial:
            self._back = ()
        wanted = self._shown() if not self.is_unreadable else None  # which is tried again when the cursor comes back
        if path_display is not None and self.change is not None and self.change.path == path_display:
            self.line, self.line_top, self.aside = line, top, aside
            if self.view is not None:
                self.line = self._nearest(min(line, max(self.view.count - 1, 0)), 1)
        return wanted

    def _leave_out_code(self, tree: NodeTree) -> None:
        """Accept nothing that the host would run, as has turned out, unless it was accepted by
        itself.
        """
        unnamed = [
            key for key, part in self.parts().items() if not part.was_named and tree.by_key[key].section is Section.CODE
        ]
        self.accepted.put_back([(key, None) for key in unnamed])
        if unnamed:
            self.message = f"{len(unnamed)} that the host would run or trust: accept these one by one"

    def loaded(self, change: Change, view: DiffView) -> None:
        """Take the lines of a change."""
        key = key_of(change)
        node = self.tree.by_key.get(key)
        if node is None or node.change != change:
            return
        self._views[key] = view
        self._views.move_to_end(key)
        while len(self._views) > _KEPT_VIEWS:
            self._views.popitem(last=False)
        self.accepted.bind(key, view.file)
        if self.change == change:
            self.line = self._nearest(min(self.line, max(view.count - 1, 0)), 1)

    def unreadable(self, change: Change, message: str) -> None:
        """Take note that the lines of a change cannot be read, so that no key waits for them."""
        self._unreadable = change
        self.failed(message)
        if self.is_unreadable:
            self.focus = Focus.LIST

    def prepared(self, page: Page) -> None:
        """Show a page."""
        at = next((choice.paths for choice in self.page.choices[self.page_at :]), ()) if self._ours else ()
        self.busy, self.mode, self.page, self.page_top, self.page_follows = "", ReviewMode.PAGE, page, 0, True
        self.page_at = next((number for number, choice in enumerate(page.choices) if choice.paths == at), 0)

    def done(self, message: str, done: DoneInView | None = None, carried: Iterable[Carried] = ()) -> ReviewEffect:
        """Take note of what was done in the view; what differs now has to be found out.

        What was accepted of files of which a part was dropped stays so, as ``carried`` has it.
        """
        touched = set(done.paths if done is not None else ())
        before: list[Before] = [(key, part) for key, part in self.parts().items() if key[0] in touched]
        for one in carried:
            self.accepted.carry(key_of(one.change), one)
        gone = touched - {one.change.path for one in carried}
        self.accepted.put_back([(key, None) for key in list(self.accepted) if key[0] in gone])
        self._dropping = None
        self.busy, self.message = "", message
        if done is not None:
            self._remember(_Done(done, before))
        self.is_comparing = self._is_old = True
        return Compare()

    def settled(self, message: str, done: DoneInView) -> ReviewEffect:
        """Take note that conflicts were settled in the view; the cursor goes to the first of
        them.
        """
        self.mode, self.focus = ReviewMode.LIST, Focus.LIST
        self._views.clear()  # nobody is to take the lines of before for what was merged
        command = self.done(message, done)
        if (node := self._first_of(done.paths)) is not None:
            self.row = self.tree.show(node)
        return command

    def _first_of(self, paths: Iterable[RelPath]) -> Node | None:
        """Return the first change at some paths that the list has."""
        keys = ((path, is_second) for path in paths for is_second in (False, True))
        return next((node for key in keys if (node := self.tree.by_key.get(key)) is not None), None)

    def undone(self, message: str) -> ReviewEffect:
        """Note that the last action was taken back: its hunks are accepted as before, unless the
        next comparison finds them changed.  The cursor goes to them.
        """
        last = self._history.pop()
        assert isinstance(last, _Done)
        self.accepted.put_back_at_once(last.before)
        self._back = last.done.paths
        return self.done(message)

    def committed(self, message: str) -> ReviewEffect:
        """Take note of a commit: what is left is compared anew, and nothing before can be taken
        back here.
        """
        self.mode, self._history, self._ours, self._line_ranges = ReviewMode.LIST, [], frozenset(), {}
        self.accepted.move_to(NodeTree((), lambda _: Section.PROJECT, NO_PLACE), ())
        return self.done(message)

    def failed(self, message: str) -> None:
        """Take note that a command failed."""
        self.busy, self.message, self.is_comparing, self._walking_to = "", message, False, None
        self._is_old = False
        if self.mode is ReviewMode.PAGE:
            self.mode = ReviewMode.LIST

    @property
    def is_looking(self) -> bool:
        """Tell whether what is going on only looks, so that it may be stopped."""
        return self.busy in (LOOKING, LOOKING_AGAIN)

    @property
    def is_dropping(self) -> bool:
        """Tell whether a drop is going on, which may be stopped until it is done."""
        return self.busy.startswith(DROPPING)

    def stopping(self) -> None:
        """Take note that the user does not wait for a drop; it may be done all the same."""
        self.busy = f"{DROPPING}: stopping"

    def stopped(self) -> None:
        """Take note that the user does not wait for the page before a commit."""
        self.failed("stopped looking, nothing is committed")
        self._ours = frozenset()

    def stale(self, ids: Iterable[str]) -> None:
        """Take note that hunks do not exist any more: the user has to look again at the changes
        that they belonged to.
        """
        gone = set(ids)
        for key, part in self.parts().items():
            if part.picks is not None and gone.intersection(part.picks):
                self.accepted.put_back([(key, None)])
                self.accepted.stale.add(key)
        self._views.clear()

    def _remember(self, what: list[Before] | _Done) -> None:
        self._history.append(what)
        del self._history[:-_MOST_STEPS_BACK]

    # ---- keeping the place

    def _keep_place(self, node: Node | None, path: RelPath | None) -> None:
        if path is not None:
            for key in ((path, False), (path, True)):
                if key in self.tree.by_key:
                    self.row = self.tree.row_of(self.tree.by_key[key])
                    break
            else:
                self.focus = Focus.LIST  # not the lines of whatever is in its row now
        elif node is None:
            first = next((row for row, one in enumerate(self.rows) if one.change is not None), 0)
            self.row = first
        self.row = max(min(self.row, len(self.rows) - 1), 0)
        if self.change is None:
            self.focus = Focus.LIST

    def _forget_views(self, tree: NodeTree) -> None:
        for key in list(self._views):
            node = tree.by_key.get(key)
            if node is None or node.change != self._views[key].file.change:
                del self._views[key]

    def _nearest(self, line: int, step: int) -> int:
        """Return the nearest line that is part of a hunk, in one direction first."""
        view = self.view
        if view is None or not view.count:
            return 0
        for way in (step, -step):
            at = line
            while 0 <= at < view.count:
                if view.line(at).hunk >= 0:
                    return at
                at += way
        return 0

    def _shown(self) -> ReviewEffect | None:
        """Return what is wanted for the right side, as the cursor has come to another change."""
        self.line = self.line_top = self.aside = 0
        if self.view is not None:
            self.line = self._nearest(0, 1)
        if self.change is None or self.view is not None:
            return None
        self._unreadable = None
        return Load(self.change)
