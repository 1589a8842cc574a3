"""What a watcher that does not read is told later."""

from __future__ import annotations

from yolofs.daemon.rpc.backlog import MAX_BEHIND, Backlog, News


def came(number: int, text: str = "came") -> News:
    return News(number, False, lambda: f"{text} {number}".encode())


def ended(number: int) -> News:
    return News(number, True, lambda: f"ended {number}".encode())


def told(backlog: Backlog, count: int | None = None) -> list[str]:
    """Take ``count`` notices, or all."""
    found: list[str] = []
    while (count is None or len(found) < count) and (notice := backlog.take()) is not None:
        found.append(notice.encode().decode())
    return found


def test_a_few_notices_are_told_in_full_and_in_their_order() -> None:
    backlog = Backlog()
    for notice in (came(1), came(2), came(1, "changed"), ended(2), ended(1)):
        backlog.add(notice)
    assert told(backlog) == ["came 1", "came 2", "changed 1", "ended 2", "ended 1"]
    assert told(backlog) == []


def test_whoever_is_far_behind_hears_how_things_stand_and_of_the_end_of_what_it_knew() -> None:
    backlog = Backlog()
    for number in (1, 2, 3):
        backlog.add(came(number))
    assert told(backlog, 2) == ["came 1", "came 2"]
    backlog.add(ended(1))
    backlog.add(ended(3))
    backlog.add(came(4))
    for number in range(5, 5 + MAX_BEHIND):
        backlog.add(came(number))
        backlog.add(ended(number))
    backlog.add(came(4, "changed"))
    assert len(backlog) < MAX_BEHIND
    rest = told(backlog)
    assert {"ended 1", "changed 4"} < set(rest)
    assert "ended 3" not in rest
    assert "came 3" not in rest
    assert [text for text in rest if text.endswith(" 1")] == ["ended 1"]


def test_a_long_backlog_keeps_every_ask_that_waits() -> None:
    backlog = Backlog()
    for number in range(5 * MAX_BEHIND):
        backlog.add(came(number))
        backlog.add(came(number, "changed"))
    assert len(backlog) <= 10 * MAX_BEHIND
    numbers = [int(text.split()[1]) for text in told(backlog)]
    assert sorted(set(numbers)) == list(range(5 * MAX_BEHIND))
