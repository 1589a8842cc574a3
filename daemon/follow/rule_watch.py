"""Watches the files that rules come from, and has them taken up while the view is mounted."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import trio

from yolofs.daemon.follow.rule_keeper import RuleKeeper
from yolofs.errors import DaemonError
from yolofs.rules import Level
from yolofs.rules.rule_files import FileState, file_state

log = logging.getLogger("yolofs.daemon")

FileStates: TypeAlias = Mapping[Level, FileState | None]
"""How the files are."""

_POLL_S = 1.0
"""How often the files are looked at in any case: a link may lead to where nobody watches, a
directory may be new.
"""
_SETTLE_S = 0.1
"""How long the files have to stay as they are: whoever writes one may not be done with it."""
_GONE_S = 1.0
"""The same where a file is gone or empty: some editors put the new one in its place, or write it, a
little later.
"""
_AT_MOST_S = 3.0
"""How long a file that keeps changing (each lasting answer is written there) may hold up the
others.
"""
_STEP_MS = 100
"""How often the watch's thread looks whether it was told anything, and so takes the interpreter."""


async def watch_rules(keeper: RuleKeeper, warn: Callable[[], object]) -> None:
    """Take up what changes until cancelled; ``warn`` is called after each look, to tell what the
    user should know.
    """
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells of each change
    files = keeper.files
    paths = files.paths
    while True:
        async with trio.open_nursery() as nursery:
            places = await trio.to_thread.run_sync(_places, paths[Level.LEARNED], tuple(paths.values()))
            hint = _Hint()
            nursery.start_soon(hint.listen, places, frozenset(os.path.basename(path) for path in paths.values()))
            while await trio.to_thread.run_sync(_places, paths[Level.LEARNED], tuple(paths.values())) == places:
                now = await trio.to_thread.run_sync(_look, paths)
                warn()
                if now != files.states:  # as they were when they were read, by whomever
                    await _settle(paths, files.states, now)
                    await _reload(keeper)
                    warn()
                await hint.wait()
            nursery.cancel_scope.cancel()


async def wait_until_taken_up(keeper: RuleKeeper) -> None:
    """Wait until what the files say now is in force, for no longer than that may take."""
    with trio.move_on_after(_POLL_S + _AT_MOST_S):
        while not await trio.to_thread.run_sync(keeper.is_up_to_date):
            await trio.sleep(_SETTLE_S / 2)


async def _settle(paths: Mapping[Level, bytes], before: FileStates, now: FileStates) -> None:
    """Wait until the files stay as they are ``now``, or some of them have not for a while.

    It counts looks, not time: while this process was not scheduled, others may have been.
    """
    same = 0
    for _ in range(round(_AT_MOST_S / _SETTLE_S)):
        is_gone = any(_is_gone(before[level], state) for level, state in now.items())
        await trio.sleep(_SETTLE_S)
        later = await trio.to_thread.run_sync(_look, paths)
        if later != now:
            now, same = later, 0
            continue
        same += 1
        if same >= round((_GONE_S if is_gone else _SETTLE_S) / _SETTLE_S):
            return


def _is_gone(before: FileState | None, now: FileState | None) -> bool:
    """Tell whether there is no file any more, or nothing in it any more."""
    return before is not None and (now is None or (now.is_empty and not before.is_empty))


def _look(paths: Mapping[Level, bytes]) -> FileStates:
    return {level: file_state(path) for level, path in paths.items()}


async def _reload(keeper: RuleKeeper) -> None:
    try:
        await trio.to_thread.run_sync(keeper.reload)
    except DaemonError:
        log.debug("the mount has ended")
    except Exception:
        log.exception("the rules could not be read again; those before stay in force")


class _Hint:
    """Tells that it may be worth to look, sooner than by polling."""

    def __init__(self) -> None:
        self._event = trio.Event()

    async def wait(self) -> None:
        """Wait for a hint, or until it is time to look without one."""
        with trio.move_on_after(_POLL_S):
            await self._event.wait()
        self._event = trio.Event()

    async def listen(self, places: Iterable[bytes], names: frozenset[bytes]) -> None:
        """Hear of changes of ``names`` in the directories ``places``, or of these places if they
        are files.
        """
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set_when_cancelled, stop)
            with contextlib.suppress(Exception):  # polling is enough: names that are not UTF-8, no more watches
                await self._listen(places, names, stop)
            nursery.cancel_scope.cancel()

    async def _listen(self, places: Iterable[bytes], names: frozenset[bytes], stop: trio.Event) -> None:
        from watchfiles import Change, awatch  # takes a while, for which nobody has to wait

        def is_ours(_: Change, path: str) -> bool:
            return os.path.basename(os.fsencode(path)) in names

        changes = awatch(
            *map(os.fsdecode, places),
            watch_filter=is_ours,
            step=_STEP_MS,
            debounce=2 * _STEP_MS,
            recursive=False,
            stop_event=stop,
            ignore_permission_denied=True,
        )
        async with contextlib.aclosing(changes):
            async for _ in changes:
                self._event.set()


async def _set_when_cancelled(stop: trio.Event) -> None:
    """End the thread of a watch as soon as the watch is cancelled, which waits for the thread."""
    try:
        await trio.sleep_forever()
    finally:
        stop.set()


def _places(learned: bytes, paths: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return what to watch: the files' directories, the nearest above where one is absent.

    Of the learned rules it is the file itself: the journal lies beside it, and each line of the
    journal would be a change.
    """
    places = []
    for path in paths:
        place = path if path == learned else os.path.dirname(path)
        while path != learned and not os.path.isdir(place):
            place = os.path.dirname(place)
        if os.path.exists(place):
            places.append(place)
    return tuple(dict.fromkeys(places))
