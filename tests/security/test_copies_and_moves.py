"""A copy of a project has no session; a moved project keeps its own; one that is gone is listed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_a_copy_neither_drives_nor_sees_the_session_of_the_original(yolofs: Program, tmp_path: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", yolofs.project, copy], check=True)
    for words in (("status",), ("unmount",), ("commit", "--yes"), ("abort", "--yes"), ("run", "--", "true")):
        said = yolofs.refused(*words, code=4, cwd=copy)
        assert f"{copy} is a copy of {yolofs.project}, and a copy has no session" in said
        assert "yolofs init starts one of its own" in said
    assert yolofs("run", "--", "cat", "new.txt").out == "staged\n"
    yolofs("init", cwd=copy)
    assert yolofs("status", "--json", cwd=copy).json["changes"] == []
    assert not (copy / "new.txt").exists()


def test_a_copy_within_the_project_is_a_part_of_it(yolofs: Program) -> None:
    copy = yolofs.project / "copy"
    shutil.copytree(yolofs.project, copy, symlinks=True)
    assert yolofs("status", "--json", cwd=copy).json["project"] == str(yolofs.project)


def test_a_moved_project_goes_on_at_its_new_path(yolofs: Program, tmp_path: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt; mv dir moved; echo more >> a.txt; rm -f moved/b.txt")
    yolofs("snapshot", "one")
    yolofs("run", "--", "sh", "-c", "echo other > new.txt")
    yolofs("rule", "deny", "vendor")
    yolofs("unmount")
    new = tmp_path / "elsewhere/renamed"
    new.parent.mkdir()
    yolofs.project.rename(new)
    moved = Program(new)
    said = moved("status").err
    assert f"{new} was {yolofs.project}: its session goes on here, with all that is staged" in said
    assert moved("status").err == ""
    paths = {(change["kind"], change["path"]) for change in moved("status", "--json").json["changes"]}
    assert ("M", str(new / "a.txt")) in paths
    assert ("A", str(new / "new.txt")) in paths
    assert moved("run", "--", "cat", "new.txt").out == "other\n"
    moved("travel", "one")
    assert moved("run", "--", "cat", "new.txt", "a.txt").out == "staged\none\ntwo\nmore\n"
    assert "vendor" in moved("rule", "list").out
    moved("commit", "--yes")
    moved("unmount")
    assert (new / "new.txt").read_text() == "staged\n"
    assert (new / "moved").is_dir()
    assert not (new / "dir").exists()
    assert not yolofs.project.exists()


def test_a_project_that_is_moved_under_its_mount_is_refused_until_it_is_unmounted(
    yolofs: Program, tmp_path: Path
) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt")
    new = tmp_path / "renamed"
    yolofs.project.rename(new)
    moved = Program(new)
    assert "yolofs unmount" in moved.refused("status", code=5)
    moved("unmount")
    assert moved("run", "--", "cat", "new.txt").out == "staged\n"
    moved("unmount")


def test_what_is_at_the_path_of_a_project_that_is_gone_is_another_project(yolofs: Program, tmp_path: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt")
    yolofs("unmount")
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-a", yolofs.project, kept], check=True)
    shutil.rmtree(yolofs.project)
    yolofs.project.mkdir()
    said = yolofs.refused("status", code=4)
    assert f"another directory is at {yolofs.project} now" in said
    (session,) = yolofs("sessions", "--json").json["sessions"]
    assert (session["condition"], session["staged"]) == ("replaced", True)
    assert session["id"] in yolofs("sessions").out
    yolofs("sessions", "--rebase", kept, cwd=tmp_path)
    restored = Program(kept)
    assert restored("run", "--", "cat", "new.txt").out == "staged\n"
    restored("commit", "--yes")
    restored("unmount")
    assert (kept / "new.txt").read_text() == "staged\n"


def test_a_session_is_forgotten_with_all_that_is_staged_in_it(yolofs: Program, tmp_path: Path) -> None:
    session = Path(os.path.realpath(yolofs.session))
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt")
    (entry,) = yolofs("sessions", "--json").json["sessions"]
    assert (entry["condition"], entry["project"]) == ("mounted", str(yolofs.project))
    said = yolofs.refused("sessions", "--forget", "--yes", entry["id"], code=5)
    assert f"is mounted\nhint: yolofs unmount {entry['id']}" in said
    yolofs("unmount")
    assert "--forget --yes" in yolofs.refused("sessions", "--forget", entry["id"], code=2)
    assert session.is_dir()
    yolofs("sessions", "--forget", "--yes", entry["id"])
    assert not session.exists()
    assert not os.path.lexists(yolofs.project / ".yolofs")
    assert yolofs("sessions", "--json").json["sessions"] == []
    yolofs.refused("status", code=4)


def test_a_project_that_is_deleted_under_its_mount_is_unmounted_by_its_id(yolofs: Program, tmp_path: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt; echo more >> a.txt; rm dir/b.txt")
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-a", yolofs.project, kept], check=True)
    shutil.rmtree(yolofs.project)
    kept.rename(yolofs.project)
    (entry,) = yolofs("sessions", "--json").json["sessions"]
    assert f"still mounted: yolofs unmount {entry['id']}" in yolofs("sessions").out
    said = yolofs.refused("sessions", "--rebase", ".", code=5)
    assert f"yolofs unmount {entry['id']}" in said
    yolofs("unmount", entry["id"])
    yolofs("sessions", "--rebase", ".")
    yolofs("commit", "--yes")  # the changed and the removed file are the same, with other numbers
    assert (yolofs.project / "new.txt").read_text() == "staged\n"
    assert (yolofs.project / "a.txt").read_text() == "one\ntwo\nmore\n"
    assert not (yolofs.project / "dir/b.txt").exists()


def test_what_was_changed_in_a_copy_is_a_conflict_there(yolofs: Program, tmp_path: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo more >> a.txt; echo staged > new.txt; rm -r dir")
    yolofs("unmount")
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-a", yolofs.project, kept], check=True)
    (kept / "a.txt").write_text("changed\n")
    (kept / "dir/b.txt").write_text("changed\n")
    shutil.rmtree(yolofs.project)
    yolofs("sessions", "--rebase", kept, cwd=tmp_path)
    told = Program(kept)("commit", "--yes", code=9).err
    assert "base has changed at 2 paths" in told
    assert "a.txt" in told
    assert f"{kept}/dir" in told


def test_a_session_whose_disk_is_away_is_only_taken_off_the_list(yolofs: Program, tmp_path: Path, state: Path) -> None:
    yolofs("run", "--", "sh", "-c", "echo staged > new.txt")
    yolofs("unmount")
    session = yolofs.session
    session.rename(state / "away")
    yolofs.refused("sessions", "--forget", session.name, code=2)
    done = yolofs("sessions", "--forget", "--yes", session.name)
    assert f"is no longer listed; what is staged in it, if it is still there, stays in {session}" in done.err
    assert (state / "away/journal").exists()


def test_wrong_arguments_of_the_sessions_command_are_refused(yolofs: Program, tmp_path: Path) -> None:
    assert "yolofs sessions lists them" in yolofs.refused("sessions", "--forget", "nothing", code=4)
    assert "which one is meant" in yolofs.refused("sessions", "--forget", code=2)
    (entry,) = yolofs("sessions", "--json").json["sessions"]
    other = tmp_path / "other"
    other.mkdir()
    assert "is still there" in yolofs.refused("sessions", "--rebase", other, entry["id"], code=2)
    assert "is not a directory" in yolofs.refused("sessions", "--rebase", tmp_path / "no", entry["id"], code=2)


def test_a_nested_session_is_told_of_the_one_above(yolofs: Program) -> None:
    done = yolofs("init", "dir")
    assert f"{yolofs.project} above it has a session, too" in done.err
    assert yolofs("status", "--json", cwd=yolofs.project / "dir").json["project"] == str(yolofs.project / "dir")
    assert yolofs("status", "--json").json["project"] == str(yolofs.project)
