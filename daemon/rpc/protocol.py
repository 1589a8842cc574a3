"""What goes over the control socket: JSON-RPC 2.0, one message a line, typed (see
``docs/reference/rpc.md``).

Paths and names of snapshots are bytes, which JSON has no way to say: they travel percent-encoded.
"""

import enum
from typing import Any, Literal

import msgspec

from yolofs import errors
from yolofs.errors import BusyFilesError, ConflictError, DaemonError, YolofsError
from yolofs.text.percent import quote_from_bytes, unquote_to_bytes

MAX_LINE_BYTES = 1 << 20
"""The longest message that either side takes."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
APPLICATION_ERROR = -32000
"""A YolofsError: ``data`` says which."""
NO_ROOM = -32001
"""Of a connection that had to make room for others: what was said last has not been carried out, so
try again.
"""


class LoanKind(enum.Enum):
    """What a command wants to do with the session that it is lent."""

    COMMIT = "commit"
    ABORT = "abort"
    GC = "gc"
    RESTORE = "restore"


# ---- messages


class RpcRequest(msgspec.Struct, frozen=True):
    """A call, or without ``id`` a notification, which gets no answer."""

    jsonrpc: Literal["2.0"]
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET


class ErrorData(msgspec.Struct, frozen=True):
    """What makes the same exception of an error again in the client."""

    kind: str
    """The name of the exception's class."""
    hint: str = ""
    exit_code: int = 1
    users: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Percent-encoded."""


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The error of an answer."""

    code: int
    message: str
    data: ErrorData | None = None


class RpcMessage(msgspec.Struct, frozen=True):
    """A message as the client reads it: ``result`` or ``error``, or a notification, which has a
    ``method``.
    """

    jsonrpc: Literal["2.0"]
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorObject | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")


def encode_result(request_id: int | str | None, result: msgspec.Struct) -> bytes:
    """Return the line that answers a call."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def encode_error(request_id: int | str | None, error: ErrorObject) -> bytes:
    """Return the line that refuses a call; ``request_id`` is None where none could be read."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}) + b"\n"


def encode_notification(method: str, params: msgspec.Struct) -> bytes:
    """Return a line that the daemon sends without being asked."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"


def encode_request(request_id: int, method: str, params: msgspec.Struct) -> bytes:
    """Return the line of a call."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"


# ---- methods


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a method that takes none."""


class Done(msgspec.Struct, frozen=True):
    """The result of a method that returns nothing."""


class Info(msgspec.Struct, frozen=True):
    """The result of ``info``, and what the daemon reports when it is ready."""

    pid: int
    version: str
    project: str
    root: str
    mountpoint: str
    generation: int
    started_ns: int
    """In nanoseconds since 1970."""
    warnings: tuple[str, ...] = ()
    """What the user should know about this mount."""
    session: str = ""
    """The session's directory, where it was when the daemon began."""


class SnapshotParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``snapshot``."""

    name: str = ""
    if_changed: bool = False


class SnapshotResult(msgspec.Struct, frozen=True):
    """The result of ``snapshot``: None if nothing had changed."""

    generation: int | None


class TravelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``travel``; ``target`` as a user names a generation."""

    target: str
    force: bool = False


class TravelResult(msgspec.Struct, frozen=True):
    """The result of ``travel``: the generation shown now, and the one that the travel started."""

    target: int
    generation: int


class LendParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``lend``: what the session is wanted for."""

    kind: LoanKind


class Lent(msgspec.Struct, frozen=True):
    """The result of ``lend``: the store inodes that somebody has open, None if they are too many to
    be told.
    """

    in_use: tuple[int, ...] | None = None


class WatchParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``watch``: whether somebody sees what is asked, and of which run alone (0:
    of all).

    ``answers_pings``: the client says ``here`` to each ``ping``; while it does not, nobody sees
    anything.
    """

    is_attended: bool = True
    run: int = 0
    answers_pings: bool = False


class StopParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ``stop``."""

    force: bool = False


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The one line that a daemon writes to whoever started it: ``ready`` or ``error``."""

    ready: Info | None = None
    error: ErrorObject | None = None


# ---- errors and bytes


def error_object(error: YolofsError) -> ErrorObject:
    """Return an error in the form in which it travels."""
    data = ErrorData(
        type(error).__name__,
        error.hint,
        error.exit_code,
        error.users if isinstance(error, BusyFilesError) else (),
        tuple(map(quote, error.paths)) if isinstance(error, ConflictError) else (),
    )
    return ErrorObject(APPLICATION_ERROR, error.message, data)


def error_from(answer: ErrorObject, log_hint: str = "") -> YolofsError:
    """Return the exception that an error stands for: of the same class, as far as this version
    knows it.

    ``log_hint``: where to see what the daemon does not tell.
    """
    data = answer.data
    if data is None:
        return DaemonError(f"the daemon refused: {answer.message}", hint=log_hint)
    kind: Any = getattr(errors, data.kind, None)
    if kind is BusyFilesError:
        return BusyFilesError(answer.message, users=data.users, hint=data.hint)
    if kind is ConflictError:
        return ConflictError(answer.message, paths=tuple(map(unquote, data.paths)), hint=data.hint)
    if isinstance(kind, type) and issubclass(kind, YolofsError):
        return kind(answer.message, hint=data.hint)
    return DaemonError(answer.message, hint=data.hint)


def quote(raw: bytes) -> str:
    """Return bytes percent-encoded; slashes stay."""
    return quote_from_bytes(raw)


def unquote(text: str) -> bytes:
    """Undo :func:`quote`."""
    return unquote_to_bytes(text)
