"""When CPUs are kept awake, with a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yolofs.fuse.loop.idle_cpus import IdleCpus

DENSE_S = 100e-6
SPARSE_S = 2e-3


class Machine:
    """A clock, and a kernel that counts how often it was asked."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked = 0
        self.is_awake = False
        self.refuses = False
        self.idle_cpus = IdleCpus(self._hold, lambda: self.now)

    def _hold(self) -> Callable[[], None]:
        self.asked += 1
        if self.refuses:
            raise PermissionError
        self.is_awake = True
        return self._let_go

    def _let_go(self) -> None:
        self.is_awake = False

    def serve(self, count: int, gap_s: float, gap_awake_s: float | None = None) -> None:
        """Have requests come, each so long after the one before."""
        for _ in range(count):
            self.now += gap_awake_s if self.is_awake and gap_awake_s is not None else gap_s
            self.idle_cpus.count += 1
            if self.idle_cpus.count >= self.idle_cpus.window:
                self.idle_cpus.look()


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_requests_that_follow_each_other_closely_keep_it_awake(machine: Machine) -> None:
    machine.serve(31, DENSE_S)
    assert not machine.is_awake
    machine.serve(1, DENSE_S)
    assert machine.is_awake
    assert machine.idle_cpus.is_held
    machine.serve(1000, DENSE_S, DENSE_S / 4)
    assert machine.is_awake
    assert machine.asked == 1


def test_seldom_requests_do_not(machine: Machine) -> None:
    machine.serve(1000, SPARSE_S)
    assert machine.asked == 0


def test_it_ends_with_a_silence_and_when_requests_come_seldom(machine: Machine) -> None:
    machine.serve(100, DENSE_S, DENSE_S / 4)
    machine.idle_cpus.release()
    assert not machine.is_awake
    machine.idle_cpus.release()
    machine.serve(100, DENSE_S, DENSE_S / 4)
    assert machine.is_awake
    machine.serve(100, SPARSE_S)
    assert not machine.is_awake


def test_where_it_has_proved_worth_while_it_comes_sooner_and_is_not_tried_again(machine: Machine) -> None:
    machine.serve(200, DENSE_S, DENSE_S / 4)
    machine.idle_cpus.release()
    machine.serve(8, DENSE_S)
    assert machine.is_awake
    machine.serve(300, DENSE_S)  # no faster now: that is not looked at for a while
    assert machine.is_awake


def test_where_it_is_in_vain_it_is_tried_ever_more_seldom(machine: Machine) -> None:
    asked = []
    for _ in range(12):
        machine.serve(100_000, DENSE_S)  # 10 s
        assert not machine.is_awake
        asked.append(machine.asked)
        machine.asked = 0
    assert asked[0] >= 4
    assert sum(asked[-4:]) <= 3
    machine.serve(300_000, DENSE_S, DENSE_S / 2)
    assert machine.is_awake, "it would pay again, and is not tried"


def test_many_silences_hide_nothing(machine: Machine) -> None:
    held = 0
    for _ in range(1000):
        machine.serve(40, DENSE_S)
        held += machine.is_awake
        machine.idle_cpus.release()
    assert 6 <= held <= 100


def test_what_is_refused_is_not_asked_for_again(machine: Machine) -> None:
    machine.refuses = True
    machine.serve(10_000, DENSE_S)
    assert machine.asked == 1
    assert not machine.idle_cpus.is_held
