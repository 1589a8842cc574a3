"""``yolofs undo`` where the host has changed since what a commit had applied."""

from __future__ import annotations

import os
import stat

import pytest

from tests.cli.undone import Committed, committed, view_of
from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program

__all__ = ["committed"]

pytestmark = pytest.mark.mount


def test_a_file_that_the_host_changed_since_the_commit_is_drift_for_an_undo(committed: Committed) -> None:
    yolofs, before = committed
    (yolofs.project / "a.txt").write_text("the host's\n")
    (yolofs.project / "new/by the host").write_text("the host's\n")
    now = looks(yolofs.project)
    told = yolofs.refused("undo", "--yes", code=9)
    assert "base has changed at 2 paths since commit 1" in told
    assert f"{yolofs.project}/a.txt" in told
    assert f"{yolofs.project}/new/by the host" in told
    assert looks(yolofs.project) == now
    yolofs("undo", "1", "dir", "moved", "--yes")  # other paths can be taken back
    assert (yolofs.project / "moved").exists()
    told_before = yolofs("undo", "1", "--dry-run", "--force").out.splitlines()
    assert "M  a.txt  [changed in base, too]" in told_before
    assert "D  new/by the host  [changed in base, too]" in told_before
    assert sum("[changed in base, too]" in line for line in told_before) == 2
    yolofs("undo", "1", "--yes", "--force")
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }
    shown = view_of(yolofs)
    assert shown["a.txt"][1] == b"the host's\n"  # nothing is lost: what it replaced is staged
    assert shown["new/by the host"][1] == b"the host's\n"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_undo_names_files_in_a_directory_that_the_host_moved_and_what_to_do(
    committed: Committed, force: tuple[str, ...]
) -> None:
    yolofs, _ = committed
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "dir/b.txt").write_text("new\n")
        (view / "a.txt").write_text("new\n")
    yolofs("commit", "--yes")
    (project / "dir").rename(project / "elsewhere")
    done = yolofs("undo", "2", "--yes", "--json", *force, code=16)
    assert [one["path"] for one in done.json["stays"]] == [f"{project}/dir/b.txt"]
    told = done.err
    assert "yolofs: 1 path stays as it is; all else of commit 2 is undone\n" in told
    why = f"the host has moved or removed its directory {project}/dir since; put that back, then: yolofs undo 2"
    assert f"stays: {project}/dir/b.txt: {why}\n" in told
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (project / "elsewhere/b.txt").read_text() == "new\n"
    (project / "elsewhere").rename(project / "dir")
    yolofs("undo", "2", "--yes")
    assert (project / "dir/b.txt").read_text() == "b\n"


def test_a_new_file_in_a_directory_that_the_host_has_moved_is_named_and_undone_once_that_is_back(
    yolofs: Program,
) -> None:
    project = yolofs.project
    before = looks(project)
    view = CoreDriver(bytes(project))
    view.create(b"dir/new", b"new\n", 0o644)
    view.mkdir(b"dir/more", 0o755)
    view.close()
    yolofs("commit", "--yes")
    (project / "dir").rename(project / "elsewhere")
    why = f"the host has moved or removed its directory {project}/dir since; put that back, then: yolofs undo 1"
    stays = [{"path": f"{project}/dir/{name}", "reason": why} for name in ("more", "new")]
    assert yolofs("undo", "1", "--yes", "--json", code=16).json["stays"] == stays
    assert f"stays: {project}/dir/new: {why}" in yolofs("undo", "1", "--dry-run", code=16).err
    assert (project / "elsewhere/new").exists()
    (project / "elsewhere").rename(project / "dir")
    yolofs("undo", "1", "--yes")
    assert looks(project) | {".": before["."]} == before  # its time is the host's


def test_an_undo_stages_no_removal_of_a_directory_that_the_host_has_moved(committed: Committed) -> None:
    yolofs, _ = committed
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "dir/b.txt").write_text("new\n")
        (view / "dir/made").write_text("new\n")
        (view / "a.txt").write_text("new\n")
    yolofs("commit", "--yes")
    (project / "dir").rename(project / "elsewhere")
    yolofs("undo", "2", "--yes", code=16)
    assert [one["path"] for one in yolofs("status", "--json").json["changes"]] == [f"{project}/a.txt"]
    (project / "elsewhere").rename(project / "dir")
    yolofs("undo", "2", "--yes")
    staged = {one["path"]: one["kind"] for one in yolofs("status", "--json").json["changes"]}
    assert staged == {f"{project}/a.txt": "M", f"{project}/dir/b.txt": "M", f"{project}/dir/made": "A"}
    yolofs("commit", "--yes")
    assert (project / "dir/made").read_text() == (project / "dir/b.txt").read_text() == "new\n"


