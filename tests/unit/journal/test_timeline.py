"""What each generation is built from, and how users name generations and ranges."""

from __future__ import annotations

import pytest

from yolofs.errors import GenerationError, JournalError
from yolofs.journal.records import Marker, Snapshot, Travel, marker_of_whole_state
from yolofs.journal.timeline import GenerationInfo, GenerationKind, Timeline
from yolofs.paths import Generation


def p(name: str = "") -> Snapshot:
    return Snapshot(100, name.encode())


def t(target: int, name: str = "") -> Travel:
    return Travel(200, Generation(target), name.encode())


BRANCHED: list[Marker] = [
    p("one"),  # 1
    p("two"),  # 2
    t(1, "one"),  # 3
    p("other"),  # 4, on 1
    t(3),  # 5, shows 1 by way of 3
    t(2, "two"),  # 6
    p("two"),  # 7, on 2
]


def test_without_markers_there_is_only_base() -> None:
    timeline = Timeline()
    assert timeline.present == 0
    assert timeline.segments_of(0) == ()
    assert timeline.live_segments == (1,)
    assert timeline.parent(0) is None
    assert timeline.base_of(0) is None
    assert timeline.shown_by(0) == 0
    assert timeline.nodes() == [
        GenerationInfo(Generation(0), GenerationKind.BASE, b"", 0, None, None, None, False, True, True, 0)
    ]


@pytest.mark.parametrize(
    ("generation", "segments", "base", "shown"),
    [
        (1, (1,), 0, 1),
        (2, (1, 2), 1, 2),
        (3, (1,), 1, 1),
        (4, (1, 4), 1, 4),
        (5, (1,), 1, 1),
        (6, (1, 2), 2, 2),
        (7, (1, 2, 7), 2, 7),
    ],
)
def test_a_state_is_a_chain_of_snapshots(generation: int, segments: tuple[int, ...], base: int, shown: int) -> None:
    timeline = Timeline(BRANCHED)
    assert timeline.segments_of(generation) == segments
    assert timeline.base_of(generation) == base
    assert timeline.shown_by(generation) == shown
    assert timeline.parent(generation) == generation - 1


def test_the_present_is_the_newest_state_and_what_follows_its_marker() -> None:
    assert Timeline(BRANCHED).live_segments == (1, 2, 7, 8)
    assert Timeline(BRANCHED[:5]).live_segments == (1, 6)
    assert Timeline([p(), t(0)]).live_segments == (3,)


def test_adding_a_marker_gives_what_starting_with_it_gives() -> None:
    grown = Timeline()
    assert [grown.add(marker) for marker in BRANCHED] == [1, 2, 3, 4, 5, 6, 7]
    assert grown.nodes() == Timeline(BRANCHED).nodes()


@pytest.mark.parametrize("target", [1, 2])
def test_a_travel_to_what_does_not_exist_yet_is_a_journal_error(target: int) -> None:
    timeline = Timeline()
    with pytest.raises(JournalError, match=f"generation 1 travels to generation {target}, which is not older"):
        timeline.add(t(target))
    assert timeline.present == 0
    assert timeline.add(p()) == 1


@pytest.mark.parametrize("generation", [-1, 8])
def test_asking_about_a_generation_that_does_not_exist_is_an_error(generation: int) -> None:
    timeline = Timeline(BRANCHED)
    for ask in (timeline.segments_of, timeline.parent, timeline.base_of, timeline.shown_by):
        with pytest.raises(GenerationError, match=f"there is no generation {generation}: the newest is 7"):
            ask(generation)


def test_a_hundred_thousand_generations_are_no_problem() -> None:
    count = 100_000
    timeline = Timeline(p(str(number)) for number in range(1, count + 1))
    assert timeline.segments_of(count) == tuple(range(1, count + 1))
    assert timeline.resolve("99999") == 99_999
    assert len(timeline.nodes()) == count + 1
    back = Timeline([p(), *(t(number) for number in range(1, count))])
    assert back.segments_of(count) == (1,)
    assert all(node.is_live for node in back.nodes())


# --- names ---


@pytest.mark.parametrize(
    ("text", "generation"),
    [("0", 0), ("base", 0), ("7", 7), ("007", 7), ("one", 1), ("two", 7), ("other", 4), ("-", 5)],
)
def test_resolve_takes_numbers_names_base_and_back(text: str, generation: int) -> None:
    assert Timeline(BRANCHED).resolve(text) == generation


def test_a_number_that_exists_counts_before_a_name_and_a_name_before_one_that_does_not() -> None:
    timeline = Timeline([p("2"), p("17"), p("base"), p("-")])
    assert timeline.resolve("2") == 2
    assert timeline.resolve("17") == 2
    assert timeline.resolve("base") == 0


def test_names_are_bytes_of_any_kind() -> None:
    timeline = Timeline([Snapshot(1, b"\xff"), Snapshot(1, "größe".encode())])
    assert timeline.resolve("\udcff") == 1
    assert timeline.resolve("größe") == 2


def test_a_dash_goes_back_and_forth_as_in_cd() -> None:
    timeline = Timeline([p(), p(), t(1)])
    assert timeline.resolve("-") == 2
    timeline.add(t(2))
    assert timeline.resolve("-") == 3


