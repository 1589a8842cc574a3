"""What the keys of a review do.  No terminal, no session: keys in, effects out.

:mod:`yolofs.cli.review.drawing` draws a model, and :mod:`yolofs.cli.review.screen` carries the
effects out.
"""

from __future__ import annotations

from collections.abc import Callable

from yolofs.changes.changes import Change
from yolofs.changes.hunks import Hunk
from yolofs.changes.picks import LineNumbers
from yolofs.cli.review.accepted import Before
from yolofs.cli.review.change_tree import Key, Node, Section, key_of
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.effects import (
    Commit,
    Compare,
    ConflictKey,
    Drop,
    Edit,
    EndReview,
    Page,
    PickedOrAll,
    Prepare,
    ReviewEffect,
    Settle,
    Undo,
)
from yolofs.cli.review.help import HELP
from yolofs.cli.review.moving import ASIDE_BYTES, MOVES, PAGE_ROWS, CursorMoves
from yolofs.cli.review.review_state import DROPPING, LOOKING, LOOKING_AGAIN, Focus, ReviewMode
from yolofs.paths import RelPath, display

_THE_END = 1 << 30
"""A row below the end of any page: only the drawing code knows how many rows a page has."""


class ReviewModel(CursorMoves):
    """The state of a review, and what each key does to it."""

    # ---- keys

    def key(self, key: str) -> ReviewEffect | None:
        """Carry out a key: a character, or the name of one (``enter``, ``escape``, ``up``, ``c-c``,
        ``pagedown``…).
        """
        if key == "c-c":
            return EndReview(is_interrupt=True)
        if self.is_too_small:
            return None
        match self.mode:
            case ReviewMode.SEARCH | ReviewMode.NOTE:
                return self._type(key)
            case ReviewMode.LEAVE:
                self.mode, self.message = ReviewMode.LIST, ""
                return EndReview() if key == "y" else None
            case ReviewMode.PAGE:
                return self._page_key(key)
        self.message = ""
        if key in MOVES:
            return self._move(key)
        act = self.actions().get(key)
        return act() if act is not None else None

    def actions(self) -> dict[str, Callable[[], ReviewEffect | None]]:
        """Return what each key does in the list and in the lines, beside those that move the
        cursor.
        """
        return {
            " ": self._accept,
            "y": self._accept_and_go_on,
            "a": self._accept_all,
            "d": self._drop,
            "e": self._edit,
            "s": self._split,
            "u": self._undo,
            "/": self._search,
            "n": lambda: self._find(1),
            "N": lambda: self._find(-1),
            "[": lambda: self._walk(-1),
            "]": lambda: self._walk(1),
            "tab": self._other_side,
            "right": self._right,
            "l": self._right,
            "left": self._left,
            "h": self._left,
            "escape": self._left,
            "H": lambda: self._move_aside(-ASIDE_BYTES),
            "L": lambda: self._move_aside(ASIDE_BYTES),
            "-": lambda: self._open_all(is_open=False),
            "=": lambda: self._open_all(is_open=True),
            "enter": self._prepare,
            "?": self._help,
            "q": self._leave,
        }

    # ---- accepting

    def _check_present(self, done: str) -> bool:
        if not self.can_change:
            known = self.comparison
            if known is None or known.is_partial:
                self.message = "still comparing"
                return False
            last = known.steps[-1].generation is None
            self.message = f"only the present state can be {done}: {'] leads there' if last else 'yolofs review'}"
        return self.can_change

    def _accept(self) -> ReviewEffect | None:
        if not self._check_present("accepted"):
            return None
        if self.focus is Focus.DIFF:
            self._accept_in_diff()
        elif self.node is not None:
            self._accept_node(self.node)
        return None

    def _accept_node(self, node: Node) -> None:
        nodes = list(node.changes())
        is_one = node.change is not None and len(nodes) == 1
        if not is_one:
            nodes = [one for one in nodes if one.section is not Section.CODE]
            if not nodes:
                self.message = "what the host would run or trust is accepted one by one"
                return
        if node.wholly == node.total and node.total:
            self._remember(self.accepted.clear(nodes))
        else:
            files = {key: view.file for key, view in self._views.items()}
            self._remember(self.accepted.set_whole(nodes, files, is_named=is_one and self._knows_marks))

    def _accept_in_diff(self) -> None:
        view, hunk = self.view, self.hunk
        if view is None or hunk is None:
            return
        key = key_of(view.file.change)
        lines = self.accepted.lines_of(key, hunk)
        number = view.line(self.line).number
        if not (number and self.is_split(hunk, key)):
            self._remember(self._set_lines(view, hunk, frozenset() if lines is None else None))
            return
        known = frozenset(range(1, hunk.line_count + 1)) if lines is None else lines
        self._remember(self._set_lines(view, hunk, known ^ {number}))

    def _set_lines(self, view: DiffView, hunk: Hunk, lines: LineNumbers | None) -> list[Before]:
        return self.accepted.set_lines(view.file, hunk, lines, is_named=self._knows_marks)

    @property
    def _knows_marks(self) -> bool:
        return self.comparison is not None and self.comparison.has_marks

    def _accept_and_go_on(self) -> ReviewEffect | None:
        if self._check_present("accepted"):
            is_done = self._is_accepted()
            if not is_done:
                self._accept()
            return self._go_on()
        return None

    def _is_accepted(self) -> bool:
        node, view, hunk = self.node, self.view, self.hunk
        if self.focus is Focus.LIST:
            return node is not None and node.wholly == node.total
        if view is None or hunk is None:
            return False
        key = key_of(view.file.change)
        lines, number = self.accepted.lines_of(key, hunk), view.line(self.line).number
        return lines is None or (self.is_split(hunk, key) and number in lines)

    def _go_on(self) -> ReviewEffect | None:
        if self.focus is Focus.LIST:
            return self._move("down")
        view, hunk = self.view, self.hunk
        if view is None or hunk is None:
            return None
        line = view.line(self.line)
        if line.number and self.is_split(hunk, key_of(view.file.change)):
            self._move_in_diff("down")
        elif line.hunk + 1 < len(view.file.hunks):
            self.line = view.first_of(line.hunk + 1)
        return None

    def _accept_all(self) -> ReviewEffect | None:
        if not self._check_present("accepted"):
            return None
        nodes = [one for top in self.tree.sections if top.section is not Section.CODE for one in top.changes()]
        if nodes and all(one.wholly for one in nodes):
            self._remember(self.accepted.clear(nodes))
        else:
            files = {key: view.file for key, view in self._views.items()}
            self._remember(self.accepted.set_whole(nodes, files, is_named=False))
        left = sum(top.total for top in self.tree.sections if top.section is Section.CODE)
        if left:
            self.message = f"{left} that the host would run or trust: accept these one by one"
        return None

    def _split(self) -> ReviewEffect | None:
        view = self.view
        if view is None or self.node is None:
            self.message = self._why_no_lines()
            return None
        is_from_list, self.focus = self.focus is Focus.LIST, Focus.DIFF
        hunk, key = self.hunk, key_of(view.file.change)
        if hunk is None or not hunk.is_splittable:
            self.message = "this cannot be split"
            return None
        ranges = self._split_at(hunk, key)
        if ranges and not is_from_list:  # whoever comes from the list wants its lines
            self._line_ranges[key] -= ranges
            return None
        self._line_ranges.setdefault(key, set()).add((hunk.old_start, hunk.old_start + len(hunk.old_lines)))
        if not view.line(self.line).number:
            self.line += 1
        return None

    def _why_no_lines(self) -> str:
        if self.node is None:
            return "there is nothing to split"
        return "its lines cannot be read" if self.change is not None else "only a file can be split: go to one"

    # ---- dropping, editing, taking back

    def _drop(self) -> ReviewEffect | None:
        if not self._check_present("dropped") or self.node is None:
            return None
        what, title = self._under_cursor()
        if what:
            self._dropping = Drop(what, title, "", is_told=True)
            self.mode, self.typed, self.tells = ReviewMode.NOTE, "", True
        return None

    def _under_cursor(self) -> tuple[dict[Key, tuple[Change, PickedOrAll]], str]:
        """Return what the cursor is on, and what it is called."""
        view, hunk, node = self.view, self.hunk, self.node
        assert node is not None
        if self.focus is Focus.LIST:
            nodes = list(node.changes())
            name = display(node.path) if node.path else node.section.value
            title = name if len(nodes) == 1 else f"{len(nodes)} changes ({name})"
            found: dict[Key, tuple[Change, PickedOrAll]] = {}
            for one in nodes:
                assert one.change is not None
                seen = self._views.get(key_of(one.change))
                ids: PickedOrAll = {each.id: None for each in seen.file.hunks} if seen is not None else None
                found[key_of(one.change)] = one.change, ids
            return found, title
        if view is None or hunk is None:
            return {}, ""
        key, number = key_of(view.file.change), view.line(self.line).number
        name = display(node.path)
        if number and self.is_split(hunk, key):
            return {key: (view.file.change, {hunk.id: frozenset({number})})}, f"a line of {name}"
        title = f"{hunk.kind.value} of {name}" if len(view.file.hunks) > 1 else name
        return {key: (view.file.change, {hunk.id: None})}, title

    def _edit(self) -> ReviewEffect | None:
        if not self._check_present("edited"):
            return None
        view, hunk = self.view, self.hunk
        if view is None or hunk is None or not hunk.line_count or view.file.change.new is None:
            self.message = "there are no lines here that could be edited"
            return None
        return Edit(view.file, hunk)

    def _undo(self) -> ReviewEffect | None:
        if not self._history:
            self.message = "there is nothing to take back"
            return None
        last = self._history[-1]
        if not isinstance(last, list):
            self.busy = f"taking back: {last.done.title}"
            return Undo(last.done)
        self._history.pop()
        self.accepted.put_back(last)
        return None

    # ---- searching

    def _search(self) -> ReviewEffect | None:
        self.mode, self.typed = ReviewMode.SEARCH, ""
        return None

    def _type(self, key: str) -> ReviewEffect | None:
        match key:
            case "escape":
                self.mode, self.message = ReviewMode.LIST, "" if self.mode is ReviewMode.SEARCH else "nothing dropped"
            case "backspace":
                self.typed = self.typed[:-1]
            case "tab" if self.mode is ReviewMode.NOTE:
                self.tells = not self.tells
            case "enter":
                return self._typed()
            case _ if len(key) == 1 and key.isprintable() and len(self.typed) < 500:
                self.typed += key
        return None

    def _typed(self) -> ReviewEffect | None:
        is_note, self.mode = self.mode is ReviewMode.NOTE, ReviewMode.LIST
        if is_note:
            assert self._dropping is not None
            self.busy = f"{DROPPING} {self._dropping.title}; q stops that"
            return self._dropping._replace(note=self.typed.strip(), is_told=self.tells)
        self.searched = self.typed or self.searched
        return self._find(1)

    # ---- walking, leaving, committing

    def _walk(self, step: int) -> ReviewEffect | None:
        known = self.comparison
        if known is None:
            return None
        at = (self._walking_to if self._walking_to is not None else known.at) + step
        if not 0 <= at < len(known.steps):
            self.message = "this is the first generation" if at < 0 else "this is the last one"
            return None
        self.is_comparing, self._walking_to = True, at
        is_last = at == len(known.steps) - 1
        return Compare(known.steps[at].generation, is_last)

    def _prepare(self) -> ReviewEffect | None:
        if not self._check_present("committed"):
            return None
        if self.comparison is not None and not self.comparison.can_commit:
            self.message = "only what differs from base can be committed: yolofs review, without a range"
            return None
        if not len(self.accepted):
            self.message = "nothing is accepted yet: space accepts"
            return None
        self.busy = LOOKING
        return Prepare(self.wanted(), self._named(), self._ours)

    def _named(self) -> tuple[RelPath, ...]:
        return tuple(path for path, _ in self.accepted.named())

    def _page_key(self, key: str) -> ReviewEffect | None:
        match key:
            case "enter" if self.page.question:
                self.busy = "committing"
                return Commit(self.page.prepared)
            case _ if key.lower() in (way.value for way in self.page.ways):
                is_all = key.isupper() or not self.page.choices
                paths = self.page.conflicts if is_all else self.page.choices[self.page_at].paths
                return self._settle(ConflictKey(key.lower()), paths)
            case _ if key in MOVES and MOVES[key] in (("", -1), ("", 1)) and self.page.choices:
                self.page_follows = True
                self.page_at = max(min(self.page_at + MOVES[key][1], len(self.page.choices) - 1), 0)
            case _ if key in MOVES and MOVES[key][0] != "hunk":
                name, step = MOVES[key]
                self.page_follows = False
                self.page_top = max({"top": 0, "bottom": _THE_END}.get(name, self.page_top + step), 0)
            case " ":
                self.page_follows = False
                self.page_top += PAGE_ROWS
            case _:
                self.mode, self._ours = ReviewMode.LIST, frozenset()
        return None

    def _settle(self, way: ConflictKey, paths: tuple[RelPath, ...]) -> ReviewEffect:
        """Settle conflicts.  Taking what is staged is an option of the commit, unless the file has
        the marks of a merge.
        """
        marked = self.page.marked.intersection(paths)
        if way is ConflictKey.OURS:
            self._ours |= frozenset(paths) - marked
            if not marked:
                self.busy = LOOKING_AGAIN
                return Prepare(self.wanted(), self._named(), self._ours)
            paths = tuple(path for path in paths if path in marked)
        self._ours -= frozenset(paths)
        self.busy = "settling what base has changed, too"
        return Settle(paths, way)

    def _help(self) -> ReviewEffect | None:
        self.prepared(Page("keys", tuple(HELP.splitlines())))
        return None

    def _leave(self) -> ReviewEffect | None:
        if not len(self.accepted):
            return EndReview()
        self.mode = ReviewMode.LEAVE
        return None
