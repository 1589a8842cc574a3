"""Which run a request belongs to, and how often that is looked up."""

from __future__ import annotations

from types import SimpleNamespace

from yolofs.fuse.current_run import CurrentRun

RUN_OF = {100: 7, 101: 8}


def test_the_run_of_a_sender_is_looked_up_once_for_each_request_that_needs_it() -> None:
    asked: list[int] = []

    def run_of(pid: int) -> int:
        asked.append(pid)
        return RUN_OF.get(pid, 0)

    current = CurrentRun(run_of)
    current.sent_by(100)
    assert (asked, current.thread()) == ([], 100)
    assert current.run() == 7
    current.opened(1)
    assert asked == [100]
    current.sent_by(102)
    assert (current.run(), current.run()) == (0, 0)
    assert asked == [100, 102]
    current.sent_by(100)  # the same process may be of another run by then
    current.run()
    assert asked == [100, 102, 100]


def test_a_write_belongs_to_the_run_of_the_process_that_opened_the_file() -> None:
    current = CurrentRun(lambda pid: RUN_OF.get(pid, 0))
    current.sent_by(100)
    current.opened(1)
    current.sent_by(101)
    current.sent_through(1)
    assert (current.run(), current.thread()) == (7, 0)
    current.sent_by(101)
    current.sent_through(2)
    assert current.run() == 0
    current.released(1)
    current.sent_through(1)
    assert current.run() == 0


def test_without_a_request_or_a_known_sender_there_is_no_run() -> None:
    current = CurrentRun(lambda _: 7)
    assert (current.run(), current.thread()) == (0, 0)
    current.sent_by(0)
    current.opened(1)
    assert (current.run(), current.thread()) == (0, 0)
    current.sent_through(1)
    assert current.run() == 0


def test_arguments_tell_the_sender_by_their_context_or_the_file_by_its_handle() -> None:
    current = CurrentRun(lambda pid: RUN_OF.get(pid, 0))
    current.sent_with((1, b"name", SimpleNamespace(pid=100)))
    current.opened(5)
    assert (current.run(), current.thread()) == (7, 100)
    current.sent_with((5, 0, b"data"))
    assert (current.run(), current.thread()) == (7, 0)
    current.sent_with(([(1, 1)],))
    assert (current.run(), current.thread()) == (0, 0)
