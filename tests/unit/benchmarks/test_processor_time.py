"""What the benchmarks count as a workload's processor time, and as its servers'."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from benchmarks.processor_time import Meter, Servers, of_process

BURNT_S = 0.1
SERVER = f"""
import time
for _ in iter(input, "end"):
    until_s = time.process_time() + {BURNT_S}
    while time.process_time() < until_s:
        pass
    print(flush=True)
"""


class _Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def work(self) -> None:
        """Take :data:`BURNT_S` seconds of processor time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("on", file=self._process.stdin, flush=True)
        self._process.stdout.readline()


@contextlib.contextmanager
def _server() -> Iterator[_Server]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield _Server(process)
        process.communicate("end\n")


def _burn() -> None:
    until_s = time.process_time() + BURNT_S
    while time.process_time() < until_s:
        pass


def test_what_is_done_aside_is_neither_the_workloads_nor_its_servers_time() -> None:
    with _server() as server:
        servers = Servers()
        servers.began(server.pid)
        meter = Meter(servers)
        with meter.aside():
            _burn()
            server.work()
        worked_s, served_s = meter.seconds()
        assert worked_s < BURNT_S / 2
        assert served_s < BURNT_S / 2
        _burn()
        server.work()
        worked_s, served_s = meter.seconds()
        assert BURNT_S <= worked_s < 1.5 * BURNT_S
        assert BURNT_S <= served_s < 1.5 * BURNT_S


def test_a_workload_that_nobody_serves_has_its_own_time_alone() -> None:
    meter = Meter(None)
    _burn()
    worked_s, served_s = meter.seconds()
    assert worked_s >= BURNT_S
    assert served_s == 0


def test_one_more_server_counts_for_as_long_as_it_serves_the_workload() -> None:
    with _server() as view, _server() as beside:
        servers = Servers()
        servers.began(view.pid)
        beside.work()  # before
        meter = Meter(servers)
        with servers.beside(beside.pid):
            beside.work()
            within_s = meter.seconds()[1]
        beside.work()  # after
        assert BURNT_S <= within_s <= meter.seconds()[1] < 1.5 * BURNT_S
        assert of_process(beside.pid) >= 3 * BURNT_S


def test_a_server_that_has_ended_still_counts() -> None:
    servers = Servers()
    with _server() as server:
        servers.began(server.pid)
        server.work()
        servers.ends()
    assert servers.seconds() >= BURNT_S


def test_a_failure_beside_is_told_as_it_is() -> None:
    servers = Servers()
    with _server() as server, pytest.raises(ZeroDivisionError), servers.beside(server.pid):
        _ = 1 / 0
    assert servers.seconds() == 0
