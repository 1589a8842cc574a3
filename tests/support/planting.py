"""Sessions with a commit that claims to be interrupted: planted by somebody, or really so and then
tampered with.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.every_kind_of_step import prepare
from tests.support.program import run_code, run_program
from yolofs.commit.plan.plan import Create, Plan
from yolofs.journal.journal import Journal
from yolofs.journal.records import Stage
from yolofs.paths import RelPath, StoreIno

Tree = dict[bytes, tuple[Any, ...]]
STEP = 8
"""Where most commits are killed: some of it is done, most is not."""


def session_of(project: Path) -> Path:
    """Return where the session of a project lies."""
    return (project / ".yolofs").resolve()


def plant(session: Path, victim: Path, *, files: int = 300) -> None:
    """Put a session into a directory whose commit, if somebody finishes it, writes files into
    ``victim``.
    """
    (session / "files/00").mkdir(parents=True)
    (session / "files/00/1").write_text("planted\n")
    with Journal.create(os.fsencode(session / "journal")) as journal:
        journal.append(Stage(1, RelPath(b"planted"), StoreIno(1)))  # else the store inode is collected
    st = (session / "files/00/1").stat()
    steps = tuple(
        Create(RelPath(b"planted%d" % number), StoreIno(1), number, st.st_size, st.st_mtime_ns)
        for number in range(files)
    )
    plant_plan(session, Plan(os.fsencode(victim), steps))


def plant_plan(session: Path, plan: Plan, *, number: int = 1) -> Path:
    """Put a plan into a session, as of a commit that was interrupted."""
    commit = session / f"commits/{number}"
    commit.mkdir(parents=True, exist_ok=True)
    (commit / "plan.json").write_bytes(plan.encode())
    return commit


_KILLED = """
import os, signal, sys
from yolofs.cli import main
from yolofs.commit.apply import execution
really_do = execution._do_one
def do(index, *arguments):
    if index == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    really_do(index, *arguments)
execution._do_one = do
main.main(sys.argv[2:])
"""


def interrupt_commit(project: Path, step: int, *paths: str) -> None:
    """Have the commit of a project (or of some paths) killed just before a step."""
    interrupt(project, step, "commit", "--yes", *paths)


def interrupt(project: Path, step: int, *words: str) -> None:
    """Have a command that commits killed just before a step."""
    done = run_code(_KILLED, [str(step), *words], project)
    assert done.returncode == -signal.SIGKILL, done.stderr


def run(words: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal."""
    return run_program(words, cwd)


def interrupted(tmp_path: Path) -> tuple[Path, Tree]:
    """Make a project whose commit was interrupted; return it, and what the view showed."""
    project = tmp_path / "project"
    expected = prepare(project)
    interrupt_commit(project, STEP)
    return project, expected


def change_a_byte(path: Path) -> None:
    """Change a byte in the middle of a file."""
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(text)


def creating(path: bytes) -> Create:
    """Return a step that makes a file."""
    return Create(RelPath(path), StoreIno(1), 1, 1, 1)