def test_a_conflict_of_a_dry_run_is_named_by_its_whole_path(
    committed: Committed,
) -> None:
    yolofs, _ = committed
    (yolofs.project / "a.txt").write_text("the host's\n")
    assert f"  {yolofs.project}/a.txt\n" in yolofs("undo", "--dry-run", code=9).err


def test_a_file_that_the_host_removed_can_be_undone_after_the_others(yolofs: Program) -> None:
    for name in ("a", "b"):
        (yolofs.project / name).write_text("old\n")
    with yolofs.mounted() as view:
        for name in ("a", "b"):
            (view / name).write_text("new\n")
    yolofs("commit", "--yes")
    (yolofs.project / "a").unlink()
    assert "base has changed at 1 path" in yolofs("undo", "--yes", code=9).err
    assert "is undone in part by commit 2" in yolofs("undo", "1", "b", "--yes").err
    assert (yolofs.project / "b").read_text() == "old\n"
    assert [one["undone"] for one in yolofs("commits", "--json").json["commits"]] == [False, False]


@pytest.mark.parametrize("changed", ["nothing", "here", "in base"])
def test_a_directory_that_is_applied_again_is_no_drift(yolofs: Program, changed: str) -> None:
    """What came back in it was known then; what the host changes in it later is drift as ever."""
    new = "new/deep/file"
    with yolofs.mounted() as view:
        (view / new).parent.mkdir(parents=True)
        (view / new).write_text("new\n")
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    with yolofs.mounted() as view:  # else nothing of it would stay staged
        (view / "new/deep/early").write_text("early\n")
    yolofs("undo", "2", "--yes")
    assert yolofs("status", "--json").json["drift"] == []
    if changed == "nothing":
        return
    with yolofs.mounted() as view:
        (view / "new/deep/other").write_text("other\n")
    if changed == "here":
        yolofs("commit", "--yes")
        assert (yolofs.project / "new/deep/other").read_text() == "other\n"
        return
    (yolofs.project / new).write_text("by the host\n")
    assert [one["path"] for one in yolofs("status", "--json").json["drift"]] == [str(yolofs.project / "new")]
    yolofs("commit", "--yes", code=9)
    assert (yolofs.project / new).read_text() == "by the host\n"


def test_the_mode_of_a_directory_that_the_host_has_changed_since_is_drift(yolofs: Program) -> None:
    directory = yolofs.project / "directory"
    directory.mkdir(mode=0o755)
    with yolofs.mounted() as view:
        (view / "directory").chmod(0o750)
    yolofs("commit", "--yes")
    (directory / "by the host").write_text("no change of the directory itself\n")
    directory.chmod(0o700)
    assert str(directory) in yolofs.refused("undo", "--yes", code=9)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    yolofs("undo", "--yes", "--force")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


@pytest.mark.parametrize("what", ["moved", "linked"])
@pytest.mark.parametrize("change", ["time", "attribute"])
def test_what_the_host_has_changed_is_drift_for_an_earlier_commit_though_an_undo_has_moved_it_or_made_a_link_of_it(
    yolofs: Program, what: str, change: str
) -> None:
    project = yolofs.project
    (project / "file").write_text("text\n")
    os.link(project / "file", project / "other")
    yolofs.start_session()

    view = CoreDriver(os.fsencode(project))
    view.chmod(b"file", 0o700)
    view.close()
    yolofs("commit", "--yes")
    view = CoreDriver(os.fsencode(project))
    if what == "moved":
        view.rename(b"file", b"away")
    else:
        view.unlink(b"other")
    view.close()
    yolofs("commit", "--yes")
    path = project / ("away" if what == "moved" else "file")
    if change == "time":
        os.utime(path, ns=(0, 7))
    else:
        os.setxattr(path, "user.host", b"1")
    yolofs("undo", "2", "--yes")
    assert str(project / "file") in yolofs.refused("undo", "1", "--yes", code=9)
    file = project / "file"
    assert file.stat().st_mtime_ns == 7 if change == "time" else os.getxattr(file, "user.host") == b"1"


