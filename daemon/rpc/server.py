"""JSON-RPC 2.0 over a Unix socket, one message a line: connections, framing and errors; what
methods do is elsewhere.

A connection's messages are handled one after the other; connections do not wait for each other.
Between answers the server may send notifications.  A client that sends nonsense gets an error.  The
server hangs up on one that does not read its answers, or does not end a line in time.
:mod:`yolofs.daemon.rpc.admission` decides which others have to make room when many come.
"""

from __future__ import annotations

import array
import contextlib
import logging
import math
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import trio

from yolofs.daemon.rpc import endpoint
from yolofs.daemon.rpc.admission import Admission, Guest, Lasting
from yolofs.daemon.rpc.backlog import Backlog, News
from yolofs.daemon.rpc.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    METHOD_NOT_FOUND,
    NO_ROOM,
    PARSE_ERROR,
    ErrorObject,
    RpcRequest,
    encode_error,
    encode_result,
    error_object,
)
from yolofs.errors import YolofsError

log = logging.getLogger("yolofs.daemon")

_SEND_TIMEOUT_S = 10.0
"""How long a client may take to read an answer."""
_LINE_TIMEOUT_S = 10.0
"""How long a client may take for its first line, and for any line once it has begun."""
_MAX_PENDING_BYTES = 16 * MAX_LINE_BYTES
"""How much of lines that are not whole is kept, of all clients together."""
BACKLOG = 1024
"""How many may wait to be taken in, for listen(2): connect(2) waits where there are more."""
_AT_A_TIME = 16
_BETWEEN_S = 0.005
"""This many are accepted at a time; then those that are connected get this long."""
_ACCEPT_AGAIN_S = 0.1


_NOT_DECODED = msgspec.DecodeError, RecursionError
"""What is wrong with a message: it is not JSON, not of the form that is wanted, or nested too deep.
"""
_NO_ROOM = encode_error(None, ErrorObject(NO_ROOM, "too many others want to connect"))


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

    def __init__(self, stream: trio.SocketStream, guest: Guest, admission: Admission) -> None:
        self.pid = guest.peer
        """The client's, 0 if it lives in another pid namespace."""
        self.guest = guest
        self._admission = admission
        self._stream = stream
        self._lock = trio.Lock()
        self._backlog = Backlog()
        self._has_news = trio.Event()

    def begin_lasting(self, what: Lasting) -> None:
        """Note that something lasts on this connection: it is not hung up on when others want to
        connect.

        Raises:
            DaemonError: that many do so already.
        """
        self._admission.begin_lasting(self.guest, what)

    def end_lasting(self, what: Lasting) -> None:
        """Note that it does not last any more."""
        self.guest.lasting.discard(what)

    def notify(self, notice: News) -> None:
        """Send a notification as soon as the client reads; never waits."""
        self._backlog.add(notice)
        self._has_news.set()

    async def send_notifications(self) -> None:
        """Send what there is to send, until cancelled or the client goes away; it may take its time
        to read.
        """
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
        self.guest.is_answered, self.guest.active_s = True, trio.current_time()
        with trio.fail_after(_SEND_TIMEOUT_S):
            async with self._lock:
                if fd is not None:
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
                    sent = await self._stream.socket.sendmsg([data], rights)
                    data = data[sent:]
                await self._stream.send_all(data)
        self.guest.is_answered = False


Conversation = contextlib.AbstractAsyncContextManager[Mapping[str, Method]]
"""Entered when a client connects, left when it hangs up (or is hung up on): the methods it can
call.
"""


class LineTooLongError(Exception):
    """A message does not end."""


