"""``yolofs undo`` of a commit that later commits followed."""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.undone import Committed, committed, view_of
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.looks import looks
from tests.support.program import Program

__all__ = ["committed"]

pytestmark = pytest.mark.mount


def test_an_undo_of_an_older_commit_takes_what_is_independent_and_names_the_rest(
    committed: Committed,
) -> None:
    yolofs, before = committed
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("again\n")
        (view / "new/later").write_text("later\n")
    yolofs("commit", "--yes")
    done = yolofs("undo", "1", "--yes", code=16)
    assert "yolofs: 3 paths stay as they are; all else of commit 1 is undone\n" in done.err
    assert "hint: do for each what is said above; then: yolofs undo 1\n" in done.err
    assert f"stays: {yolofs.project}/a.txt: commit 2 has changed it since; first: yolofs undo 2" in done.err
    assert f"stays: {yolofs.project}/new/later: commit 2 has changed it since" in done.err
    assert f"stays: {yolofs.project}/new: something in it stays" in done.err
    assert "commit 1 is undone in part by commit 3" in done.err
    now = looks(yolofs.project)
    assert now["a.txt"][1] == b"again\n"
    assert sorted(path for path in now if path.startswith("new")) == ["new", "new/later"]
    for path in ("gone/deep/y", "other name of y", "moved"):
        assert now[path] == before[path]
    yolofs("undo", "2", "--yes")
    yolofs("undo", "1", "--yes")
    assert {path: one[1] for path, one in looks(yolofs.project).items()} == {
        path: one[1] for path, one in before.items()
    }


def test_an_undo_that_sets_a_time_alone_is_listed_as_that(yolofs: Program) -> None:
    for number in (1, 2):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n")
            (view / "b.txt").write_text(f"{number}\n")
        yolofs("commit", "--yes", *(["a.txt"] if number == 1 else []))
    yolofs("undo", "1", "--yes", code=16)
    assert "hard links or times alone  [undoes part of commit 1]" in yolofs("commits").out


def test_what_keeps_directories_from_going_is_told_before_these(yolofs: Program) -> None:
    deep = Path(*"abcdefghijklmnopqrstuvwxyz")
    with yolofs.mounted() as view:
        (view / deep).mkdir(parents=True)
        (view / deep / "file").write_text("1\n")
    yolofs("commit", "--yes")
    with yolofs.mounted() as view:
        (view / deep / "file").write_text("2\n")
    yolofs("commit", "--yes")
    told = yolofs("undo", "1", "--yes", code=16).err.splitlines()
    stays = [line for line in told if line.startswith("stays: ")]
    assert stays[0] == f"stays: {yolofs.project / deep}/file: commit 2 has changed it since; first: yolofs undo 2"
    assert {line.rpartition(": ")[2] for line in stays[1:]} == {"something in it stays"}


NAMES = ("a.txt", "other name")


@pytest.mark.parametrize(
    ("removed", "written"), points(list(itertools.product([None, *NAMES], NAMES)), "changed again since", some=3)
)
def test_an_undo_brings_hard_links_back_that_were_changed_again_since(
    yolofs: Program, written: str, removed: str | None
) -> None:
    project = yolofs.project
    os.link(project / "a.txt", project / "other name")
    os.link(project / "a.txt", project / "dir/third")
    before = looks(project)
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("first\n")
        yolofs("commit", "--yes")
        (view / written).write_text("second\n")
        if removed is not None:
            (view / removed).unlink()
        shown = looks(view)
        yolofs("undo", "--yes")
        assert looks(project) == before
        assert looks(view) == shown
    assert view_of(yolofs) == shown
    yolofs("commit", "--yes")
    assert looks(project) == shown
    yolofs("undo", "3", "--yes")
    assert looks(project) == before
    assert view_of(yolofs) == shown


@pytest.mark.parametrize("does", ["rm a.txt", "mv a.txt moved", "cp a.txt new; echo >> new; mv new a.txt"])
def test_undos_go_down_past_a_link_of_which_a_later_commit_took_the_first_name(yolofs: Program, does: str) -> None:
    project = yolofs.project
    before = looks(project)
    with yolofs.mounted() as view:
        os.link(view / "a.txt", view / "link")
        yolofs("commit", "--yes")
        linked = looks(project)
        subprocess.run(does, shell=True, cwd=view, check=True)
        yolofs("commit", "--yes")
        shown = looks(project)
        yolofs("undo", "2", "--yes")
        assert looks(project) == linked
        yolofs("undo", "1", "--yes")
        assert looks(project) == before
        assert looks(view) == shown
    yolofs("commit", "--yes")
    assert looks(project) == shown


def make_links_that_two_commits_write(yolofs: Program) -> Path:
    """Have two commits change a file with hard links, each with another file that the next one
    changes again; return the file.
    """
    links, other = yolofs.project / "links", yolofs.project / "other"
    links.write_text("base\n")
    os.link(links, yolofs.project / "second name")
    other.write_text("base\n")
    for number, text in enumerate(("one\n", "two\n", "three\n")):
        with yolofs.mounted() as view:
            if number < 2:
                (view / "second name").write_text(text)
            (view / "other").write_text(text)
        yolofs("commit", "--yes")
    return links