@pytest.mark.parametrize("name", ["tree/sub/new", "tree/sub/file", "tree/new"])
def test_what_the_host_does_in_a_tree_that_an_undo_has_brought_back_is_drift_for_undoing_that(
    yolofs: Program, name: str
) -> None:
    (yolofs.project / "tree/sub").mkdir(parents=True)
    (yolofs.project / "tree/sub/file").write_text("text\n")
    yolofs.start_session()
    view = CoreDriver(os.fsencode(yolofs.project))
    view.unlink(b"tree/sub/file")
    for directory in (b"tree/sub", b"tree"):
        view.rmdir(directory)
    view.close()
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    (yolofs.project / name).write_text("by the host\n")
    assert str(yolofs.project / name) in yolofs.refused("undo", "2", "--yes", code=9)
    assert (yolofs.project / name).read_text() == "by the host\n"
    (yolofs.project / name).unlink()
    yolofs("undo", "2", "--yes")
    assert not (yolofs.project / "tree").exists()


@pytest.mark.parametrize("links", [1, 2])
def test_what_the_host_has_written_between_two_commits_is_drift_for_the_first_one_once_the_second_is_undone(
    yolofs: Program, links: int
) -> None:
    file = yolofs.project / "file"
    file.write_text("old\n")
    if links > 1:
        os.link(file, yolofs.project / "other")
    yolofs.start_session()
    for text, hosts in ((b"first\n", "by the host\n"), (b"second\n", "")):
        view = CoreDriver(os.fsencode(yolofs.project))
        view.overwrite(b"file", text)
        view.close()
        yolofs("commit", "--yes")
        if hosts:
            file.write_text(hosts)
    yolofs("undo", "2", "--yes")
    assert file.read_text() == "by the host\n"
    assert str(file) in yolofs.refused("undo", "1", "--yes", code=9)
    assert file.read_text() == "by the host\n"


@pytest.mark.parametrize("instead", ["file", "relative link", "absolute link", "other directory"])
@pytest.mark.some(2)
def test_what_the_host_had_put_in_the_place_of_a_directory_comes_back(yolofs: Program, instead: str) -> None:
    directory, outside = yolofs.project / "directory", yolofs.project / "outside"
    for path in (directory, outside):
        path.mkdir()
        (path / "x").write_text(f"{path.name}\n")
    with yolofs.mounted() as view:
        (view / "directory/x").write_text("staged\n")
    (directory / "x").unlink()
    directory.rmdir()
    match instead:
        case "file":
            directory.write_text("by the host\n")
        case "other directory":
            directory.mkdir()
        case _:
            directory.symlink_to(outside if instead == "absolute link" else "outside")
    before = looks(yolofs.project)
    yolofs("commit", "--yes", "--ours")
    after = looks(yolofs.project)
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
    assert view_of(yolofs) == after
    assert yolofs("status", "--json").json["drift"] == []
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == after
    assert (outside / "x").read_text() == "outside\n"


@pytest.mark.parametrize("name", ["kept", "moved"])
def test_a_staged_file_whose_content_the_host_took_away_does_not_stand_in_the_way(yolofs: Program, name: str) -> None:
    """It was in base alone, in a directory that the commit makes again and the undo takes away."""
    project = yolofs.project
    (project / "d").mkdir()
    for one in ("kept", "a"):
        (project / "d" / one).write_text("old\n")
    with yolofs.mounted() as view:
        os.utime(view / "d/kept", ns=(0, 0))
        (view / "d/a").write_text("new\n")
        (view / "d/kept").rename(view / "d" / name)
    (project / "d").rename(project / "elsewhere")
    yolofs("commit", "--yes", "--ours", "--exclude", "d/kept", "--exclude", "d/moved")
    assert (project / "d/a").read_text() == "new\n"
    yolofs("undo", "--yes")
    assert not (project / "d").exists()
    assert "the content of 1 path was in base alone" in yolofs("commit", "--yes", code=9).err  # as before
    (project / "elsewhere").rename(project / "d")
    yolofs("commit", "--yes", "--ours")
    assert sorted(os.listdir(project / "d")) == sorted(["a", name])
    assert (project / "d/a").read_text() == "new\n"
    assert (project / "d" / name).read_text() == "old\n"
    assert (project / "d" / name).stat().st_mtime_ns == 0


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_an_undo_goes_on_where_the_user_has_opened_a_directory_that_the_commit_closed(
    yolofs: Program, mode: int
) -> None:
    folder = yolofs.project / "closed"
    folder.mkdir(0o755)
    (folder / "file").write_text("one\n")
    before = looks(yolofs.project)
    with yolofs.mounted() as view:
        (view / "closed/file").write_text("two\n")
        (view / "closed").chmod(0)
    yolofs("commit", "--yes")
    folder.chmod(mode)
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
