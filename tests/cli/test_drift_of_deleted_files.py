"""The host deletes a file that the view has replaced."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.program import Program


@pytest.mark.parametrize("way", ["rename", "anew"])
def test_what_the_host_deletes_under_a_file_that_was_saved_by_a_rename_is_drift(yolofs: Program, way: str) -> None:
    """So do `sed -i` and most editors; a file that base never had is no drift."""
    project = yolofs.project
    with yolofs.mounted() as view:
        if way == "rename":
            subprocess.run(["sed", "-i", "s/one/two/", view / "a.txt"], check=True)
        else:
            (view / "a.txt").unlink()
            (view / "a.txt").write_text("two\n")
        (view / "temporary").write_text("new\n")
        (view / "temporary").rename(view / "new")
    (project / "a.txt").unlink()
    lines = yolofs("status").out.splitlines()
    assert any("!" in line and "a.txt" in line for line in lines), lines
    assert not any("!" in line and line.endswith("new") for line in lines), lines
    assert "a.txt" in yolofs("commit", "--yes", code=9).err
    dropped = yolofs("commit", "--theirs", "--yes", "a.txt")
    assert not (project / "a.txt").exists(), dropped
    yolofs("travel", "-")
    yolofs("commit", "--ours", "--yes")
    assert (project / "a.txt").read_text() == ("two\ntwo\n" if way == "rename" else "two\n")
    assert (project / "new").read_text() == "new\n"


def test_what_a_commit_itself_has_deleted_is_no_drift(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").unlink()
        yolofs("snapshot", "gone")
        (view / "a.txt").write_text("anew\n")
        yolofs("commit", "--up-to", "gone", "--yes")
        assert not (yolofs.project / "a.txt").exists()
        assert "!" not in yolofs("status").out
    yolofs("commit", "--yes")
    assert (yolofs.project / "a.txt").read_text() == "anew\n"
