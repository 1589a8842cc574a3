"""Errors and bytes survive the way over the socket."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from yolofs import errors
from yolofs.daemon.rpc.protocol import ErrorObject, error_from, error_object, quote, unquote
from yolofs.errors import BusyFilesError, ConflictError, DaemonError, YolofsError

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, YolofsError)]


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_comes_out_as_the_same_class_with_the_same_words(cls: type[YolofsError]) -> None:
    error = error_from(error_object(cls("what happened", hint="what to do")))
    assert type(error) is cls
    assert (error.message, error.hint, error.exit_code) == ("what happened", "what to do", cls.exit_code)


def test_the_processes_and_the_paths_come_along() -> None:
    busy = error_from(error_object(BusyFilesError("busy", users=["1 sh /a"])))
    assert isinstance(busy, BusyFilesError)
    assert busy.users == ("1 sh /a",)
    conflict = error_from(error_object(ConflictError("conflict", paths=[b"a/\xff b", b"c"])))
    assert isinstance(conflict, ConflictError)
    assert conflict.paths == (b"a/\xff b", b"c")


def test_an_error_survives_json() -> None:
    sent = error_object(BusyFilesError("busy", users=["1 sh /ä"], hint="h"))
    assert msgspec.json.decode(msgspec.json.encode(sent), type=ErrorObject) == sent


@pytest.mark.parametrize("kind", ["NoSuchError", "Sequence", "__name__", ""])
def test_a_class_that_this_version_does_not_know_becomes_a_daemon_error(kind: str) -> None:
    raw = {"code": -32000, "message": "m", "data": {"kind": kind}}
    error = error_from(msgspec.convert(raw, ErrorObject))
    assert type(error) is DaemonError
    assert error.message == "m"


def test_every_byte_survives_quoting() -> None:
    raw = bytes(range(256))
    assert quote(raw).isascii()
    assert unquote(quote(raw)) == raw
