"""Draws a model: lines of styled text for a terminal of any size.

Names and contents may be anybody's: paths come through ``display``, lines through
``characters.harmless``, and both are cut, so nothing here holds a control character or is wider
than the screen.
"""

from __future__ import annotations

import stat
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from yolofs.changes.changes import ChangeKind
from yolofs.changes.hunks import HunkKind
from yolofs.cli.review.change_tree import Node, Section, key_of
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.diff_view import DiffLine, DiffView, LineKind
from yolofs.cli.review.differing_words import differing
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.review_state import Focus, ReviewMode
from yolofs.cli.show.folding import Sort
from yolofs.cli.show.listing import notes_text
from yolofs.cli.show.text_width import cut_start, width_of
from yolofs.paths import display
from yolofs.text import characters

Piece: TypeAlias = tuple[str, str]
Line: TypeAlias = list[Piece]
"""Pieces of text, each with its style."""
Colours: TypeAlias = Callable[[DiffView, int], Sequence[tuple[str, int]] | None]
"""Tells of a line its styles, each with how many characters it is for; None if that is not known
(yet).
"""

MOST_LINE_BYTES = 1000
_LEAST_OF_DIFFERENCE = 8
"""So much of where a line differs is to be on the screen."""
_LEAST_WIDTH = 40
_LEAST_HEIGHT = 8
"""On fewer cells the questions could not be read."""
_LEAST_LIST = 20
_MOST_LIST = 60
_KINDS: Mapping[ChangeKind, str] = {
    ChangeKind.ADDED: "ansigreen",
    ChangeKind.MODIFIED: "ansiyellow",
    ChangeKind.DELETED: "ansired",
    ChangeKind.RENAMED: "ansicyan",
    ChangeKind.TYPE: "ansimagenta",
    ChangeKind.METADATA: "ansiblue",
}
_KEYS = "space accept  d drop  e edit  s split  u undo  / search  [ ] walk  enter commit  ? keys  q quit"
_SHORT_KEYS = "space enter d e s u / [ ]   ? all keys   q quit"


def no_colours(_view: DiffView, _row: int) -> None:
    """Give no line of a view any colours."""


