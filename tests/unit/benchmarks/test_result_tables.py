"""The benchmarks' tables and picture say what was measured."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import picture, result_tables
from benchmarks.measured import Requests, Results


@pytest.fixture
def results() -> Results:
    made = Results({"cpu": "x"}, "quick", 3, ["plain", "fuse-overlayfs", "yolofs"], {"overlayfs": "needs root"})
    row = made.row("open", "open <&> close", "free")
    row.seconds = {"plain": [2e-6, 1e-6, 3e-6], "fuse-overlayfs": [40e-6], "yolofs": [12e-6, 10e-6, 8e-6]}
    row.requests = {"open": Requests(100, 0.002), "lookup": Requests(7, 0.001)}
    made.row("snap", "snapshot", "free").notes = {"plain": "has no snapshots"}
    made.rows[1].seconds = {"yolofs": [0.5e-3]}
    return made


def test_ratios_are_of_medians(results: Results) -> None:
    row = results.rows[0]
    assert row.ratio("yolofs", "plain") == pytest.approx(5)
    assert row.ratio("yolofs", "fuse-overlayfs") == pytest.approx(0.25)
    assert results.rows[1].ratio("yolofs", "plain") is None


def test_the_text_has_median_range_ratios_notes_requests_and_what_is_missing(results: Results) -> None:
    lines = result_tables.as_text(results).splitlines()
    assert "    yolofs            10.0 µs [8.00 µs to 12.0 µs]        x5.00    x0.25" in lines
    assert "    plain           - has no snapshots" in lines
    assert "    requests        open 100, lookup 7; in handlers 3.00 ms" in lines
    assert "missing: overlayfs: needs root" in lines


def test_the_serial_share_is_of_the_work_in_the_plain_directory(results: Results) -> None:
    row = results.rows[0]
    row.work_s = {"plain": [2.0, 1.0, 3.0], "yolofs": [9.0, 9.0, 9.0]}
    row.server_s = {"yolofs": [0.1, 0.2, 0.9]}
    assert row.serial_share("yolofs") == pytest.approx(0.1)
    assert row.serial_share("fuse-overlayfs") is None
    assert results.rows[1].serial_share("yolofs") is None
    assert "    yolofs            10.0 µs [8.00 µs to 12.0 µs]        x5.00    x0.25     0.10" in (
        result_tables.as_text(results).splitlines()
    )


def test_the_table_for_the_docs_has_ratios_and_serial_shares(results: Results) -> None:
    pinned = results.row("open", "open <&> close", "pinned")
    pinned.seconds = {"fuse-overlayfs": [4e-6], "yolofs": [8e-6]}
    pinned.work_s, pinned.server_s = {"plain": [2.0]}, {"fuse-overlayfs": [0.5], "yolofs": [1.0]}
    assert result_tables.as_markdown(results).splitlines() == [
        (
            "| | plain | fuse-overlayfs | yolofs | yolofs / fuse-overlayfs, free | yolofs / fuse-overlayfs, pinned "
            "| serial share, fuse-overlayfs; yolofs |"
        ),
        "|---|---|---|---|---|---|---|",
        "| open <&> close | 2.00 µs | x20.0 | x5.00 | 0.25 | 2.00 | 0.25; 0.50 |",
        "| snapshot | - | - | 500 µs | - | - | -; - |",
    ]


def test_the_table_for_the_docs_has_yolofs_beside_the_pass_through() -> None:
    made = Results({}, "quick", 1, ["plain", "overlayfs", "yolofs", "floor"], {})
    for mode, floor_s in (("free", 8e-6), ("pinned", 5e-6)):
        made.row("open", "open", mode).seconds = {"plain": [1e-6], "yolofs": [10e-6], "floor": [floor_s]}
    head, _, line = result_tables.as_markdown(made).splitlines()
    assert "yolofs / floor, pinned | serial share" in head
    assert "/ floor, free" not in head
    assert "/ overlayfs" not in head
    assert line == "| open | 1.00 µs | - | x10.0 | x8.00 | - | - | 2.00 | -; - |"


def test_where_a_server_is_kept_busy_the_requests_that_it_answers_in_a_second_are_told(results: Results) -> None:
    row = results.rows[0]
    row.requests_each, row.server_s = 2, {"yolofs": [1.0]}
    assert row.requests_a_second("yolofs") == pytest.approx(200_000)
    assert [row.requests_a_second(column) for column in ("plain", "fuse-overlayfs")] == [None, None]
    assert results.rows[1].requests_a_second("yolofs") is None
    (line,) = [line for line in result_tables.as_text(results).splitlines() if "requests a second" in line]
    assert line.startswith("    yolofs ")
    assert line.endswith("  200,000 requests a second")
    assert "| x20.0 | x5.00 (200,000 requests a second) |" in result_tables.as_markdown(results)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.2e-9, "1.20 ns"), (999.4e-6, "999 µs"), (999.6e-6, "1.00 ms"), (0.0123, "12.3 ms"), (99.96, "100 s")],
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert result_tables.duration(seconds) == text


def test_the_picture_has_a_dot_for_each_ratio(results: Results) -> None:
    picture_of = ElementTree.fromstring(picture.draw(results, "free"))
    titles = [title.text for title in picture_of.findall(".//{*}circle/{*}title")]
    assert titles == ["fuse-overlayfs", "yolofs", "fuse-overlayfs: x20.0", "yolofs: x5.00"]


def test_results_are_read_from_a_file_as_they_were_saved(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "r.json")
    assert Results.load(tmp_path / "r.json") == results
