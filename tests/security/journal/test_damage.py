"""A journal was damaged between two commands: each command says so, in which line, and until it is
repaired.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.security.journal.damaged import (
    HARMS,
    NAMES,
    Harm,
    changes_of,
    finding,
    flipped,
    harm,
    journal_of,
    lines_of,
    removed,
    rewrite,
    stage,
    swapped,
)
from tests.support.fault_points import points
from tests.support.program import Program
from yolofs.journal.codec import encode
from yolofs.journal.journal import Journal
from yolofs.journal.records import Delete, Record, Snapshot, Stage, Travel
from yolofs.paths import Generation, RelPath, StoreIno

pytestmark = pytest.mark.mount


@pytest.mark.parametrize("how", points(HARMS, "damage is named", some=3), ids=lambda how: how.__name__)
def test_every_command_names_the_line_and_nothing_is_changed(yolofs: Program, tmp_path: Path, how: Harm) -> None:
    line, reason = harm(yolofs, tmp_path, how)
    before = journal_of(yolofs).read_bytes()
    others = [["diff"], ["log"], ["commit", "--yes"], ["snapshot"], ["travel", "0"], ["abort", "--yes"]]
    for words in (["status"], ["mount"], ["run", "--", "true"], *(others if how is removed else [])):
        message = yolofs.refused(*words, code=6)
        assert f"journal, line {line} (byte " in message
        assert reason in message
        assert "yolofs doctor --repair" in message
    found = finding(yolofs, "journal", code=1)
    assert found["level"] == "fail"
    assert found["message"].startswith(f"line {line} (byte ")
    assert reason in found["message"]
    assert "yolofs doctor --repair" in found["advice"]
    assert journal_of(yolofs).read_bytes() == before
    assert not (yolofs.session / "journal.torn").exists()


def test_the_list_of_sessions_tells_of_damage(yolofs: Program) -> None:
    def damage() -> str | None:
        (entry,) = yolofs("sessions", "--json", yolofs.session.name).json["sessions"]
        found: str | None = entry["damage"]
        return found

    assert damage() is None
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:3], *lines[4:]])
    said = yolofs("sessions").out
    assert f"{journal_of(yolofs)}, line 4 (byte " in said
    assert f"a line before it is missing: yolofs -C {yolofs.project} doctor\n" in said
    assert "a line before it is missing" in (damage() or "")
    journal_of(yolofs).unlink()
    assert f"{journal_of(yolofs)} is missing, and there are 5 staged files" in yolofs("sessions").out
    assert "staged files" in (damage() or "")


@pytest.mark.parametrize("how", points(HARMS, "damage is repaired", some=3), ids=lambda how: how.__name__)
def test_a_repair_cuts_there_keeps_the_rest_and_the_session_goes_on(yolofs: Program, tmp_path: Path, how: Harm) -> None:
    line, _ = harm(yolofs, tmp_path, how)
    before = journal_of(yolofs).read_bytes()
    yolofs("doctor", "--repair", "--yes")
    good = b"".join(before.splitlines(keepends=True)[: line - 1])
    assert journal_of(yolofs).read_bytes() == good
    assert (yolofs.session / "journal.torn").read_bytes().endswith(before[len(good) :] + b"\n")
    stage(yolofs, "later")
    assert "A  later" in yolofs("status").out


def misfit_record(number: int, stamp: int) -> bytes:
    return encode(Stage(number, RelPath(b"dir/inside"), StoreIno(1 << 20)), stamp)


def misfit_travel(number: int, stamp: int) -> bytes:
    return encode(Travel(number, Generation(number)), stamp)


@pytest.mark.parametrize("misfit", [misfit_record, misfit_travel], ids=lambda misfit: misfit.__name__)
def test_a_sound_line_that_contradicts_those_before_it_is_cut_off_too(
    yolofs: Program, misfit: Callable[[int, int], bytes]
) -> None:
    before = changes_of(yolofs)
    good = journal_of(yolofs).read_bytes()
    form = Journal.form_of(bytes(journal_of(yolofs)))
    first = len(lines_of(yolofs))
    gone = encode(Delete(1, RelPath(b"dir")), form.stamp(first))
    after = encode(Delete(1, RelPath(b"one")), form.stamp(first + 2))
    journal_of(yolofs).write_bytes(good + gone + misfit(1000, form.stamp(first + 1)) + after)
    assert "yolofs doctor --repair" in yolofs.refused("status", code=6)
    found = finding(yolofs, "journal", code=1)
    assert found["message"].startswith(f"line {first + 2} (byte {len(good + gone)}) is bad: ")
    assert "contradicts itself" in yolofs("doctor", "--repair", "--keep-rest", "--yes", code=6).err
    assert f"line {first + 2} of the journal" in yolofs("doctor", "--repair", "--yes").err
    assert journal_of(yolofs).read_bytes() == good + gone
    assert (yolofs.session / "journal.torn").read_bytes().endswith(after + b"\n")
    assert changes_of(yolofs) == before
    stage(yolofs, "later")
    assert "A  later" in changes_of(yolofs)


@pytest.mark.parametrize("options", [[], ["--keep-rest"]], ids=["repair", "keep-rest"])
def test_a_line_that_contradicts_those_before_it_where_a_travel_has_left_is_taken_out(
    yolofs: Program, options: list[str]
) -> None:
    """Generation 2 has it, on which 3 is built; what the view shows is built on 1."""
    yolofs("snapshot")
    form = Journal.form_of(bytes(journal_of(yolofs)))
    records: list[Record] = [
        Delete(1, RelPath(b"a.txt")),
        Stage(1000, RelPath(b"a.txt/inside"), StoreIno(1 << 20)),
        Stage(1, RelPath(b"after"), StoreIno(2)),
        Snapshot(1),
        Stage(1, RelPath(b"a.txt/again"), StoreIno(2)),
        Snapshot(1, b"three"),
        Travel(1, Generation(1)),
        Snapshot(1, b"five"),
    ]
    first = len(lines_of(yolofs))
    lines = [encode(record, form.stamp(number)) for number, record in enumerate(records, first)]
    with journal_of(yolofs).open("ab") as file:
        file.writelines(lines)
    stage(yolofs, "later")
    before = changes_of(yolofs)
    whole = journal_of(yolofs).read_bytes()
    for generation in "23":
        assert "does not fit" in yolofs.refused("travel", generation, code=6)
        assert journal_of(yolofs).read_bytes() == whole
    assert changes_of(yolofs) == before
    found = finding(yolofs, "journal", code=1)
    assert found["message"].startswith(f"line {first + 2} (byte {whole.index(lines[1])}) is bad: ")
    assert found["message"].endswith(
        "; the view does not come from it, but no travel leads to generations 2, 3 any more"
    )
    assert "takes 2 records out, to the end of generation 2" in found["advice"]
    said = yolofs("doctor", "--repair", *options, "--yes", code=1).err
    assert "taken out; 2 records can be found in journal.torn now" in said
    assert (yolofs.session / "journal.torn").read_bytes().endswith(lines[1] + lines[2] + b"\n")
    found = finding(yolofs, "journal", code=1)
    assert found["message"].startswith(f"line {first + 3} (byte ")
    assert "no travel leads to generation 3 any more" in found["message"]
    yolofs("doctor", "--repair", *options, "--yes")
    assert finding(yolofs, "journal")["level"] == "ok"
    assert changes_of(yolofs) == before
    for generation, shown in (("3", True), ("2", True), ("five", False), ("-", True)):
        yolofs("travel", generation)
        assert ("D  a.txt" in changes_of(yolofs)) == shown, generation
    yolofs("travel", "6")
    assert changes_of(yolofs) == before


# ---- keeping the rest


def test_repair_keeps_the_lines_after_the_damage_with_keep_rest(yolofs: Program, tmp_path: Path) -> None:
    harm(yolofs, tmp_path, removed)
    before = journal_of(yolofs).read_bytes()
    message = yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert "1 line from there on can be kept; 0 lines cannot, and 1 line is not there any more" in message
    assert "hint: yolofs doctor --repair --keep-rest --yes" in message
    assert journal_of(yolofs).read_bytes() == before
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert changes_of(yolofs) == ["A  five", "A  one", "A  three", "A  two"]
    stage(yolofs, "later")
    assert "A  later" in changes_of(yolofs)
    assert "nothing to repair" in yolofs("doctor", "--repair", "--keep-rest").err


def test_a_changed_line_is_not_told_as_one_that_is_not_there_any_more(yolofs: Program, tmp_path: Path) -> None:
    harm(yolofs, tmp_path, flipped)
    message = yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert "2 lines from there on can be kept; 1 line cannot\n" in message


def test_lines_that_have_changed_places_are_put_back(yolofs: Program, tmp_path: Path) -> None:
    good = journal_of(yolofs).read_bytes()
    harm(yolofs, tmp_path, swapped)
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert journal_of(yolofs).read_bytes() == good


def test_keep_rest_without_repair_is_refused(yolofs: Program) -> None:
    assert "yolofs doctor --repair --keep-rest" in yolofs.refused("doctor", "--keep-rest", code=2)


# ---- a first line that says nothing


def first_changed(lines: list[bytes]) -> list[bytes]:
    return [b"X" + lines[0][1:], *lines[1:]]


def first_zeroed(lines: list[bytes]) -> list[bytes]:
    return [b"\0" * len(lines[0]), *lines[1:]]  # its newline, too


def first_gone(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


@pytest.mark.parametrize("how", [first_changed, first_zeroed, first_gone], ids=lambda how: how.__name__)
def test_a_damaged_first_line_is_written_anew_by_the_others(
    yolofs: Program, how: Callable[[list[bytes]], list[bytes]]
) -> None:
    good = journal_of(yolofs).read_bytes()
    rewrite(yolofs, how(lines_of(yolofs)))
    bad = journal_of(yolofs).read_bytes()
    assert "yolofs doctor --repair --keep-rest" in yolofs.refused("status", code=6)
    assert "yolofs doctor --repair --keep-rest" in finding(yolofs, "journal", code=1)["advice"]
    assert "yolofs doctor --repair --keep-rest --yes" in yolofs("doctor", "--repair", "--keep-rest", code=2).err
    assert journal_of(yolofs).read_bytes() == bad
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert journal_of(yolofs).read_bytes() == good
    assert bad in (yolofs.session / "journal.torn").read_bytes()
    assert changes_of(yolofs) == ["A  five", "A  four", "A  one", "A  three", "A  two"]


def test_other_damage_is_repaired_along_with_the_first_line(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [b"X" + lines[0][1:], *lines[1:3], *lines[4:]])
    yolofs("doctor", "--repair", "--keep-rest", "--yes")
    assert len(changes_of(yolofs)) == 4


def test_where_no_line_tells_the_first_one_all_is_kept_beside_an_empty_journal(yolofs: Program) -> None:
    journal_of(yolofs).write_bytes(b"nothing\nof use\n")
    assert "no line after it tells what it was" in yolofs("doctor", "--repair", "--keep-rest", "--yes").err
    assert changes_of(yolofs) == []
    assert b"nothing\nof use\n" in (yolofs.session / "journal.torn").read_bytes()
    assert sorted(path.read_text() for path in (yolofs.session / "lost/1").iterdir()) == sorted(f"{n}\n" for n in NAMES)
