"""A file that was seen to have no capability, list or setuid bit is not looked at again, and what
it gets later shows at once.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of, open_file
from tests.support.program import wait_until
from tests.support.required import do_without
from tests.unit.fuse.direct.kernel import kernel_of
from yolofs.fuse.direct.kernel_protocol import Opcode
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Owner
from yolofs.rules import PathRule, RuleSet, RuleState

pytestmark = pytest.mark.root_only  # who else cannot give a file capabilities

CAPABILITY, ACCESS, DEFAULT = b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default"
NOBODY = 0xFFFFFFFF
LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, who)
    for tag, rights, who in [(1, 7, NOBODY), (2, 7, 4711), (4, 5, NOBODY), (16, 7, NOBODY), (32, 1, NOBODY)]
)
VALUES = {CAPABILITY: struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0), ACCESS: LIST, DEFAULT: LIST}
OWNER = Owner(os.geteuid(), os.getegid(), 0o022)
NAMES = pytest.mark.parametrize("name", [CAPABILITY, ACCESS, DEFAULT], ids=["capability", "list", "default list"])

_reads: list[str] = []
_is_listening = False


def listen() -> list[str]:
    """Return a list that grows with the attributes that this process looks for on a disk."""
    global _is_listening
    if not _is_listening:
        sys.addaudithook(lambda event, arguments: _reads.append(event) if event == "os.getxattr" else None)
        _is_listening = True
    _reads.clear()
    return _reads


@pytest.fixture
def handlers(base: Path) -> Iterator[Handlers]:
    fill(base)
    with handlers_of(base) as found:
        yield found


def fill(base: Path) -> None:
    """Make a file and a directory, and do without where there can be no attributes."""
    (base / "d").mkdir()
    (base / "file").touch()
    (base / "file").chmod(0o751)
    try:
        for name, value in VALUES.items():
            os.setxattr(base / "d", name, value)
            os.removexattr(base / "d", name)
    except OSError as error:
        do_without(f"no attributes here: {error}")
    (base / "d").chmod(0o755)


def at(handlers: Handlers, name: bytes) -> int:
    """Return the number of what an attribute goes to."""
    attr = handlers.lookup(1, b"d" if name == DEFAULT else b"file").attr
    assert attr is not None
    return attr.number


def value(handlers: Handlers, number: int, name: bytes) -> bytes | None:
    """Return an attribute as the kernel is told, None if there is none."""
    if handlers.lacks_xattr(number, name):
        return None
    try:
        return handlers.getxattr(number, name)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return None


def has_none(handlers: Handlers, number: int, name: bytes) -> None:
    """Ask until it is known that there is no such attribute: once the file has been left alone for
    a while.
    """

    def is_known() -> bool:
        assert value(handlers, number, name) is None
        return handlers.lacks_xattr(number, name)

    wait_until(is_known, "it is known that there is none")


@NAMES
def test_what_the_host_sets_in_base_shows_at_once(handlers: Handlers, base: Path, name: bytes) -> None:
    number = at(handlers, name)
    path = base / ("d" if name == DEFAULT else "file")
    has_none(handlers, number, name)
    os.setxattr(path, name, VALUES[name])
    assert value(handlers, number, name) == VALUES[name]
    os.removexattr(path, name)
    assert value(handlers, number, name) is None


@NAMES
@pytest.mark.parametrize("is_staged", [False, True], ids=["base", "staged"])
def test_an_attribute_that_was_absent_shows_once_it_is_set(handlers: Handlers, name: bytes, *, is_staged: bool) -> None:
    number = at(handlers, name)
    if is_staged:
        handlers.setattr(number, 0o750, None, None, None, None, None)
    has_none(handlers, number, name)
    handlers.setxattr(number, name, VALUES[name])
    assert value(handlers, number, name) == VALUES[name]
    handlers.removexattr(number, name)
    assert value(handlers, number, name) is None


@NAMES
def test_what_base_has_a_staged_copy_has(handlers: Handlers, base: Path, name: bytes) -> None:
    os.setxattr(base / ("d" if name == DEFAULT else "file"), name, VALUES[name])
    number = at(handlers, name)
    handlers.setattr(number, None, None, None, None, 1, 1)
    assert value(handlers, number, name) == VALUES[name]
    others = set(VALUES) - {name, DEFAULT}
    assert [value(handlers, number, other) for other in others] == [None for _ in others]


def test_a_write_takes_a_capability_away_and_it_can_be_given_again(handlers: Handlers) -> None:
    number = at(handlers, CAPABILITY)
    handlers.setxattr(number, CAPABILITY, VALUES[CAPABILITY])
    handle = open_file(handlers, b"file", os.O_WRONLY)
    handlers.write(handle, 0, b"content")
    handlers.release(handle)
    assert value(handlers, number, CAPABILITY) is None
    handlers.setxattr(number, CAPABILITY, VALUES[CAPABILITY])
    assert value(handlers, number, CAPABILITY) == VALUES[CAPABILITY]


def test_bits_that_a_file_gets_after_a_write_go_with_the_next_one(handlers: Handlers) -> None:
    number = at(handlers, CAPABILITY)

    def after_write() -> int:
        handle = open_file(handlers, b"file", os.O_WRONLY)
        handlers.write(handle, 0, b"content")
        handlers.drop_setuid(handle)
        handlers.release(handle)
        attr = handlers.getattr(number).attr
        assert attr is not None
        return attr.mode & 0o7777

    assert [after_write(), after_write()] == [0o751] * 2
    handlers.setattr(number, 0o6751, None, None, None, None, None)
    assert [after_write(), after_write()] == [0o751] * 2


@pytest.mark.parametrize("by_host", [True, False], ids=["host", "view"])
def test_a_default_list_that_a_directory_gets_goes_to_what_is_made_next(
    handlers: Handlers, base: Path, *, by_host: bool
) -> None:
    directory = at(handlers, DEFAULT)

    def lists_of_new(name: bytes) -> bytes | None:
        opened, answer = handlers.create(directory, name, 0o666, os.O_WRONLY | os.O_EXCL, OWNER)
        handlers.release(opened.handle)
        assert answer.attr is not None
        return value(handlers, answer.attr.number, ACCESS)

    assert lists_of_new(b"one") is None
    has_none(handlers, directory, DEFAULT)
    if by_host:
        os.setxattr(base / "d", DEFAULT, LIST)
    else:
        handlers.setxattr(directory, DEFAULT, LIST)
    assert lists_of_new(b"two") is not None
    handlers.removexattr(directory, DEFAULT)
    assert lists_of_new(b"three") is None


@NAMES
def test_a_file_that_rules_hide_has_no_attribute_to_ask_for(handlers: Handlers, base: Path, name: bytes) -> None:
    number = at(handlers, name)
    has_none(handlers, number, name)
    path = os.fsencode(base / ("d" if name == DEFAULT else "file"))
    handlers.gate.book.replace(RuleSet((PathRule(path, RuleState.HIDDEN, "test"),)))
    for ask in (handlers.lacks_xattr, handlers.getxattr):
        with pytest.raises(OSError, check=lambda error: error.errno == errno.ENOENT):
            ask(number, name)


def test_the_kernel_is_told_of_a_new_file_without_a_look_at_it(base: Path) -> None:
    fill(base)
    with kernel_of(base, xattrs=True) as (kernel, handlers):
        kernel.begin(44, 0x73FFFFFB, more=0)
        head = struct.pack("=IIII", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o100666, 0o022, 0)
        _, created = kernel.ask(Opcode.CREATE, head + b"new\0")
        number = struct.unpack_from("=Q", created)[0]

        def ask(name: bytes) -> object:
            return kernel.ask(Opcode.GETXATTR, struct.pack("=II", 0, 0) + name + b"\0", number)

        reads = listen()
        assert [ask(name) for name in (CAPABILITY, ACCESS)] == [(errno.ENODATA, b"")] * 2
        assert not reads
        assert ask(b"user.any") == (errno.ENODATA, b"")
        assert reads
        assert handlers.lacks_xattr(number, CAPABILITY)
