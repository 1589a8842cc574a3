"""Writers keep a travel from happening; a slow machine does not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from yolofs.daemon.blockers import Blockers
from yolofs.errors import BusyFilesError
from yolofs.system.mount_users import FileUse


class Overlay:
    """An overlay whose writers are given look by look; the last ones stay."""

    def __init__(self, *looks: list[int]) -> None:
        self._looks = list(looks)

    def writers(self) -> list[int]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def path(self, inode: int) -> bytes:
        raise FileNotFoundError(inode)


def waiting(monkeypatch: pytest.MonkeyPatch, overlay: Overlay, looking_takes_s: float) -> Blockers:
    now = 0.0

    def no_users(_: Blockers) -> list[FileUse]:
        nonlocal now
        now += looking_takes_s
        return []

    def call(function: Callable[[], Any]) -> Any:
        return function()

    monkeypatch.setattr(Blockers, "_users", no_users)
    clock = SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None)
    monkeypatch.setattr("yolofs.daemon.blockers.time", clock)
    return Blockers(cast("Any", overlay), cast("Any", overlay), b"/nowhere", call)


def test_a_close_that_arrives_while_processes_are_looked_at_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes: on a busy machine it may be longer than a close may take to
    arrive.
    """
    waiting(monkeypatch, Overlay([1], []), looking_takes_s=5.0).wait_for_writers()


def test_a_close_that_does_not_arrive_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BusyFilesError):
        waiting(monkeypatch, Overlay([1]), looking_takes_s=0.3).wait_for_writers()
