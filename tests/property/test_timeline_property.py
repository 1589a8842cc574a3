"""The timeline against the definition of a state, computed literally."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yolofs.journal.records import Marker, Snapshot, Travel
from yolofs.journal.timeline import Timeline
from yolofs.paths import Generation


@st.composite
def histories(draw: st.DrawFn) -> list[Marker]:
    markers: list[Marker] = []
    for number in range(1, draw(st.integers(0, 25)) + 1):
        if draw(st.booleans()):
            markers.append(Snapshot(number, draw(st.sampled_from([b"", b"a", b"b"]))))
        else:
            markers.append(Travel(number, Generation(draw(st.integers(0, number - 1)))))
    return markers


def states(markers: list[Marker]) -> list[tuple[int, ...]]:
    """Return the segments of each state, by the definition."""
    found: list[tuple[int, ...]] = [()]
    for number, marker in enumerate(markers, 1):
        found.append((*found[-1], number) if isinstance(marker, Snapshot) else found[marker.generation])
    return found


@given(histories())
def test_segments_of_each_generation_are_as_replaying_the_markers_gives(markers: list[Marker]) -> None:
    timeline = Timeline(markers)
    expected = states(markers)
    assert [timeline.segments_of(number) for number in range(len(expected))] == expected
    assert timeline.live_segments == (*expected[-1], len(expected))


@given(histories())
def test_the_snapshot_shown_has_the_same_state_and_is_built_on_its_base(markers: list[Marker]) -> None:
    timeline = Timeline(markers)
    expected = states(markers)
    for number in range(1, len(expected)):
        shown, base = timeline.shown_by(number), timeline.base_of(number)
        assert base is not None
        assert expected[shown] == expected[number]
        assert shown == 0 or isinstance(markers[shown - 1], Snapshot)
        assert expected[number] == (expected[base] if shown != number else (*expected[base], number))


@given(histories())
def test_live_snapshots_are_those_whose_segment_is_live(markers: list[Marker]) -> None:
    timeline = Timeline(markers)
    live = {node.number for node in timeline.nodes() if node.is_live}
    snapshots = {number for number, marker in enumerate(markers, 1) if isinstance(marker, Snapshot)}
    assert live & snapshots == set(timeline.live_segments) - {timeline.present + 1}
    assert {0, timeline.present} <= live


@given(histories())
def test_a_name_means_its_newest_snapshot(markers: list[Marker]) -> None:
    timeline = Timeline(markers)
    for name in (b"a", b"b"):
        carriers = [n for n, marker in enumerate(markers, 1) if isinstance(marker, Snapshot) and marker.name == name]
        if carriers:
            assert timeline.resolve(name.decode()) == carriers[-1]
