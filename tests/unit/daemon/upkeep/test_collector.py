"""When the daemon looks for garbage everywhere."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from yolofs.daemon.upkeep.collector import LOOK_S, Collector


class Knot:
    """Garbage that only a look at cycles finds, once nobody else refers to it."""

    def __init__(self) -> None:
        self.itself = self


class Cpu:
    """How many seconds of a CPU were used."""

    def __init__(self) -> None:
        self.used_s = 0.0

    def __call__(self) -> float:
        return self.used_s


@pytest.fixture(autouse=True)
def few_objects() -> Iterator[None]:
    """Have Python look often, and pass over all that was there before, for good: it is nearly all
    there before tests are run, which no later look should take the time for.
    """
    threshold = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50, 5, 10)
    yield
    gc.set_threshold(*threshold)


@pytest.fixture
def cpu() -> Cpu:
    return Cpu()


@pytest.fixture
def collector(cpu: Cpu) -> Collector:
    collector = Collector(cpu)
    collector.disable_automatic_collection()
    return collector


def old_garbage() -> weakref.ref[Knot]:
    """Make garbage among the oldest objects, where Python looks last."""
    knot = Knot()
    gc.collect()
    return weakref.ref(knot)


def work(collections: int) -> list[list[None]]:
    """Make objects that stay, until Python has looked at younger ones so often."""
    kept: list[list[None]] = []
    young, middle, _ = gc.get_threshold()
    for _ in range(collections * (young + 1) * (middle + 1)):
        kept.append([])  # noqa: PERF401 - each is to be an object more
    return kept


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_busy_daemon_does_not_look_for_old_garbage(cpu: Cpu, is_begun: bool) -> None:
    if is_begun:
        Collector(cpu).disable_automatic_collection()
    garbage = old_garbage()
    kept = work(100)
    assert (garbage() is not None) is is_begun
    assert kept


def test_after_much_work_the_next_idle_look_collects(collector: Collector, cpu: Cpu) -> None:
    garbage = old_garbage()
    kept = work(100)
    cpu.used_s += LOOK_S / 10
    collector.look()
    assert garbage() is not None
    collector.look()
    assert garbage() is None
    assert kept


def test_an_idle_look_after_little_work_does_not_collect(collector: Collector) -> None:
    garbage = old_garbage()
    collector.look()
    assert garbage() is not None


def test_a_state_that_is_shown_no_more_goes_with_the_next_idle_look(collector: Collector, cpu: Cpu) -> None:
    garbage = old_garbage()
    collector.state_replaced()
    cpu.used_s += LOOK_S / 10
    collector.look()
    assert garbage() is not None
    collector.look()
    assert garbage() is None
    again = old_garbage()
    collector.look()
    assert again() is not None


def test_the_more_there_is_the_more_has_to_come_before_the_next_look(collector: Collector) -> None:
    kept = work(100)
    collector.state_replaced()
    collector.look()
    garbage = old_garbage()
    kept += work(12)
    collector.look()
    assert garbage() is not None
    kept += work(40)
    collector.look()
    assert garbage() is None


def test_a_process_that_is_never_idle_collects_after_some_time(collector: Collector, cpu: Cpu) -> None:
    for _ in range(2):
        garbage = old_garbage()
        collector.state_replaced()
        looks = 0
        while garbage() is not None:
            looks += 1
            cpu.used_s += LOOK_S
            collector.look()
        assert looks == 25
