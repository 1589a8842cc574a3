"""What the gate lets the handlers answer, request by request: in orders and states that a mount
seldom gets into.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.gate_tools import EXCHANGE, path_rule, refused, rule_set
from tests.support.plain_handlers import handlers_of
from yolofs.access.refusals import UndecidedError
from yolofs.fuse.handlers import Handlers
from yolofs.overlay.inodes import ROOT_NUMBER
from yolofs.rules import RuleIndex, RuleState, SuffixRule


@pytest.fixture
def handlers(base: Path) -> Iterator[Handlers]:
    with handlers_of(base) as handlers:
        yield handlers


def look_up(handlers: Handlers, path: str) -> int:
    """Look a path up, as the kernel does, and return the number of what is there."""
    number = ROOT_NUMBER
    for name in path.split("/"):
        attr = handlers.lookup(number, os.fsencode(name)).attr
        assert attr is not None
        number = attr.number
    return number


def test_a_name_whose_directory_is_forgotten_is_none_of_the_files_names_any_more(
    base: Path, handlers: Handlers
) -> None:
    """It would be taken for one at the top."""
    for name in ("d/f", "e/f"):
        (base / name).parent.mkdir()
    (base / "d/f").write_text("x")
    (base / "e/f").hardlink_to(base / "d/f")
    handlers.gate.book.replace(rule_set(base, path_rule(base, "f", RuleState.DENY)))
    directory = look_up(handlers, "d")
    look_up(handlers, "d/f")
    number = look_up(handlers, "e/f")
    handlers.forget([(number, 1), (directory, 2)])
    handlers.release(handlers.open(number, os.O_RDONLY).handle)


def test_nothing_is_told_of_what_is_held_and_hidden_by_now(base: Path, handlers: Handlers) -> None:
    (base / "file").write_text("x")
    (base / "link").symlink_to("target")
    (base / "directory").mkdir()
    rules = {name: path_rule(base, name, RuleState.HIDDEN) for name in ("file", "link", "directory")}
    numbers = {name: look_up(handlers, name) for name in rules}
    handlers.gate.book.replace(rule_set(base, *rules.values()))
    looks = {
        "file": (
            handlers.getattr,
            handlers.listxattr,
            lambda number: handlers.getxattr(number, b"security.capability"),
            lambda number: handlers.getxattr(number, b"user.note"),
            lambda number: handlers.open(number, os.O_RDONLY),
        ),
        "link": (handlers.getattr, handlers.readlink),
        "directory": (handlers.getattr, handlers.opendir),
    }
    for name, some in looks.items():
        for look in some:
            with refused(errno.ENOENT):
                look(numbers[name])


def test_a_name_that_base_has_is_judged_though_the_view_has_removed_it(base: Path, handlers: Handlers) -> None:
    """A commit of the other name alone would change the file that base has there."""
    for name in ("open", "gone"):
        (base / name).mkdir()
    (base / "open/f").write_text("kept")
    (base / "gone/f").hardlink_to(base / "open/f")
    handlers.unlink(look_up(handlers, "gone"), b"f")
    handlers.gate.book.replace(rule_set(base, path_rule(base, "gone", RuleState.READ_ONLY)))
    with refused():
        handlers.open(look_up(handlers, "open/f"), os.O_WRONLY)


def test_a_listing_is_not_told_again_under_other_rules(base: Path, handlers: Handlers) -> None:
    for file in ("a", "b"):
        (base / file).touch()
    handlers.gate.book.replace(rule_set(base))
    handle = handlers.opendir(ROOT_NUMBER)
    opened = handlers.directory(handle, 0)
    for offset, name in enumerate(opened.names):
        answer = handlers.listed(opened, name) if offset > 1 else handlers.dot(opened, name)
        handlers.note_told(opened, offset, name, answer, SimpleNamespace())
    handlers.gate.book.replace(rule_set(base, path_rule(base, "a", RuleState.HIDDEN)))
    for again in (handle, handlers.opendir(ROOT_NUMBER)):
        opened = handlers.directory(again, 0)
        assert not opened.was_told
        assert sorted(opened.names) == [b".", b"..", b"b"]
        handlers.releasedir(again)


def test_what_gets_hidden_while_a_directory_is_listed_is_left_out_of_the_rest(base: Path, handlers: Handlers) -> None:
    for file in ("a", "b"):
        (base / file).touch()
    handlers.gate.book.replace(rule_set(base))
    handle = handlers.opendir(ROOT_NUMBER)
    assert sorted(handlers.directory(handle, 0).names) == [b".", b"..", b"a", b"b"]
    handlers.gate.book.replace(rule_set(base, path_rule(base, "b", RuleState.HIDDEN)))
    opened = handlers.directory(handle, 3)
    assert [handlers.listed(opened, name).attr is None for name in (b"a", b"b")] == [False, True]
    handlers.releasedir(handle)


def test_what_is_above_a_held_directory_is_told_only_if_it_shows(base: Path, handlers: Handlers) -> None:
    """The holder of a file handle asks for ``..``."""
    (base / "hidden/way").mkdir(parents=True)
    number = look_up(handlers, "hidden/way")
    assert handlers.lookup(number, b"..").attr is not None
    handlers.gate.book.replace(rule_set(base, path_rule(base, "hidden", RuleState.HIDDEN)))
    for name in (b".", b".."):
        with refused(errno.ENOENT):
            handlers.lookup(number, name)


@pytest.mark.parametrize("is_there", [False, True])
def test_whether_anything_hidden_is_there_no_rename_tells(base: Path, handlers: Handlers, is_there: bool) -> None:
    """The kernel may know a name that has just been hidden."""
    (base / "file").touch()
    (base / "directory").mkdir()
    if is_there:
        (base / "hidden").mkdir()
    pattern = SuffixRule(b".x", RuleState.DENY, "test:2", os.fsencode(base / "hidden"))
    rules = (path_rule(base, "hidden", RuleState.HIDDEN), path_rule(base, "free/rule", RuleState.READ_ONLY), pattern)
    handlers.gate.book.replace(rule_set(base, *rules))
    renames = ((b"hidden", b"free", 0), (b"hidden", b"file", EXCHANGE), (b"file", b"hidden", EXCHANGE))
    for old, new, flags in (*renames, (b"directory", b"hidden", EXCHANGE)):
        with refused(errno.ENOENT):
            handlers.rename(ROOT_NUMBER, old, ROOT_NUMBER, new, flags)


def test_a_file_is_looked_at_if_any_of_its_names_shows(base: Path, handlers: Handlers) -> None:
    (base / "shown").write_text("x" * 77)
    (base / "hidden").hardlink_to(base / "shown")
    number = look_up(handlers, "shown")
    assert look_up(handlers, "hidden") == number  # by this name it was last seen
    handlers.gate.book.replace(rule_set(base, path_rule(base, "hidden", RuleState.HIDDEN)))
    answer = handlers.getattr(number)
    assert answer.attr is not None
    assert answer.attr.size == 77
    handlers.gate.book.replace(
        rule_set(base, *(path_rule(base, name, RuleState.HIDDEN) for name in ("hidden", "shown")))
    )
    with refused(errno.ENOENT):
        handlers.getattr(number)


@pytest.mark.skipif(os.getuid() != 0, reason="trusted attributes are root's")
def test_trusted_attributes_of_a_denied_file_cannot_be_read(base: Path, handlers: Handlers) -> None:
    (base / "file").touch()
    os.setxattr(base / "file", "trusted.note", b"secret")
    handlers.gate.book.replace(rule_set(base))
    number = look_up(handlers, "file")
    assert handlers.getxattr(number, b"trusted.note") == b"secret"
    handlers.gate.book.replace(rule_set(base, path_rule(base, "file", RuleState.DENY)))
    with refused():
        handlers.getxattr(number, b"trusted.note")


def test_a_permission_to_read_is_none_to_write(base: Path, handlers: Handlers) -> None:
    (base / "file").touch()
    handlers.gate.book.replace(rule_set(base, rule := path_rule(base, "file", RuleState.ASK)))
    number = look_up(handlers, "file")
    with handlers.gate.granting(frozenset([(rule.path, False)])):
        handlers.release(handlers.open(number, os.O_RDONLY).handle)
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
            with pytest.raises(UndecidedError):
                handlers.open(number, flags)


def test_a_handle_for_writing_is_good_for_sizes_and_times_only(base: Path, handlers: Handlers) -> None:
    (base / "file").touch()
    number = look_up(handlers, "file")
    opened = handlers.open(number, os.O_WRONLY)
    handlers.gate.book.replace(rule_set(base, path_rule(base, "file", RuleState.READ_ONLY)))
    handlers.setattr(number, None, None, None, 7, 1, 1, is_open=True)
    for mode, uid, gid in ((0o777, None, None), (None, os.getuid(), None), (None, None, os.getgid())):
        with refused():
            handlers.setattr(number, mode, uid, gid, None, None, None, is_open=True)
    handlers.release(opened.handle)


def test_only_so_many_hidden_names_may_be_kept_and_each_is_forgotten_with_other_rules(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolofs.access.absent_names.MOST", 3)
    (base / "d").mkdir()
    now_s = [0.0]
    with handlers_of(base, clock=lambda: now_s[0]) as handlers:
        gate = handlers.gate
        hides = rule_set(base, SuffixRule(b".key", RuleState.HIDDEN, "test:1"))
        gate.book.replace(hides)
        directory = look_up(handlers, "d")

        def kept(*numbers: int) -> list[bool]:
            answers = [handlers.lookup(directory, b"%d.key" % number) for number in numbers]
            assert all(answer.attr is None for answer in answers)
            return [answer.name_timeout_s > 0 for answer in answers]

        assert kept(1, 2, 3, 4, 1, 2) == [True, True, True, False, True, True]
        now_s[0] = 1.5  # the kernel asks for all of them anew
        assert kept(4, 1) == [True, True]
        told = {name for number, name in gate.replace_rules(RuleIndex(hides))().entries if number == directory}
        assert {b"4.key", b"1.key"} <= told
        assert gate.replace_rules(RuleIndex(hides))().entries == []
        assert kept(5, 6, 7, 8) == [True, True, True, False]
