"""JSON-RPC 2.0 over a Unix socket, one message a line: connections, framing and errors; what methods do is elsewhere.

A connection's messages are handled one after the other; connections do not wait for each other.  A client that
sends nonsense gets an error, one that does not read its answers or sends no end of a line is hung up on.
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


Conversation = contextlib.AbstractAsyncContextManager[Mapping[str, Method]]
"""Entered when a client connects, left when it hangs up (or is hung up on): the methods it can call."""


class LineTooLongError(Exception):
    """A message does not end."""


class Server:
    """Serves clients.  ``converse`` is called for each and gives the methods that it may call."""

    def __init__(self, converse: Callable[[], Conversation]) -> None:
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
        try:
            async with stream, self._converse() as methods, contextlib.aclosing(_lines(stream)) as lines:
                try:
                    async for line in lines:
                        with self._at_work():
                            await _handle(stream, line, methods)
                except LineTooLongError:
                    message = f"a message is longer than {MAX_LINE_BYTES} bytes"
                    await _send(stream, encode_error(None, ErrorObject(INVALID_REQUEST, message)))
        except (ConnectionError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            log.debug("a client went away")
        except Exception:
            log.exception("a conversation failed")
        finally:
            self._free.release()

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


async def _handle(stream: trio.SocketStream, line: bytes, methods: Mapping[str, Method]) -> None:
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
        await _send(stream, encode_error(request_id, outcome))
    else:
        await _send(stream, encode_result(request_id, outcome.value), outcome.fd)


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


async def _send(stream: trio.SocketStream, data: bytes, fd: int | None = None) -> None:
    with trio.fail_after(_SEND_TIMEOUT_S):
        if fd is not None:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
            sent = await stream.socket.sendmsg([data], rights)
            data = data[sent:]
        await stream.send_all(data)
