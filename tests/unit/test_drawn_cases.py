"""Of a test that is marked ``some`` a run tries so many cases."""

from __future__ import annotations

import pytest

from tests.support.fault_points import left_out
from tests.support.seed import VARIABLE


class Case(pytest.Item):
    """A case of a test, which nobody runs."""

    def runtest(self) -> None:
        """Do nothing."""


def cases(session: pytest.Session, test: str, count: int, some: int | None = None) -> list[pytest.Item]:
    made: list[pytest.Item] = [Case.from_parent(session, name=f"{test}[{number}]") for number in range(count)]
    for case in made if some is not None else ():
        case.add_marker(pytest.mark.some(some))
    return made


@pytest.fixture(autouse=True)
def day(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not run by night."""
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "ci")


def test_of_each_marked_test_as_many_cases_as_it_says_are_run(request: pytest.FixtureRequest) -> None:
    few, all_cases = cases(request.session, "few", 10, 3), cases(request.session, "all", 10)
    others = cases(request.session, "others", 4, 9)
    gone = left_out([*few, *all_cases, *others])
    assert len(gone) == 7
    assert set(gone) < set(few)


def test_a_seed_leaves_out_the_same_again_and_another_one_others(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = cases(request.session, "few", 10, 3)
    seen = set()
    for seed in range(20):
        monkeypatch.setenv(VARIABLE, str(seed))
        gone = left_out(few)
        assert left_out(few) == gone
        seen.add(frozenset(gone))
    assert len(seen) > 10
    assert frozenset.intersection(*seen) == frozenset()


def test_all_cases_are_tried_by_night(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "nightly")
    assert left_out(cases(request.session, "few", 10, 3)) == []
