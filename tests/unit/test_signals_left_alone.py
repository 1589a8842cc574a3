from __future__ import annotations

import signal

import pytest

from tests.support.signals import signals_left_alone


def test_a_signal_that_stays_ignored_is_found_and_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(AssertionError, match="other handlers"), signals_left_alone():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_stays_held_back_is_found_and_put_back() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(AssertionError, match="held back"), signals_left_alone():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_signals_that_are_put_back_are_left_alone() -> None:
    with signals_left_alone():
        before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, before)
