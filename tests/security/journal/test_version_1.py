"""A journal of version 1 is read, and damage to it is noticed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.security.journal.damaged import about_cut, changes_of, finding, journal_of, lines_of, rewrite, tear
from tests.support.program import Program

pytestmark = pytest.mark.mount
STORED = Path(__file__).parents[2] / "fixtures/journal-1"
"""A session's journal of version 1, and the sum of its parts."""


@pytest.fixture
def stored(tmp_path: Path) -> Program:
    """Return the program in a project whose session an earlier yolofs has left, with its journal of
    version 1.
    """
    project = tmp_path / "project"
    shutil.copytree(STORED / "project", project)
    program = Program(project)
    program.start_session()
    shutil.copytree(STORED / "session", program.session, dirs_exist_ok=True)
    for made, _, _ in os.walk(program.session):
        os.chmod(made, 0o700)
    (program.session / "session.json").write_text(json.dumps({"root": str(project), "configured": "/", "version": 1}))
    return program


STAGED = ["D  b.txt", "A  later", "A  moved", "A  two words"]


def test_a_stored_journal_of_version_1_is_read_and_written_to_until_it_ends(stored: Program) -> None:
    assert changes_of(stored) == STAGED
    assert stored("log", "-v").out.count("first") >= 1
    found = finding(stored, "journal")
    assert found["level"] == "ok"
    assert "version 1" in found["message"]
    before = journal_of(stored).read_bytes()
    with stored.mounted() as view:
        assert sorted(path.name for path in view.iterdir()) == [".yolofs.toml", "a.txt", "later", "moved", "two words"]
        assert (view / "two words").read_text() == "two words\nx"
        (view / "six").write_text("6\n")
        stored("travel", "first")
        assert sorted(path.name for path in view.iterdir()) == [".yolofs.toml", "a.txt", "b.txt", "one", "two words"]
        stored("travel", "-")
        (view / "seven").write_text("7\n")
    after = journal_of(stored).read_bytes()
    assert after.startswith(before)
    assert changes_of(stored) == ["D  b.txt", *STAGED[1:3], "A  seven", "A  six", STAGED[3]]
    stored("commit", "--yes", "six")
    assert journal_of(stored).read_bytes().startswith(b"yolofs-journal 2 ")
    assert (stored.session / "commits/1/journal").read_bytes().startswith(after)
    assert changes_of(stored) == ["D  b.txt", *STAGED[1:3], "A  seven", STAGED[3]]
    stored("commit", "--yes", "--force")
    assert sorted(path.name for path in stored.project.iterdir() if not path.name.startswith(".")) == [
        "a.txt",
        "later",
        "moved",
        "seven",
        "six",
        "two words",
    ]


def test_a_stored_journal_of_version_1_ends_with_an_abort_too(stored: Program) -> None:
    stored("abort", "--yes")
    assert journal_of(stored).read_bytes().startswith(b"yolofs-journal 2 ")
    assert changes_of(stored) == []
    assert "version" not in finding(stored, "journal")["message"]


def test_a_torn_tail_of_version_1_is_told_until_the_journal_ends(stored: Program) -> None:
    before = journal_of(stored).read_bytes()
    line = tear(stored)
    assert f"from line {line} " in about_cut(stored("mount", "--root", ".").err)[0]
    stored("unmount")
    assert journal_of(stored).read_bytes() == before
    assert len(about_cut(stored("status").err)) == 1
    stored("abort", "--yes")
    assert stored("status").err == ""


def test_damage_of_version_1_is_told_as_before(stored: Program) -> None:
    lines = lines_of(stored)
    lines[5] = lines[5].replace(b"later", b"LATER")
    rewrite(stored, lines)
    message = stored.refused("status", code=6)
    assert "journal, line 6 (byte " in message
    assert "the checksum does not match" in message
    stored("doctor", "--repair", "--yes")
    assert changes_of(stored) == ["A  moved", "A  two words"]


def test_a_version_that_is_not_known_yet_is_refused_and_not_touched(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [b"yolofs-journal 3 and so on\n", *lines[1:]])
    for words in (["status"], ["mount"], ["doctor", "--repair", "--yes"]):
        assert "has format version 3, but this yolofs reads versions 1 to 2" in yolofs.refused(*words, code=6)
    assert lines_of(yolofs)[1:] == lines[1:]


def test_a_damaged_first_line_is_told(yolofs: Program) -> None:
    lines = lines_of(yolofs)
    rewrite(yolofs, [lines[0].replace(b" 2 ", b" 2 0"), *lines[1:]])
    for words in (["status"], ["mount"], ["doctor", "--repair", "--yes"]):
        assert "journal is damaged in its first line" in yolofs.refused(*words, code=6)
