"""Several runs at once: each summary lists its own run's changes first, and separately those of
others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, kill, wait_until
from tests.support.stepped import stepped

pytestmark = pytest.mark.mount


def names(document: Any) -> list[tuple[str, str]]:
    return [(change["kind"], Path(change["path"]).name) for change in document["changes"]]


def test_each_of_two_runs_lists_its_own_changes_first(yolofs: Program) -> None:
    (yolofs.project / "old").write_text("old\n")
    with stepped(yolofs) as one, stepped(yolofs) as two:
        one.do("echo 1 > by-one; rm old")
        two.do("echo 2 > by-two")
        said = one.end()
        assert said[0].startswith(f"yolofs: run {one.number}: 2 changes: 1 added, 1 deleted; generation ")
        assert said[1:-1] == [
            "deleted:",
            "  D  old",
            "in the project:",
            "  A  by-one",
            "meanwhile, by others:",
            f"  run {two.number}, which goes on: 1 change: 1 added: yolofs diff --run {two.number}",
        ]
        assert said[-1].startswith(f"see it: yolofs diff --run {one.number}        undo it: yolofs travel ")
        assert said[-1].endswith(" (what others did since goes, too)")
        two.do("echo 3 >> by-two")
        said = two.end()
        assert "  A  by-two" in said
        assert "  D  old" not in said
        assert f"  run {one.number}: 2 changes: 1 added, 1 deleted: yolofs diff --run {one.number}" in said
    for number, found in ((one.number, [("A", "by-one"), ("D", "old")]), (two.number, [("A", "by-two")])):
        assert sorted(names(yolofs("diff", "--run", str(number), "--json").json)) == found


def test_a_file_that_both_write_into_is_in_both_summaries(yolofs: Program) -> None:
    with stepped(yolofs) as one, stepped(yolofs) as two:
        one.do("echo 1 > both; echo 1 > mine")
        two.do("echo 2 >> both")
        said = one.end()
        assert f"  A  both  (also: run {two.number})" in said
        assert "  A  mine" in said
        said = two.end()
        assert f"  A  both  (also: run {one.number})" in said
        assert "  A  mine" not in said
    assert f"run {two.number}" in yolofs("blame", "both").out


@pytest.mark.parametrize(
    "change",
    [
        "chmod 600 both",
        "touch -d @1 both",
        "truncate -s 1 both",
        'python3 -c \'open("both", "r+").write("x")\'',
        'python3 -c \'import mmap; f = open("both", "r+b"); mmap.mmap(f.fileno(), 0)[0:1] = b"x"\'',
        "ln both link; echo x >> link",
        "mv both moved; mv moved both",
    ],
)
@pytest.mark.some(3)
def test_each_way_to_change_a_file_that_another_has_made_counts(yolofs: Program, change: str) -> None:
    with stepped(yolofs, "--json") as one, stepped(yolofs, "--json") as two:
        one.do("echo first > both")
        two.do(change)
        document = two.end_as_json()
        (found,) = [entry for entry in document["changes"] if entry["path"].endswith("/both")]
        assert found["also_by"] == [one.number]
        document = one.end_as_json()
        (found,) = [entry for entry in document["changes"] if entry["path"].endswith("/both")]
        assert found["also_by"] == [two.number]


def test_reading_what_another_run_has_written_does_not_count(yolofs: Program) -> None:
    with stepped(yolofs, "--json") as one, stepped(yolofs, "--json") as two:
        one.do("echo first > read")
        assert two.do("cat read; exec 3<> read; exec 3>&-; ls") != ""
        two.do("echo x > own")
        assert names(two.end_as_json()) == [("A", "own")]
        document = one.end_as_json()
    assert names(document) == [("A", "read")]
    assert document["changes"][0]["also_by"] == []


def test_a_run_that_moves_a_directory_takes_nothing_from_runs_that_work_in_it(yolofs: Program) -> None:
    (yolofs.project / "src").mkdir()
    for name in "abc":
        (yolofs.project / f"src/{name}").write_text(name)
    with stepped(yolofs, "--json") as one, stepped(yolofs, "--json") as two, stepped(yolofs, "--json") as three:
        one.do("echo one >> src/a")
        two.do("mv src lib")
        three.do("rm lib/b; echo new > lib/d")
        first, second, third = one.end_as_json(), two.end_as_json(), three.end_as_json()
    assert names(first) == [("M", "a")]
    assert names(second) == [("R", "lib")]
    assert sorted(names(third)) == [("A", "d"), ("D", "b")]
    assert first["meanwhile"] == [
        {"run": two.number, "goes_on": True, "counts": first["meanwhile"][0]["counts"]},
        {"run": three.number, "goes_on": True, "counts": first["meanwhile"][1]["counts"]},
    ]
    assert first["meanwhile"][0]["counts"] == {"A": 0, "M": 0, "D": 0, "R": 1, "T": 0, "X": 0}
    assert [other["goes_on"] for other in third["meanwhile"]] == [False, False]


def test_a_summary_tells_changes_outside_of_runs_apart(yolofs: Program) -> None:
    view = Path(yolofs.daemon["mountpoint"]) / str(yolofs.project)[1:]
    with stepped(yolofs) as run:
        run.do("echo 1 > by-run; echo 1 > shared")
        (view / "by-hand").write_text("x")
        with (view / "shared").open("a") as file:
            file.write("by hand\n")
        said = run.end()
    assert "  A  by-run" in said
    assert "  A  shared  (also: in no run)" in said
    before = said[-1].partition("yolofs travel ")[2].split()[0]
    assert f"  in no run: 1 change: 1 added: yolofs diff {int(before) + 1} --list" in said


def test_the_first_to_end_snapshots_what_is_there_and_the_other_still_has_its_summary(yolofs: Program) -> None:
    """Also if nothing is left for a generation of its own."""
    with stepped(yolofs) as one, stepped(yolofs) as two:
        two.do("echo 2 > by-two")
        one.do("echo 1 > by-one")
        first = one.end()[0]
        second = two.end()
    generation = yolofs("timeline", "--json").json["present"]
    assert first.endswith(f"generation {generation}")
    assert second[0].endswith(f"; generation {generation}")
    assert "  A  by-two" in second
    runs = {run["run"]: run for run in yolofs("runs", "--json").json["runs"]}
    assert runs[one.number]["after"] == runs[two.number]["after"] == generation


def test_a_run_that_changes_nothing_says_nothing_and_makes_no_generation_of_what_others_do(yolofs: Program) -> None:
    with stepped(yolofs, "--json") as one:
        one.do("echo 1 > by-one")
        assert yolofs("run", "true").err == ""
        before = yolofs("timeline", "--json").json["present"]
        one.do("echo 2 > by-one-later")
        with stepped(yolofs) as two:
            one.do("echo 3 > by-one-last")
            assert two.end() == []
        assert yolofs("timeline", "--json").json["present"] == before + 1  # what two began with
        assert sorted(names(one.end_as_json())) == [("A", "by-one"), ("A", "by-one-last"), ("A", "by-one-later")]


def test_a_run_that_goes_on_without_having_changed_anything_is_named(yolofs: Program) -> None:
    with stepped(yolofs) as one, stepped(yolofs) as two:
        one.do("echo 1 > by-one")
        said = one.end()
    assert f"  run {two.number}, which goes on: no changes so far" in said


def test_each_run_is_told_of_its_own_refusals(yolofs: Program) -> None:
    (yolofs.project / "closed").write_text("x")
    yolofs("rule", "deny", "closed")
    try:
        with stepped(yolofs) as one, stepped(yolofs) as two:
            one.do("cat closed 2>/dev/null")
            two.do("true")
            assert two.end() == []
            said = one.end()
        again = yolofs("run", "--json", "sh", "-c", "cat closed; true")
    finally:
        yolofs("rule", "unset", "closed")
    assert said[0] == f"yolofs: while run {one.number} went on, asked or refused:"
    assert len([line for line in said if "refusal  " in line]) == 1
    assert said[2:] == ["to see which rule decides there:", f"  yolofs rule explain {yolofs.project / 'closed'}"]
    assert [note["process"]["run"] for note in json.loads(again.err.splitlines()[-1])["notes"]] == [one.number + 2]


def test_a_run_whose_daemon_was_killed_has_ended_with_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    yolofs("mount")
    with stepped(yolofs) as run:
        assert "goes on" in yolofs("runs").out
        kill(yolofs.daemon["pid"])
        wait_until(lambda: "killed" in yolofs("runs").out, "nobody answers any more")
        run.stop()
    yolofs("mount")
    try:
        assert "killed" in yolofs("runs").out
        assert yolofs("runs", "--json").json["runs"][0]["end_ns"] is not None
    finally:
        yolofs("unmount", "--force")


def test_a_commit_meanwhile_ends_no_summary(yolofs: Program, elsewhere: Path) -> None:
    yolofs("run", "touch", elsewhere / "by-an-earlier-one")
    with stepped(yolofs) as one:
        one.do("echo 1 > committed")
        yolofs("commit", "--yes")
        one.do("echo 2 > later")
        said = one.end()
    (yolofs.project / "committed").unlink()
    assert said[0].endswith("what was staged has been committed or dropped meanwhile; yolofs status")
    assert "  A  later" in said
    assert "  A  committed" not in said
    assert "meanwhile, by others:" not in said
