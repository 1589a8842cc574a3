"""What a client does while the daemon is at work on its call."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.protocol import NO_ROOM, ErrorObject, encode_error, encode_result
from yolofs.daemon.rpc.run_messages import BeginRunResult

WAIT_S = 20.0
BEGUN = BeginRunResult(7, 1, 0, "/socket")
REFUSED = encode_error(None, ErrorObject(NO_ROOM, "all connections are taken"))


class Server:
    """Answers one line on each connection, the first ones by a refusal."""

    def __init__(self, path: Path, refusals: int) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self._refusals = refusals
        self._socket = endpoint.bind(os.fsencode(path))
        self._socket.listen()
        self._socket.settimeout(WAIT_S)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        with self._socket:
            for number in range(self._refusals + 1):
                connection, _ = self._socket.accept()
                with connection:
                    _read_line(connection)
                    self.asked.set()
                    if number < self._refusals:
                        connection.sendall(REFUSED)
                    elif self.may_answer.wait(WAIT_S):
                        with contextlib.suppress(BrokenPipeError):  # a client that was stopped is gone
                            connection.sendall(encode_result(number + 1, BEGUN))


def _read_line(connection: socket.socket) -> None:
    connection.settimeout(WAIT_S)
    text = b""
    while not text.endswith(b"\n"):
        text += connection.recv(65536)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[int], tuple[Server, Client]]]:
    servers: list[Server] = []

    def serve(refusals: int) -> tuple[Server, Client]:
        servers.append(Server(tmp_path / "socket", refusals))
        return servers[-1], Client(os.fsencode(tmp_path / "socket"))

    yield serve
    for server in servers:
        server.may_answer.set()
        server.thread.join()


def begin_run(client: Client, meanwhile: Callable[[], None]) -> BeginRunResult:
    return client.begin_run([b"true"], b"/", snapshot=True, native=True, tmp="auto", home=b"/root", meanwhile=meanwhile)


def test_what_is_done_meanwhile_begins_when_the_daemon_has_been_asked_and_before_it_answers(
    serving: Callable[[int], tuple[Server, Client]],
) -> None:
    server, client = serving(0)
    seen: list[bool] = []

    def meanwhile() -> None:
        seen.append(server.asked.wait(WAIT_S))
        server.may_answer.set()

    with client:
        assert begin_run(client, meanwhile) == BEGUN
    assert seen == [True]


def test_what_is_done_meanwhile_is_done_once_though_the_daemon_is_asked_several_times(
    serving: Callable[[int], tuple[Server, Client]],
) -> None:
    server, client = serving(2)
    calls: list[None] = []
    server.may_answer.set()
    with client:
        assert begin_run(client, lambda: calls.append(None)) == BEGUN
    assert len(calls) == 1


def test_an_interrupt_of_what_is_done_meanwhile_ends_the_call(serving: Callable[[int], tuple[Server, Client]]) -> None:
    _, client = serving(0)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with client, pytest.raises(KeyboardInterrupt):
        begin_run(client, interrupted)
