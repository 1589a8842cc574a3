"""A terminal's whole screen: keys by name, tasks beside them, and one way to leave.

:mod:`yolofs.cli.watch` and :mod:`yolofs.cli.review` say what is shown and what a key does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import UIControl
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output

from yolofs.system import stop_signals

T = TypeVar("T")

_ESCAPE_S = 0.05
"""How long after an escape byte the rest of a key may still come."""
_SIZE_S = 0.5
"""How often to look whether the terminal has another size than what was drawn: only a process of
its own session is told of that.
"""
_NAMES = {
    Keys.Up: "up",
    Keys.Down: "down",
    Keys.Left: "left",
    Keys.Right: "right",
    Keys.PageUp: "pageup",
    Keys.PageDown: "pagedown",
    Keys.ControlB: "pageup",
    Keys.ControlF: "pagedown",
    Keys.Home: "home",
    Keys.End: "end",
    Keys.Enter: "enter",
    Keys.ControlJ: "enter",  # typed before the screen was there
    Keys.Escape: "escape",
    Keys.Backspace: "backspace",
    Keys.Tab: "tab",
    Keys.ControlC: "c-c",
    Keys.SIGINT: "c-c",
    Keys.ControlD: "c-d",
    Keys.ControlZ: "c-z",
}

_MOUSE_ON, _MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"
"""Reports of buttons and the wheel; prompt_toolkit would ask for each movement, too, and each would
draw the screen anew.
"""
_MOUSE_REPORT = re.compile(r"\x1b\[<([0-9]{1,3});([0-9]{1,5});([0-9]{1,5})M")
_HELD = 4 | 8 | 16
"""Shift, Alt, and Ctrl in a report's first number."""
_LEFT_BUTTON, _WHEEL_UP, _WHEEL_DOWN = 0, 64, 65


class MouseReport(NamedTuple):
    """The left button was pressed, or the wheel turned."""

    column: int
    row: int
    turned: int
    """-1 if the wheel was turned up, 1 for down; 0 for the button."""


def read_mouse(data: str) -> MouseReport | None:
    """Return what a terminal's report of its mouse says; None if that is nothing to us."""
    found = _MOUSE_REPORT.fullmatch(data)
    if found is None:
        return None
    number, column, row = map(int, found.groups())
    turned = {_LEFT_BUTTON: 0, _WHEEL_UP: -1, _WHEEL_DOWN: 1}.get(number & ~_HELD)
    return MouseReport(column - 1, row - 1, turned) if turned is not None else None


