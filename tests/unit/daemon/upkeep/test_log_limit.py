"""The log's own limit: what is written, and what is said of the rest."""

from __future__ import annotations

import io
import logging

import pytest

from tests.unit.fuse.loops import Clock
from yolofs.daemon.upkeep.log_limit import MOST_LINES, PERIOD_S, LogLimit


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def written(clock: Clock) -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(clock: Clock, written: io.StringIO) -> logging.Logger:
    handler = logging.StreamHandler(written)
    handler.addFilter(LogLimit(clock))
    log = logging.Logger("limited", logging.INFO)
    log.addHandler(handler)
    return log


def test_a_kind_of_line_is_written_a_few_times_in_a_period(log: logging.Logger, written: io.StringIO) -> None:
    for number in range(10 * MOST_LINES):
        log.warning("hung up on %d", number)
    assert written.getvalue().splitlines() == [f"hung up on {number}" for number in range(MOST_LINES)]


def test_a_message_of_another_kind_is_logged_when_one_has_reached_its_limit(
    log: logging.Logger, written: io.StringIO
) -> None:
    for _ in range(MOST_LINES + 1):
        log.warning("one")
    log.warning("another")
    assert written.getvalue().splitlines()[-1] == "another"


def test_the_first_line_of_the_next_period_says_how_many_were_left_out(
    log: logging.Logger, written: io.StringIO, clock: Clock
) -> None:
    for number in range(MOST_LINES + 7):
        log.warning("hung up on %d", number)
    clock.now_s += PERIOD_S
    log.warning("hung up on %d", 3)
    log.warning("hung up on %d", 4)
    lines = written.getvalue().splitlines()
    assert lines[MOST_LINES:] == ["hung up on 3 (and 7 such lines before it were left out)", "hung up on 4"]


def test_no_line_is_said_to_be_left_out_where_none_was(log: logging.Logger, written: io.StringIO, clock: Clock) -> None:
    for _ in range(3):
        for _ in range(MOST_LINES):
            log.warning("as many as may be")
        clock.now_s += PERIOD_S
    assert written.getvalue().splitlines() == ["as many as may be"] * (3 * MOST_LINES)
