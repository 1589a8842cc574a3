"""What somebody who reviews has before him, and what his keys do.  No terminal, no session: keys in, commands out.

:mod:`yolofs.cli.review.drawing` draws it, and :mod:`yolofs.cli.review.screen` carries the commands out.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from yolofs.changes.changes import Change
from yolofs.changes.hunks import Hunk
from yolofs.changes.picks import Lines
from yolofs.cli.review.accepted import Accepted, Before, Part
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.help import HELP
from yolofs.cli.review.tree import Key, Node, Section, Tree, key_of, sections
from yolofs.cli.review.wishes import (
    Carried,
    Command,
    Commit,
    Compare,
    Done,
    Drop,
    Edit,
    Load,
    Page,
    Prepare,
    Quit,
    Undo,
    Wanted,
)
from yolofs.cli.show.listing import Place
from yolofs.paths import RelPath, display

_PAGE_ROWS = 10
_KEPT_VIEWS = 64
"""The lines of so many changes are kept, those looked at last."""
_NO_PLACE = Place(b"/", None)
_MOST_STEPS_BACK = 1000


class Focus(enum.Enum):
    """On which side keys work."""

    LIST = "list"
    DIFF = "diff"


class Mode(enum.Enum):
    """What keys are for."""

    LIST = "list"
    SEARCH = "search"
    NOTE = "note"
    """Whether to drop it, and what the agent is told."""
    LEAVE = "leave"
    PAGE = "page"


def arranged(comparison: Comparison) -> Tree:
    """Return the changes of a comparison as a tree; of 20,000 that takes a tenth of a second."""
    section_of = sections(comparison.marks, comparison.regions, comparison.place)
    return Tree(comparison.changes, section_of, comparison.place)


class Desk:
    """What is shown, what is accepted, and how far the user has come."""

    def __init__(self) -> None:
        self.comparison: Comparison | None = None
        self.tree = Tree((), lambda _: Section.PROJECT, _NO_PLACE)
        self.accepted = Accepted(self.tree)
        self.focus = Focus.LIST
        self.mode = Mode.LIST
        self.row = 0
        self.top = 0
        """The first row of the list that is on the screen."""
        self.line = 0
        """The line of the diff that the cursor is on."""
        self.line_top = 0
        self.split: set[str] = set()
        """The hunks whose lines are accepted one by one."""
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
        self.is_comparing = True
        self._walking_to: int | None = None
        """The state that was asked for and is not there yet."""
        self._views: OrderedDict[Key, DiffView] = OrderedDict()
        self._history: list[list[Before] | Done] = []
        self._dropping: Drop | None = None

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
        """The lines of the change that the cursor is on; None if it is none, or they are not read yet."""
        change = self.change
        return self._views.get(key_of(change)) if change is not None else None

    @property
    def change(self) -> Change | None:
        """The change that the cursor is on."""
        return self.node.change if self.node is not None else None

    @property
    def is_waiting(self) -> bool:
        """Whether keys have to wait: for the lines that they are about, or for what is being done."""
        if self.busy:
            return True
        return self.mode is Mode.LIST and self.focus is Focus.DIFF and self.change is not None and self.view is None

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
        """Return the changes that must not become others unnoticed: the one shown, and what is accepted."""
        found = [part.change for part in self.parts().values()]
        return [self.change, *found] if self.change is not None else found

    def is_split(self, hunk: Hunk, key: Key) -> bool:
        """Tell whether the lines of a hunk are accepted one by one."""
        return hunk.id in self.split or bool(self.accepted.lines_of(key, hunk))

    def wanted(self) -> dict[Key, tuple[Change, Wanted]]:
        """Return all that is accepted."""
        return {key: (part.change, part.picks) for key, part in self.parts().items()}

    def parts(self) -> dict[Key, Part]:
        """Return what is accepted of each change."""
        return {key: part for key in self.accepted if (part := self.accepted.of(key)) is not None}

    # ---- what comes in

    def compared(self, comparison: Comparison, changed: Iterable[Key] = (), tree: Tree | None = None) -> Command | None:
        """Take another comparison; ``changed`` is what of the accepted has become something else.

        ``tree`` is what :func:`arranged` makes of it, for who has that already.
        """
        self.is_comparing = comparison.is_partial or not comparison.has_marks
        if comparison.at == self._walking_to:
            self._walking_to = None
        before, known = self.node, self.tree
        place = before.change.path if before is not None and before.change is not None else None
        self.comparison = comparison
        tree = Tree(
            comparison.changes, sections(comparison.marks, comparison.regions, comparison.place), comparison.place
        )
        tree.close_again(known.closed())
        if comparison.is_last:
            was = len(self.accepted.stale)
            self.accepted.move_to(tree, changed)
            self._leave_out_code(tree)
            if (more := len(self.accepted.stale) - was) > 0:
                said = f"{more} of what you had accepted has changed since (!): look at it again"
                self.message = f"{self.message}; {said}" if self.message else said
        self._forget_views(tree)
        self.tree = tree
        line, top = self.line, self.line_top
        self._keep_place(before, place)
        wanted = self._shown()
        if place is not None and self.change is not None and self.change.path == place:
            self.line, self.line_top = line, top
            if self.view is not None:
                self.line = self._nearest(min(line, max(self.view.count - 1, 0)), 1)
        return wanted

    def _leave_out_code(self, tree: Tree) -> None:
        """Accept nothing that the host would run, as has turned out, unless it was accepted by itself."""
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

    def prepared(self, page: Page) -> None:
        """Show a page."""
        self.busy, self.mode, self.page, self.page_top = "", Mode.PAGE, page, 0

    def done(self, message: str, done: Done | None = None, carried: Iterable[Carried] = ()) -> Command:
        """Take note of what was done in the view; what differs now has to be found out.

        What was accepted of files of which a part was dropped stays so, as ``carried`` has it.
        """
        for one in carried:
            self.accepted.carry(key_of(one.change), one)
        gone = set(done.paths if done is not None else ()) - {one.change.path for one in carried}
        self.accepted.put_back([(key, None) for key in list(self.accepted) if key[0] in gone])
        self._dropping = None
        self.busy, self.message = "", message
        if done is not None:
            self._remember(done)
        self.is_comparing = True
        return Compare()

    def undone(self, message: str) -> Command:
        """Take note that the last thing done was taken back."""
        self._history.pop()
        return self.done(message)

    def committed(self, message: str) -> Command:
        """Take note of a commit: what is left is compared anew, and nothing before can be taken back here."""
        self.mode, self._history = Mode.LIST, []
        self.accepted.move_to(Tree((), lambda _: Section.PROJECT, _NO_PLACE), ())
        return self.done(message)

    def failed(self, message: str) -> None:
        """Take note that what was wanted came to nothing."""
        self.busy, self.message, self.is_comparing, self._walking_to = "", message, False, None
        if self.mode is Mode.PAGE:
            self.mode = Mode.LIST

    def stale(self, ids: Iterable[str]) -> None:
        """Take note that hunks do not exist any more: what they were of is to be looked at again."""
        gone = set(ids)
        for key, part in self.parts().items():
            if part.picks is not None and gone.intersection(part.picks):
                self.accepted.put_back([(key, None)])
                self.accepted.stale.add(key)
        self._views.clear()

    # ---- keys

    def key(self, key: str) -> Command | None:
        """Carry out a key: a character, or the name of one (``enter``, ``escape``, ``up``, ``c-c``, ``pagedown``…)."""
        if key == "c-c":
            return Quit(is_interrupt=True)
        match self.mode:
            case Mode.SEARCH | Mode.NOTE:
                return self._type(key)
            case Mode.LEAVE:
                self.mode, self.message = Mode.LIST, ""
                return Quit() if key in ("y", "q") else None
            case Mode.PAGE:
                return self._page_key(key)
        self.message = ""
        if key in _MOVES:
            return self._move(key)
        act = self._acts().get(key)
        return act() if act is not None else None

    def _acts(self) -> dict[str, Callable[[], Command | None]]:
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
            "-": lambda: self._open_all(is_open=False),
            "=": lambda: self._open_all(is_open=True),
            "enter": self._prepare,
            "?": self._help,
            "q": self._leave,
        }

    # ---- moving

    def _move(self, key: str) -> Command | None:
        if self.focus is Focus.DIFF and self.view is not None:
            self._move_in_diff(key)
            return None
        last = len(self.rows) - 1
        self.row = max(min({"top": 0, "bottom": last}.get(_MOVES[key][0], self.row + _MOVES[key][1]), last), 0)
        return self._shown()

    def _move_in_diff(self, key: str) -> None:
        view = self.view
        assert view is not None
        name, step = _MOVES[key]
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

    def _shown(self) -> Command | None:
        """Return what is wanted for the right side, as the cursor has come to another change."""
        self.line = self.line_top = 0
        if self.view is not None:
            self.line = self._nearest(0, 1)
        return Load(self.change) if self.change is not None and self.view is None else None

    def _other_side(self) -> Command | None:
        if self.focus is Focus.DIFF:
            self.focus = Focus.LIST
        elif self.change is not None:
            self.focus = Focus.DIFF
        return None

    def _right(self) -> Command | None:
        node = self.node
        if self.focus is Focus.LIST and node is not None:
            if node.inner and not node.is_open:
                node.is_open = True
                self.tree.refresh()
            elif node.change is not None:
                self.focus = Focus.DIFF
            else:
                return self._move("down")
        return None

    def _left(self) -> Command | None:
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

    def _open_all(self, *, is_open: bool) -> Command | None:
        node = self.node
        for one in self.tree.all():
            if one.inner and not one.is_section:
                one.is_open = is_open
        self.tree.refresh()
        if node is not None:
            self.row = self.tree.row_of(node)
        return self._shown()

    # ---- accepting

    def _check_present(self, what: str) -> bool:
        if not self.can_change:
            known = self.comparison
            if known is None or known.is_partial:
                self.message = "still comparing"
                return False
            last = known.steps[-1].generation is None
            self.message = f"{what} is for the present: {'] leads there' if last else 'yolofs review'}"
        return self.can_change

    def _accept(self) -> Command | None:
        if not self._check_present("accepting"):
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

    def _set_lines(self, view: DiffView, hunk: Hunk, lines: Lines | None) -> list[Before]:
        return self.accepted.set_lines(view.file, hunk, lines, is_named=self._knows_marks)

    @property
    def _knows_marks(self) -> bool:
        return self.comparison is not None and self.comparison.has_marks

    def _accept_and_go_on(self) -> Command | None:
        if self._check_present("accepting"):
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

    def _go_on(self) -> Command | None:
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

    def _accept_all(self) -> Command | None:
        if not self._check_present("accepting"):
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

    def _split(self) -> Command | None:
        view = self.view
        if view is None or self.node is None:
            self.message = "a directory cannot be split" if self.change is None else ""
            return None
        if self.focus is Focus.LIST:
            self.focus = Focus.DIFF
        hunk = self.hunk
        if hunk is None or not hunk.is_splittable:
            self.message = "this cannot be split"
        elif hunk.id in self.split:
            self.split.discard(hunk.id)
        else:
            self.split.add(hunk.id)
            if not view.line(self.line).number:
                self.line += 1
        return None

    # ---- dropping, editing, taking back

    def _drop(self) -> Command | None:
        if not self._check_present("dropping") or self.node is None:
            return None
        what, title = self._under_cursor()
        if what:
            self._dropping = Drop(what, title, "", is_told=True)
            self.mode, self.typed, self.tells = Mode.NOTE, "", True
        return None

    def _under_cursor(self) -> tuple[dict[Key, tuple[Change, Wanted]], str]:
        """Return what the cursor is on, and what it is called."""
        view, hunk, node = self.view, self.hunk, self.node
        assert node is not None
        if self.focus is Focus.LIST:
            nodes = list(node.changes())
            name = display(node.path) if node.path else node.section.value
            title = name if len(nodes) == 1 else f"{len(nodes)} changes ({name})"
            found: dict[Key, tuple[Change, Wanted]] = {}
            for one in nodes:
                assert one.change is not None
                seen = self._views.get(key_of(one.change))
                ids: Wanted = {each.id: None for each in seen.file.hunks} if seen is not None else None
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

    def _edit(self) -> Command | None:
        if not self._check_present("editing"):
            return None
        view, hunk = self.view, self.hunk
        if view is None or hunk is None or not hunk.line_count or view.file.change.new is None:
            self.message = "there are no lines here that could be edited"
            return None
        return Edit(view.file, hunk)

    def _undo(self) -> Command | None:
        if not self._history:
            self.message = "there is nothing to take back"
            return None
        last = self._history[-1]
        if isinstance(last, Done):
            self.busy = f"taking back: {last.title}"
            return Undo(last)
        self._history.pop()
        self.accepted.put_back(last)
        return None

    def _remember(self, what: list[Before] | Done) -> None:
        self._history.append(what)
        del self._history[:-_MOST_STEPS_BACK]

    # ---- searching

    def _search(self) -> Command | None:
        self.mode, self.typed = Mode.SEARCH, ""
        return None

    def _type(self, key: str) -> Command | None:
        match key:
            case "escape":
                self.mode, self.message = Mode.LIST, "" if self.mode is Mode.SEARCH else "nothing dropped"
            case "backspace":
                self.typed = self.typed[:-1]
            case "tab" if self.mode is Mode.NOTE:
                self.tells = not self.tells
            case "enter":
                return self._typed()
            case _ if len(key) == 1 and key.isprintable() and len(self.typed) < 500:
                self.typed += key
        return None

    def _typed(self) -> Command | None:
        is_note, self.mode = self.mode is Mode.NOTE, Mode.LIST
        if is_note:
            assert self._dropping is not None
            self.busy = f"dropping {self._dropping.title}"
            return self._dropping._replace(note=self.typed.strip(), is_told=self.tells)
        self.searched = self.typed or self.searched
        return self._find(1)

    def _find(self, step: int) -> Command | None:
        """Go to the next place where what was searched for is: a path, or on the right side a line."""
        if not self.searched:
            self.message = "nothing has been searched for: /"
            return None
        if self.focus is Focus.DIFF and self.view is not None:
            view, text = self.view, self.searched.encode(errors="surrogateescape").lower()
            for offset in range(1, view.count + 1):
                at = (self.line + step * offset) % view.count
                line = view.line(at)
                if line.hunk >= 0 and text in line.text.lower():
                    self.line = at
                    return None
        else:
            found = self._find_node(step)
            if found is not None:
                self.row = self.tree.show(found)
                return self._shown()
        self.message = f"not found: {display(self.searched.encode(errors='surrogateescape'))}"
        return None

    def _find_node(self, step: int) -> Node | None:
        text = self.searched.encode(errors="surrogateescape").lower()
        nodes = [node for node in self.tree.all() if not node.is_section]
        here = next((at for at, node in enumerate(nodes) if node is self.node), -1 if step > 0 else 0)
        order = [*nodes[here + 1 :], *nodes[: here + 1]] if step > 0 else [*nodes[:here][::-1], *nodes[here:][::-1]]
        return next((node for node in order if text in node.path.lower()), None)

    # ---- walking, leaving, committing

    def _walk(self, step: int) -> Command | None:
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

    def _prepare(self) -> Command | None:
        if not self._check_present("a commit"):
            return None
        if self.comparison is not None and not self.comparison.can_commit:
            self.message = "a commit is of what differs from base: yolofs review, without a range"
            return None
        if not len(self.accepted):
            self.message = "nothing is accepted yet: space accepts"
            return None
        self.busy = "looking at what the commit would do"
        return Prepare(self.wanted(), self._named())

    def _named(self) -> tuple[RelPath, ...]:
        return tuple(path for path, _ in self.accepted.named())

    def _page_key(self, key: str) -> Command | None:
        match key:
            case "enter" if self.page.question:
                self.busy = "committing"
                return Commit(self.page.prepared)
            case "o" if self.page.can_force:
                self.busy = "looking again"
                return Prepare(self.wanted(), self._named(), force=True)
            case _ if key in _MOVES and _MOVES[key][0] != "hunk":
                name, step = _MOVES[key]
                last = len(self.page.lines)
                self.page_top = max(min({"top": 0, "bottom": last}.get(name, self.page_top + step), last - 1), 0)
            case " ":
                self.page_top = max(min(self.page_top + _PAGE_ROWS, len(self.page.lines) - 1), 0)
            case _:
                self.mode = Mode.LIST
        return None

    def _help(self) -> Command | None:
        self.prepared(Page("keys", tuple(HELP.splitlines())))
        return None

    def _leave(self) -> Command | None:
        if not len(self.accepted):
            return Quit()
        self.mode = Mode.LEAVE
        return None

    # ---- keeping the place

    def _keep_place(self, node: Node | None, path: RelPath | None) -> None:
        if path is not None:
            for key in ((path, False), (path, True)):
                if key in self.tree.by_key:
                    self.row = self.tree.row_of(self.tree.by_key[key])
                    break
        elif node is None:
            first = next((row for row, one in enumerate(self.rows) if one.change is not None), 0)
            self.row = first
        self.row = max(min(self.row, len(self.rows) - 1), 0)
        if self.change is None:
            self.focus = Focus.LIST

    def _forget_views(self, tree: Tree) -> None:
        for key in list(self._views):
            node = tree.by_key.get(key)
            if node is None or node.change != self._views[key].file.change:
                del self._views[key]


_MOVES = {
    "up": ("", -1),
    "k": ("", -1),
    "down": ("", 1),
    "j": ("", 1),
    "pageup": ("", -_PAGE_ROWS),
    "pagedown": ("", _PAGE_ROWS),
    "home": ("top", 0),
    "g": ("top", 0),
    "<": ("top", 0),
    "end": ("bottom", 0),
    "G": ("bottom", 0),
    ">": ("bottom", 0),
    "J": ("hunk", 1),
    "K": ("hunk", -1),
}
