"""JSON-RPC 2.0 over a Unix socket, one message a line: connections, framing and errors; what methods do is elsewhere.

A connection's messages are handled one after the other; connections do not wait for each other.  Between answers
the server may send notifications.  A client that sends nonsense gets an error, one that does not read its answers or
sends no end of a line is hung up on.
"""

from __future__ import annotations

import array
import contextlib
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import trio

from yolofs.daemon import endpoint
from yolofs.daemon.backlog import Backlog, Notice
from yolofs.daemon.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorObject,
    Request,
    encode_error,
    encode_result,
    error_object,
)
from yolofs.errors import YolofsError

log = logging.getLogger("yolofs.daemon")

MAX_CONNECTIONS = 64
_SEND_TIMEOUT_S = 10.0
"""How long a client may take to read an answer."""
_ACCEPT_AGAIN_S = 0.1


class Result(NamedTuple):
    """What a method returns, and a descriptor that goes along."""

    value: msgspec.Struct
    fd: int | None = None
    """A copy reaches the client; this one stays the server's."""


class Method(NamedTuple):
    """A method that can be called."""

    params: type[msgspec.Struct]
    call: Callable[[Any], Awaitable[Result]]


class Connection:
    """The way to one client: one message at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.pid = endpoint.peer(stream.socket)[0]
        """The client's, 0 if it lives in another pid namespace."""
        self._stream = stream
        self._lock = trio.Lock()
        self._backlog = Backlog()
        self._has_news = trio.Event()

    def notify(self, notice: Notice) -> None:
        """Send a notification as soon as the client reads; never waits."""
        self._backlog.add(notice)
        self._has_news.set()

    async def send_notifications(self) -> None:
        """Send what there is to send, until cancelled or the client goes away; it may take its time to read."""
        try:
            while True:
                await self._has_news.wait()
                self._has_news = trio.Event()
                while (notice := self._backlog.take()) is not None:
                    async with self._lock:
                        await self._stream.send_all(notice.encode())
        except (ConnectionError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._stream.socket.close()

    async def send(self, data: bytes, fd: int | None = None) -> None:
        """Send a message, and a descriptor with it.

        Raises:
            trio.TooSlowError, trio.BrokenResourceError: the client does not read, or is gone.
        """
        with trio.fail_after(_SEND_TIMEOUT_S):
            async with self._lock:
                if fd is not None:
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
                    sent = await self._stream.socket.sendmsg([data], rights)
                    data = data[sent:]
                await self._stream.send_all(data)


Conversation = contextlib.AbstractAsyncContextManager[Mapping[str, Method]]
"""Entered when a client connects, left when it hangs up (or is hung up on): the methods it can call."""


class LineTooLongError(Exception):
    """A message does not end."""


class Server:
    """Serves clients.  ``converse`` is called for each and gives the methods that it may call."""

    def __init__(self, converse: Callable[[Connection], Conversation]) -> None:
        self._converse = converse
        self._free = trio.Semaphore(MAX_CONNECTIONS)
        self._busy_count = 0
        self._idle = trio.Event()
        self._idle.set()

    async def run(self, listener: socket.socket) -> None:
        """Take connections for ever; the socket listens already."""
        sock = trio.socket.from_stdlib_socket(listener)
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    client, _ = await sock.accept()
                except OSError as error:  # too many open files, for example
                    log.warning("cannot take a connection: %s", error)
                    await trio.sleep(_ACCEPT_AGAIN_S)
                    continue
                if self._admits(client):
                    nursery.start_soon(self._serve_client, trio.SocketStream(client))
                else:
                    client.close()

    async def drain(self) -> None:
        """Wait until no message is being worked on and every answer is sent."""
        while self._busy_count:
            await self._idle.wait()

    def _admits(self, client: trio.socket.SocketType) -> bool:
        pid, uid = endpoint.peer(client)
        if uid != os.getuid():
            log.warning("hung up on process %d of user %d, who does not own this session", pid, uid)
            return False
        try:
            self._free.acquire_nowait()
        except trio.WouldBlock:
            log.warning("hung up on process %d: there are %d connections already", pid, MAX_CONNECTIONS)
            return False
        return True

    async def _serve_client(self, stream: trio.SocketStream) -> None:
        connection = Connection(stream)
        try:
            async with stream, trio.open_nursery() as nursery:
                nursery.start_soon(connection.send_notifications)
                await self._talk(stream, connection)
                nursery.cancel_scope.cancel()
        finally:
            self._free.release()

    async def _talk(self, stream: trio.SocketStream, connection: Connection) -> None:
        try:
            async with self._converse(connection) as methods, contextlib.aclosing(_lines(stream)) as lines:
                try:
                    async for line in lines:
                        with self._at_work():
                            await _handle(connection, line, methods)
                except LineTooLongError:
                    message = f"a message is longer than {MAX_LINE_BYTES} bytes"
                    await connection.send(encode_error(None, ErrorObject(INVALID_REQUEST, message)))
        except (ConnectionError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            log.debug("a client went away")
        except Exception:
            log.exception("a conversation failed")

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        if not self._busy_count:
            self._idle = trio.Event()
        self._busy_count += 1
        try:
            yield
        finally:
            self._busy_count -= 1
            if not self._busy_count:
                self._idle.set()


async def _lines(stream: trio.SocketStream) -> AsyncGenerator[bytes, None]:
    pending = bytearray()
    async for chunk in stream:
        searched = len(pending)
        pending += chunk
        while (end := pending.find(b"\n", searched)) >= 0:
            line = bytes(pending[:end])
            del pending[: end + 1]
            searched = 0
            if len(line) > MAX_LINE_BYTES:
                raise LineTooLongError
            yield line
        if len(pending) > MAX_LINE_BYTES:
            raise LineTooLongError


async def _handle(connection: Connection, line: bytes, methods: Mapping[str, Method]) -> None:
    """Carry out one message and answer it."""
    if not line.strip():
        return
    request_id: int | str | msgspec.UnsetType | None = None
    outcome: Result | ErrorObject
    try:
        request = msgspec.json.decode(line, type=Request)
    except msgspec.ValidationError as error:
        request_id = _find_id(line)
        outcome = ErrorObject(INVALID_REQUEST, f"not a JSON-RPC 2.0 call: {error}")
    except msgspec.DecodeError as error:
        outcome = ErrorObject(PARSE_ERROR, f"not JSON: {error}")
    else:
        request_id = request.id
        outcome = await _call(request, methods)
    if isinstance(request_id, msgspec.UnsetType):
        return  # a notification
    if isinstance(outcome, ErrorObject):
        await connection.send(encode_error(request_id, outcome))
    else:
        await connection.send(encode_result(request_id, outcome.value), outcome.fd)


async def _call(request: Request, methods: Mapping[str, Method]) -> Result | ErrorObject:
    method = methods.get(request.method)
    if method is None:
        return ErrorObject(METHOD_NOT_FOUND, f"there is no method {request.method!r}")
    try:
        params = msgspec.json.decode(request.params, type=method.params)
    except msgspec.DecodeError as error:
        return ErrorObject(INVALID_PARAMS, f"{request.method}: {error}")
    try:
        return await method.call(params)
    except YolofsError as error:
        return error_object(error)
    except Exception:
        log.exception("%s failed", request.method)
        return ErrorObject(INTERNAL_ERROR, f"{request.method} failed; see .yolofs/daemon.log")


def _find_id(line: bytes) -> int | str | None:
    """Return the id of a message that is no valid request, None if even that cannot be told."""
    try:
        message = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None
