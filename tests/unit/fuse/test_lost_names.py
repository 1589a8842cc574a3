"""A thread that asks about a file with a name just lost waits, unless it took the name itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of
from yolofs.fuse.cache.lost_names import LostNames
from yolofs.fuse.handlers import Handlers
from yolofs.fuse.results import UncountedError
from yolofs.overlay.inodes import UNKNOWN_NUMBER

REMOVER, ANOTHER = 10, 11


@pytest.fixture
def handlers(base: Path) -> Iterator[Handlers]:
    (base / "one").write_text("linked")
    os.link(base / "one", base / "two")
    (base / "single").touch()
    with handlers_of(base) as found:
        found.lost_names.thread_of_request = lambda: REMOVER
        yield found


def number_of(handlers: Handlers, name: bytes) -> int:
    attr = handlers.lookup(1, name).attr
    assert attr is not None
    return attr.number


def remove_by_another(handlers: Handlers, name: bytes) -> None:
    handlers.unlink(1, name)
    handlers.lost_names.thread_of_request = lambda: ANOTHER


def test_another_thread_that_asks_about_a_file_that_lost_a_name_waits(handlers: Handlers) -> None:
    number = number_of(handlers, b"one")
    lookups = handlers.overlay.inodes.by_number[number].lookups
    remove_by_another(handlers, b"two")
    asking: list[Callable[[], object]] = [
        lambda: handlers.lookup(1, b"one"),
        lambda: handlers.getattr(number),
        lambda: handlers.setattr(number, 0o600, None, None, None, None, None),
        lambda: handlers.link(number, 1, b"three"),
    ]
    for ask in asking:
        with pytest.raises(UncountedError) as refused:
            ask()
        assert refused.value.inode.number == number
    assert handlers.overlay.inodes.by_number[number].lookups == lookups
    assert handlers.lookup(1, b"three").attr is None
    assert handlers.lookup(1, b"single").attr is not None


def test_a_listing_gives_a_file_that_lost_a_name_and_has_it_counted(handlers: Handlers) -> None:
    number = number_of(handlers, b"one")
    remove_by_another(handlers, b"two")
    seen: list[int] = []
    handlers.lost_names.on_seen = seen.append
    directory = handlers.directory(handlers.opendir(1), 0)
    attr = handlers.listed(directory, b"one").attr
    assert attr is not None
    assert attr.number == UNKNOWN_NUMBER
    assert seen == [number]


def test_the_thread_that_took_the_name_is_back_when_it_asks(handlers: Handlers) -> None:
    number = number_of(handlers, b"one")
    handlers.unlink(1, b"two")
    attr = handlers.getattr(number).attr
    assert attr is not None
    assert attr.nlink == 1
    handlers.lost_names.thread_of_request = lambda: ANOTHER
    assert handlers.getattr(number).attr is not None


def test_another_thread_waits_for_what_a_rename_replaces(handlers: Handlers) -> None:
    number = number_of(handlers, b"one")
    handlers.rename(1, b"single", 1, b"two", 0)
    handlers.lost_names.thread_of_request = lambda: ANOTHER
    with pytest.raises(UncountedError):
        handlers.getattr(number)


def test_nobody_waits_for_a_file_that_is_gone_or_that_nobody_knows(handlers: Handlers) -> None:
    number_of(handlers, b"single")
    handlers.unlink(1, b"single")
    handlers.unlink(1, b"two")
    assert not handlers.lost_names.uncounted


def test_a_lost_name_without_a_known_thread_stays_uncounted() -> None:
    lost = LostNames()
    lost.note(7, 1)
    assert lost.may_be_uncounted(7)


def test_only_the_last_64_lost_names_are_known() -> None:
    lost = LostNames()
    for number in range(1000):
        lost.note(number, 1)
    assert len(lost.uncounted) == 64
    assert lost.may_be_uncounted(999)
    assert not lost.may_be_uncounted(0)
