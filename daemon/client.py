"""The commands' end of the control socket: plain blocking calls."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import Self, TypeVar

import msgspec

from yolofs.daemon import endpoint
from yolofs.daemon.files import read_daemon_file, socket_path
from yolofs.daemon.protocol import (
    MAX_LINE_BYTES,
    Answer,
    Done,
    Info,
    LendParams,
    LoanKind,
    NoParams,
    SnapshotParams,
    SnapshotResult,
    StopParams,
    TravelParams,
    TravelResult,
    encode_request,
    error_from,
    quote,
)
from yolofs.errors import DaemonError, YolofsError
from yolofs.paths import Generation

R = TypeVar("R", bound=msgspec.Struct)

_CONNECT_TIMEOUT_S = 3.0
_TIMEOUT_S = 120.0
"""How long an answer may take; a flush of gigabytes takes long."""
_FORCE_TIMEOUT_S = 20.0
"""The same for a forced stop, after which the daemon is killed."""
_EXIT_TIMEOUT_S = 10.0
_HANGS_HINT = "yolofs unmount --force"


class Client:
    """A connection to a living daemon; use :meth:`connect`, and :meth:`close` or ``with``."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._pending = bytearray()
        self._last_id = 0
        self._received_fds: list[int] = []
        self.pid = endpoint.peer(sock)[0]
        """The daemon's, 0 if it lives in another pid namespace."""

    @classmethod
    def connect(cls, directory: bytes) -> Self | None:
        """Connect to the daemon of the session in ``directory`` (its ``.yolofs``); None if there is none."""
        described = read_daemon_file(directory)
        if described is None:
            return None
        try:
            return cls(endpoint.connect(socket_path(described), _CONNECT_TIMEOUT_S))
        except TimeoutError:
            raise DaemonError(f"the daemon, process {described.pid}, takes no connection", hint=_HANGS_HINT) from None
        except OSError:
            return None

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
        for fd in self._received_fds:
            os.close(fd)
        self._received_fds = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- methods

    def info(self) -> Info:
        """Return what the daemon is."""
        return self._call("info", NoParams(), Info, timeout_s=_CONNECT_TIMEOUT_S)

    def flush(self) -> None:
        """Have the kernel hand over what it holds back of writes: then the journal and the store are true."""
        self._call("flush", NoParams(), Done)

    def snapshot(self, name: bytes, *, if_changed: bool) -> Generation | None:
        """Snapshot; None if nothing had changed and ``if_changed``."""
        generation = self._call("snapshot", SnapshotParams(quote(name), if_changed), SnapshotResult).generation
        return Generation(generation) if generation is not None else None

    def travel(self, text: str, *, force: bool) -> tuple[Generation, Generation]:
        """Travel; return the generation shown and the one started.

        Raises:
            BusyFilesError, GenerationError: as :meth:`yolofs.daemon.host.Host.travel`.
        """
        result = self._call("travel", TravelParams(quote(os.fsencode(text)), force), TravelResult)
        return Generation(result.target), Generation(result.generation)

    @contextlib.contextmanager
    def lend(self, kind: LoanKind) -> Iterator[None]:
        """Borrow the session for the time of the block: no request is served meanwhile, and its lock is ours too."""
        self._call("lend", LendParams(kind), Done)
        try:
            yield
        except BaseException:
            with contextlib.suppress(YolofsError):  # the first error is the one to tell
                self._call("return", NoParams(), Done)
            raise
        self._call("return", NoParams(), Done)

    def stop(self, *, force: bool) -> None:
        """End the daemon; on return the mount and the process are gone, and the session's lock is free.

        Raises:
            BusyFilesError: processes are inside the mount, and ``force`` is not given.
        """
        with _pidfd(self.pid) as pidfd:
            self._call("stop", StopParams(force), Done, timeout_s=_FORCE_TIMEOUT_S if force else _TIMEOUT_S)
            self._wait_for_exit(pidfd)

    def kill(self) -> None:
        """Kill a daemon that hangs.  Nothing is lost by it, but the dead mount has to be taken away."""
        with _pidfd(self.pid) as pidfd:
            if pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                self._wait_for_exit(pidfd)

    def _wait_for_exit(self, pidfd: int | None) -> None:
        if pidfd is not None:
            waiting = select.poll()
            waiting.register(pidfd, select.POLLIN)
            if not waiting.poll(_EXIT_TIMEOUT_S * 1000):
                raise DaemonError(f"the daemon, process {self.pid}, does not end", hint=f"kill -9 {self.pid}")

    # ---- messages

    def _call(self, method: str, params: msgspec.Struct, result: type[R], *, timeout_s: float = _TIMEOUT_S) -> R:
        self._last_id += 1
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(encode_request(self._last_id, method, params))
            answer = msgspec.json.decode(self._read_line(), type=Answer)
            if answer.error is not None:
                raise error_from(answer.error)
            return msgspec.json.decode(answer.result, type=result)
        except TimeoutError:
            message = f"the daemon, process {self.pid}, has not answered for {timeout_s:.0f} seconds"
            raise DaemonError(message, hint=_HANGS_HINT) from None
        except OSError as error:
            raise DaemonError(f"the daemon has hung up: {error.strerror}", hint="see .yolofs/daemon.log") from error
        except msgspec.DecodeError as error:
            raise DaemonError(f"the daemon's answer makes no sense: {error}", hint="yolofs unmount") from error

    def _read_line(self) -> bytes:
        while (end := self._pending.find(b"\n")) < 0:
            if len(self._pending) > MAX_LINE_BYTES:
                raise DaemonError("the daemon's answer does not end")
            chunk, fds, _, _ = socket.recv_fds(self._socket, 65536, 1)
            self._received_fds += fds
            if not chunk:
                raise DaemonError("the daemon has hung up", hint="see .yolofs/daemon.log")
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    """Give a descriptor that stands for exactly this process, None if it is gone or not in sight."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)
