"""Who gets a connection, and who has to make room; no sockets."""

from __future__ import annotations

import pytest

from yolofs.daemon.rpc.admission import GROUP_SHARE, MOST_LASTING, PEER_SHARE, Admission, Guest, Lasting
from yolofs.errors import DaemonError


class Hall:
    """An admission with a clock of its own, and a list of who had to go."""

    def __init__(self, most: int = 8) -> None:
        self.now_s = 100.0
        self.gone: list[int] = []
        self.admission = Admission(lambda: self.now_s, most)

    def come(self, peer: int, group: object = None, *, spoken: bool = False, number: int = 0) -> Guest | None:
        name = number or peer
        guest = Guest(peer, group or peer, self.now_s, lambda: self.gone.append(name))
        guest.has_spoken = spoken
        return guest if self.admission.admit(guest) else None

    def must_come(self, peer: int, group: object = None, *, spoken: bool = False) -> Guest:
        guest = self.come(peer, group, spoken=spoken)
        assert guest is not None
        return guest


def test_no_connection_is_ended_as_long_as_there_is_room() -> None:
    hall = Hall(most=3)
    for peer in (1, 2, 3):
        hall.must_come(peer)
    assert not hall.gone


def test_the_first_to_go_is_a_client_that_owes_a_line_for_long_then_a_quiet_one() -> None:
    hall = Hall(most=4)
    hall.must_come(1, spoken=True)
    hall.must_come(2)
    hall.now_s += 2
    hall.must_come(3, spoken=True)
    hall.must_come(4)
    for peer in (5, 6, 7, 8):
        hall.must_come(peer, spoken=True)
    assert hall.gone[:2] == [2, 1]


def test_a_client_that_does_not_read_goes_and_one_that_works_or_watches_stays() -> None:
    hall = Hall(most=3)
    stuck, at_work, watcher = (hall.must_come(peer, spoken=True) for peer in (1, 2, 3))
    stuck.is_answered, at_work.is_at_work = True, True
    hall.admission.begin_lasting(watcher, Lasting.WATCH)
    hall.now_s += 60
    last = hall.must_come(4)
    assert hall.gone == [1]
    last.is_at_work = True
    assert hall.come(5) is None


def test_whoever_is_just_being_answered_is_left_alone() -> None:
    hall = Hall(most=1)
    guest = hall.must_come(1, spoken=True)
    guest.is_answered = True
    assert hall.come(2) is None
    hall.now_s += 0.5
    assert hall.come(2) is not None


def test_a_client_of_many_that_are_just_being_answered_makes_room_for_a_newcomer() -> None:
    hall = Hall(most=6)
    for peer, count in ((1, 3), (2, 2), (3, 1)):
        for _ in range(count):
            hall.must_come(peer, spoken=True).is_answered = True
    for peer in (4, 5, 6):
        hall.must_come(peer).is_at_work = True
    assert hall.gone == [1, 1, 2]
    assert hall.come(7) is None  # nobody has more than one now


def test_whoever_has_most_connections_makes_room() -> None:
    hall = Hall(most=4)
    for peer in (1, 2, 2, 2):
        hall.must_come(peer)
    hall.must_come(3)
    assert hall.gone == [2]


def test_whoever_has_several_connections_gets_no_more_once_all_are_taken() -> None:
    hall = Hall(most=6)
    for peer in (1, 1, 1, 1, 2, 3):
        hall.must_come(peer)
    assert hall.come(1) is None
    assert hall.come(2) is not None


def test_one_process_has_its_share_and_its_oldest_makes_room_for_its_newest() -> None:
    hall = Hall(most=100)
    hall.must_come(2)
    for number in range(PEER_SHARE):
        assert hall.come(1, number=1000 + number) is not None
        hall.now_s += 0.001
    assert not hall.gone
    hall.must_come(1)
    assert hall.gone == [1000]


def test_processes_that_cannot_be_seen_have_no_share_of_one() -> None:
    hall = Hall(most=100)
    for _ in range(PEER_SHARE + 1):
        hall.must_come(0)
    assert not hall.gone


def test_a_group_has_its_share_and_the_rest_is_for_others() -> None:
    hall = Hall(most=2 * GROUP_SHARE)
    for peer in range(1, GROUP_SHARE + 1):
        hall.must_come(peer, "run").is_at_work = True
    assert hall.come(9999, "run") is None
    assert hall.come(9999, "another") is not None


def test_watches_have_a_limit_that_leaves_room_for_other_connections() -> None:
    hall = Hall(most=1000)
    for peer in range(1, MOST_LASTING[Lasting.WATCH] + 1):
        hall.admission.begin_lasting(hall.must_come(peer), Lasting.WATCH)
    with pytest.raises(DaemonError, match="64 connections have a watch already"):
        hall.admission.begin_lasting(hall.must_come(1000), Lasting.WATCH)
    hall.admission.begin_lasting(hall.must_come(1001), Lasting.RUN)
    assert sum(MOST_LASTING.values()) < 256


def test_whoever_sent_most_of_lines_without_end_has_to_go() -> None:
    hall = Hall(most=100)
    for peer, group, count in ((1, "a", 40), (2, "a", 30), (3, "b", 50)):
        hall.must_come(peer, group).pending_bytes = count
    hall.admission.check_pending(100)
    assert hall.gone == [1]


def test_a_connection_that_leaves_twice_counts_once() -> None:
    hall = Hall(most=1)
    guest = hall.must_come(1)
    hall.admission.leave(guest)
    hall.admission.leave(guest)
    hall.must_come(2)
    assert not hall.gone
