"""`init --agents` writes into a project that may be anybody's: no link there leads it elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program


@pytest.fixture
def project(tmp_path: Path, state: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude", ".claude/settings.json"])
def test_a_link_out_of_the_project_is_not_followed(project: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    if name == ".claude":
        target.mkdir()
    else:
        target.write_text("{}")
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(target)
    said = Program(project)("init", "--agents", "claude", code=3).err
    assert "outside of the project, and is not written to" in said
    assert os.listdir(target) == [] if target.is_dir() else target.read_text() == "{}"


def test_a_link_within_the_project_is_followed(project: Path) -> None:
    (project / "AGENTS.md").write_text("ours\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    Program(project)("init", "--agents", "claude")
    assert (project / "CLAUDE.md").is_symlink()
    assert "yolofs run" in (project / "AGENTS.md").read_text()


def test_what_was_put_where_a_file_is_first_written_is_left_alone(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    for name in ("CLAUDE.md", ".claude/settings.json"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / f"{name}.yolofs-new").symlink_to(target)
    Program(project)("init", "--agents", "claude")
    assert target.read_text() == "mine"
    assert (project / "CLAUDE.md").exists()
