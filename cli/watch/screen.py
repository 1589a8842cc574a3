"""``yolofs watch`` on a terminal's whole screen.

Three threads: the terminal's (asyncio) owns the board, one reads events, and answers and looks are
carried out in asyncio's own worker threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output.defaults import create_output

from yolofs.cli.watch.board import Board, Command, Look, Quit
from yolofs.cli.watch.board_lines import draw
from yolofs.cli.watch.preview import preview
from yolofs.daemon.rpc.ask_messages import AnswerParams
from yolofs.daemon.rpc.client import Client, Event
from yolofs.errors import YolofsError

_REFRESH_S = 0.25
_ESCAPE_S = 0.05
"""How long after an escape byte the rest of a key may still come."""
_LAST_ANSWER_S = 2.0
"""How long the end waits for an answer that is on its way."""
_DIGITS = frozenset("123456789")
_DECIDING = frozenset(["enter", *"ynsa", *_DIGITS])
"""Keys that count only while all that they decide over is on the screen."""
_NAMES = {
    Keys.Up: "up",
    Keys.Down: "down",
    Keys.PageUp: "pageup",
    Keys.PageDown: "pagedown",
    Keys.Enter: "enter",
    Keys.Escape: "escape",
    Keys.Backspace: "backspace",
    Keys.Tab: "tab",
    Keys.ControlC: "c-c",
    Keys.SIGINT: "c-c",
    Keys.ControlD: "c-d",
}


def watch_screen(project: bytes, events: Client, calls: Client) -> int:
    """Have somebody at the terminal answer asks until he leaves, or the mount ends; return how many
    wait still.

    Raises:
        KeyboardInterrupt: he pressed Ctrl-C.
        DaemonError: the mount has ended.
    """
    return asyncio.run(_Screen(project, events, calls).run())


class _Screen:
    def __init__(self, project: bytes, events: Client, calls: Client) -> None:
        self._project = project
        self._events = events
        self._calls = calls
        self._calls_lock = threading.Lock()
        self._board = Board()
        self._is_whole = False
        self._choices = range(0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._app: Application[None] = Application(
            layout=Layout(Window(FormattedTextControl(self._text), always_hide_cursor=True)),
            key_bindings=self._bindings(),
            full_screen=True,
            refresh_interval=_REFRESH_S,
            after_render=self._painted,
            output=create_output(always_prefer_tty=True),
        )
        self._app.ttimeoutlen = _ESCAPE_S

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, KeyboardInterrupt())
        self._events.watch()
        reader = threading.Thread(target=self._read_events, args=(loop,), name="events", daemon=True)
        reader.start()
        try:
            await self._app.run_async()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_LAST_ANSWER_S)
        except EOFError:  # the terminal is gone
            pass
        finally:
            self._events.hang_up()
            self._calls.hang_up()
            reader.join()
        return len(self._board.asks)

    def _leave(self, error: BaseException | None = None) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(exception=error) if error is not None else self._app.exit()

    # ---- what is shown

    def _text(self) -> StyleAndTextTuples:
        size = self._app.output.get_size()
        drawing = draw(self._board, size.columns, size.rows)
        self._is_whole, self._choices = drawing.is_whole, drawing.choices
        pieces: StyleAndTextTuples = []
        for line in drawing.lines:
            pieces.extend(line)
            pieces.append(("", "\n"))
        return pieces[:-1]

    def _painted(self, _: Application[None]) -> None:
        if self._is_whole:
            self._board.painted()

    # ---- what comes in

    def _read_events(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            try:
                while True:
                    loop.call_soon_threadsafe(self._take, self._events.next_event())
            except YolofsError as error:
                loop.call_soon_threadsafe(self._leave, error)

    def _take(self, event: Event) -> None:
        if self._board.is_new(event):
            self._app.output.bell()
            self._app.output.flush()
        self._board.take(event)
        self._app.invalidate()

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self._pressed(event)

        @bindings.add(Keys.Vt100MouseEvent)
        def _(_: KeyPressEvent) -> None:
            """Do nothing: mice are not asked for, and what prompt_toolkit does about them fails for
            odd reports.
            """

        for key in _NAMES:
            bindings.add(key)(self._pressed)
        return bindings

    def _pressed(self, event: KeyPressEvent) -> None:
        key = event.key_sequence[0].key
        name = _NAMES.get(key) if isinstance(key, Keys) else key
        if name in _DIGITS and int(name) - 1 not in self._choices:
            return
        if name is not None and (self._is_whole or name not in _DECIDING):
            command = self._board.key(name)
            if command is not None:
                self._carry_out(command)

    # ---- what goes out

    def _carry_out(self, command: Command) -> None:
        match command:
            case Quit(is_interrupt=is_interrupt):
                self._leave(KeyboardInterrupt() if is_interrupt else None)
            case AnswerParams():
                self._start(command)
            case Look():
                self._start(command)

    def _start(self, command: AnswerParams | Look) -> None:
        task = asyncio.get_running_loop().create_task(self._run(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, command: AnswerParams | Look) -> None:
        match command:
            case AnswerParams():
                try:
                    await asyncio.to_thread(self._answer, command)
                except YolofsError as error:  # should the daemon have ended, the reader hears of it, too
                    self._board.failed(command, error.message)
            case Look(path=path):
                try:
                    lines = await asyncio.to_thread(preview, self._project, path)
                except YolofsError as error:
                    lines = [error.message]
                self._board.show_look(path, lines)
        self._app.invalidate()

    def _answer(self, params: AnswerParams) -> None:
        with self._calls_lock:
            self._calls.answer(params)
