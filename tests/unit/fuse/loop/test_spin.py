"""How long is polled after a request, by what was learned from the ones before."""

from __future__ import annotations

from yolofs.fuse.loop.spin import Events, Spin

FOUND: Events = [(3, 1)]
LONGEST_S = 60e-6


class Device:
    """A clock, and a poll() that finds something ``gap_s`` after the last request; each look takes
    ``look_s``.
    """

    def __init__(self) -> None:
        self.now_s = 100.0
        self.next_s = float("inf")
        self.look_s = 1e-6
        self.looks = 0
        self.spin = Spin(LONGEST_S, lambda: self.now_s)

    def poll(self, timeout: float | None = None, /) -> Events:
        assert timeout == 0, "a spin must not block"
        self.looks += 1
        if self.now_s >= self.next_s:
            return FOUND
        self.now_s += self.look_s
        return []

    def after_request(self, gap_s: float) -> tuple[bool, float]:
        """Return whether the next request, ``gap_s`` later, was found by the spin, and how long
        that took.
        """
        start_s = self.now_s
        self.next_s = start_s + gap_s
        found = self.spin.poll(self.poll) == FOUND
        took_s = self.now_s - start_s
        self.now_s = max(self.now_s, self.next_s)
        return found, took_s


def test_a_request_that_is_there_already_costs_one_look() -> None:
    device = Device()
    assert device.after_request(0) == (True, 0)
    assert device.looks == 1


def test_requests_that_follow_soon_are_found() -> None:
    device = Device()
    assert all(device.after_request(20e-6)[0] for _ in range(1000))


def test_a_spin_is_about_as_long_as_the_gaps_ask_for() -> None:
    device = Device()
    for _ in range(100):
        assert device.after_request(5e-6)[0]
    found, took_s = device.after_request(1)
    assert not found
    assert 10e-6 <= took_s <= 40e-6


def test_no_spin_is_longer_than_allowed() -> None:
    device = Device()
    for _ in range(1000):
        found, took_s = device.after_request(1e-3)
        assert not found
        assert took_s <= LONGEST_S + 3 * device.look_s


def test_spins_become_rare_where_no_request_ever_follows() -> None:
    device = Device()
    spins = sum(device.after_request(1e-3)[1] > 2 * device.look_s for _ in range(1000))
    assert 10 <= spins <= 30


def test_spinning_begins_again_when_requests_follow_soon_again() -> None:
    device = Device()
    for _ in range(200):
        device.after_request(1e-3)
    found = [device.after_request(10e-6)[0] for _ in range(200)]
    assert all(found[100:])


def test_spinning_stops_when_others_want_the_cpu() -> None:
    device = Device()
    device.look_s = 1e-3  # somebody else used the CPU when it was offered
    found, took_s = device.after_request(50e-3)
    assert not found
    assert took_s < 3e-3
    device.now_s, device.look_s = 200.0, 1e-3
    device.after_request(0.1)
    device.now_s, device.look_s = 200.003, 1e-6
    looks = device.looks
    for _ in range(50):
        device.after_request(20e-6)
    assert device.looks == looks  # the poll that blocks is all, while no spin is tried
    device.now_s += 1
    assert [device.after_request(5e-6)[0] for _ in range(5)][-1]


def test_where_others_use_the_cpu_each_time_it_is_seldom_offered() -> None:
    device = Device()
    device.look_s = 1e-3
    begun_s = device.now_s
    tries = sum(device.after_request(20e-3)[1] > 0 for _ in range(1000))
    assert tries <= 15 + (device.now_s - begun_s) / 0.32
    device.look_s = 1e-6
    found = [device.after_request(20e-6)[0] for _ in range(50_000)]
    assert all(found[-1000:])