class WholeScreen:
    """A terminal that shows one thing, from :meth:`run` until :meth:`leave`."""

    def __init__(
        self,
        control: UIControl,
        press: Callable[[str], None],
        *,
        paste: Callable[[str], None] | None = None,
        mouse: Callable[[MouseReport], None] | None = None,
        refresh_s: float | None = None,
        painted: Callable[[], None] | None = None,
    ) -> None:
        """``press`` takes each key: a character, or its name (``enter``, ``up``, ``c-c``…).

        ``paste`` takes a pasted text, and ``mouse`` what the mouse does; without them that does
        nothing.  ``painted`` is called each time that the screen has been drawn.
        """
        self._press = press
        self._tasks: set[asyncio.Task[Any]] = set()
        self._window = Window(control, always_hide_cursor=True)
        self._app: Application[None] = Application(
            layout=Layout(self._window),
            key_bindings=self._bindings(paste, mouse),
            full_screen=True,
            mouse_support=mouse is not None,
            refresh_interval=refresh_s,
            terminal_size_polling_interval=None,  # compares what it has polled, not what was drawn
            after_render=(lambda _: painted()) if painted is not None else None,
            output=_output(),
        )
        self._app.ttimeoutlen = _ESCAPE_S

    @property
    def output(self) -> Output:
        """The terminal."""
        return self._app.output

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """What was started and has not ended."""
        return set(self._tasks)

    async def run(self, begin: Callable[[], None] | None = None) -> None:
        """Show the screen until it is left.

        Raises what it is left with; SIGTERM and SIGHUP leave it with StoppedError, and so does a
        terminal that is closed.  An error in drawing, in a key or in a started task ends it with
        that error.  Otherwise prompt_toolkit
        would wait for a key without saying so.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave, stop_signals.StoppedError(number))
        loop.add_signal_handler(signal.SIGTSTP, self.suspend)
        loop.add_signal_handler(signal.SIGCONT, self._continued)
        loop.set_exception_handler(self._failed)

        def begin_whole() -> None:
            self._app.create_background_task(self._watch_size())
            if begin is not None:
                begin()

        try:
            await self._app.run_async(pre_run=begin_whole, set_exception_handler=False)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self._app.renderer.reset()  # the first drawing may have failed half way
            if isinstance(error, EOFError | OSError) and not _has_terminal():
                raise stop_signals.StoppedError(signal.SIGHUP) from None
            if not isinstance(error, EOFError):
                raise
        finally:
            loop.set_exception_handler(None)

    def leave(self, error: BaseException | None = None) -> None:
        """End :meth:`run`, which raises the error if there is one."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit(exception=error) if error is not None else self._app.exit()

    def suspend(self) -> None:
        """Give the terminal back, and stop with all of our process group, as Ctrl-Z does to a
        program; the shell's ``fg`` goes on with it.

        Somebody else's SIGTSTP does the same.  Of SIGSTOP nobody hears, so that leaves the screen
        to the shell.
        """
        self.start(self.give_terminal(lambda: os.kill(0, signal.SIGTSTP)))

    async def give_terminal(self, work: Callable[[], T]) -> T:
        """Carry out what has the terminal until it ends, and return what it returns: the shell's
        screen is shown meanwhile, and Ctrl-Z stops us at once.
        """

        def whole() -> T:
            heard = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            try:
                return work()
            finally:
                signal.signal(signal.SIGTSTP, heard)

        return await run_in_terminal(whole)

    def _continued(self) -> None:
        """Take the terminal as it was: somebody has stopped this process, and the shell has had the
        terminal meanwhile.

        In the background the kernel stops us again here.
        """
        if not self._app.is_running or self._app.is_done:
            return
        self._app.input.raw_mode().__enter__()  # what the terminal is given back as, run() knows
        self._draw_whole()

    async def _watch_size(self) -> None:
        """Draw anew what was drawn for another size."""
        while True:
            await asyncio.sleep(_SIZE_S)  # between two looks: nobody may tell of it
            drawn, size = self._window.render_info, self.output.get_size()
            if drawn is not None and (drawn.window_width, drawn.window_height) != (size.columns, size.rows):
                self._draw_whole()

    def _draw_whole(self) -> None:
        """Have all of the screen drawn anew soon, whatever it shows."""
        if self._app.renderer.last_rendered_screen is not None:
            self._app.renderer.erase(leave_alternate_screen=False)  # the other screen is the shell's
            self.output.erase_screen()
            self.output.cursor_goto(0, 0)
        self._app.invalidate()

    def redraw(self) -> None:
        """Have the screen drawn anew soon."""
        self._app.invalidate()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start what goes on beside the keys.  If it fails, :meth:`run` ends with that error, as
        the screen would be out of date without it.
        """

        async def whole() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - nobody waits for a task
                self.leave(error)

        task = asyncio.get_running_loop().create_task(whole())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _failed(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        self.leave(error if isinstance(error, BaseException) else RuntimeError(context["message"]))

    def _bindings(
        self, paste: Callable[[str], None] | None, mouse: Callable[[MouseReport], None] | None
    ) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            self._pressed(event)

        @bindings.add(Keys.Vt100MouseEvent)
        def _(event: KeyPressEvent) -> None:
            """Take a report ourselves: what prompt_toolkit does about them fails for odd ones."""
            report = read_mouse(event.data)
            if mouse is not None and report is not None:
                mouse(report)

        if paste is not None:

            @bindings.add(Keys.BracketedPaste)
            def _(event: KeyPressEvent) -> None:
                paste(event.data)

        for key in _NAMES:
            bindings.add(key)(self._pressed)
        return bindings

    def _pressed(self, event: KeyPressEvent) -> None:
        key = event.key_sequence[0].key
        name = _NAMES.get(key) if isinstance(key, Keys) else key
        if name is not None:
            self._press(name)


def _output() -> Output:
    """Return the terminal, which reports no more of the mouse than buttons and the wheel."""
    output = create_output(always_prefer_tty=True)
    # of this object alone: no option of prompt_toolkit says which reports it asks for, and it knows
    # when to switch them off and on
    output.enable_mouse_support = lambda: output.write_raw(_MOUSE_ON)  # type: ignore[method-assign]
    output.disable_mouse_support = lambda: output.write_raw(_MOUSE_OFF)  # type: ignore[method-assign]
    return output


def _has_terminal() -> bool:
    """Tell whether the terminal has not been closed: else it answers nothing any more."""
    try:
        termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        return False
    return True
