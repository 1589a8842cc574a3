"""What the tests of ``yolofs watch`` share: a project in which some is asked about."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cli import forked
from tests.cli.program import COMMAND, Program
from tests.mount.asking import settings


def watched_project(project: Path) -> Program:
    """Make a project and its session, where what is in ``secret`` is asked about."""
    (project / "secret/deep").mkdir(parents=True)
    (project / "secret/a").write_text("first line\nsecond line\n")
    (project / "secret/b").write_text("b\n")
    for number in range(100):
        (project / f"secret/deep/{number}").write_text(f"{number}\n")
    program = Program(project)
    program("init")
    settings(program)
    return program


def waiting(yolofs: Program) -> int:
    """Return how many asks wait."""
    return len(yolofs("asks", "--json").json["asks"])


def is_denied(ended: tuple[str, str]) -> bool:
    """Tell whether a reader was refused."""
    return ended[0] == "" and "Permission denied" in ended[1]


@contextlib.contextmanager
def alone(
    yolofs: Program, *options: str, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes] | forked.Started]:
    """Run ``yolofs watch`` with nobody at it, and end it."""
    words, cwd = ["watch", *options], yolofs.project
    with _forked(words, cwd, stdout) or subprocess.Popen(
        [*COMMAND, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _forked(words: list[str], cwd: Path, stdout: int) -> contextlib.AbstractContextManager[forked.Started] | None:
    """Start a command as a fork, where that is as good, whose end is waited for."""
    out, err = os.pipe(), os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    to = {subprocess.PIPE: out[1], subprocess.DEVNULL: null}.get(stdout, stdout)
    started = forked.server().start(words, cwd=str(cwd), env=os.environ, streams=(null, to, err[1]))
    for fd in (out[1], err[1], null):
        os.close(fd)
    reading = open(out[0], "rb"), open(err[0], "rb")  # noqa: SIM115 - as long as the command
    if started is None:
        for file in reading:
            file.close()
        return None
    started.stdout, started.stderr = reading
    return _ending(started)


@contextlib.contextmanager
def _ending(started: forked.Started) -> Iterator[forked.Started]:
    assert started.stdout is not None
    assert started.stderr is not None
    with started.stdout, started.stderr:
        yield started
        started.wait()
