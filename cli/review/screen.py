"""``yolofs review`` on a terminal's whole screen.

The terminal's thread (asyncio) owns the model.  What reads or changes the session runs in threads
of its own: one reads, one acts, and one sees whether the agent has gone on.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.controls import UIContent, UIControl

from yolofs.changes.changes import Change
from yolofs.cli.review.change_tree import Key, NodeTree
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.drawing import Line, draw_review
from yolofs.cli.review.effects import (
    Commit,
    Compare,
    Drop,
    Edit,
    EndReview,
    Load,
    LookStoppedError,
    Prepare,
    ReviewEffect,
    Settle,
    Stop,
    Undo,
)
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.painter import Painter
from yolofs.cli.review.review_state import ReviewMode
from yolofs.cli.review.worker import Worker
from yolofs.cli.terminal.whole_screen import MouseReport, WholeScreen
from yolofs.errors import StaleHunkError, YolofsError
from yolofs.os_errors import explain_os_error

T = TypeVar("T")
_AGAIN_S = 1.0
"""How often to look whether the agent has changed something."""
_AGAIN_TIMES = 3
"""The pause is at least this many times as long as the last comparison took."""
_SWITCH_S = 0.001
"""How long a comparing thread may keep the terminal's thread waiting."""
_IDLE_S = 3.0
"""How long after the last key garbage is collected."""
_MOST_TYPED_AHEAD = 200
_STOPS = frozenset({"q", "c-d", "escape", "c-c"})
"""The keys that end a look at what a commit would do."""


class _Control(UIControl):
    """Shows lines that are made for just what is on the screen."""

    def __init__(self, lines: Callable[[int, int], list[Line]]) -> None:
        self._lines = lines

    def create_content(self, width: int, height: int) -> UIContent:
        """Return the screen."""
        lines = self._lines(width, height)
        return UIContent(
            # Lines are lists of styled text, which prompt_toolkit takes and its types do not say.
            get_line=lambda row: lines[row],  # type: ignore[arg-type,return-value]
            line_count=len(lines),
            cursor_position=Point(0, 0),
            show_cursor=False,
        )

    def is_focusable(self) -> bool:
        """Tell that keys come here."""
        return True


def review(worker: Worker, model: ReviewModel, take_over: Callable[[], None]) -> str:
    """Have the user at the terminal review until they leave; return what is to be said at the end.

    ``model`` has what is shown first; ``take_over`` is called when the terminal is taken.

    Raises:
        KeyboardInterrupt: they pressed Ctrl-C.
        YolofsError: there is nothing to be shown.
    """
    return asyncio.run(_ReviewScreen(worker, model, take_over).run())


