"""``yolofs watch`` on a terminal's whole screen.

Three threads: the terminal's (asyncio) owns the board, one reads events, and answers and looks are
carried out in asyncio's own worker threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import FormattedTextControl

from yolofs.cli.terminal.whole_screen import WholeScreen
from yolofs.cli.watch.board import Board, BoardEffect, EndWatch, LookAtPath
from yolofs.cli.watch.board_lines import draw_board
from yolofs.cli.watch.preview import preview
from yolofs.daemon.rpc.ask_messages import AnswerParams, PingInfo
from yolofs.daemon.rpc.client import Client, Event
from yolofs.errors import YolofsError

_REFRESH_S = 0.25
_LAST_ANSWER_S = 2.0
"""How long the end waits for an answer that is on its way."""
_DIGITS = frozenset("123456789")
_DECIDING = frozenset(["enter", *"ynsa", *_DIGITS])
"""Keys that count only while all that they decide over is on the screen."""


def watch_screen(project: bytes, events: Client, calls: Client) -> int:
    """Have the user at the terminal answer asks, until they leave or the mount ends; return how
    many still wait.

    Raises:
        KeyboardInterrupt: they pressed Ctrl-C.
        DaemonError: the mount has ended.
    """
    return asyncio.run(_WatchScreen(project, events, calls).run())


class _WatchScreen:
    def __init__(self, project: bytes, events: Client, calls: Client) -> None:
        self._project = project
        self._events = events
        self._calls = calls
        self._calls_lock = threading.Lock()
        self._board = Board()
        self._is_whole = False
        self._choices = range(0)
        self._screen = WholeScreen(
            FormattedTextControl(self._text), self._pressed, refresh_s=_REFRESH_S, painted=self._painted
        )

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self._events.watch(answers_pings=True)
        reader = threading.Thread(target=self._read_events, args=(loop,), name="events", daemon=True)
        reader.start()
        try:
            await self._screen.run()
            if under_way := self._screen.tasks:
                await asyncio.wait(under_way, timeout=_LAST_ANSWER_S)
        finally:
            self._events.hang_up()
            self._calls.hang_up()
            reader.join()
        return len(self._board.asks)

    # ---- what is shown

    def _text(self) -> StyleAndTextTuples:
        size = self._screen.output.get_size()
        drawing = draw_board(self._board, size.columns, size.rows)
        self._is_whole, self._choices = drawing.is_whole, drawing.choices
        pieces: StyleAndTextTuples = []
        for line in drawing.lines:
            pieces.extend(line)
            pieces.append(("", "\n"))
        return pieces[:-1]

    def _painted(self) -> None:
        if self._is_whole:
            self._board.painted()

    # ---- what comes in

    def _read_events(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            try:
                while True:
                    loop.call_soon_threadsafe(self._take, self._events.next_event())
            except YolofsError as error:
                loop.call_soon_threadsafe(self._screen.leave, error)

    def _take(self, event: Event) -> None:
        if isinstance(event, PingInfo):  # not by the thread that reads: this one may wait for the terminal
            self._events.here()
            return
        if self._board.is_new(event):
            self._screen.output.bell()
            self._screen.output.flush()
        self._board.take(event)
        self._screen.redraw()

    def _pressed(self, name: str) -> None:
        if name == "c-z":
            self._screen.suspend()
            return
        if name in _DIGITS and int(name) - 1 not in self._choices:
            return
        if self._is_whole or name not in _DECIDING:
            command = self._board.key(name)
            if command is not None:
                self._carry_out(command)

    # ---- what goes out

    def _carry_out(self, command: BoardEffect) -> None:
        match command:
            case EndWatch(is_interrupt=is_interrupt):
                self._screen.leave(KeyboardInterrupt() if is_interrupt else None)
            case AnswerParams() | LookAtPath():
                self._screen.start(self._run(command))

    async def _run(self, command: AnswerParams | LookAtPath) -> None:
        match command:
            case AnswerParams():
                try:
                    await asyncio.to_thread(self._answer, command)
                except YolofsError as error:  # should the daemon have ended, the reader hears of it, too
                    self._board.failed(command, error.message)
            case LookAtPath(path=path):
                try:
                    lines = await asyncio.to_thread(preview, self._project, path)
                except YolofsError as error:
                    lines = [error.message]
                self._board.show_look(path, lines)
        self._screen.redraw()

    def _answer(self, params: AnswerParams) -> None:
        with self._calls_lock:
            self._calls.answer(params)
