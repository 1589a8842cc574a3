"""What the tests of ``yolofs watch`` share: a project in which some is asked about."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.asking import settings
from tests.support.program import Program
from tests.support.started import Running, start


def watched_project(project: Path) -> Program:
    """Make a project and its session, where what is in ``secret`` is asked about."""
    (project / "secret/deep").mkdir(parents=True)
    (project / "secret/a").write_text("first line\nsecond line\n")
    (project / "secret/b").write_text("b\n")
    for number in range(100):
        (project / f"secret/deep/{number}").write_text(f"{number}\n")
    program = Program(project)
    program.start_session()
    settings(program)
    return program


def waiting(yolofs: Program) -> int:
    """Return how many asks wait."""
    return len(yolofs("asks", "--json").json["asks"])


def is_denied(ended: tuple[str, str]) -> bool:
    """Tell whether a reader was refused."""
    return ended[0] == "" and "Permission denied" in ended[1]


@contextlib.contextmanager
def alone(yolofs: Program, *options: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes] | Running]:
    """Run ``yolofs watch`` with nobody at it, and end it."""
    with start(["watch", *options], yolofs.project, stdout=stdout) as process:
        try:
            yield process
        finally:
            process.terminate()