def draw_review(model: ReviewModel, width: int, height: int, colours: Colours = no_colours) -> list[Line]:
    """Return a model as ``height`` lines of at most ``width`` cells; scrolls so that the cursor is
    on it.
    """
    model.is_too_small = width < _LEAST_WIDTH or height < _LEAST_HEIGHT
    if model.is_too_small:
        return _too_small(width, height)
    if model.mode is ReviewMode.PAGE:
        return _page(model, width, height)
    message = _wrap(_message(model, width), width, "")[: max(height // 3, 3)]
    room = height - 2 - len(message)
    left = min(max(min(width * 2 // 5, _MOST_LIST), _LEAST_LIST), width // 2)
    right = width - left - 1
    model.list_width, model.room = left, room
    lists, diffs = _list(model, left, room), _diff(model, right, room, colours)
    lines: list[Line] = [[("bold", _fit(_title(model), width))]]
    lines += [[*lists[row], ("ansibrightblack", "│"), *diffs[row]] for row in range(room)]
    lines += [[("ansiyellow", _fit(part, width))] for part in message]
    lines.append([("ansibrightblack", _fit(_prompt(model, width), width))])
    return lines


def _too_small(width: int, height: int) -> list[Line]:
    """Return the screen of a terminal too small to show the effect of a key."""
    width, height = max(width, 1), max(height, 1)
    text = f"this terminal has {width}x{height}, a review needs {_LEAST_WIDTH}x{_LEAST_HEIGHT}; Ctrl-C leaves"
    said = textwrap.wrap(text, width)[:height]
    return [[("bold", _fit(part, width))] for part in [*said, *[""] * (height - len(said))]]


# ---- above and below


def _title(model: ReviewModel) -> str:
    known = model.comparison
    if known is None:
        return "yolofs review: comparing…"
    if known.is_partial:
        return "yolofs review: comparing…  these are some of the changes"
    count = sum(top.total for top in model.tree.sections)
    accepted = len(model.accepted)
    text = f"yolofs review: {count} change{'s' if count != 1 else ''}"
    text += f", {accepted} accepted" if accepted else ""
    text += _step_text(known)
    if known.scratch_left_out:
        text += f"  {known.scratch_left_out} in scratch directories not shown"
    if known.hidden_left_out:
        text += f"  {known.hidden_left_out} on hidden paths not shown"
    return text + ("  …" if model.is_comparing else "")


def _step_text(known: Comparison) -> str:
    """Return which generation is shown; nothing for the present, and where there is only one."""
    step, last = known.steps[known.at], known.steps[-1].generation
    if len(known.steps) < 2 or step.generation is None:
        return ""
    of_text = f" of {last}" if last is not None else ""
    return f"  [generation {step.generation}{of_text}{f': {display(step.name)}' if step.name else ''}]"


def _message(model: ReviewModel, width: int) -> str:
    if model.mode is ReviewMode.NOTE:
        keys = "? enter drops, escape does not"
        return f"drop {cut_start(model.dropping_title, max(width - len(keys) - 5, 1))}{keys}"
    return f"{model.busy}…" if model.busy else model.message


def _prompt(model: ReviewModel, width: int) -> str:
    typed = display(model.typed.encode(errors="surrogateescape")) if model.typed else ""
    match model.mode:
        case ReviewMode.SEARCH:
            return _typing("/", typed, width)
        case ReviewMode.NOTE:
            told = "the agent is told, why" if model.tells else "the agent is not told"
            return _typing(f"{told} (tab): ", typed, width)
        case ReviewMode.LEAVE:
            text = f"{len(model.accepted)} accepted and not committed: leave all the same?"
            texts = [f"{text} y leaves, any other key stays", f"{text} y/n"]
            return next((one for one in texts if len(one) <= width), f"{len(model.accepted)} accepted: leave? y/n")
    return _KEYS if len(_KEYS) <= width else _SHORT_KEYS


def _typing(head: str, typed: str, width: int) -> str:
    """Return the head and the typed text; if there is no room for all of it, its end."""
    return f"{head}{cut_start(typed, max(width - len(head) - 1, 1))}█"


# ---- the list


def _list(model: ReviewModel, width: int, room: int) -> list[Line]:
    model.top = _scrolled(model.top, model.row, len(model.rows), room)
    lines = [_row(model, row, width) for row in range(model.top, min(model.top + room, len(model.rows)))]
    if not model.rows and not model.is_comparing:
        is_part = model.comparison is not None and model.comparison.is_part
        lines = [[("", _fit("nothing has changed there" if is_part else "nothing is staged", width))]]
    return [*lines, *([("", " " * width)] for _ in range(room - len(lines)))]


def _row(model: ReviewModel, row: int, width: int) -> Line:
    node = model.rows[row]
    is_here = row == model.row
    here = ("reverse " if model.focus is Focus.LIST else "underline ") if is_here else ""
    mark = _mark(model, node)
    if node.is_section:
        style = "bold ansired" if node.section in (Section.DELETED, Section.EMPTIED, Section.CODE) else "bold"
        count = f" ({node.total})"
        title = f"{mark} {'' if node.is_open else '+'}{_section_title(model, node.section)}"
        if len(title) + len(count) > width:
            title = title[: max(width - len(count) - 1, 0)] + "…"
        return [(here + style, _fit(title + count, width))]
    indent = "  " * (node.depth - 1)
    sign = "" if not node.inner else "" if node.is_open else "+"
    letter = node.change.kind.value if node.change is not None else " "
    style = _KINDS[node.change.kind] if node.change is not None else "ansibrightblue"
    head = f"{mark} {indent}"[: width // 2]
    marked = "ansigreen bold" if mark in "x~" else "ansired bold"
    rest = max(width - len(head) - 2, 0)
    name, details = f"{sign}{_name(node)}", _details(model, node)
    if node.change is None:
        name = cut_start(name, max(rest - len(details), 0))
    return [(here + marked, head), (here + style, f"{letter} "[:width]), (here, _fit(name + details, rest))]


def _section_title(model: ReviewModel, section: Section) -> str:
    """Return the title of a section; of git's own, what has happened there."""
    told = model.comparison.told if model.comparison is not None else {}
    return told.get(Sort(section.value), section.value) if section.is_folded else section.value


def _mark(model: ReviewModel, node: Node) -> str:
    if model.comparison is None or not model.comparison.is_last:
        return " "
    if node.change is not None and not node.inner and key_of(node.change) in model.accepted.stale:
        return "!"
    if node.total and node.wholly == node.total:
        return "x"
    return "~" if node.wholly or node.partly else " "


def _name(node: Node) -> str:
    change = node.change
    side = (change.new or change.old) if change is not None else None
    is_directory = change is None or (side is not None and side.type == stat.S_IFDIR)
    return display(node.name) + ("/" if is_directory and not node.name.endswith(b"/") else "")


def _details(model: ReviewModel, node: Node) -> str:
    change = node.change
    if change is None or model.comparison is None:
        return f" ({node.total})" if not node.is_open else ""
    parts = [f"({node.total})"] if node.inner and not node.is_open else []
    if node.section is Section.CODE:
        parts.append(f"[{', '.join(mark.text for mark in model.comparison.marks.get(change.path, ()))}]")
    if change.old_path is not None:
        parts.append(f"<- {model.comparison.path_display.show_path(change.old_path)}")
    notes = notes_text(change)
    if notes:
        parts.append(f"({notes})")
    return "".join(f" {part}" for part in parts)


# ---- the diff


def _diff(model: ReviewModel, width: int, room: int, colours: Colours) -> list[Line]:
    view = model.view
    if view is None:
        text = "cannot be read" if model.is_unreadable else "" if model.change is None else "reading…"
        lines: list[Line] = [_summary_line(model, text, width)]
    else:
        model.line_top = _scrolled(model.line_top, model.line, view.count, room)
        last = min(model.line_top + room, view.count)
        longest = max((len(view.line(row).text) for row in range(model.line_top, last)), default=0)
        model.aside = min(model.aside, max(longest - (width - 3), 0))
        lines = [_diff_line(model, view, row, width, colours) for row in range(model.line_top, last)]
    return [*lines, *([("", " " * width)] for _ in range(room - len(lines)))]


def _summary_line(model: ReviewModel, text: str, width: int) -> Line:
    node = model.node
    if not text and node is not None:
        text = f"{node.total} changes" if node.total > 1 else "1 change"
    return [("", _fit(text, width))]


def _diff_line(model: ReviewModel, view: DiffView, row: int, width: int, colours: Colours) -> Line:
    line = view.line(row)
    is_here = model.focus is Focus.DIFF and row == model.line
    mark = _line_mark(model, view, line)
    current = model.focus is Focus.DIFF and view.count and line.hunk == view.line(model.line).hunk and line.hunk >= 0
    bar = "┃" if current else " "
    head: Line = [("ansigreen bold" if mark == "x" else "ansibrightblack", f"{mark}{bar}")]
    here = "reverse " if is_here else ""
    rest = max(width - 2, 0)
    if line.kind is LineKind.TITLE:
        title = _title_of(model, view, line)
        start = _whole_character(title, max(model.aside, 0))
        return [*head, (here + "ansicyan", _fit(_from(title, start), rest))]
    sign, style = {LineKind.OLD: ("-", "ansired"), LineKind.NEW: ("+", "ansigreen")}.get(line.kind, (" ", ""))
    start = _start(view, line, rest - 1, model.aside)
    text = _from(line.text.removesuffix(b"\n"), start)
    text += "" if line.text.endswith(b"\n") else "  (no newline at the end)"
    pieces: Line = [(f"{here}{style} bold", sign), *_coloured(view, row, text, start, here, style, colours)]
    return [*head, *_cut_pieces(pieces, rest, here)]


def _title_of(model: ReviewModel, view: DiffView, line: DiffLine) -> bytes:
    """Return the first line of a hunk; paths in it are shown as everywhere."""
    hunk = view.file.hunks[line.hunk]
    if hunk.kind is HunkKind.RENAMED and hunk.old_path is not None and model.comparison is not None:
        return f"renamed from {model.comparison.path_display.show_path(hunk.old_path)}".encode()
    return line.text


def _start(view: DiffView, line: DiffLine, width: int, aside: int) -> int:
    """Return the byte from which on a line is shown: the first, if the difference from the replaced
    line then has room; ``aside`` moves it.
    """
    text, other = line.text, view.other_line(line)
    start = 0
    if other is not None and text[:width] == other[:width]:
        common = _alike(text, other)
        if common > MOST_LINE_BYTES or width_of(printable_line(text[:common])) > width - _LEAST_OF_DIFFERENCE:
            start = max(common - width // 3, 0)
    return _whole_character(text, min(max(start + aside, 0), max(len(text) - _LEAST_OF_DIFFERENCE, 0)))


def _alike(text: bytes, other: bytes) -> int:
    """Return how many bytes at their beginning two texts have in common: by halves, as a line may
    have millions.
    """
    least, most = 0, min(len(text), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if text[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _whole_character(text: bytes, at: int) -> int:
    """Return where in a text the character begins that a byte is of."""
    least = max(at - 3, 0)
    while at > least and at < len(text) and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _from(text: bytes, start: int) -> str:
    return f"…{printable_line(text[start:])}" if start else printable_line(text)


def _line_mark(model: ReviewModel, view: DiffView, line: DiffLine) -> str:
    if line.hunk < 0 or model.comparison is None or not model.comparison.is_last:
        return " "
    lines = model.accepted.lines_of(key_of(view.file.change), view.file.hunks[line.hunk])
    if line.kind is LineKind.TITLE:
        return "x" if lines is None else "~" if lines else " "
    return "x" if lines is None or line.number in lines else " "


def _coloured(view: DiffView, row: int, text: str, start: int, here: str, style: str, colours: Colours) -> Line:
    """Return a line, of which ``text`` begins at byte ``start``, in the colours of its language,
    words that differ underlined.
    """
    runs = colours(view, row) if not start else None
    other = view.other_line(view.line(row))
    ranges = differing(text, _from(other.removesuffix(b"\n"), start)) if other is not None else []
    if runs is None and not ranges:
        return [(here + style, text)]
    styles = [here + style] * len(text)
    at = 0
    for name, count in runs or ():
        styles[at : at + count] = [f"{here}{name}" if name else here + style] * len(styles[at : at + count])
        at += count
    for first, last in ranges:
        styles[first:last] = [f"{one} underline bold" for one in styles[first:last]]
    pieces: Line = []
    begin = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or styles[end] != styles[begin]:
            pieces.append((styles[begin], text[begin:end]))
            begin = end
    return pieces


# ---- pages


def _page(model: ReviewModel, width: int, height: int) -> list[Line]:
    page = model.page
    title = _wrap(page.title, width)[: max(height - 5, 1)]
    wrapped = [(number, part) for number, line in enumerate(page.lines) for part in _wrap(line, width)]
    rows = [part for _, part in wrapped]
    room = height - 3 - len(title)
    here = page.choices[model.page_at].line if page.choices else -1
    top = min(model.page_top, max(len(rows) - room, 0))
    if here >= 0 and model.page_follows:
        top = _scrolled(top, next(row for row, (number, _) in enumerate(wrapped) if number == here), len(rows), room)
    model.page_top = top
    shown = wrapped[top : top + room]
    lines: list[Line] = [*([("bold", _fit(part, width))] for part in title), [("", " " * width)]]
    lines += [[("reverse" if number == here else "", _fit(row, width))] for number, row in shown]
    lines += [[("", " " * width)] for _ in range(room - len(shown))]
    keys = "space, pageup" if page.choices else "j, k"  # j and k move the cursor, if there is one
    below = len(rows) - top - len(shown)
    more = f"{below} more line{'s' if below > 1 else ''}: {keys} scroll" if below > 0 else ""
    lines.append([("ansiyellow", _fit(_message(model, width) or more, width))])
    lines.append([("bold", _fit(page.question or page.keys or "any other key goes back", width))])
    return lines


def _wrap(text: str, width: int, indent: str = "    ") -> list[str]:
    """Return a text as lines of at most ``width`` cells, parted at spaces where there are any."""
    text = characters.harmless(text)
    if width_of(text) <= width:
        return [text]
    if text.isascii():
        return textwrap.wrap(text, width, subsequent_indent=indent, drop_whitespace=True) or [""]
    lines, line, cells = [], "", 0
    for char in text:
        wide = width_of(char)
        if cells + wide > width:
            lines.append(line)
            line, cells = indent, len(indent)
        line += char
        cells += wide
    return [*lines, line]


# ---- measures


def _scrolled(top: int, cursor: int, count: int, room: int) -> int:
    """Return the first row to be shown so that the cursor is."""
    top = min(max(top, cursor - room + 1), cursor)
    return max(min(top, count - room), 0)


def printable_line(line: bytes) -> str:
    """Return a line of any bytes as printable text, cut if it is very long."""
    text = line[:MOST_LINE_BYTES].decode(errors="surrogateescape").expandtabs(4)
    return characters.harmless(text) + (" …" if len(line) > MOST_LINE_BYTES else "")


def _fit(text: str, width: int) -> str:
    """Return a text of just ``width`` cells: cut, or filled with spaces."""
    if text.isascii():
        return text.ljust(width) if len(text) <= width else text[: max(width - 1, 0)] + "…"[:width]
    pieces = _cut_pieces([("", text)], width, "")
    return "".join(piece for _, piece in pieces)


def _cut_pieces(pieces: Line, width: int, here: str) -> Line:
    """Return pieces of just ``width`` cells together."""
    result: Line = []
    left = width
    for style, text in pieces:
        if left <= 0:
            break
        cells = width_of(text)
        if cells > left:
            text, cells = _cut(text, left)
        result.append((style, text))
        left -= cells
    if left > 0:
        result.append((here, " " * left))
    return result


def _cut(text: str, width: int) -> tuple[str, int]:
    """Return as much of a text as has room with a … behind it, and how many cells that takes."""
    cells = 0
    for at, char in enumerate(text):
        wide = width_of(char)
        if cells + wide > width - 1:
            return text[:at] + "…", cells + 1
        cells += wide
    return text, cells
