"""The summary of a run that the guide quotes is what a run prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.repositories import git

PAGE = Path(__file__).parents[2] / "docs/guide/working-with-an-agent.md"
WORK = """
rm -r tests/fixtures
echo more >> ~/notes.txt
echo '{ }' > package.json
echo note > notes.md
git add notes.md && git commit --quiet --message second
git add package.json
"""
_COUNTS = re.compile(r"\d+(?= changes|,? ?(?:added|modified|deleted))")
"""How many files git writes for a commit is its own business."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new repository in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project = tmp_path / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text("scratch = []\n")  # where the home of a test lies would be some
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "config", "user.name", "u")
    git(project, "config", "user.email", "u@example.org")
    return project


def quoted(first: str) -> list[str]:
    """Return the blocks of the guide that begin so."""
    return re.findall(rf"^```text\n({first}.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def started(project: Path) -> Program:
    """Commit all that is in a repository to git, and start a session there."""
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "first")
    yolofs = Program(project)
    yolofs.start_session()
    return yolofs


@pytest.mark.mount
def test_the_guide_shows_the_summary_of_a_run(project: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("note\n")
    (project / "tests/fixtures").mkdir(parents=True)
    (project / "tests/fixtures/one.json").write_text("{}\n")
    (project / "package.json").write_text("{}\n")
    yolofs = started(project)
    with yolofs.mounted("--root", "/"):
        yolofs("rule", "allow", tmp_path / "notes.txt")
        for number in range(3):
            yolofs("run", "--no-review", "--", "sh", "-c", f"echo {number} > kept")
        said = yolofs("run", "--", "sh", "-c", WORK).err
    shown = said.replace(str(tmp_path), "/home/u")
    assert [_COUNTS.sub("N", text) for text in quoted("yolofs: run ")] == [_COUNTS.sub("N", shown)]


@pytest.mark.mount
def test_the_guide_shows_what_is_told_of_a_hidden_file_that_git_tracks_no_more(project: Path, tmp_path: Path) -> None:
    (project / ".env").write_text("A=1\n")
    yolofs = started(project)
    with yolofs.mounted("--root", "/"):
        said = yolofs("run", "--", "sh", "-c", "echo >new; git add new; git commit --quiet --all --message second").err
    (told,) = quoted("git took ")
    assert told in said.replace(str(tmp_path), "/home/u")