class _ReviewScreen:
    """A review at a terminal."""

    def __init__(self, worker: Worker, model: ReviewModel, take_over: Callable[[], None]) -> None:
        self._worker = worker
        self._model = model
        self._take_over = take_over
        self._typed: deque[str] = deque(maxlen=_MOST_TYPED_AHEAD)
        self._loading: list[Change] = []
        """The changes whose lines are being read: none is read twice at a time."""
        self._comparing: asyncio.Task[None] | None = None
        self._again: Compare | None = None
        self._acting = asyncio.Lock()
        self._stop = Stop()
        self._has_garbage = False
        self._pressed_s = time.monotonic()
        self._said = io.StringIO()
        self._goodbye = ""
        self._screen = WholeScreen(_Control(self._lines), self._pressed, paste=self._pasted, mouse=self._moused)
        self._painter = Painter(self._screen.redraw)

    async def run(self) -> str:
        """Show it until the user leaves; return what is to be said at the end.

        Raises:
            KeyboardInterrupt: they pressed Ctrl-C.
            YolofsError: there is nothing to be shown.
        """
        sys.setswitchinterval(_SWITCH_S)
        gc.disable()  # looking through 20,000 changes for garbage would be felt: that is done when nobody types
        self._screen.start(self._watch())
        try:
            with contextlib.redirect_stdout(self._said), contextlib.redirect_stderr(self._said):
                await self._screen.run(self._begin)
        finally:
            await self._painter.close()
            await self._finish()
        return self._goodbye

    def _begin(self) -> None:
        self._carry_out(Compare())
        self._take_over()  # what fails before leaves the terminal to whoever has it

    async def _finish(self) -> None:
        """Wait for what must not end half way; what only looks is not waited for."""
        while self._acting.locked():
            await asyncio.sleep(0.01)  # between two looks: an act has an end of its own
        going_on = self._screen.tasks
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)

    # ---- what is shown

    def _lines(self, width: int, height: int) -> list[Line]:
        lines = draw_review(self._model, width, height, self._painter)
        view = self._model.view
        if view is not None and self._model.mode is not ReviewMode.PAGE:
            top = self._model.line_top
            self._painter.want(view, range(top, min(top + height, view.count)))
        return lines

    # ---- keys

    def _pasted(self, text: str) -> None:
        if self._model.mode in (ReviewMode.SEARCH, ReviewMode.NOTE):  # pasted lines are no keys
            for char in text:
                self._key(char if char.isprintable() else " ")

    def _moused(self, report: MouseReport) -> None:
        self._pressed_s = time.monotonic()
        if self._typed or self._model.busy:
            return  # keys wait for something else than what is on the screen
        if report.turned:
            self._carry_out(self._model.turn(report.column, report.turned))
        else:
            self._carry_out(self._model.click(report.column, report.row))

    def _pressed(self, name: str) -> None:
        if name != "c-z":
            self._key("q" if name == "c-d" else name)
        elif not self._model.busy:  # what is being done holds the session
            self._screen.suspend()

    def _key(self, name: str) -> None:
        self._pressed_s = time.monotonic()
        if self._model.is_looking and name in _STOPS:
            self._stop.set()
            self._model.stopped()
            self._screen.redraw()
            if name != "c-c":
                return
        if self._model.is_dropping and name in _STOPS:
            self._stop.set()
            self._model.stopping()
            self._screen.redraw()
        if self._model.busy:
            return  # what is typed now would be about something that nobody has seen yet
        if name != "c-c" and (self._typed or self._model.has_to_wait(name)):
            self._typed.append(name)
            return
        self._carry_out(self._model.key(name))

    def _go_on_typing(self) -> None:
        """Carry out the keys that had to wait."""
        while self._typed and not self._model.has_to_wait(self._typed[0]):
            self._carry_out(self._model.key(self._typed.popleft()))
        if self._model.busy:
            self._typed.clear()
        self._screen.redraw()

    # ---- what is wanted

    def _carry_out(self, command: ReviewEffect | None) -> None:
        match command:
            case None:
                pass
            case EndReview(is_interrupt=is_interrupt):
                self._screen.leave(KeyboardInterrupt() if is_interrupt else None)
            case Load():
                self._screen.start(self._load(command))
            case Compare():
                self._again = command
                if self._comparing is None or self._comparing.done():
                    self._comparing = self._screen.start(self._compare())
            case Edit():
                self._screen.start(self._edit(command))
            case Drop():
                self._stop = dropping = Stop()
                self._screen.start(self._act(lambda: self._worker.drop(command, dropping), self._model.done))
            case Undo():
                self._screen.start(self._act(lambda: (self._worker.take_back(command.done),), self._model.undone))
            case Prepare():
                self._stop = stop = Stop()
                self._screen.start(
                    self._act(lambda: (self._worker.prepare(command, stop),), self._model.prepared, stop)
                )
            case Settle():
                self._screen.start(self._act(lambda: self._worker.settle(command), self._model.settled))
            case Commit():
                self._screen.start(self._act(lambda: (self._worker.commit(command),), self._committed))

    async def _load(self, command: Load) -> None:
        await asyncio.sleep(0)
        has_moved_on = self._model.change != command.change
        has_ended = self._model.view is not None or self._model.is_unreadable  # by another load meanwhile
        if has_moved_on or has_ended or command.change in self._loading:
            return
        self._loading.append(command.change)
        try:
            view = await asyncio.to_thread(self._worker.load, command.change)
        except (YolofsError, OSError) as error:
            self._model.unreadable(command.change, _text(error))
            self._typed.clear()
        else:
            self._model.loaded(command.change, view)
        finally:
            self._loading.remove(command.change)
        self._go_on_typing()

    async def _compare(self) -> None:
        while self._again is not None:
            wanted, self._again = self._again, None
            try:
                await self._compare_once(wanted)
            except (YolofsError, OSError) as error:
                if self._model.comparison is None or self._model.comparison.is_partial:
                    self._screen.leave(error)
                    return
                self._model.failed(_text(error))
            self._screen.redraw()

    async def _compare_once(self, wanted: Compare) -> None:
        before = self._model.comparison
        is_first = before is None or before.is_partial or not before.has_marks
        parts = self._model.parts()
        known = await asyncio.to_thread(self._worker.compare, wanted, parts, with_marks=not is_first)
        if self._again is None:
            late = self._model.accepted_since(parts, known.comparison)
            self._take(known.comparison, [*known.changed, *late], known.tree)
        if not known.comparison.has_marks:
            marked = await asyncio.to_thread(self._worker.mark, known.comparison)
            if self._again is None:
                self._take(*marked)

    def _take(self, known: Comparison, changed: Iterable[Key] = (), tree: NodeTree | None = None) -> None:
        self._has_garbage = True
        self._carry_out(self._model.compared(known, changed, tree))
        self._go_on_typing()

    async def _act(
        self, work: Callable[[], tuple[Any, ...]], take: Callable[..., ReviewEffect | None], stop: Stop | None = None
    ) -> None:
        """Do something with the session in a thread, and have the model take what comes of it,
        unless the user has stopped it.
        """
        done: tuple[Any, ...] | BaseException
        async with self._acting:  # what was stopped may not have ended yet
            try:
                done = await asyncio.to_thread(work)
            except (YolofsError, OSError, LookStoppedError, KeyboardInterrupt) as error:
                done = error
        if stop is None or not stop.is_set:
            self._take_result(done, take)
        self._screen.redraw()

    def _take_result(self, done: tuple[Any, ...] | BaseException, take: Callable[..., ReviewEffect | None]) -> None:
        match done:
            case tuple():
                self._carry_out(take(*done))
            case StaleHunkError():
                self._model.stale(done.ids)
                self._model.failed(_text(done))
                self._carry_out(Compare())
            case YolofsError() | OSError():
                self._model.failed(_text(done))
            case LookStoppedError():
                self._model.failed("stopped, nothing is dropped")
            case _:  # of a signal while a commit held them
                self._model.failed("stopped")
        said = self._said.getvalue().strip()
        if said:
            self._model.message += f" ({' '.join(said.split())})"
            self._said.seek(0)
            self._said.truncate()

    def _committed(self, message: str) -> ReviewEffect:
        self._goodbye = message
        return self._model.committed(message)

    async def _edit(self, command: Edit) -> None:
        try:
            async with self._acting:
                texts = await asyncio.to_thread(self._worker.texts, command)
                text = await self._screen.give_terminal(
                    lambda: self._in_terminal(lambda: self._worker.edit(command, texts))
                )
        except (YolofsError, OSError) as error:
            self._model.failed(_text(error))
            self._screen.redraw()
            return
        if text is None:
            self._model.message = "nothing is changed"
            self._screen.redraw()
            return
        self._model.busy = "staging what was edited"
        await self._act(lambda: self._worker.stage(command, texts[1], text), self._model.done)

    def _in_terminal(self, work: Callable[[], T]) -> T:
        out, err = sys.__stdout__, sys.__stderr__
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return work()

    # ---- the agent goes on

    async def _watch(self) -> None:
        """Compare anew, at most once a second, where somebody has worked in the view."""
        pause = _AGAIN_S
        while True:
            await asyncio.sleep(pause)  # between two looks at the journal, which grows without telling anybody
            if self._has_garbage and time.monotonic() - self._pressed_s > _IDLE_S:
                self._has_garbage = False
                gc.collect()
            known = self._model.comparison
            if known is None or not known.is_present or self._model.busy or self._model.mode is not ReviewMode.LIST:
                continue
            with contextlib.suppress(YolofsError, OSError):
                changes = self._model.shown_changes()
                if not await asyncio.to_thread(self._worker.has_grown, changes):
                    continue
                begun = time.monotonic()
                self._carry_out(Compare())
                if self._comparing is not None:
                    await asyncio.wait([self._comparing])
                pause = max(_AGAIN_S, _AGAIN_TIMES * (time.monotonic() - begun))


def _text(error: YolofsError | OSError) -> str:
    if isinstance(error, YolofsError):
        return f"{error.message}{f' ({error.hint})' if error.hint else ''}"
    what, hint = explain_os_error(error)
    return f"{what}{f' ({hint})' if hint else ''}"