class Server:
    """Serves clients.  ``converse`` is called for each and gives the methods that it may call."""

    def __init__(
        self, converse: Callable[[Connection], Conversation], group_of: Callable[[int], Hashable] = lambda pid: pid
    ) -> None:
        """``group_of`` tells of a process with which others it is held to account."""
        self._converse = converse
        self._group_of = group_of
        self._admission = Admission(trio.current_time)
        self._busy_count = 0
        self._idle = trio.Event()
        self._idle.set()

    async def run(self, listener: socket.socket) -> None:
        """Take connections for ever; the socket listens already, and does not block."""
        async with trio.open_nursery() as nursery:
            while True:
                await trio.lowlevel.wait_readable(listener)
                try:
                    for _ in range(_AT_A_TIME):
                        self._take(listener.accept()[0], nursery)
                    await trio.sleep(_BETWEEN_S)
                except BlockingIOError:
                    continue
                except OSError as error:  # too many open files, for example
                    log.warning("cannot take a connection: %s", error)
                    await trio.sleep(_ACCEPT_AGAIN_S)

    async def drain(self) -> None:
        """Wait until no message is being worked on and every answer is sent."""
        while self._busy_count:
            await self._idle.wait()

    def _take(self, client: socket.socket, nursery: trio.Nursery) -> None:
        """Have a client served, or hang up."""
        pid, uid = endpoint.peer(client)
        if uid != os.getuid():
            log.warning("hung up on process %d of user %d, who does not own this session", pid, uid)
            client.close()
            return
        client.setblocking(False)
        scope = trio.CancelScope()

        def hang_up() -> None:
            log.warning("hung up on process %d: it held a connection that others need", pid)
            if not guest.is_answered:  # else it could be in the middle of a message
                _say_no_room(client)
            scope.cancel()

        guest = Guest(pid, self._group_of(pid), trio.current_time(), hang_up)
        if not self._admission.admit(guest):
            log.warning("hung up on process %d: all connections are at work", pid)
            guest.hang_up = _nothing
            _say_no_room(client)
            client.close()
            return
        nursery.start_soon(self._serve_client, trio.socket.from_stdlib_socket(client), guest, scope)

    async def _serve_client(self, client: trio.socket.SocketType, guest: Guest, scope: trio.CancelScope) -> None:
        stream = trio.SocketStream(client)
        connection = Connection(stream, guest, self._admission)
        try:
            with scope:
                async with stream, trio.open_nursery() as nursery:
                    nursery.start_soon(connection.send_notifications)
                    await self._talk(stream, connection)
                    nursery.cancel_scope.cancel()
        finally:
            self._admission.leave(guest)
            guest.hang_up = _nothing  # the function refers to the guest, so the two would be garbage in a cycle

    async def _talk(self, stream: trio.SocketStream, connection: Connection) -> None:
        try:
            async with (
                self._converse(connection) as methods,
                contextlib.aclosing(self._lines(stream, connection)) as lines,
            ):
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

    async def _lines(self, stream: trio.SocketStream, connection: Connection) -> AsyncGenerator[bytes, None]:
        """Yield what a client says line by line.

        Raises:
            LineTooLongError: a line has no end.
            trio.TooSlowError: its end does not come in time.
        """
        guest = connection.guest
        pending = bytearray()
        deadline_s = trio.current_time() + _LINE_TIMEOUT_S
        while chunk := await _receive(stream, deadline_s):
            searched = len(pending)
            pending += chunk
            if not searched and guest.has_spoken:
                deadline_s = trio.current_time() + _LINE_TIMEOUT_S
            while (end := pending.find(b"\n", searched)) >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                searched = 0
                if len(line) > MAX_LINE_BYTES:
                    raise LineTooLongError
                guest.has_spoken, guest.active_s = True, trio.current_time()
                guest.pending_bytes = len(pending)
                yield line
                deadline_s = trio.current_time() + _LINE_TIMEOUT_S
            if len(pending) > MAX_LINE_BYTES:
                raise LineTooLongError
            guest.pending_bytes = len(pending)
            if guest.has_spoken and not pending:
                deadline_s = math.inf  # it may take its time until it says something else
            else:
                self._admission.check_pending(_MAX_PENDING_BYTES)

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


def _nothing() -> None:
    """Do nothing."""


def _say_no_room(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.send(_NO_ROOM)


async def _receive(stream: trio.SocketStream, deadline_s: float) -> bytes | bytearray:
    """Return what comes next, nothing at the end.

    Raises:
        trio.TooSlowError: nothing has come at the deadline.
    """
    with trio.fail_at(deadline_s):
        return await stream.receive_some()


async def _handle(connection: Connection, line: bytes, methods: Mapping[str, Method]) -> None:
    """Carry out one message and answer it."""
    if not line.strip():
        return
    request_id: int | str | msgspec.UnsetType | None = None
    outcome: Result | ErrorObject
    try:
        request = msgspec.json.decode(line, type=RpcRequest)
    except msgspec.ValidationError as error:
        request_id = _find_id(line)
        outcome = ErrorObject(INVALID_REQUEST, f"not a JSON-RPC 2.0 call: {error}")
    except _NOT_DECODED as error:
        outcome = ErrorObject(PARSE_ERROR, f"not JSON: {error}")
    else:
        request_id = request.id
        connection.guest.is_at_work = True
        try:
            outcome = await _call(request, methods)
        finally:
            connection.guest.is_at_work = False
    if isinstance(request_id, msgspec.UnsetType):
        return  # a notification
    if isinstance(outcome, ErrorObject):
        await connection.send(encode_error(request_id, outcome))
    else:
        await connection.send(encode_result(request_id, outcome.value), outcome.fd)


async def _call(request: RpcRequest, methods: Mapping[str, Method]) -> Result | ErrorObject:
    method = methods.get(request.method)
    if method is None:
        return ErrorObject(METHOD_NOT_FOUND, f"there is no method {request.method!r}")
    try:
        params = msgspec.json.decode(request.params, type=method.params)
    except _NOT_DECODED as error:
        return ErrorObject(INVALID_PARAMS, f"{request.method}: {error}")
    try:
        return await method.call(params)
    except YolofsError as error:
        return error_object(error)
    except Exception:
        log.exception("%s failed", request.method)
        return ErrorObject(INTERNAL_ERROR, f"{request.method} failed")


def _find_id(line: bytes) -> int | str | None:
    """Return the id of a message that is no valid request, None if even that cannot be told."""
    try:
        message = msgspec.json.decode(line)
    except _NOT_DECODED:
        return None
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None
