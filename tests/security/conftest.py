"""What the tries at a session share: a project, a state directory of its own, and other users."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until, with_few_files


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory for this test alone; it is not there yet."""
    above = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(above))
    return above / "yolofs"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory for this test alone."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory that nobody works on."""
    directory = tmp_path / "victim"
    directory.mkdir()
    (directory / "precious").write_text("precious\n")
    return directory


def end_daemon(session: Path) -> None:
    """End the daemon of a session, wherever its project is by now, and wait until its mount is
    gone.
    """
    described = session / "daemon.json"
    if not described.exists():
        return
    pid = json.loads(described.read_text())["pid"]
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not described.exists(), "the daemon has ended")


@pytest.fixture
def yolofs(tmp_path: Path, state: Path) -> Iterator[Program]:
    """The program in a project with a session, which is unmounted at the end."""
    program = with_few_files(tmp_path / "project")
    session = Path(os.path.realpath(program.session))
    yield program
    end_daemon(session)
