"""Has the kernel keep idle CPUs awake while requests follow each other closely, where it permits
that (to root).

Client and daemon take turns: one CPU works and the other waits.  In a virtual machine an idle CPU
gives itself back to the host, and to wake it costs several times the request: of the 80 µs of an
open and a close it was 60.  What the kernel has for that is a bound on how long waking a CPU may
take, in force while the file that it was written to is open: PM QoS,
``Documentation/power/pm_qos_interface.rst``.  Idle CPUs poll meanwhile, which costs current, and
others the half of a core that they share with such a CPU.  So it is asked for while requests are
dense, let go after two milliseconds without one, and tried ever more seldom where it does not make
requests faster.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable
from typing import Final

SILENCE_MS: Final = 2
"""So long without a request the CPUs are kept awake."""
_DEVICE = "/dev/cpu_dma_latency"
_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
_GUEST_DRIVER = "haltpoll"
"""Of a virtual machine: it has one idle state, which claims to take 1 µs."""
_MAX_GUEST_CPUS = 16
"""So many may poll at most."""
_SHALLOW_US = 10
"""On real hardware: this leaves the idle states that cost next to nothing."""

_WINDOW = 32
"""So many requests are timed together ..."""
_SHORT_WINDOW = 8
"""... and so many where it is held, or has proved worth while."""
_DENSE_S = 500e-6
"""The mean time from request to request up to which it is tried."""
_WORTH = 0.85
"""Requests have to take this part of the time before, or less ..."""
_TRIAL = 128
"""... the mean of so many, as what they want differs from one to the next."""
_PROVEN_S = 5.0
"""So long it is not tried again, but taken for worth while."""
_BACK_OFF_S = (0.1, 20.0)
"""So long it is left alone after it was in vain, first and at most."""


class IdleCpus:
    """Decides when CPUs are kept awake.  To be told of each request by counting :attr:`count` up.

    ``hold`` asks the kernel and returns what lets go of it again; ``clock`` counts seconds.
    """

    __slots__ = (
        "_back_off_s",
        "_before",
        "_clock",
        "_hold",
        "_let_go",
        "_not_before",
        "_proven_until",
        "_since",
        "_trial",
        "count",
        "window",
    )

    def __init__(self, hold: Callable[[], Callable[[], None]], clock: Callable[[], float]) -> None:
        self._hold = hold
        self._clock = clock
        self._let_go: Callable[[], None] | None = None
        self._since = clock()
        self._before = _Mean()
        self._trial = _Mean()
        self._proven_until = 0.0
        self._not_before = 0.0
        self._back_off_s = _BACK_OFF_S[0]
        self.count = 0
        """Requests since the last :meth:`look`."""
        self.window = _WINDOW
        """So many of them make a look due."""

    @property
    def is_held(self) -> bool:
        """Whether CPUs are kept awake now."""
        return self._let_go is not None

    def look(self) -> None:
        """Judge by the requests since the last look whether CPUs are to be kept awake."""
        now, count = self._clock(), self.count
        took_s = now - self._since
        self._since, self.count = now, 0
        is_dense = took_s <= _DENSE_S * count
        if self._let_go is None:
            if is_dense and now >= self._not_before:
                if now >= self._proven_until:
                    self._before.add(took_s, count)
                self._begin()
        elif not is_dense:
            self.release()
        elif self._before.count:
            self._trial.add(took_s, count)
            if self._trial.count >= _TRIAL:
                self._judge(now)

    def release(self) -> None:
        """Let idle CPUs sleep; does nothing if they may."""
        now = self._clock()
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
            self.window = _SHORT_WINDOW if now < self._proven_until else _WINDOW
        self.count = 0
        self._since = now

    def _begin(self) -> None:
        try:
            self._let_go = self._hold()
        except OSError:
            self._not_before = float("inf")
        else:
            self.window = _SHORT_WINDOW

    def _judge(self, now: float) -> None:
        """Compare how long requests took with how long they took before."""
        if self._trial.value_s <= self._before.value_s * _WORTH:
            self._proven_until = now + _PROVEN_S
            self._back_off_s = _BACK_OFF_S[0]
        else:
            self._not_before = now + self._back_off_s
            self._back_off_s = min(2 * self._back_off_s, _BACK_OFF_S[1])
            self.release()
        self._before, self._trial = _Mean(), _Mean()


class _Mean:
    """How long requests took, from one to the next."""

    __slots__ = ("_sum_s", "count")

    def __init__(self) -> None:
        self._sum_s = 0.0
        self.count = 0

    def add(self, took_s: float, count: int) -> None:
        self._sum_s += took_s
        self.count += count

    @property
    def value_s(self) -> float:
        return self._sum_s / max(self.count, 1)


def idle_cpus_to_keep_awake(clock: Callable[[], float]) -> IdleCpus | None:
    """Return what keeps this machine's CPUs awake; None if that is not permitted, or would do more
    harm than good.
    """
    latency_us = _bearable_us()
    if latency_us is None or not os.access(_DEVICE, os.W_OK):
        return None
    return IdleCpus(lambda: _hold(latency_us), clock)


def _bearable_us() -> int | None:
    """Return how long waking a CPU may take."""
    driver = ""
    with contextlib.suppress(OSError), open(_DRIVER, encoding="ascii") as file:
        driver = file.read().strip()
    if driver in ("", "none"):  # then nobody asks how long it may take
        return None
    if driver != _GUEST_DRIVER:
        return _SHALLOW_US
    return 0 if (os.cpu_count() or 1) <= _MAX_GUEST_CPUS else None


def _hold(latency_us: int) -> Callable[[], None]:
    fd = os.open(_DEVICE, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, struct.pack("=i", latency_us))
    except BaseException:
        os.close(fd)
        raise
    return lambda: os.close(fd)
