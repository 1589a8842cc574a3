"""What commands show is judged as the rules say, and cheaply where many files lie in one
directory.
"""

from __future__ import annotations

from tests.support.core_in_python import core_in_python
from yolofs.cli.guard import RuleGuard
from yolofs.rules import NameRule, PathRule, RuleBook, RuleSet, RuleState, Verdict

RULES = RuleSet(
    (
        PathRule(b"/", RuleState.ALLOW, "test:1"),
        PathRule(b"/p/private", RuleState.HIDDEN, "test:2"),
        PathRule(b"/p/private/not", RuleState.READ_ONLY, "test:3"),
        PathRule(b"/p/closed", RuleState.DENY, "test:4"),
        NameRule(b".env", RuleState.HIDDEN, "test:5"),
    )
)
PATHS = [
    b"/", b"/p", b"/p/a", b"/p/.env", b"/p/.env/x", b"/p/private", b"/p/private/x", b"/p/private/not",
    b"/p/private/not/x", b"/p/closed", b"/p/closed/x", b"/.env", b"/private",
]  # fmt: skip


class CountingBook(RuleBook):
    """Counts how many steps from a directory to a name in it are taken."""

    steps = 0

    def below(self, above: Verdict, name: bytes) -> Verdict:
        self.steps += 1
        return super().below(above, name)

    def at(self, path: bytes) -> Verdict:
        self.steps += path.count(b"/")
        return super().at(path)


def test_a_guard_judges_as_the_rules_do() -> None:
    book, guard = RuleBook(RULES), RuleGuard(RuleBook(RULES))
    for path in (*PATHS, *reversed(PATHS)):
        verdict = book.at(path)
        assert guard.may_see(path) is not verdict.seems_absent, path
        assert guard.may_read(path) is (verdict.may_read and not verdict.seems_absent), path


@core_in_python
def test_each_of_many_files_takes_one_step() -> None:
    book = CountingBook(RULES)
    guard = RuleGuard(book)
    for number in range(1000):
        assert guard.may_see(b"/p/a/b/c/d/%d" % number)
    assert book.steps <= 1000 + 5
