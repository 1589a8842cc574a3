"""Which commits are kept, and that telling it costs the same with any number of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.counted import opened
from yolofs.config.settings import KeepCommits
from yolofs.registry.identity import identity_of
from yolofs.registry.seal import SealedBase, Sealer
from yolofs.session.history.retention import surplus

DAY_NS = 86_400 * 10**9
NOW_NS = 10_000 * DAY_NS
MIB = 1 << 20
ALL = KeepCommits(count=1_000_000, days=100_000, gib=1_000_000)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    (tmp_path / "session").mkdir(mode=0o700)
    return tmp_path / "session"


def archive(session: Path, *numbers: int, days: float = 0, mib: int = 0, end: str = "done") -> None:
    """Make commits that began so many days ago, and keep so much of what base had."""
    sealer = Sealer.open(bytes(session), make=True)
    root = bytes(session.parent)
    for number in numbers:
        commit = session / f"commits/{number}"
        (commit / "replaced").mkdir(parents=True)
        began_ns = NOW_NS - int(days * DAY_NS)
        sealed = sealer.sealed(number, SealedBase(root, identity_of(root)), b"plan", None, began_ns)
        (commit / "seal").write_bytes(sealed)
        (commit / "journal").write_bytes(b"")
        if mib:
            (commit / "replaced/1").write_bytes(b"x" * (mib * MIB))
        if end == "done":
            (commit / "done").write_bytes(sealer.end(sealed, 1))
        elif end == "given-up":
            (commit / "given-up").write_bytes(sealer.given_up(number))


def gone(session: Path, count: int = 1_000_000, days: float = 100_000, gib: float = 1_000_000) -> list[int]:
    return [one.number for one in surplus(bytes(session), KeepCommits(count, days, gib), NOW_NS)]


def test_in_a_session_without_commits_none_is_removed(session: Path) -> None:
    assert gone(session, 1, 0, 0) == []


def test_as_many_commits_are_kept_as_the_count_says(session: Path) -> None:
    archive(session, 1, 2, 5, 12)
    assert [gone(session, count=count) for count in (1, 2, 3, 4, 5)] == [[1, 2, 5], [1, 2], [1], [], []]


def test_commits_are_kept_for_as_many_days_as_the_setting_says(session: Path) -> None:
    archive(session, 1, days=9)
    archive(session, 2, days=6)
    archive(session, 3, days=3)
    assert [gone(session, days=days) for days in (10, 9, 8, 6, 5, 0)] == [[], [], [1], [1], [1, 2], [1, 2]]


def test_commits_are_kept_up_to_the_size_that_is_set(session: Path) -> None:
    archive(session, 1, 2, 3, mib=2)
    assert [gone(session, gib=mib / 1024) for mib in (7, 5, 3, 0)] == [[], [1], [1, 2], [1, 2]]


def test_the_limit_that_is_reached_first_decides_which_commits_go(session: Path) -> None:
    archive(session, 1, days=9)
    archive(session, 2, days=6)
    archive(session, 3, days=3, mib=2)
    archive(session, 4)
    assert gone(session, count=3, days=5, gib=1) == [1, 2]
    assert gone(session, count=3, days=5, gib=1 / 1024) == [1, 2, 3]
    assert gone(session, count=2, days=8, gib=1) == [1, 2]


@pytest.mark.parametrize("limits", [(1, 0, 0), (1, 100_000, 1_000_000)])
def test_the_newest_commit_is_kept_always(session: Path, limits: tuple[int, float, float]) -> None:
    archive(session, 7, days=5000, mib=2)
    assert gone(session, *limits) == []
    archive(session, 8, end="")  # it was interrupted: it is not one that could be undone
    assert gone(session, *limits) == []


def test_a_commit_that_was_given_up_or_has_no_end_stays(session: Path) -> None:
    archive(session, 1, days=9, end="given-up")
    archive(session, 2, days=9)
    archive(session, 3, days=9, end="")
    archive(session, 4, days=9)
    archive(session, 5)
    assert gone(session, days=1) == [2, 4]
    assert gone(session, count=1) == [2, 4]


@pytest.mark.parametrize(
    "keep", [ALL, KeepCommits(count=10_000), KeepCommits(count=10_000, days=0.5)], ids=["all", "as is", "days"]
)
def test_retention_reads_as_much_with_500_commits_as_with_5(session: Path, keep: KeepCommits) -> None:
    counts = []
    for first, last in ((1, 5), (6, 500)):
        archive(session, *range(first, last + 1))
        surplus(bytes(session), keep, NOW_NS)  # which notes how much each of them takes
        with opened(session) as paths:
            assert surplus(bytes(session), keep, NOW_NS) == []
        counts.append(len(paths))
    assert counts[0] == counts[1]
    assert counts[0] < 15


def test_retention_reads_those_commits_that_go_and_no_more(session: Path) -> None:
    archive(session, *range(1, 31))
    gone(session)
    with opened(session) as paths:
        assert gone(session, count=28) == [1, 2]
    read = {int(path.split("/commits/")[1].split("/")[0]) for path in paths if path.endswith("/seal")}
    assert read == {1, 2, 3, 30}
