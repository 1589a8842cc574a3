"""The server alone: framing, JSON-RPC errors and clients that misbehave; no mount."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from yolofs.daemon.rpc import admission, endpoint, server
from yolofs.daemon.rpc.backlog import News
from yolofs.daemon.rpc.protocol import MAX_LINE_BYTES, NO_ROOM, Done, NoParams, SnapshotParams, SnapshotResult
from yolofs.daemon.rpc.server import Connection, Method, Result, Server
from yolofs.errors import BusyFilesError, GenerationError


class Fake:
    """Methods that do nothing, or wait, or fail; counts conversations."""

    def __init__(self) -> None:
        self.open_count = 0
        self.connections: list[Connection] = []
        self.gate = trio.Event()

    @contextlib.asynccontextmanager
    async def converse(self, connection: Connection) -> AsyncIterator[Mapping[str, Method]]:
        self.open_count += 1
        self.connections.append(connection)
        yield {
            "info": Method(NoParams, self.info),
            "snapshot": Method(SnapshotParams, self.snapshot),
            "wait": Method(NoParams, self.wait),
            "busy": Method(NoParams, self.busy),
            "crash": Method(NoParams, self.crash),
            "fd": Method(NoParams, self.fd),
        }
        self.open_count -= 1

    async def info(self, _: NoParams) -> Result:
        return Result(Done())

    async def snapshot(self, params: SnapshotParams) -> Result:
        if params.name == "no":
            raise GenerationError("there is none", hint="yolofs timeline")
        return Result(SnapshotResult(7))

    async def wait(self, _: NoParams) -> Result:
        await self.gate.wait()
        return Result(Done())

    async def busy(self, _: NoParams) -> Result:
        raise BusyFilesError("busy", users=["1 sh /a"])

    async def crash(self, _: NoParams) -> Result:
        raise ZeroDivisionError

    async def fd(self, _: NoParams) -> Result:
        return Result(Done(), 0)


class Client:
    """The other end, which may say anything."""

    def __init__(self, path: bytes) -> None:
        self.stream = trio.SocketStream(trio.socket.from_stdlib_socket(_connect(path)))
        self._pending = b""

    async def say(self, raw: bytes) -> None:
        await self.stream.send_all(raw)

    async def answer(self) -> Any:
        while b"\n" not in self._pending:
            chunk = await self.stream.receive_some()
            assert chunk, "hung up"
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    async def call(self, message: object) -> Any:
        await self.say(json.dumps(message).encode() + b"\n")
        return await self.answer()

    async def is_hung_up(self) -> bool:
        with trio.fail_after(20):
            return not await self.stream.receive_some()


def _connect(path: bytes) -> socket.socket:
    sock = socket.socket(fileno=endpoint.connect(path, 5).detach())
    sock.setblocking(False)
    return sock


def serve(tmp_path: Path, talk: Callable[[Callable[[], Client], Fake, Server], Awaitable[None]]) -> None:
    """Run ``talk`` beside a server."""

    async def run() -> None:
        fake = Fake()
        served = Server(fake.converse)
        path = os.fsencode(tmp_path / "socket")
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(endpoint.bind(path))
            listener.listen()
            listener.setblocking(False)

            def connect() -> Client:
                client = Client(path)
                stack.callback(client.stream.socket.close)
                return client

            async with trio.open_nursery() as nursery:
                nursery.start_soon(served.run, listener)
                with trio.fail_after(60):
                    await talk(connect, fake, served)
                nursery.cancel_scope.cancel()

    trio.run(run)


def call(method: str, params: object = None, request_id: object = 1) -> dict[str, object]:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "id": request_id}
    return message if params is None else message | {"params": params}


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"hello", -32700, None),
        (b"[" * 5000, -32600, None),
        (b'{"jsonrpc":"2.0","method":"info","params":' + b"[" * 5000 + b"]" * 5000 + b',"id":5}', -32700, None),
        (b'{"jsonrpc":"2.0","method":7,"id":5,"x":' + b"[" * 5000 + b"]" * 5000 + b"}", -32600, None),
        (b"[]", -32600, None),
        (b"1", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","method":"info","id":5}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
        (b'{"jsonrpc":"2.0","method":7,"id":5}', -32600, 5),
        (b'{"jsonrpc":"2.0","method":"info","id":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","method":"nothing","id":5}', -32601, 5),
        (b'{"jsonrpc":"2.0","method":"info","params":[],"id":5}', -32602, 5),
        (b'{"jsonrpc":"2.0","method":"info","params":{"x":1},"id":5}', -32602, 5),
        (b'{"jsonrpc":"2.0","method":"snapshot","params":{"name":1},"id":5}', -32602, 5),
        (b'{"jsonrpc":"2.0","method":"crash","id":5}', -32603, 5),
    ],
)
def test_a_bad_message_gets_its_error_and_the_conversation_goes_on(
    tmp_path: Path, line: bytes, code: int, request_id: object
) -> None:
    async def talk(connect: Callable[[], Client], _fake: Fake, _server: Server) -> None:
        client = connect()
        await client.say(line + b"\n")
        answer = await client.answer()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == request_id
        assert answer["error"]["code"] == code
        assert "result" not in answer
        assert await client.call(call("info")) == {"jsonrpc": "2.0", "id": 1, "result": {}}

    serve(tmp_path, talk)


def test_what_is_nested_too_deep_to_be_read_gets_an_error_and_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(connect: Callable[[], Client], _fake: Fake, _server: Server) -> None:
        client = connect()
        for depth in range(500, sys.getrecursionlimit() + 10):
            params = b"[" * depth + b"]" * depth
            await client.say(b'{"jsonrpc":"2.0","method":"info","params":' + params + b',"id":5}\n')
            assert (await client.answer())["error"]["code"] in (-32602, -32700)

    serve(tmp_path, talk)
    assert not caplog.records


def test_messages_may_come_in_pieces_and_several_at_once(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], _fake: Fake, _server: Server) -> None:
        client = connect()
        raw = json.dumps(call("snapshot", {"name": "x"})).encode()
        for at in range(len(raw)):
            await client.say(raw[at : at + 1])
        await client.say(b"\n\n" + json.dumps(call("info", request_id="b")).encode() + b"\n")
        assert (await client.answer())["result"] == {"generation": 7}
        assert (await client.answer())["id"] == "b"

    serve(tmp_path, talk)


def test_a_notification_gets_no_answer(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], _fake: Fake, _server: Server) -> None:
        client = connect()
        await client.say(b'{"jsonrpc":"2.0","method":"info"}\n{"jsonrpc":"2.0","method":"nothing"}\n')
        assert (await client.call(call("info", request_id=9)))["id"] == 9

    serve(tmp_path, talk)


def test_a_users_error_travels_with_all_that_makes_it_again(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], _fake: Fake, _server: Server) -> None:
        client = connect()
        assert (await client.call(call("snapshot", {"name": "no"})))["error"] == {
            "code": -32000,
            "message": "there is none",
            "data": {"kind": "GenerationError", "hint": "yolofs timeline", "exit_code": 7, "users": [], "paths": []},
        }
        assert (await client.call(call("busy")))["error"]["data"]["users"] == ["1 sh /a"]

    serve(tmp_path, talk)


def test_a_line_without_end_is_refused_and_hung_up_on(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        client = connect()
        with contextlib.suppress(trio.BrokenResourceError):
            await client.say(b"x" * (MAX_LINE_BYTES + 2))
        assert (await client.answer())["error"]["code"] == -32600
        assert await client.is_hung_up()
        assert (await connect().call(call("info")))["result"] == {}

    serve(tmp_path, talk)


def test_a_client_that_waits_does_not_hold_up_others(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        slow, half, silent = connect(), connect(), connect()
        await slow.say(json.dumps(call("wait")).encode() + b"\n")
        await half.say(b'{"jsonrpc":')
        await trio.testing.wait_all_tasks_blocked()
        assert (await connect().call(call("info")))["result"] == {}
        fake.gate.set()
        assert (await slow.answer())["result"] == {}
        await served.drain()
        assert silent is not None

    serve(tmp_path, talk)


def test_a_conversation_ends_with_its_connection(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        client = connect()
        await client.call(call("info"))
        assert fake.open_count == 1
        await client.stream.aclose()
        with trio.fail_after(20):
            while fake.open_count:
                await trio.sleep(0.001)

    serve(tmp_path, talk)


def test_a_client_that_reads_no_answers_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SEND_TIMEOUT_S", 0.05)

    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        client = connect()
        request = json.dumps(call("info")).encode() + b"\n"
        with contextlib.suppress(trio.BrokenResourceError), trio.fail_after(60):
            while True:
                await client.say(request * 100)
        monkeypatch.undo()  # on a busy machine any answer may take that long
        assert (await connect().call(call("info")))["result"] == {}

    serve(tmp_path, talk)


def test_a_client_that_reads_no_notifications_hears_later_how_things_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(number: int, text: str) -> Callable[[], bytes]:
        return lambda: json.dumps({"number": number, "text": text.ljust(1000)}).encode() + b"\n"

    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        client = connect()
        await client.call(call("info"))
        (connection,) = fake.connections
        monkeypatch.setattr(server, "_SEND_TIMEOUT_S", 0.05)
        for number in range(20_000):
            connection.notify(News(number, False, line(number, "came")))
            connection.notify(News(number, True, line(number, "ended")))
            if not number % 100:
                await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(0.2)  # longer than an answer may take
        connection.notify(News(20_000, False, line(20_000, "waits")))
        heard = {}
        while 20_000 not in heard:
            message = await client.answer()
            heard[message["number"]] = message["text"].rstrip()
        assert set(heard.values()) == {"ended", "waits"}
        monkeypatch.undo()  # on a busy machine any answer may take that long
        assert (await client.call(call("info")))["result"] == {}

    serve(tmp_path, talk)


def test_where_all_are_at_work_another_connection_is_told_so_and_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "PEER_SHARE", 2)

    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        first, second = connect(), connect()
        for client in (first, second):
            await client.say(json.dumps(call("wait")).encode() + b"\n")
        await trio.testing.wait_all_tasks_blocked()
        third = connect()
        assert (await third.answer())["error"]["code"] == NO_ROOM
        assert await third.is_hung_up()
        fake.gate.set()
        assert (await first.answer())["result"] == (await second.answer())["result"] == {}
        assert (await connect().call(call("info")))["result"] == {}

    serve(tmp_path, talk)


def test_a_client_that_says_nothing_makes_room_for_another_and_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "PEER_SHARE", 2)

    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        silent, at_work = connect(), connect()
        await at_work.say(json.dumps(call("wait")).encode() + b"\n")
        await trio.testing.wait_all_tasks_blocked()
        assert (await connect().call(call("info")))["result"] == {}
        assert (await silent.answer())["error"]["code"] == NO_ROOM
        assert await silent.is_hung_up()
        fake.gate.set()
        assert (await at_work.answer())["result"] == {}

    serve(tmp_path, talk)


@pytest.mark.parametrize("share", [1, 16])
def test_a_connection_that_has_ended_leaves_no_garbage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    """A daemon at work looks for garbage every other minute, and may be connected to thousands of
    times a second.
    """
    monkeypatch.setattr(admission, "PEER_SHARE", share)

    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        for _ in range(3):
            await (client := connect()).call(call("info"))
            if share > 1:
                await client.stream.aclose()
        last = connect()
        await last.call(call("info"))
        guests = [weakref.ref(connection.guest) for connection in fake.connections[:3]]
        fake.connections.clear()
        with trio.fail_after(20):
            while any(guest() is not None for guest in guests):
                await trio.sleep(0.001)

    gc.disable()
    try:
        serve(tmp_path, talk)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "said", [b"", b'{"jsonrpc"', json.dumps({"jsonrpc": "2.0", "method": "info"}).encode() + b"\n{"]
)
def test_a_line_whose_end_does_not_come_in_time_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(server, "_LINE_TIMEOUT_S", 0.05)

    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        client = connect()
        if said:
            await client.say(said)
        assert await client.is_hung_up()

    serve(tmp_path, talk)


def test_a_client_may_be_silent_between_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        client = connect()
        await client.call(call("info"))
        monkeypatch.setattr(server, "_LINE_TIMEOUT_S", 0.01)
        await trio.sleep(0.2)  # longer than a line may take
        monkeypatch.undo()
        assert (await client.call(call("info")))["result"] == {}

    serve(tmp_path, talk)


def test_of_lines_without_end_only_so_much_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_PENDING_BYTES", MAX_LINE_BYTES)

    async def talk(connect: Callable[[], Client], fake: Fake, served: Server) -> None:
        most, less = connect(), connect()
        await less.say(b'{"jsonrpc":"2.0","method":"info","id":"' + b"i" * (MAX_LINE_BYTES // 4))
        with contextlib.suppress(trio.BrokenResourceError):
            await most.say(b"x" * (MAX_LINE_BYTES - 10))
        assert (await most.answer())["error"]["code"] == NO_ROOM
        await less.say(b'"}\n')
        assert "result" in await less.answer()

    serve(tmp_path, talk)


def test_another_user_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "peer", lambda sock: (1, os.getuid() + 1))

    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        assert await connect().is_hung_up()
        assert not fake.open_count

    serve(tmp_path, talk)


def test_a_descriptor_reaches_the_client(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        client = connect()
        await client.say(json.dumps(call("fd")).encode() + b"\n")
        data, ancillary, _, _ = await client.stream.socket.recvmsg(65536, socket.CMSG_LEN(4))
        assert json.loads(data)["result"] == {}
        ((level, kind, raw),) = ancillary
        assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        received = int.from_bytes(raw[:4], "little")
        assert os.path.sameopenfile(received, 0)
        os.close(received)

    serve(tmp_path, talk)


def test_the_largest_message_allowed_is_taken(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Client], fake: Fake, _server: Server) -> None:
        raw = msgspec.json.encode(call("snapshot", {"name": ""}))
        name = b"n" * (MAX_LINE_BYTES - len(raw))
        client = connect()
        await client.say(raw.replace(b'"name":""', b'"name":"%b"' % name) + b"\n")
        assert (await client.answer())["result"] == {"generation": 7}

    serve(tmp_path, talk)
