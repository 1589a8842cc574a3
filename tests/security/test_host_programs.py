"""Programs that yolofs starts on the host are never an agent's staged ones, wherever PATH leads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount
NAMES = ("git", "bwrap", "fusermount3")


def stage_programs(view: Path, proof: Path) -> Path:
    """Put programs of these names into a directory of the view, which leave a trace if they run."""
    directory = view / "bin"
    directory.mkdir()
    for name in NAMES:
        (directory / name).write_text(f"#!/bin/sh\necho {name} >> {proof}\nexit 1\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.mark.parametrize("is_linked", [False, True])
def test_none_of_path_in_the_view_is_run(yolofs: Program, tmp_path: Path, is_linked: bool) -> None:
    proof = tmp_path / "proof"
    (yolofs.project / "text").write_text("1\n2\n3\n4\n5\n")
    with yolofs.mounted() as view:
        directory = stage_programs(view, proof)
        if is_linked:
            (tmp_path / "link").symlink_to(directory)
            directory = tmp_path / "link"
        search_path = f"{directory}:{os.environ['PATH']}"
        (view / "text").write_text("one\n2\n3\n4\n5\n")
        (yolofs.project / "text").write_text("1\n2\n3\n4\nfive\n")
        yolofs("commit", "--yes", "--merge", "text", PATH=search_path)
        assert (yolofs.project / "text").read_text() == "one\n2\n3\n4\nfive\n"
        yolofs("doctor", PATH=search_path)
    assert not proof.exists()


def test_the_sandbox_is_not_made_by_a_program_of_the_view(yolofs: Program, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    view = Path(yolofs("mount", "--root", "/").out.rstrip("\n"))
    directory = stage_programs(view / str(yolofs.project)[1:], proof)
    assert yolofs("run", "--", "echo", "run", PATH=f"{directory}:{os.environ['PATH']}").out == "run\n"
    assert not proof.exists()
