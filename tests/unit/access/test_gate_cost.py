"""The cost of a judgement, in steps: one comparison if no rule has changed, else a way upwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.core_in_python import core_in_python
from yolofs.access.gate import Gate
from yolofs.access.questions import Operation
from yolofs.access.refusals import RefusedError
from yolofs.overlay.inodes import Inode
from yolofs.rules import NameRule, PathRule, RuleBook, RuleIndex, RuleSet, RuleState, Verdict

FILES = 200

# The steps are the same, but nothing can be put below a compiled class to count them.
pytestmark = core_in_python


class CountingBook(RuleBook):
    """Counts how many steps from a directory to a name in it are taken."""

    steps = 0

    def below(self, above: Verdict, name: bytes) -> Verdict:
        self.steps += 1
        return super().below(above, name)


class Judged:
    """A view of a directory with many files, deep down, all known and judged."""

    def __init__(self, base: Path) -> None:
        directory = base / "a/b/c/d"
        directory.mkdir(parents=True)
        for number in range(FILES):
            (directory / f"{number}.txt").touch()
        self.rules = RuleSet((PathRule(os.fsencode(base), RuleState.READ_ONLY, "test:1"),))
        self.driver = CoreDriver(os.fsencode(base))
        self.book = CountingBook(self.rules)
        self.gate = Gate(self.driver.overlay, self.book)
        inode = self.driver.overlay.root
        for name in (b"a", b"b", b"c", b"d"):
            inode = self._look_up(inode, name)
        self.files = [self._look_up(inode, b"%d.txt" % number) for number in range(FILES)]
        for file in self.files:
            self.gate.check_open(file, os.O_RDONLY)
        self.book.steps = 0

    def _look_up(self, directory: Inode, name: bytes) -> Inode:
        found = self.driver.overlay.lookup(directory, name)
        assert found is not None
        return found[0]

    def change(self, *more: PathRule | NameRule) -> None:
        self.gate.replace_rules(RuleIndex(RuleSet((*more, *self.rules.rules))))


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Judged]:
    judged = Judged(tmp_path)
    yield judged
    judged.driver.close()


def test_a_judged_file_is_not_looked_for_in_the_rules_again(judged: Judged) -> None:
    for file in judged.files:
        judged.gate.check_stat(file)
        judged.gate.check_open(file, os.O_RDONLY)
    assert judged.book.steps == 0


def test_a_change_of_rules_judges_no_file_until_it_is_asked_for(judged: Judged) -> None:
    for number in range(10):
        judged.change(PathRule(b"/some/path%d" % number, RuleState.HIDDEN, "test:2"))
    assert judged.book.steps == 0


def test_after_a_change_each_file_costs_a_step_and_its_directories_once(judged: Judged) -> None:
    judged.change(NameRule(b"x", RuleState.DENY, "test:2"))
    judged.gate.check_open(judged.files[0], os.O_RDONLY)
    assert judged.book.steps == 5
    judged.gate.check_open(judged.files[1], os.O_RDONLY)
    assert judged.book.steps == 6
    for file in judged.files:
        judged.gate.check_open(file, os.O_RDONLY)
    assert judged.book.steps == 4 + FILES


def test_a_name_that_plainly_shows_is_looked_up_without_a_step(judged: Judged) -> None:
    judged.change(NameRule(b".env", RuleState.HIDDEN, "test:2"), NameRule(b"id_rsa", RuleState.DENY, "test:3"))
    directory = judged.files[0].parent
    assert directory is not None
    judged.gate.check_list(directory)
    judged.book.steps = 0
    for number in range(FILES):
        assert judged.gate.shows(directory, b"%d.txt" % number)
    assert judged.gate.shows(directory, b"id_rsa")
    assert judged.book.steps == 0
    assert not judged.gate.shows(directory, b".env")
    assert judged.book.steps == 1


def test_a_name_that_a_rule_for_a_path_is_about_costs_one_step(judged: Judged) -> None:
    directory = judged.files[0].parent
    assert directory is not None
    path = judged.driver.overlay.base.path(judged.driver.overlay.path(directory))
    hidden, opened = (
        PathRule(path + b"/hidden", RuleState.HIDDEN, "t:1"),
        PathRule(path + b"/way/in", RuleState.DENY, "t:2"),
    )
    judged.change(hidden, PathRule(path + b"/way", RuleState.HIDDEN, "t:3"), opened)
    judged.gate.check_list(directory)
    judged.book.steps = 0
    for _ in range(FILES):
        assert not judged.gate.shows(directory, b"hidden")
        assert judged.gate.shows(directory, b"way")
    assert judged.book.steps == 2


def test_a_directory_that_moves_keeps_the_verdicts_in_it_unless_other_rules_hold_there(judged: Judged) -> None:
    judged.driver.rename(b"a/b/c", b"a/c")
    judged.book.steps = 0
    for file in judged.files:
        judged.gate.check_open(file, os.O_RDONLY)
    assert judged.book.steps == 0


def test_the_names_of_a_file_with_hard_links_are_looked_for_once_a_second(tmp_path: Path) -> None:
    for name in ("a/one", "guarded/two"):
        (tmp_path / name).parent.mkdir()
    (tmp_path / "a/one").touch()
    (tmp_path / "guarded/two").hardlink_to(tmp_path / "a/one")
    here, guarded = os.fsencode(tmp_path), os.fsencode(tmp_path / "guarded")
    rules = RuleSet((PathRule(here, RuleState.ALLOW, "t:1"), PathRule(guarded, RuleState.DENY, "t:2")))
    driver, now_s = CoreDriver(here), [100.0]
    try:
        gate = Gate(driver.overlay, RuleBook(rules), clock=lambda: now_s[0])
        inode = driver.overlay.root
        for step in (b"a", b"one"):
            found = driver.overlay.lookup(inode, step)
            assert found is not None
            inode = found[0]
        with pytest.raises(RefusedError):
            gate.check_change(inode, Operation.WRITE)
        (tmp_path / "guarded/two").unlink()
        now_s[0] += 0.9
        with pytest.raises(RefusedError):
            gate.check_change(inode, Operation.WRITE)
        now_s[0] += 0.2
        gate.check_change(inode, Operation.WRITE)
    finally:
        driver.close()
