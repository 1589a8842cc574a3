"""``yolofs review`` at a real terminal: each key, over a real mount."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program, wait_until
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.mount

LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def yolofs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    project = tmp_path_factory.mktemp("r") / "p"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text(LINES)
    (project / "src/b.py").write_text("b = 1\n")
    (project / "gone.txt").write_text("precious\n")
    program = Program(project)
    program("init")
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        text = LINES.replace("line 2\n", "line two\n").replace("line 20\n", "line twenty\nand more\n")
        (mountpoint / "src/a.py").write_text(text)
        (mountpoint / "src/new.txt").write_text("first\nsecond\nthird\n")
        (mountpoint / "gone.txt").unlink()
        yield mountpoint


def review(yolofs: Program, *words: str, size: tuple[int, int] = (100, 24), **env: str) -> Terminal:
    return Terminal(yolofs.project, ["review", *words], size=size, **env)


def test_the_first_screen_has_deletions_first_and_the_lines_of_what_the_cursor_is_on(
    yolofs: Program, view: Path
) -> None:
    with review(yolofs) as terminal:
        terminal.wait_for_screen("yolofs review: 3 changes", "deleted (1)", "-precious")
        rows = [line.partition("│")[0].strip() for line in terminal.screen.splitlines()[1:7]]
        assert rows == ["deleted (1)", "D gone.txt", "in the project (2)", "src/", "M a.py", "A new.txt"]
        terminal.type("q")
        assert terminal.wait() == 0
