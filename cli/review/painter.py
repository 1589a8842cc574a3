"""Asks the process that colours source code for the lines on the screen, and keeps its answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import weakref
from collections.abc import Callable

import msgspec

from yolofs.cli.review.diff_view import DiffView, LineKind
from yolofs.cli.review.drawing import printable_line
from yolofs.cli.review.lexing import LENGTH_BYTES, LexAnswer, LexRequest, StyledRuns, packed

_MOST_ROWS = 400
_MOST_ENDS = 5
"""After the process has ended this often, nothing is coloured any more."""


class Painter:
    """The colours of lines; belongs to the thread of asyncio's loop."""

    def __init__(self, painted: Callable[[], object]) -> None:
        """``painted`` is called whenever there are new colours."""
        self._painted = painted
        self._known: weakref.WeakKeyDictionary[DiffView, dict[int, StyledRuns]] = weakref.WeakKeyDictionary()
        self._asked: weakref.WeakKeyDictionary[DiffView, set[int]] = weakref.WeakKeyDictionary()
        self._wanted: tuple[DiffView, range] | None = None
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._number = 0
        self._ends = 0

    def __call__(self, view: DiffView, row: int) -> StyledRuns | None:
        """Return the styles of a line, None if they are not known (yet)."""
        return self._known.get(view, {}).get(row)

    def want(self, view: DiffView, rows: range) -> None:
        """Have lines coloured, unless they are or cannot be; what was wanted before and is not
        begun is forgotten.
        """
        asked = self._asked.setdefault(view, set())
        if self._ends >= _MOST_ENDS or asked.issuperset(rows) or not rows:
            return
        self._wanted = view, rows[:_MOST_ROWS]
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """End the process."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task
        await self._end()

    async def _work(self) -> None:
        while self._wanted is not None:
            (view, rows), self._wanted = self._wanted, None
            self._asked.setdefault(view, set()).update(rows)
            try:
                await self._colour(view, rows)
            except (OSError, ValueError, asyncio.IncompleteReadError, msgspec.DecodeError):
                self._ends += 1
                await self._end()

    async def _colour(self, view: DiffView, rows: range) -> None:
        sides: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
        for row in rows:
            line = view.line(row)
            if line.kind is LineKind.TITLE:
                continue
            text = printable_line(line.text.removesuffix(b"\n"))
            if line.kind is not LineKind.NEW:
                sides[0].append((row, text))
            if line.kind is not LineKind.OLD:
                sides[1].append((row, text))
        self._number += 1
        name = os.path.basename(view.file.path).decode(errors="replace")
        request = LexRequest(self._number, name, tuple(tuple(text for _, text in side) for side in sides))
        answer = await self._ask(request)
        known = self._known.setdefault(view, {})
        for side, found in zip(sides, answer.texts, strict=False):
            known.update((row, runs) for (row, _), runs in zip(side, found, strict=False))
        if known:
            self._painted()

    async def _ask(self, request: LexRequest) -> LexAnswer:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "yolofs.cli.review.lexing",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(packed(request))
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
        return msgspec.msgpack.decode(await process.stdout.readexactly(length), type=LexAnswer)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()
