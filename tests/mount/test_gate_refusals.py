"""What is noted of each refusal: the path, the rule and what was to be done, once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gate_tools import EXCHANGE, Answers, Mounter, at, book, path_rule, renameat2
from yolofs.access.questions import Operation, Question
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount

Which = tuple[str, RuleState]
DENY: Which = ("secret", RuleState.DENY)
FIXED: Which = ("fixed", RuleState.READ_ONLY)
BELOW: Which = ("project/.git/hooks", RuleState.READ_ONLY)
GONE: Which = ("gone", RuleState.HIDDEN)


def opened(path: str, flags: int) -> None:
    os.close(os.open(path, flags))


# Each: what is done at the root of the view; the path, the operation and the rule that are noted.
CASES: dict[str, tuple[Callable[[str], object], str, Operation, Which]] = {
    "read": (lambda at: opened(at + "secret/f", os.O_RDONLY), "secret/f", Operation.READ, DENY),
    "read and write": (lambda at: opened(at + "secret/f", os.O_RDWR), "secret/f", Operation.WRITE, DENY),
    "create there": (lambda at: opened(at + "fixed/f", os.O_WRONLY | os.O_CREAT), "fixed/f", Operation.WRITE, FIXED),
    "create": (lambda at: opened(at + "fixed/new", os.O_WRONLY | os.O_CREAT), "fixed/new", Operation.CREATE, FIXED),
    "create hidden": (lambda at: opened(at + "gone", os.O_WRONLY | os.O_CREAT), "gone", Operation.CREATE, GONE),
    "truncate": (lambda at: os.truncate(at + "fixed/f", 0), "fixed/f", Operation.WRITE, FIXED),
    "list": (lambda at: os.listdir(at + "secret"), "secret", Operation.LIST, DENY),
    "mkdir": (lambda at: os.mkdir(at + "secret/d"), "secret/d", Operation.CREATE, DENY),
    "symlink": (lambda at: os.symlink("x", at + "secret/l"), "secret/l", Operation.CREATE, DENY),
    "mknod": (lambda at: os.mkfifo(at + "secret/p"), "secret/p", Operation.CREATE, DENY),
    "unlink": (lambda at: os.unlink(at + "secret/f"), "secret/f", Operation.DELETE, DENY),
    "rmdir": (lambda at: os.rmdir(at + "fixed/d"), "fixed/d", Operation.DELETE, FIXED),
    "chmod": (lambda at: os.chmod(at + "fixed/f", 0), "fixed/f", Operation.METADATA, FIXED),
    "utime": (lambda at: os.utime(at + "fixed/f"), "fixed/f", Operation.METADATA, FIXED),
    "rename from": (lambda at: os.rename(at + "fixed/f", at + "f"), "fixed/f", Operation.RENAME, FIXED),
    "rename to": (lambda at: os.rename(at + "free", at + "fixed/f"), "fixed/f", Operation.RENAME, FIXED),
    "rename hidden": (lambda at: os.rename(at + "free", at + "gone"), "gone", Operation.RENAME, GONE),
    "rename both": (lambda at: os.rename(at + "secret/f", at + "fixed/f"), "secret/f", Operation.RENAME, DENY),
    "exchange": (lambda at: renameat2(at + "free", at + "fixed/f", EXCHANGE), "fixed/f", Operation.RENAME, FIXED),
    "link from": (lambda at: os.link(at + "fixed/f", at + "f"), "fixed/f", Operation.LINK, FIXED),
    "link to": (lambda at: os.link(at + "free", at + "secret/l"), "secret/l", Operation.LINK, DENY),
    "link hidden": (lambda at: os.link(at + "free", at + "gone"), "gone", Operation.LINK, GONE),
    "away from below": (lambda at: os.rename(at + "project", at + "p"), "project", Operation.RENAME, BELOW),
    "a link above": (lambda at: os.symlink("d", at + "project/.git"), "project/.git", Operation.CREATE, BELOW),
    "remove above": (lambda at: os.rmdir(at + "project"), "project", Operation.DELETE, BELOW),
}


@pytest.mark.parametrize("case", CASES)
def test_each_refusal_is_noted_once(base: Path, mounted: Mounter, case: str) -> None:
    for directory in ("secret", "fixed/d", "project"):
        (base / directory).mkdir(parents=True)
    for file in ("secret/f", "fixed/f", "free"):
        (base / file).write_text("x")
    rules = {which: path_rule(base, *which) for which in (DENY, FIXED, BELOW, GONE)}
    view = mounted(book=book(base, *rules.values()), asker=(answers := Answers()))
    act, path, operation, which = CASES[case]
    for _ in range(2):
        answers.refusals.clear()
        with pytest.raises(PermissionError):
            act(at(view, ""))
        noted = [(one.path, one.operation, one.state, one.rule) for one in answers.refusals]
        assert noted == [(os.fsencode(base / path), operation, which[1], rules[which])]
    assert answers.asked == []


def test_an_access_that_was_asked_and_denied_is_not_noted_as_a_refusal(base: Path, mounted: Mounter) -> None:
    (base / "f").write_text("x" * 7)
    rule = path_rule(base, "f", RuleState.ASK)
    view = mounted(book=book(base, rule), asker=(answers := Answers()))
    with pytest.raises(PermissionError):
        opened(at(view, "f"), os.O_WRONLY)
    assert answers.asked == [Question(rule.path, Operation.WRITE, RuleState.ASK, rule, 7)]
    assert answers.refusals == []


def test_fifos_sockets_and_devices_that_the_kernel_opens_reach_nothing_outside(base: Path, mounted: Mounter) -> None:
    """Fifos, sockets and devices are opened without asking us: they are others than base has, or
    cannot be opened.
    """
    for name in ("fifo", "gone"):
        os.mkfifo(base / name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.fsencode(base / "socket"))
    listener.listen()
    outside = os.open(base / "fifo", os.O_RDWR)
    os.write(outside, b"secret")
    rules = [path_rule(base, name, RuleState.DENY) for name in ("fifo", "socket")]
    view = mounted(book=book(base, *rules, path_rule(base, "gone", RuleState.HIDDEN)), asker=Answers())
    inside = os.open(at(view, "fifo"), os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(inside, 100) == b""
    with pytest.raises(ConnectionRefusedError), socket.socket(socket.AF_UNIX) as client:
        client.connect(at(view, "socket"))
    with pytest.raises(FileNotFoundError):
        os.open(at(view, "gone"), os.O_RDONLY | os.O_NONBLOCK)
    for fd in (inside, outside, listener.detach()):
        os.close(fd)
