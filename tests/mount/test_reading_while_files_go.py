"""Commands that look at a session while a program in the view makes and removes files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = pytest.mark.mount

COMMANDS = (
    ("status",),
    ("diff",),
    ("diff", "--stat"),
    ("diff", "--list"),
    ("hunks",),
    ("blame", "stays"),
    ("ls", "-lR", ":"),
    ("cat", ":stays"),
    ("log", "-v"),
    ("commit", "--dry-run"),
    ("restore", "old"),
)


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    (project / "old").write_text("old\n")
    program.start_session()
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        (mountpoint / "stays").write_text("stays\n")
        for number in range(300):
            (mountpoint / f"f{number}").write_text(f"{number}\n")
        yield mountpoint


class Writer:
    """Removes files and makes them anew, as fast as it goes."""

    def __init__(self, view: Path) -> None:
        self.count = 0
        self._view = view
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ends.is_set():
            path = self._view / f"f{self.count % 300}"
            path.unlink()
            path.write_text(f"{self.count}\n")
            self.count += 1


@pytest.mark.parametrize("words", points(COMMANDS, "reading while files go", some=2), ids=" ".join)
def test_no_command_misses_a_file_that_goes_meanwhile(yolofs: Program, view: Path, words: tuple[str, ...]) -> None:
    with Writer(view) as writer:
        for _ in range(4):
            before = writer.count
            (view / "old").write_text(f"{before}\n")
            done = yolofs(*words)
            assert "missing" not in done.err
            assert "No such file" not in done.err
            assert writer.count > before
