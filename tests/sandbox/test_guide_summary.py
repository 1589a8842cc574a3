"""The summary of a run that the guide quotes is what a run prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.sandbox.repositories import git

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


def test_the_guide_shows_the_summary_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quoted = re.findall(r"^```text\n(yolofs: run .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "notes.txt").write_text("note\n")
    project = tmp_path / "project"
    (project / "tests/fixtures").mkdir(parents=True)
    (project / "tests/fixtures/one.json").write_text("{}\n")
    (project / "package.json").write_text("{}\n")
    (project / ".yolofs.toml").write_text("scratch = []\n")  # where the home of a test lies would be some
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "config", "user.name", "u")
    git(project, "config", "user.email", "u@example.org")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "first")
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted("--root", "/"):
        yolofs("rule", "allow", tmp_path / "notes.txt")
        for number in range(3):
            yolofs("run", "--no-review", "--", "sh", "-c", f"echo {number} > kept")
        said = yolofs("run", "--", "sh", "-c", WORK).err
    shown = said.replace(str(tmp_path), "/home/u")
    assert [_COUNTS.sub("N", text) for text in quoted] == [_COUNTS.sub("N", shown)]