def test_back_without_a_travel_is_an_error() -> None:
    with pytest.raises(GenerationError, match="there has been no travel to go back from"):
        Timeline([p()]).resolve("-")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("8", "there is no generation 8: the newest is 7", "yolofs timeline; numbers begin anew after each commit"),
        ("9" * 5000, "there is no snapshot named " + "9" * 5000, "yolofs timeline"),
        ("²", "there is no snapshot named ²", "yolofs timeline"),
        ("othre", "there is no snapshot named othre", "did you mean other?"),
        ("", 'there is no snapshot named ""', "yolofs timeline"),
        ("a\nb", 'there is no snapshot named "a\\nb"', "yolofs timeline"),
        ("\ud800", "there is no snapshot named '\\ud800'", "yolofs timeline"),
        ("-1", "there is no snapshot named -1", "yolofs timeline"),
    ],
)
def test_an_unknown_generation_is_named_with_the_nearest_names(text: str, message: str, hint: str) -> None:
    with pytest.raises(GenerationError) as caught:
        Timeline(BRANCHED).resolve(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_nearest_name_is_told_as_a_word_for_the_shell() -> None:
    with pytest.raises(GenerationError) as caught:
        Timeline([p("before the fix")]).resolve("before the fx")
    assert caught.value.hint == "did you mean 'before the fix'?"


def test_travels_do_not_lend_their_name_to_a_generation() -> None:
    with pytest.raises(GenerationError):
        Timeline([p(), t(0, "base camp")]).resolve("base camp")


# --- ranges ---


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2", 1, 2),
        ("other", 3, 4),
        ("0", 0, 0),
        ("base", 0, 0),
        ("1..4", 1, 4),
        ("4..1", 4, 1),
        ("one..other", 1, 4),
        ("base..two", 0, 7),
        ("-..7", 5, 7),
        ("2..", 2, None),
        ("one..", 1, None),
        ("..2", 0, 2),
        ("..", 0, None),
        ("all", 0, None),
    ],
)
def test_a_range_is_read_as_its_first_and_last_generation(text: str, first: int, last: int | None) -> None:
    assert Timeline(BRANCHED).parse_range(text) == (first, last)


def test_a_snapshot_whose_name_looks_like_a_range_is_that_snapshot() -> None:
    assert Timeline([p(), p("v1..v2")]).parse_range("v1..v2") == (1, 2)


@pytest.mark.parametrize("text", ["8", "1..8", "8..1", "nope..", "..nope", "1...3", ""])
def test_a_range_with_an_unknown_end_is_an_error(text: str) -> None:
    with pytest.raises(GenerationError):
        Timeline(BRANCHED).parse_range(text)


# --- the graph ---


def test_nodes_tell_all_that_is_needed_to_draw_the_graph() -> None:
    nodes = Timeline(BRANCHED).nodes([5, 4, 0, 2, 0, 0, 1, 9])
    assert [node.number for node in nodes] == list(range(8))
    assert [node.record_count for node in nodes] == [0, 5, 4, 0, 2, 0, 0, 1]
    assert [node.is_live for node in nodes] == [True, True, True, False, False, False, True, True]
    assert [node.is_present for node in nodes] == [False] * 7 + [True]
    assert nodes[4] == GenerationInfo(
        number=Generation(4),
        kind=GenerationKind.SNAPSHOT,
        name=b"other",
        time_ns=100,
        parent=Generation(3),
        base=Generation(1),
        target=None,
        is_anew=False,
        is_live=False,
        is_present=False,
        record_count=2,
    )
    assert nodes[6] == GenerationInfo(
        number=Generation(6),
        kind=GenerationKind.TRAVEL,
        name=b"two",
        time_ns=200,
        parent=Generation(5),
        base=Generation(2),
        target=Generation(2),
        is_anew=False,
        is_live=True,
        is_present=False,
        record_count=0,
    )


def test_nodes_have_no_record_counts_but_base_if_none_were_given() -> None:
    assert [node.record_count for node in Timeline([p(), t(0)]).nodes()] == [0, None, None]


def test_what_is_written_anew_has_come_from_the_state_before_it_and_is_no_travel() -> None:
    timeline = Timeline([p("one"), p("two"), marker_of_whole_state(300), p("less")])
    assert timeline.segments_of(4) == (4,)
    assert timeline.way_to(4) == (1, 2, 4)
    assert Timeline(BRANCHED).way_to(7) == (1, 2, 7)
    assert [node.is_live for node in timeline.nodes()] == [True] * 5
    assert [node.is_anew for node in timeline.nodes()] == [False, False, False, True, False]
    with pytest.raises(GenerationError, match="no travel to go back from"):
        timeline.resolve("-")


def test_the_number_of_what_is_written_anew_means_the_generation_before_it() -> None:
    """Its own state is base, which nobody has ever seen there."""
    timeline = Timeline([p("one"), p("two"), marker_of_whole_state(300), p("less"), p("more")])
    assert timeline.resolve("3") == 2
    assert timeline.parse_range("1..3") == (1, 2)
    assert timeline.parse_range("4") == (2, 4)
    assert timeline.parse_range("5") == (4, 5)
    assert Timeline([marker_of_whole_state(100), p("less")]).parse_range("2") == (0, 2)
