"""The host deletes a file that the view has replaced."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.plain_directory import RENAME_EXCHANGE
from tests.support.program import Program


@pytest.mark.mount
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


@pytest.mark.mount
@pytest.mark.parametrize("kind", ["binary", "large", "symlink", "directory", "moved"])
@pytest.mark.some(2)
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


@pytest.mark.mount
def test_a_file_that_took_the_place_of_a_new_link_is_no_drift(yolofs: Program) -> None:
    """Of the link's file base has had another name, and of its own name nothing."""
    with yolofs.mounted() as view:
        os.link(view / "a.txt", view / "link")
        (view / "new").write_text("new\n")
        (view / "new").rename(view / "link")
        assert "!" not in yolofs("status").out
    yolofs("commit", "--yes")
    assert (yolofs.project / "link").read_text() == "new\n"


@pytest.mark.mount
def test_a_file_that_a_commit_of_an_earlier_state_made_is_drift_once_the_host_deletes_it(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("early\n")
        yolofs("snapshot", "early")
        (view / "later").write_text("later\n")
        (view / "later").rename(view / "new")
        yolofs("commit", "--up-to", "early", "--yes")
        assert "!" not in yolofs("status").out
        (yolofs.project / "new").unlink()
        assert any("!" in line and "new" in line for line in yolofs("status").out.splitlines())


@pytest.mark.mount
def test_a_base_file_that_a_commit_itself_deleted_is_no_drift(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").unlink()
        yolofs("snapshot", "gone")
        (view / "a.txt").write_text("anew\n")
        yolofs("commit", "--up-to", "gone", "--yes")
        assert not (yolofs.project / "a.txt").exists()
        assert "!" not in yolofs("status").out
    yolofs("commit", "--yes")
    assert (yolofs.project / "a.txt").read_text() == "anew\n"


HOST = {"nothing": False, "links": False, "chmods": True, "writes": True, "touches": True, "replaces": True}
"""What the host does, and whether that is drift."""
AS_IT_WAS = "touches", "replaces"
"""With the same content again; the kept base tells that, even if the file is another one."""
WAYS = ("removed", "renamed and removed", "made anew", "replaced", "exchanged and removed")


@pytest.mark.parametrize(
    ("host", "is_drift", "way", "is_checkpointed"),
    [
        pytest.param(
            host,
            is_drift and not (way == "replaced" and host in AS_IT_WAS),
            way,
            is_checkpointed,
            id=f"{host}-{way}" + " from a checkpoint" * is_checkpointed,
        )
        for (host, is_drift), way, is_checkpointed in points(
            list(itertools.product(HOST.items(), WAYS, [False, True])), "edited and removed", some=8
        )
    ],
)
def test_what_the_host_writes_to_a_file_that_was_edited_and_removed_is_drift(
    tmp_path: Path, host: str, is_drift: bool, way: str, is_checkpointed: bool
) -> None:
    """As with one that is staged still: another name of it is no change of it, another mode is."""
    project = tmp_path / "project"
    project.mkdir()
    file = project / "file"
    file.write_text("old\n")
    file.chmod(0o644)
    (project / "other").write_text("other\n")
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    view.append(b"file", b"more\n")
    match host:
        case "links":
            (project / "link").hardlink_to(file)
        case "chmods":
            file.chmod(0o600)
        case "writes":
            file.write_text("new\n")
        case "touches":
            os.utime(file, (1, 1))
        case "replaces":
            file.unlink()
            file.write_text("old\n")
        case _:
            pass
    match way:
        case "removed":
            view.unlink(b"file")
        case "renamed and removed":
            view.rename(b"file", b"moved")
            view.unlink(b"moved")
        case "made anew":
            view.unlink(b"file")
            view.create(b"file", b"anew", 0o644)
        case "replaced":
            view.create(b"new", b"anew", 0o644)
            view.rename(b"new", b"file")
        case _:
            view.create(b"new", b"anew", 0o644)
            view.rename(b"new", b"file", RENAME_EXCHANGE)
            view.unlink(b"new")
    if is_checkpointed:
        assert view.session.write_checkpoint(least_records=1)
    view.close()
    found = [os.path.basename(one["path"]) for one in program("status", "--json").json["drift"]]
    assert found == (["file"] if is_drift else [])
    program("commit", "--yes", code=9 if is_drift else 0)
    if host == "writes" and way in ("made anew", "replaced"):
        program("commit", "--yes", "--merge", code=9)
        assert file.read_text() == "new\n", "it was merged as if nobody had written it"
    if host == "links":
        assert (project / "link").read_text() == "old\n"
