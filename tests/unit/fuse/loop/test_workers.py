"""The worker threads alone."""

from __future__ import annotations

import threading
from functools import partial

from tests.unit.fuse.loops import DEADLINE_S, until
from yolofs.fuse.loop.workers import WorkerThreads


def test_as_many_jobs_as_there_may_be_threads_are_run_at_once_whatever_came_before() -> None:
    workers = WorkerThreads(max_threads=4)
    for _ in range(3):
        for _ in range(10):
            done = threading.Event()
            workers.submit(done.set)
            assert done.wait(DEADLINE_S)
        together = threading.Barrier(5)
        for _ in range(4):
            workers.submit(partial(_meet, together))
        _meet(together)
    workers.close()


def test_jobs_that_come_one_after_the_other_share_a_thread() -> None:
    workers = WorkerThreads(max_threads=4)
    idents: set[int] = set()
    for _ in range(50):
        done = threading.Event()
        workers.submit(partial(_note, idents, done))
        assert done.wait(DEADLINE_S)
        until(lambda: not workers._unfinished)  # the next is not to come before the last has quite ended
    assert len(idents) == 1
    workers.close()


def _meet(together: threading.Barrier) -> None:
    together.wait(DEADLINE_S)


def _note(idents: set[int], done: threading.Event) -> None:
    idents.add(threading.get_ident())
    done.set()
