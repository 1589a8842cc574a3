"""Where the cursor of a review goes: moving, opening and closing, searching."""

from __future__ import annotations

from yolofs.cli.review.change_tree import Node
from yolofs.cli.review.effects import (
    ReviewEffect,
)
from yolofs.cli.review.review_state import Focus, ReviewMode, ReviewState
from yolofs.paths import display

PAGE_ROWS = 10
ASIDE_BYTES = 20
"""So far H and L move the lines."""
_MOST_ROWS = 200
_WHEEL_ROWS = 3
_OF_LINES = frozenset("des")
"""Keys that are about the lines of a file from the list, too."""
_UNREADABLE = "its lines cannot be read"


class CursorMoves(ReviewState):
    """Moves the cursor."""

    def has_to_wait(self, key: str) -> bool:
        """Tell whether a key has to wait: for the lines it needs, for an action under way, or for
        the comparison after it; keys that only move the cursor do not wait for the last.
        """
        if self.busy:
            return True
        if self.mode is not ReviewMode.LIST:
            return False
        if self._is_old and key not in MOVES:
            return True
        is_about_lines = self.focus is Focus.DIFF or key in _OF_LINES
        return is_about_lines and self.change is not None and self.view is None and not self.is_unreadable

    # ---- moving

    def _move(self, key: str) -> ReviewEffect | None:
        if self.focus is Focus.DIFF and self.view is not None:
            self._move_in_diff(key)
            return None
        last = len(self.rows) - 1
        self.row = max(min({"top": 0, "bottom": last}.get(MOVES[key][0], self.row + MOVES[key][1]), last), 0)
        return self._shown()

    def _move_in_diff(self, key: str) -> None:
        view = self.view
        assert view is not None
        name, step = MOVES[key]
        match name:
            case "top":
                self.line = self._nearest(0, 1)
            case "bottom":
                self.line = self._nearest(view.count - 1, -1)
            case "hunk":
                number = view.line(self.line).hunk + (1 if step > 0 else -1)
                if 0 <= number < len(view.file.hunks):
                    self.line = view.first_of(number)
            case _:
                wanted = max(min(self.line + step, view.count - 1), 0)
                self.line = self._nearest(wanted, 1 if step > 0 else -1)

    def _move_aside(self, step: int) -> None:
        """Show what lies to the right of the lines that are shown, or to the left."""
        view = self.view
        if view is None or not view.count:
            return
        rows = range(self.line_top, min(self.line_top + _MOST_ROWS, view.count))
        longest = max((len(view.line(row).text) for row in rows), default=0)
        self.aside = max(min(self.aside + step, longest), -longest)

    def _other_side(self) -> ReviewEffect | None:
        if self.focus is Focus.DIFF:
            self.focus = Focus.LIST
        elif self.change is not None:
            self._go_to_lines()
        return None

    def _go_to_lines(self) -> None:
        if self.is_unreadable:
            self.message = _UNREADABLE
        else:
            self.focus = Focus.DIFF

    def _right(self) -> ReviewEffect | None:
        node = self.node
        if self.focus is Focus.LIST and node is not None:
            if node.inner and not node.is_open:
                self.tree.open(node)
            elif node.change is not None:
                self._go_to_lines()
            else:
                return self._move("down")
        return None

    def _left(self) -> ReviewEffect | None:
        node = self.node
        if self.focus is Focus.DIFF:
            self.focus = Focus.LIST
        elif node is not None:
            if node.inner and node.is_open:
                node.is_open = False
                self.tree.refresh()
            elif node.above is not None:
                self.row = self.tree.row_of(node.above)
                return self._shown()
        return None

    def _open_all(self, *, is_open: bool) -> ReviewEffect | None:
        node = self.node
        for one in self.tree.all():
            if one.inner and (one.section.is_folded or not one.is_section):
                one.is_open = is_open
        self.tree.refresh()
        if node is not None:
            self.row = self.tree.row_of(node)
        return self._shown()

    # ---- the mouse

    def turn(self, column: int, step: int) -> ReviewEffect | None:
        """Carry out a turn of the wheel, above a column of the screen: a page scrolls, or the side
        under the mouse; the cursor stays where it is as long as that is on the screen.
        """
        if self.is_too_small:
            return None
        rows = step * _WHEEL_ROWS
        if self.mode is ReviewMode.PAGE:
            self.page_follows = False
            self.page_top = max(self.page_top + rows, 0)
        elif self.mode is ReviewMode.LIST and column <= self.list_width:
            self.top = max(min(self.top + rows, len(self.rows) - self.room), 0)
            wanted = max(min(self.row, self.top + self.room - 1), self.top)
            if wanted != self.row:
                self.row = wanted
                return self._shown()
        elif self.mode is ReviewMode.LIST and self.view is not None:
            self.line_top = max(min(self.line_top + rows, self.view.count - self.room), 0)
            wanted = max(min(self.line, self.line_top + self.room - 1), self.line_top)
            if wanted != self.line:
                self.line = self._nearest(wanted, step)
        return None

    def click(self, column: int, row: int) -> ReviewEffect | None:
        """Carry out a click: the cursor goes there.  A click on a directory that the cursor is on
        opens or closes it.  Nothing is accepted, dropped or committed by the mouse.
        """
        at = row - 1  # below the title
        if self.is_too_small or self.mode is not ReviewMode.LIST or not 0 <= at < self.room:
            return None
        self.message = ""
        if column > self.list_width:
            if self.view is not None and self.line_top + at < self.view.count:
                self.focus = Focus.DIFF
                self.line = self._nearest(self.line_top + at, 1)
            return None
        if column == self.list_width or self.top + at >= len(self.rows):
            return None
        was_here = self.focus is Focus.LIST and self.row == self.top + at
        self.focus, self.row = Focus.LIST, self.top + at
        node = self.node
        if was_here and node is not None and node.inner:
            if not node.is_open:
                self.tree.open(node)
            else:
                node.is_open = False
                self.tree.refresh()
        return self._shown()

    # ---- searching

    def _find(self, step: int) -> ReviewEffect | None:
        """Go to the next place where what was searched for is: a path, or on the right side a
        line.
        """
        if not self.searched:
            self.message = "nothing has been searched for: /"
            return None
        searched = display(self.searched.encode(errors="surrogateescape"))
        if self.focus is Focus.DIFF and self.view is not None:
            view, text = self.view, self.searched.casefold()
            for offset in range(1, view.count + 1):
                at = (self.line + step * offset) % view.count
                line = view.line(at)
                if line.hunk >= 0 and text in _folded(line.text):
                    self.line = at
                    return None
            self.message = f"not in these lines: {searched}; h, then /, searches the paths"
            return None
        found = self._find_node(step)
        if found is not None:
            self.row = self.tree.show(found)
            return self._shown()
        self.message = f"not found: {searched}"
        return None

    def _find_node(self, step: int) -> Node | None:
        text = self.searched.casefold()
        nodes = [node for node in self.tree.all() if not node.is_section]
        here = next((at for at, node in enumerate(nodes) if node is self.node), -1 if step > 0 else 0)
        order = [*nodes[here + 1 :], *nodes[: here + 1]] if step > 0 else [*nodes[:here][::-1], *nodes[here:][::-1]]
        return next((node for node in order if text in _folded(node.path)), None)


def _folded(text: bytes) -> str:
    """Return a text in which the case of letters makes no difference."""
    return text.decode(errors="surrogateescape").casefold()


MOVES = {
    "up": ("", -1),
    "k": ("", -1),
    "down": ("", 1),
    "j": ("", 1),
    "pageup": ("", -PAGE_ROWS),
    "pagedown": ("", PAGE_ROWS),
    "home": ("top", 0),
    "g": ("top", 0),
    "<": ("top", 0),
    "end": ("bottom", 0),
    "G": ("bottom", 0),
    ">": ("bottom", 0),
    "J": ("hunk", 1),
    "K": ("hunk", -1),
}
