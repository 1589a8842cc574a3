"""``yolofs diff README.md``: a path needs no ``--`` where it is no generation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Program]:
    project = tmp_path_factory.mktemp("worked") / "project"
    (project / "src").mkdir(parents=True)
    for name in ("README.md", "src/a", "src/b", "gone", "2"):
        (project / name).write_text(f"{name}\n")
    program = Program(project)
    program.start_session()
    program("mount")
    program.wait_for_watcher()
    program("run", "sh", "-c", "echo 1 >> README.md; echo 1 >> src/a; rm gone")
    program("run", "sh", "-c", "echo 2 >> README.md; echo 2 >> src/b; echo 2 > new; echo 2 >> 2")
    yield program
    program("unmount", "--force")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["README.md"], ["README.md"]),
        (["src"], ["src/a", "src/b"]),
        (["src/b", "new"], ["new", "src/b"]),
        (["1", "src"], ["src/a"]),
        (["1..", "src", "new"], ["new", "src/b"]),
        (["src/a", "--", "src/b"], ["src/a", "src/b"]),
        (["gone"], ["gone"]),
        (["--run", "2", "src"], ["src/b"]),
        (["2"], ["2", "README.md", "new", "src/b"]),
        (["--", "2"], ["2"]),
    ],
)
def test_a_word_that_is_no_generation_is_taken_for_a_path(worked: Program, words: list[str], names: list[str]) -> None:
    assert sorted(worked("diff", "--name-only", *words).out.split()) == names
    if "--run" not in words:
        hunks = worked("hunks", "--json", *words).json["hunks"]
        assert sorted({Path(hunk["path"]).relative_to(worked.project).as_posix() for hunk in hunks}) == names


def test_a_word_that_is_both_is_taken_for_the_generation_with_a_note(worked: Program) -> None:
    assert "note: 2 is a generation here; for the path: yolofs diff -- 2" in worked("diff", "--name-only", "2").err
    assert "note: " not in worked("diff", "--name-only", "1").err
    assert "note: " not in worked("diff", "--name-only", "--", "2").err


def test_the_log_takes_paths_as_well(worked: Program) -> None:
    assert worked("log", "src/b").out == worked("log", "--", "src/b").out != ""
    assert worked("log", "1..", "src/a").out == worked("log", "1..", "--", "src/a").out


def test_the_review_takes_paths_as_well(worked: Program) -> None:
    with Terminal(worked.project, ["review", "src"], size=(100, 24)) as terminal:
        terminal.wait_for_screen("src", "a", "b")
        assert "README" not in terminal.screen
        terminal.type("q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("command", ["diff", "hunks", "log", "review"])
def test_a_word_that_is_neither_is_refused_with_the_nearest_path(worked: Program, command: str) -> None:
    if command != "review":  # which wants a terminal first
        said = worked.refused(command, "READM.md", code=7)
        assert "there is no snapshot named READM.md, and no such path\nhint: did you mean README.md?\n" in said
        said = worked.refused(command, "nowhere-at-all", code=7)
        assert "there is no snapshot named nowhere-at-all, and no such path\nhint: yolofs timeline" in said
        assert "there is no generation 7: the newest is 2\n" in worked.refused(command, "7", code=7)
        said = worked.refused(command, "1", "3", code=2)
        assert f"3 is no path, and there is a range already: 1\nhint: two generations: yolofs {command} 1..3\n" in said
    else:
        with Terminal(worked.project, ["review", "READM.md"]) as terminal:
            terminal.wait_for("there is no snapshot named READM.md, and no such path")
            assert terminal.wait() == 7
