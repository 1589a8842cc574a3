"""When what rule files look like is taken for what they are."""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
import trio.testing

from yolofs.daemon.follow.rule_watch import _look, _settle
from yolofs.rules import Level


def settle_beside(
    paths: dict[Level, Path],
    meanwhile: Callable[[], Awaitable[None]],
    clock: trio.abc.Clock | None = None,
    begin: Callable[[Path], object] = Path.unlink,
) -> None:
    """Wait for files to settle since the first of them was gone or changed, while somebody does
    something.
    """
    raw = {level: os.fsencode(path) for level, path in paths.items()}

    async def watch() -> None:
        async with trio.open_nursery() as nursery:
            before = _look(raw)
            begin(next(iter(paths.values())))
            nursery.start_soon(meanwhile)
            with trio.fail_after(60):
                await _settle(raw, before, _look(raw))
            nursery.cancel_scope.cancel()

    trio.run(watch, clock=clock)


def test_a_file_that_is_gone_may_be_put_back_by_an_editor(tmp_path: Path) -> None:
    path = tmp_path / ".yolofs.toml"
    path.touch()

    async def put_back() -> None:
        await trio.sleep(0.3)
        path.touch()

    settle_beside({Level.PROJECT: path}, put_back)
    assert path.exists()


def test_a_file_that_is_gone_may_be_put_back_after_a_time_in_which_nothing_had_its_turn(tmp_path: Path) -> None:
    path = tmp_path / ".yolofs.toml"
    path.touch()
    clock = trio.testing.MockClock(rate=1)

    async def put_back() -> None:
        await trio.sleep(0.2)
        clock.jump(2)
        await trio.sleep(0.3)
        path.touch()

    settle_beside({Level.PROJECT: path}, put_back, clock)
    assert path.exists()


def test_a_file_that_was_emptied_may_be_written_a_little_later(tmp_path: Path) -> None:
    """Between the two there is no rule in it, and what it guards would be open."""
    path = tmp_path / ".yolofs.toml"
    path.write_text("before")

    async def write() -> None:
        await trio.sleep(0.3)
        path.write_text("after")

    settle_beside({Level.PROJECT: path}, write, begin=lambda path: path.write_text(""))
    assert path.read_text() == "after"


def test_a_file_that_never_stays_as_it_is_does_not_hold_up_the_others(tmp_path: Path) -> None:
    learned, written = tmp_path / "rules.toml", tmp_path / ".yolofs.toml"
    for path in (learned, written):
        path.touch()

    async def keep_changing() -> None:
        for number in itertools.count():
            learned.write_text("x" * (number % 100))
            await trio.sleep(0.02)

    settle_beside({Level.PROJECT: written, Level.LEARNED: learned}, keep_changing)
