"""The host deletes a file that the view has replaced."""

from __future__ import annotations

import os
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
    yolofs("travel", "before merging")
    yolofs("commit", "--ours", "--yes")
    assert (project / "a.txt").read_text() == ("two\ntwo\n" if way == "rename" else "two\n")
    assert (project / "new").read_text() == "new\n"


@pytest.mark.parametrize("kind", ["binary", "large", "symlink", "directory", "moved"])
def test_whatever_kind_the_host_deletes_under_a_name_that_was_replaced_is_drift(yolofs: Program, kind: str) -> None:
    """It stays so when other paths are committed."""
    place = yolofs.project / "place"
    match kind:
        case "binary":
            place.write_bytes(b"\0" * 9)
        case "large":
            place.write_text("line\n" * (2 << 20))
        case "symlink":
            place.symlink_to("a.txt")
        case "directory":
            place.mkdir()
        case _:
            place.write_text("one\n")
    with yolofs.mounted() as view:
        if kind == "directory":
            (view / "new").mkdir()
        elif kind == "moved":
            (yolofs.project / "other").write_text("other\n")
            (view / "other").rename(view / "new")
        else:
            (view / "new").write_text("new\n")
        (view / "new").rename(view / "place")
        (view / "apart").write_text("apart\n")
        yolofs("snapshot", "early")
        (view / "late").write_text("late\n")
    place.rmdir() if kind == "directory" else place.unlink()

    def is_drift() -> bool:
        return any("!" in line and "place" in line for line in yolofs("status").out.splitlines())

    assert is_drift()
    assert "place" in yolofs("commit", "--yes", code=9).err
    yolofs("commit", "--yes", "apart")
    assert is_drift()
    yolofs("commit", "--ours", "--yes")
    assert not is_drift()
    assert os.path.lexists(place)


def test_a_file_that_took_the_place_of_a_new_link_is_no_drift(yolofs: Program) -> None:
    """Of the link's file base has had another name, and of its own name nothing."""
    with yolofs.mounted() as view:
        os.link(view / "a.txt", view / "link")
        (view / "new").write_text("new\n")
        (view / "new").rename(view / "link")
        assert "!" not in yolofs("status").out
    yolofs("commit", "--yes")
    assert (yolofs.project / "link").read_text() == "new\n"


def test_what_an_early_commit_puts_there_is_drift_once_the_host_deletes_it(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("early\n")
        yolofs("snapshot", "early")
        (view / "later").write_text("later\n")
        (view / "later").rename(view / "new")
        yolofs("commit", "--up-to", "early", "--yes")
        assert "!" not in yolofs("status").out
        (yolofs.project / "new").unlink()
        assert any("!" in line and "new" in line for line in yolofs("status").out.splitlines())


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
