"""A journal that is not there, or whose last lines are missing."""

from __future__ import annotations

import pytest

from tests.security.journal.damaged import (
    NAMES,
    about_cut,
    changes_of,
    finding,
    journal_of,
    lines_of,
    mount,
    rewrite,
    stage,
)
from tests.support.program import Program, kill, wait_until

pytestmark = pytest.mark.mount


@pytest.mark.parametrize(
    "words",
    [("status",), ("mount",), ("commit", "--yes"), ("abort", "--yes"), ("doctor", "--acknowledge"), ("init",)],
)
def test_a_missing_journal_is_told_and_no_command_begins_another(yolofs: Program, words: tuple[str, ...]) -> None:
    journal_of(yolofs).unlink()
    if words != ("init",):
        message = yolofs.refused(*words, code=6)
        assert "journal is missing, and there are 5 staged files, whose names only it knew" in message
        assert "yolofs doctor --repair" in message
    else:
        yolofs(*words)
    assert not journal_of(yolofs).exists()
    assert len([path for path in (yolofs.session / "files").rglob("*") if path.is_file()]) == len(NAMES)
    found = finding(yolofs, "journal", code=1)
    assert found["level"] == "fail"
    assert "yolofs doctor --repair" in found["advice"]
    assert "staged" in yolofs("sessions").out


def test_a_repair_begins_an_empty_journal_and_keeps_what_was_staged(yolofs: Program) -> None:
    for number in (1, 2):  # the second loss has the same numbers
        journal_of(yolofs).unlink()
        assert "yolofs doctor --repair --yes" in yolofs("doctor", "--repair", code=2).err
        assert not journal_of(yolofs).exists()
        assert str(yolofs.session / f"lost/{number}") in yolofs("doctor", "--repair", "--yes").err
        assert changes_of(yolofs) == []
        kept = sorted(path.read_text() for path in (yolofs.session / f"lost/{number}").iterdir())
        assert kept == sorted(f"{name}\n" for name in NAMES)
        stage(yolofs, *NAMES)


def test_a_journal_is_not_missed_where_nothing_was_staged_or_a_commit_has_put_it_away(yolofs: Program) -> None:
    yolofs("commit", "--yes")
    journal_of(yolofs).unlink()
    assert changes_of(yolofs) == []


def about_missing(text: str) -> list[str]:
    return [line for line in text.splitlines() if "missing at the journal's end" in line]


def lost_in(program: Program) -> dict[str, str]:
    """Return what the first directory below ``lost`` keeps."""
    place = program.session / "lost" / "1"
    return {file.name: file.read_text() for file in place.iterdir()} if place.is_dir() else {}


@pytest.mark.parametrize("count", [1, 3, 5])
def test_lines_missing_at_the_end_are_told_and_what_only_they_named_is_kept(yolofs: Program, count: int) -> None:
    lines = lines_of(yolofs)
    staged = [line for line in lines if line.startswith(b"S ")]
    assert len(staged) == len(NAMES)
    first = lines.index(staged[-count])
    rewrite(yolofs, lines[:first])
    missing = len(lines) - first
    said = f"{missing} record{'s are' if missing > 1 else ' is'} missing at the journal's end, from line {first + 1} on"
    assert said in about_missing(yolofs("status").err)[0]
    found = finding(yolofs, "journal", code=1)
    assert (found["level"], said in found["message"]) == ("fail", True)
    told = about_missing(mount(yolofs).err)
    try:
        assert said in told[0]
        assert str(yolofs.session / "lost" / "1") in told[0]
        assert about_missing(yolofs("status").err) == told
        assert about_missing(yolofs.log)
        (cut,) = yolofs("status", "--json").json["cuts"]
        assert (cut["kind"], cut["records"], cut["line"]) == ("missing", missing, first + 1)
        assert cut["kept_in"] == str(yolofs.session / "lost" / "1")
    finally:
        yolofs("unmount")
    assert sorted(lost_in(yolofs).values()) == sorted(f"{name}\n" for name in NAMES[-count:])
    assert about_missing(yolofs("status").err) == told  # until somebody says that he knows
    yolofs("doctor", "--acknowledge")
    assert about_missing(yolofs("status").err) == []
    assert finding(yolofs, "journal")["level"] == "ok"
    assert lost_in(yolofs)


def test_a_journal_that_is_as_it_was_lacks_nothing(yolofs: Program) -> None:
    for words in (("status",), ("snapshot", "s"), ("travel", "0"), ("travel", "1"), ("commit", "--yes")):
        assert about_missing(yolofs(*words).err) == []
    stage(yolofs, "six")
    assert about_missing(yolofs("abort", "--yes").err + yolofs("status").err) == []
    assert finding(yolofs, "journal")["level"] == "ok"
    assert not (yolofs.session / "lost").exists()


def test_repair_keeps_what_only_missing_lines_named(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:3])
    said = yolofs("doctor", "--repair", "--yes")
    assert about_missing(said.err + said.out)
    assert len(lost_in(yolofs)) == 3
    assert finding(yolofs, "journal")["level"] == "ok"


def test_a_journal_without_any_record_is_told_as_cut(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:1])
    assert about_missing(yolofs("status").err)
    assert about_missing(yolofs("snapshot", "s").err)
    assert len(lost_in(yolofs)) == len(NAMES)


def test_lines_missing_after_a_kill_are_told(yolofs: Program) -> None:
    mount(yolofs)
    view = yolofs.session / "mnt"
    (view / "six").write_text("six\n")
    journal, noted = journal_of(yolofs), yolofs.session / "journal.length"
    before = noted.read_bytes()
    wait_until(lambda: noted.read_bytes() != before, "the length being noted")
    kill(yolofs.daemon["pid"])
    yolofs("unmount", "--force")
    lines = lines_of(yolofs)
    journal.write_bytes(b"".join(line for line in lines if b" six " not in line))
    assert len(lines_of(yolofs)) < len(lines)
    assert about_missing(yolofs("snapshot", "s").err)
    assert "six\n" in lost_in(yolofs).values()


def test_a_torn_line_is_not_told_as_missing_too(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:-1], lines[-1][:-12]])
    said = yolofs("snapshot", "s").err
    assert len(about_cut(said)) == 1
    assert about_missing(said) == []


def test_a_project_that_moved_with_a_short_journal_is_told_too(yolofs: Program) -> None:
    rewrite(yolofs, lines_of(yolofs)[:3])
    moved = yolofs.project.with_name("moved")
    yolofs.project.rename(moved)
    program = Program(moved)
    assert about_missing(program("status").err)
    assert about_missing(program("snapshot", "s").err)
    assert len(lost_in(program)) == 3