def test_a_file_written_in_place_by_two_commits_is_taken_back_once_by_each_undo(yolofs: Program) -> None:
    links = make_links_that_two_commits_write(yolofs)
    yolofs("undo", "2", "--yes", code=16)
    assert links.read_text() == "one\n"
    again = yolofs("undo", "2", "--yes", code=16)
    assert "nothing of commit 2 is to be undone" in again.err
    yolofs("undo", "1", "--yes", code=16)
    assert links.read_text() == "base\n"
    for number in ("2", "1"):
        assert f"nothing of commit {number} is to be undone" in yolofs("undo", number, "--yes", code=16).err
        assert links.read_text() == "base\n"
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [1, 2, 3, 4, 5]


def test_an_undo_without_a_number_comes_down_to_the_first_commit(yolofs: Program) -> None:
    links = make_links_that_two_commits_write(yolofs)
    yolofs("undo", "2", "--yes", code=16)
    for _ in range(3):
        yolofs("undo", "--yes")
    assert (links.read_text(), (yolofs.project / "other").read_text()) == ("base\n", "base\n")
    assert all(one["undone"] for one in yolofs("commits", "--json").json["commits"][:3])


@pytest.mark.parametrize("name", ["directory", "."])
def test_the_mode_of_a_directory_that_a_later_commit_has_changed_stays(yolofs: Program, name: str) -> None:
    directory = yolofs.project / name
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    for mode in (0o750, 0o700):
        with yolofs.mounted() as view:
            (view / name).chmod(mode)
        yolofs("commit", "--yes")
    assert "commit 2 has changed it since" in yolofs("undo", "1", "--yes", code=16).err
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for number in ("2", "1"):
        yolofs("undo", number, "--yes")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


@pytest.mark.parametrize("how", ["written", "chmod"])
def test_a_link_whose_file_a_later_commit_changed_under_another_name_stays_and_is_no_drift(
    tmp_path: Path, how: str
) -> None:
    """Nobody but commits has changed it; the later one is named."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "one").write_text("text\n")
    (project / "two").hardlink_to(project / "one")
    (project / "apart").write_text("apart\n")
    program = Program(project)
    program.start_session()
    for number in (1, 2):
        view = CoreDriver(os.fsencode(project))
        if number == 1:
            view.link(b"one", b"three")
            view.unlink(b"apart")
        elif how == "written":
            view.append(b"two", b"more\n")
        else:
            view.chmod(b"two", 0o600)
        view.close()
        program("commit", "--yes")
    done = program("undo", "1", "--yes", code=16)
    assert "commit 2 has changed it since" in done.err
    assert "three" in done.err
    assert (project / "apart").read_text() == "apart\n"
    assert (project / "three").samefile(project / "one")


def test_a_file_none_of_whose_hard_links_the_view_shows_any_more_is_in_the_way_of_no_commit(tmp_path: Path) -> None:
    """The undos stage what it was for names that nobody has looked at, and there are none."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    (project / "b").hardlink_to(project / "a")
    (project / "c").hardlink_to(project / "a")
    (project / "d").write_text("d\n")
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    view.utimes(b"a", 10**18)
    view.link(b"b", b"e")
    view.close()
    yolofs("commit", "--yes")
    view = CoreDriver(os.fsencode(project))
    view.unlink(b"c")
    view.rename(b"d", b"a")
    view.close()
    yolofs("commit", "--yes")
    after = looks(project)
    yolofs("undo", "1", "--yes", code=16)
    yolofs("undo", "2", "--yes")
    yolofs("undo", "1", "--yes")
    yolofs("commit", "--yes")
    assert {path: one[1:] for path, one in looks(project).items() if path} == {
        path: one[1:] for path, one in after.items() if path
    }


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 1, 3), (1, 3, 2), (2, 3, 1)])
def test_undos_in_any_order_bring_back_the_times_of_directories(yolofs: Program, order: tuple[int, ...]) -> None:
    project = yolofs.project
    (project / "dir/old").write_text("old\n")
    os.utime(project / "dir", ns=(10**18, 10**18))
    before = looks(project)
    between = []
    for number in (1, 2, 3):
        view = CoreDriver(bytes(project))
        view.create(b"dir/%d" % number, b"new\n", 0o644)
        view.close()
        yolofs("commit", "--yes")
        between.append(looks(project))
    for number in order:
        yolofs("undo", str(number), "--yes")
    assert looks(project) == before
    if order == (2, 3, 1):
        yolofs("commit", "--yes")
        assert looks(project).keys() == between[-1].keys()


@pytest.mark.parametrize("above", [False, True])
def test_a_directory_that_a_commit_has_moved_with_a_time_gets_it_again_though_an_undone_commit_gave_it(
    yolofs: Program, *, above: bool
) -> None:
    (yolofs.project / "top/inner").mkdir(parents=True)
    old, new = ("top", "moved") if above else ("top/inner", "top/moved")
    with yolofs.mounted() as view:
        (view / "top/inner/made").write_text("made\n")
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    with yolofs.mounted() as view:
        (view / old).rename(view / new)
    before = looks(yolofs.project)
    yolofs("commit", "--yes")
    after = looks(yolofs.project)
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
    yolofs("undo", "4", "--yes")
    assert looks(yolofs.project) == after
    yolofs("undo", "5", "--yes")
    assert looks(yolofs.project) == before
