"""The audit's file: what is appended can be read, whatever happened to the file meanwhile."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from yolofs.audit.audit import (
    AskNote,
    AuditLog,
    Note,
    Process,
    RefusalNote,
    RuleChange,
    RuleNote,
    note_journal_end,
    read_audit,
    run_notes,
)

RULE = RuleNote("/d", "ask", ".yolofs.toml:3")
ASK = AskNote(5, 1, "/d/%FF%0A", "read", "ask", RULE, Process(7, "cat", ("cat", "%FF")), 2, "allowed", "me", 1200)
REFUSAL = RefusalNote(6, "/d/x", "write", "deny", None, Process(0), 3)
CHANGE = RuleChange(7, "**/.env", None, "deny", "the preset")


@pytest.fixture
def directory(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def append(directory: bytes, *notes: Note) -> None:
    audit = AuditLog(directory)
    for note in notes:
        audit.append(note)
    audit.close()


def raw(directory: bytes) -> Path:
    return Path(os.fsdecode(directory)) / "audit.jsonl"


def test_notes_are_read_as_they_were_appended(directory: bytes) -> None:
    assert list(read_audit(directory)) == []
    append(directory, ASK, REFUSAL)
    append(directory, CHANGE)
    assert list(read_audit(directory)) == [ASK, REFUSAL, CHANGE]
    assert raw(directory).stat().st_mode & 0o777 == 0o600
    assert [json.loads(line)["kind"] for line in raw(directory).read_bytes().splitlines()] == ["ask", "refusal", "rule"]


@pytest.mark.parametrize("left", [b"", b'{"kind":"ask","time', b"\xff\xfe", b'{"kind":"later version"}', b"[]\n\n{}"])
def test_a_torn_line_costs_nothing_but_itself(directory: bytes, left: bytes) -> None:
    append(directory, ASK)
    with raw(directory).open("ab") as file:
        file.write(left)
    assert list(read_audit(directory)) == [ASK]
    append(directory, REFUSAL)
    assert list(read_audit(directory)) == [ASK, REFUSAL]


@pytest.mark.parametrize("moved", [True, False])
def test_a_file_that_is_moved_away_is_begun_anew(directory: bytes, moved: bool) -> None:
    audit = AuditLog(directory)
    audit.append(ASK)
    raw(directory).rename(raw(directory).with_name("kept")) if moved else raw(directory).unlink()
    audit.append(REFUSAL)
    audit.append(CHANGE)
    audit.close()
    assert list(read_audit(directory)) == [REFUSAL, CHANGE]


def test_unknown_keys_are_passed_over(directory: bytes) -> None:
    append(directory, REFUSAL)
    line = json.loads(raw(directory).read_bytes()) | {"new": [1, {"x": None}]}
    raw(directory).write_text(json.dumps(line) + "\n")
    assert list(read_audit(directory)) == [REFUSAL]


def test_after_a_write_that_was_cut_short_the_next_one_begins_a_line(directory: bytes, tmp_path: Path) -> None:
    audit = AuditLog(directory)
    audit.append(ASK)
    size = raw(directory).stat().st_size
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
        with pytest.raises(OSError, match="cut short"):
            audit.append(REFUSAL)
        with pytest.raises(OSError, match="File too large"):
            audit.append(REFUSAL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    audit.append(CHANGE)
    audit.close()
    assert list(read_audit(directory)) == [ASK, CHANGE]


def test_an_audit_without_a_note_has_no_file(directory: bytes) -> None:
    append(directory)
    note_journal_end(directory, is_commit=True)
    assert not raw(directory).exists()


def test_notes_of_a_journal_before_this_one_are_not_read(directory: bytes) -> None:
    append(directory, ASK)
    note_journal_end(directory, is_commit=True)
    append(directory, REFUSAL)
    assert list(read_audit(directory)) == [REFUSAL]
    assert json.loads(raw(directory).read_bytes().splitlines()[1])["is_commit"] is True


def test_a_link_in_the_place_of_the_audit_is_not_followed(directory: bytes, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        AuditLog(directory).append(ASK)
    note_journal_end(directory, is_commit=False)
    assert not (tmp_path / "elsewhere").exists()


def test_a_torn_end_that_came_meanwhile_costs_nothing_but_itself(directory: bytes) -> None:
    audit = AuditLog(directory)
    audit.append(ASK)
    with raw(directory).open("ab") as file:
        file.write(b'{"kind":"refusal"')
    audit.append(REFUSAL)
    audit.close()
    assert list(read_audit(directory)) == [ASK, REFUSAL]


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")])
def test_something_else_in_the_place_of_the_audit_is_left_alone(directory: bytes, make: Callable[[Path], None]) -> None:
    audit = AuditLog(directory)
    audit.append(ASK)
    raw(directory).unlink()
    make(raw(directory))
    for _ in range(2):
        with pytest.raises(OSError, match=r"directory|not a regular file|symbolic link|No such device"):
            audit.append(REFUSAL)
    assert list(read_audit(directory)) == list(run_notes(directory)) == []
    raw(directory).rmdir() if raw(directory).is_dir() else raw(directory).unlink()
    audit.append(CHANGE)
    audit.close()
    assert list(read_audit(directory)) == [CHANGE]
