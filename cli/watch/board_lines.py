"""Draws a board: lines of styled text for a terminal of any size.

Everything that a program may have chosen comes through :mod:`yolofs.cli.show.ask_lines`, so nothing
here holds a control character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from yolofs.access.scopes import common_directory
from yolofs.cli.show.ask_lines import command_text, path_text, process_text, rule_text, stake_text, verb
from yolofs.cli.show.text_width import fitting, width_of
from yolofs.cli.watch.board import Board, BoardMode, CardChoice
from yolofs.daemon.rpc.ask_messages import AskInfo
from yolofs.daemon.rpc.protocol import unquote
from yolofs.paths import display
from yolofs.rules import RuleState
from yolofs.system.disk_usage import size_text

Line: TypeAlias = list[tuple[str, str]]
"""Pieces of text, each with its style (prompt_toolkit's: "bold", "reverse", "ansired")."""

_LABEL = 10
_ROWS_ABOVE = 5
_MAX_PATH_LINES = 8
_MAX_COMMAND_LINES = 3
_MAX_MESSAGE_LINES = 4
_MAX_NAMES = 8
_ANSWER_KEYS = ("y allow once", "n deny once", "s for this session", "a always")
_OTHER_KEYS = ("? explain", "l queue", "v look", "tab next", "q quit")

_HELP = """\
A process wants something that no rule settles, and waits until somebody answers. Nobody in time means the default, \
as .yolofs.toml has it. Leaving yolofs watch answers nothing.

y, n   allow or deny just this access
s      make a rule that holds until the mount ends
a      make a rule that holds for good, in .yolofs/rules.toml
       Then choose what it is about (this path, or all below a directory) and its state:
         allow      read and change freely (changes are staged, as always)
         write-ask  read freely; changes are asked
         read-only  read freely; changes are refused
         deny       seen in listings, and nothing else
         hidden     as if it did not exist
l      list everything that waits; enter brings one up
tab    put this one off, and look at the next
v      look at the first lines of the file, or at all paths of a card that has several
q      leave; what waits goes on waiting

The nearest rule decides: one for the path itself, then a pattern, then one for the nearest directory above.
"""


class Drawing(NamedTuple):
    """What to show."""

    lines: list[Line]
    is_whole: bool
    """Whether all of what is asked is on it: else no key may answer."""
    choices: range
    """Which choices of a list are on it: a digit for another one would choose unseen."""


def draw_board(board: Board, width: int, height: int) -> Drawing:
    """Return a board as at most ``height`` lines of at most ``width`` cells."""
    width, height = max(width, 10), max(height, 4)
    header: list[Line] = [[("bold", _cut(_title(board), width))]]
    footer = [*_message(board, width), *_keys(board, width)]
    room = height - len(header) - len(footer) - 2
    essential, rest = _body(board, width, room)
    is_whole = len(essential) <= room
    body = (essential + rest)[: max(room, 0)]
    if not is_whole:
        footer = [[("bold", _cut("make the terminal larger to answer", width))], *_keys(board, width)[-1:]]
        body = body[: max(height - len(header) - len(footer) - 2, 0)]
    history = _history(board, width, room - len(body))
    choices = range(_first_row(board, room), board.chosen + 1 + max(len(body) - len(essential), 0))
    return Drawing([*header, [], *body, [], *footer, *history][:height], is_whole, choices)


def _title(board: Board) -> str:
    count = len(board.asks)
    return f"yolofs watch: {count} waiting" if count else "yolofs watch: nothing waits"


def _message(board: Board, width: int) -> list[Line]:
    lines = _at_most(_MAX_MESSAGE_LINES, wrap(board.message, width), width) if board.message else []
    return [[("ansiyellow", line)] for line in lines]


def _history(board: Board, width: int, room: int) -> list[Line]:
    """Return what is wrong with the rules and what has been answered, as far as there is room."""
    warnings = [[("ansiyellow", part)] for one in board.warnings for part in wrap(f"warning: {one}", width)]
    warnings = warnings[: max(room - 1, 0)]
    left = room - 1 - len(warnings)
    done = [[("", _cut(line, width))] for line in board.done][-left:] if left > 0 else []
    return [[], *warnings, *done] if warnings or done else []


# ---- keys


def _keys(board: Board, width: int) -> list[Line]:
    match board.mode:
        case BoardMode.CARD if board.members():
            answers = _ANSWER_KEYS if board.is_armed else ("answering…" if board.is_answering else "…",)
            return [_key_line(line) for line in (*_fill(answers, width), *_fill(_OTHER_KEYS, width))]
        case BoardMode.CARD:
            return [_key_line(line) for line in _fill(("? explain", "q quit"), width)]
        case BoardMode.SCOPE | BoardMode.STATE | BoardMode.QUEUE:
            keys = ("up, down and enter, or a digit, choose", "escape goes back")
            return [[("", line)] for line in _fill(keys, width)]
        case BoardMode.HELP | BoardMode.LOOK:
            return [[("", line)] for line in _fill(("up, down scroll", "any other key goes back"), width)]


def _fill(words: Sequence[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + word
    return [_cut(line, width) for line in lines]


def _key_line(line: str) -> Line:
    pieces: Line = []
    for at, word in enumerate(line.split("   ")):
        key, space, rest = word.partition(" ")
        pieces += [("", "   " if at else ""), ("bold" if space else "", key), ("", space + rest)]
    return pieces


# ---- the middle


def _body(board: Board, width: int, room: int) -> tuple[list[Line], list[Line]]:
    """Return what must be seen, and what may be cut off."""
    match board.mode:
        case BoardMode.CARD if members := board.members():
            circumstances, waiting = _circumstances(members, width), _waiting(board, members, width)
            wanted = len(circumstances) + len(waiting)
            question = _question(members, width, max(room - wanted, room // 2))
            if len(question) + wanted > room:
                circumstances = _circumstances(members, width, is_tight=True)
            return question, [*circumstances[: max(room - len(question) - len(waiting), 0)], *waiting]
        case BoardMode.CARD:
            return [[("", _cut("what the rules leave open shows up here", width))]], []
        case BoardMode.SCOPE:
            return _list(
                "What is the rule about?", [_scope_text(choice) for choice in board.choices], board, width, room
            )
        case BoardMode.STATE:
            rows = [_state_text(choice) for choice in board.choices]
            return _list(f"Which state does it get? {_scope_text(board.scope)}", rows, board, width, room)
        case BoardMode.QUEUE:
            groups = board.groups()
            rows = [_row(groups.get(choice.value, [])) for choice in board.choices if isinstance(choice.value, int)]
            return _list("What waits:", rows, board, width, room)
        case BoardMode.HELP:
            return [], _scrolled(board, [part for line in _HELP.splitlines() for part in wrap(line, width)])
        case BoardMode.LOOK:
            return [], _scrolled(board, [part for line in board.looked_at for part in wrap(line, width)])


def _question(members: Sequence[AskInfo], width: int, room: int) -> list[Line]:
    """Return what is asked: of several paths as many as there is room for, but one at least."""
    first = members[0]
    if len(members) == 1:
        return _labelled(verb(first), path_text(first), width, style="bold", max_lines=_MAX_PATH_LINES)
    directory = common_directory(unquote(ask.path) for ask in members)
    title = f"{len(members)} paths below {display(directory)}"
    lines = _labelled(verb(first), title, width, style="bold", max_lines=_MAX_PATH_LINES)
    shown = 0
    for ask in members[:_MAX_NAMES]:
        name = display(unquote(ask.path)[len(directory.rstrip(b"/")) + 1 :])
        text = name if verb(ask) == verb(first) else f"{name} ({verb(ask)})"
        text += stake_text(ask)
        name_lines = _labelled("", text, width, max_lines=_MAX_PATH_LINES)
        is_last = shown + 1 == len(members)
        if shown and len(lines) + len(name_lines) + (0 if is_last else len(_more(1, width))) > room:
            break
        lines += name_lines
        shown += 1
    return lines + _more(len(members) - shown, width)


def _more(count: int, width: int) -> list[Line]:
    return _labelled("", f"and {count} more; v lists them", width) if count else []


def _circumstances(members: Sequence[AskInfo], width: int, *, is_tight: bool = False) -> list[Line]:
    """Return what a card says beside what is asked.

    ``is_tight``: each command is on one line, with its middle left out.
    """
    most = 1 if is_tight else _MAX_COMMAND_LINES
    first = members[0]
    lines: list[Line] = []
    if first.size is not None and len(members) == 1:
        lines += _labelled("at stake", f"{size_text(first.size)} that are there now", width)
    lines += _labelled("who", process_text(first), width)
    if first.process.pid:
        lines += _labelled("command", command_text(first.process.command), width, max_lines=most)
    if first.is_started_by_run:
        lines += _labelled("started by", f"run {first.run}", width)
    elif first.parent.pid:
        parent = f"{command_text(first.parent.command)}, process {first.parent.pid}"
        lines += _labelled("started by", parent, width, max_lines=most)
    for at, why in enumerate(dict.fromkeys(map(rule_text, members))):
        lines += _labelled("" if at else "why", why, width)
    return lines


def _waiting(board: Board, members: Sequence[AskInfo], width: int) -> list[Line]:
    """Return how long an ask waits, which a card of any size shows."""
    time = f"since {board.waited_s(members[0]):.0f} s; {board.left_s(members[0]):.0f} s left"
    return _labelled("waiting", time, width)


def _labelled(label: str, text: str, width: int, *, style: str = "", max_lines: int = 0) -> list[Line]:
    indent = max(_LABEL, len(label)) + 2
    if indent > width // 2:
        return [[(style, line)] for line in wrap(f"{label} {text}", width)]
    lines = wrap(text if max_lines != 1 else _cut(text, width - indent), width - indent)
    if max_lines > 1:
        lines = _at_most(max_lines, lines, width - indent)
    return [[("", (label if at == 0 else "").ljust(indent)), (style, line)] for at, line in enumerate(lines)]


def _first_row(board: Board, room: int) -> int:
    """Return the first choice that is drawn: a few above the chosen one, as far as there is room
    for all of that.
    """
    return max(board.chosen - max(min(_ROWS_ABOVE, room - 1 - _MAX_PATH_LINES), 0), 0)


def _list(title: str, rows: Sequence[str], board: Board, width: int, room: int) -> tuple[list[Line], list[Line]]:
    """Return a list to choose from; what is chosen stands near the top if it is long."""
    first = _first_row(board, room)
    lines: list[Line] = [[("bold", _cut(title, width))]]
    rest: list[Line] = []
    for at, row in enumerate(rows[first:], first):
        text = f"{'>' if at == board.chosen else ' '} {f'{at + 1}' if at < 9 else ' '}  {row}"
        if at == board.chosen:
            lines += [[("reverse", part)] for part in _at_most(_MAX_PATH_LINES, wrap(text, width), width)]
        else:
            (rest if at > board.chosen else lines).append([("", _cut(text, width))])
    return lines, rest


def _scope_text(choice: CardChoice) -> str:
    path = choice.value
    return f"{choice.text}: {display(path)}" if isinstance(path, bytes) else choice.text


def _state_text(choice: CardChoice) -> str:
    return f"{choice.value.value:<9}  {choice.text}" if isinstance(choice.value, RuleState) else choice.text


def _row(members: Sequence[AskInfo]) -> str:
    if not members:
        return "(has ended)"
    first = members[0]
    more = f" and {len(members) - 1} more" if len(members) > 1 else ""
    name = display(unquote(first.process.name)) or "?"
    return f"{name}: {verb(first)} {path_text(first)}{more}"


def _scrolled(board: Board, lines: Sequence[str]) -> list[Line]:
    board.scroll = min(board.scroll, max(len(lines) - 1, 0))
    return [[("", line)] for line in lines[board.scroll :]]


# ---- cells


def wrap(text: str, width: int) -> list[str]:
    """Return ``text`` as lines of at most ``width`` cells, broken at spaces where there are
    some.
    """
    lines: list[str] = []
    while width_of(text) > width:
        end = len(fitting(text, width)) or 1
        space = text.rfind(" ", end // 2, end + 1)
        if space > 0 and text[:space].strip():
            lines.append(text[:space])
            text = text[space + 1 :]
        else:
            lines.append(text[:end])
            text = text[end:]
    return [*lines, text]


def _at_most(count: int, lines: list[str], width: int) -> list[str]:
    """Return lines with those in the middle left out if there are more than ``count``."""
    if len(lines) <= count:
        return lines
    half = count // 2
    left_out = len(lines) - 2 * half
    text = "[1 line left out]" if left_out == 1 else f"[{left_out} lines left out]"
    return [*lines[:half], _cut(text, width), *lines[-half:]]


def _cut(text: str, width: int) -> str:
    """Return ``text`` with its middle left out if it is too wide: the end of a path tells most."""
    if width_of(text) <= width:
        return text
    head = fitting(text, (width - 1) // 2)
    tail = fitting(text[::-1], width - 1 - width_of(head))[::-1]
    return f"{head}…{tail}"
