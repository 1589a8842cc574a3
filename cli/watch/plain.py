"""``yolofs watch`` on a terminal that can only print lines (``TERM=dumb``): each card once, then
its keys.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from yolofs.cli.output import say
from yolofs.cli.watch.board import Board, BoardEffect, EndWatch, LookAtPath
from yolofs.cli.watch.board_lines import draw_board
from yolofs.cli.watch.preview import preview
from yolofs.daemon.rpc.ask_messages import AnswerParams, PingInfo
from yolofs.daemon.rpc.client import Client, Event
from yolofs.errors import DaemonError, YolofsError

_TICK_S = 0.1
_TALL = 10_000
_KEYS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x04": "c-d",
}


def watch_plain(project: bytes, events: Client, calls: Client) -> int:
    """Have the user at the terminal answer asks, until they leave or the mount ends; return how
    many still wait.

    Raises:
        KeyboardInterrupt: they pressed Ctrl-C.
        DaemonError: the mount has ended.
    """
    board = Board()
    arrived: deque[Event | YolofsError] = deque()
    events.watch(answers_pings=True)
    reader = threading.Thread(target=_read_events, args=(events, arrived), name="events", daemon=True)
    reader.start()
    try:
        with _single_keys():
            _talk(project, board, events, calls, arrived)
    finally:
        events.hang_up()
        reader.join()
    return len(board.asks)


def _read_events(events: Client, arrived: deque[Event | YolofsError]) -> None:
    try:
        while True:
            arrived.append(events.next_event())
    except YolofsError as error:
        arrived.append(error)


def _talk(project: bytes, board: Board, events: Client, calls: Client, arrived: deque[Event | YolofsError]) -> None:
    printed: object = None
    told = 0
    while True:
        while arrived:
            event = arrived.popleft()
            if isinstance(event, YolofsError):
                raise event
            if isinstance(event, PingInfo):
                events.here()
                continue
            if board.is_new(event):
                _ring()
            board.take(event)
        untold = min(board.done_count - told, len(board.done))
        for line in list(board.done)[len(board.done) - untold :]:
            say(line)
        told = board.done_count
        printed = _print_changes(board, printed)
        for key in _read_keys():
            command = board.key(key)
            if isinstance(command, EndWatch):
                return
            if command is not None:
                _carry_out(project, board, calls, command)


def _ring() -> None:
    """Ring the terminal's bell."""
    sys.stderr.write("\a")
    sys.stderr.flush()


def _print_changes(board: Board, printed: object) -> object:
    """Print the board if it is another one than what was ``printed`` last; return what stands there
    now.
    """
    ids = [ask.id for ask in board.members()]
    now = (
        (board.mode, board.group, ids, board.chosen, board.message, board.scroll, board.is_armed, board.is_answering),
        board.warnings,
    )
    if now != printed:
        drawing = draw_board(board, shutil.get_terminal_size((80, 24)).columns - 1, _TALL)
        lines = ["".join(text for _, text in line).rstrip() for line in drawing.lines]
        end = len(lines) - len(board.done)  # those were told already
        say("\n".join(lines[:end]).rstrip() + "\n")
        board.painted()
    return now


def _carry_out(project: bytes, board: Board, calls: Client, command: BoardEffect) -> None:
    match command:
        case AnswerParams():
            try:
                calls.answer(command)
            except DaemonError:
                raise
            except YolofsError as error:
                board.failed(command, error.message)
        case LookAtPath(path=path):
            try:
                board.show_look(path, preview(project, path))
            except YolofsError as error:
                board.show_look(path, [error.message])
        case EndWatch():
            pass


def _read_keys() -> Iterator[str]:
    """Wait a moment for keys and yield them; the end of the input is Ctrl-D."""
    ready, _, _ = select.select([sys.stdin], [], [], _TICK_S)
    if not ready:
        return
    data = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    if not data:
        yield "c-d"
    elif data in ("\x1b[A", "\x1b[B"):
        yield "up" if data[-1] == "A" else "down"
    else:
        for char in data:
            yield _KEYS.get(char, char)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Have keys come at once and unseen; Ctrl-C stays what it is."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal may be closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
