"""A session of an earlier version, as one was stored, put into a project."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path

STORED = Path(__file__).parents[1] / "fixtures/earlier-session"
FILES = {"a.txt": "one\ntwo\nthree\n", "dir/b.txt": "b\n", "old.txt": "old\n"}
"""What base had in the project, which the session is about."""


def put_earlier_session(project: Path) -> Path:
    """Make a project with its files and its ``.yolofs/``; return the latter."""
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    session = project / ".yolofs"
    shutil.copytree(STORED, session)
    for path in (session, *session.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)  # as they were; git keeps no such modes
    for path in (session / "journal", session / "commits/1/journal", session / "audit.jsonl"):
        path.write_bytes(b"".join(_line(line, project) for line in path.read_bytes().splitlines(keepends=True)))
    return session


def add_records(session: Path, *records: str) -> None:
    """Append records, without their checksums, to the journal of such a session."""
    with (session / "journal").open("ab") as journal:
        for record in records:
            journal.write(_sealed(os.fsencode(record)))


def sealed(record: str) -> str:
    """Return a record as a line of such a journal."""
    return _sealed(os.fsencode(record)).decode()


def _line(line: bytes, project: Path) -> bytes:
    line = line.replace(b"@PROJECT@", os.fsencode(project).lstrip(b"/"))
    body, mark, _ = line.rpartition(b" #@CRC@\n")
    return _sealed(body) if mark else line


def _sealed(body: bytes) -> bytes:
    return b"%b #%08x\n" % (body, zlib.crc32(body + b" "))
