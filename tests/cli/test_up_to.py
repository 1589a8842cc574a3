"""``yolofs commit --up-to``: base becomes what the view showed at a generation, and the view stays
what it is.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_changes_after_the_generation_stay_staged_under_a_mount(yolofs: Program) -> None:
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\n")
        (view / "new").mkdir()
        (view / "new/f").write_text("f\n")
        yolofs("snapshot", "first task")
        (view / "a.txt").write_text("two\n")
        (view / "new").rename(view / "newer")
        (view / "newer/.envrc").write_text("x\n")
        with (view / "newer/f").open() as held:
            before = {path.relative_to(view): path.is_file() and path.read_text() for path in view.rglob("*")}
            planned = yolofs("commit", "--up-to", "first task", "--dry-run").out
            assert f"replace {project}/a.txt" in planned
            assert ".envrc" not in planned
            assert (project / "a.txt").read_text() != "one\n"

            document = yolofs("commit", "--up-to", "first task", "--yes", "--json").json
            assert [(one["kind"], one["path"].removeprefix(f"{project}/")) for one in document["changes"]] == [
                ("M", "a.txt"),
                ("A", "new"),
                ("A", "new/f"),
            ]
            stays = [(one["kind"], one["path"].removeprefix(f"{project}/")) for one in document["stays"]]
            assert stays == [("M", "a.txt"), ("R", "newer"), ("A", "newer/.envrc")]
            assert (project / "a.txt").read_text() == "one\n"
            assert (project / "new/f").read_text() == "f\n"
            assert held.read() == "f\n"
        assert {path.relative_to(view): path.is_file() and path.read_text() for path in view.rglob("*")} == before
        (view / "a.txt").write_text("three\n")
        assert yolofs("timeline", "--json").json["generations"][-1]["name"] == "left by commit 1"

    assert "no snapshot named" in yolofs.refused("commit", "--up-to", "first task", code=7)
    yolofs("commit", "--yes", "--trusted")  # nothing of it is in conflict
    assert (project / "a.txt").read_text() == "three\n"
    assert sorted(path.name for path in (project / "newer").iterdir()) == [".envrc", "f"]
    assert not (project / "new").exists()


def test_paths_of_a_generation_are_committed_and_what_the_host_does_then_is_a_conflict(yolofs: Program) -> None:
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\n")
        (view / "b.txt").write_text("b\n")
        yolofs("snapshot")
        (view / "a.txt").write_text("two\n")
    done = yolofs("commit", "--up-to", "1", "--yes", "a.txt")
    assert "2 changes stay staged" in done.err
    assert ((project / "a.txt").read_text(), (project / "b.txt").exists()) == ("one\n", False)
    (project / "a.txt").write_text("the host's\n")
    yolofs("commit", "--yes", code=9)
    assert (project / "a.txt").read_text() == "the host's\n"
    yolofs("commit", "--yes", "--force")
    assert ((project / "a.txt").read_text(), (project / "b.txt").read_text()) == ("two\n", "b\n")


def test_ours_takes_a_file_as_the_generation_has_it(yolofs: Program) -> None:
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\n")
        yolofs("snapshot")
        (view / "a.txt").write_text("two\n")
        (view / "b.txt").write_text("b\n")
    (project / "a.txt").write_text("the host's\n")
    yolofs("commit", "--yes", "--up-to", "1", "--ours")
    assert ((project / "a.txt").read_text(), (project / "b.txt").exists()) == ("one\n", False)


@pytest.mark.parametrize("second", ["same", "written again", "by another name", "one name removed"])
@pytest.mark.some(2)
def test_a_file_with_hard_links_is_committed_as_it_was_and_what_came_after_stays(yolofs: Program, second: str) -> None:
    project = yolofs.project
    os.link(project / "a.txt", project / "other name")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\n")
        yolofs("snapshot")
        if second == "written again":
            (view / "a.txt").write_text("two\n")
        elif second == "by another name":
            (view / "other name").write_text("two\n")
        elif second == "one name removed":
            (view / "a.txt").unlink()
        shown = {path.name: (path.read_text(), path.stat().st_nlink) for path in view.glob("*[te]")}
        yolofs("commit", "--up-to", "1", "--yes")
        assert {path.name: path.read_text() for path in project.glob("*[te]")} == {
            "a.txt": "one\n",
            "other name": "one\n",
        }
        assert (project / "a.txt").stat().st_nlink == 2
        assert {path.name: (path.read_text(), path.stat().st_nlink) for path in view.glob("*[te]")} == shown
    yolofs("commit", "--yes")
    assert {path.name: (path.read_text(), path.stat().st_nlink) for path in project.glob("*[te]")} == shown


def _add(view: Path) -> None:
    (view / "dir/added").hardlink_to(view / "one")


def _add_another(view: Path) -> None:
    (view / "another").hardlink_to(view / "two")


def _remove(view: Path) -> None:
    (view / "two").unlink()


def _remove_another(view: Path) -> None:
    (view / "three").unlink()


def _write(view: Path) -> None:
    (view / "one").write_text("written\n")


def _write_and_remove(view: Path) -> None:
    _write(view)
    _remove(view)


def _move(view: Path) -> None:
    (view / "three").rename(view / "dir/moved")


def _change_mode(view: Path) -> None:
    (view / "one").chmod(0o600)


def _nothing(view: Path) -> None:
    (view / "later").write_text("l\n")


BEFORE_AND_AFTER = [
    (_add, _nothing),
    (_add, _write),
    (_add, _add_another),
    (_add, _remove_another),
    (_add, _move),
    (_remove, _nothing),
    (_remove, _write),
    (_remove, _change_mode),
    (_remove, _remove_another),
    (_remove, _move),
    (_remove, _add),
    (_write, _add_another),
    (_write, _move),
    (_write_and_remove, _write),
    (_write_and_remove, _remove_another),
    (_move, _write),
    (_move, _add_another),
]


@pytest.mark.parametrize(("before", "after"), points(BEFORE_AND_AFTER, "hard links up to", some=4))
def test_names_of_a_file_with_hard_links_may_change_before_and_after(
    yolofs: Program, before: Callable[[Path], None], after: Callable[[Path], None]
) -> None:
    project = yolofs.project
    (project / "one").write_text("1\n")
    (project / "two").hardlink_to(project / "one")
    (project / "three").hardlink_to(project / "one")
    with yolofs.mounted() as view:
        before(view)
        yolofs("snapshot", "before")
        earlier = _linked(view)
        after(view)
        later = _linked(view)
        yolofs("commit", "--up-to", "before", "--yes")
        assert _linked(project) == earlier
        assert _linked(view) == later
        yolofs("commit", "--yes")
        assert _linked(project) == _linked(view) == later


def _add_to_another(view: Path) -> None:
    os.link(view / "two", view / "four", follow_symlinks=False)


def _set_time(view: Path) -> None:
    os.utime(view / "two", (5, 5), follow_symlinks=False)


def _remove_one(view: Path) -> None:
    (view / "one").unlink()


def _move_one(view: Path) -> None:
    (view / "one").rename(view / "moved")


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("symlink", _remove_one, _add_to_another),
        ("symlink", _move_one, _set_time),
        ("fifo", _remove_one, _set_time),
        ("fifo", _add_to_another, _remove_one),
    ],
)
@pytest.mark.some(2)
def test_names_of_links_and_fifos_may_change_before_and_after(
    yolofs: Program, kind: str, before: Callable[[Path], None], after: Callable[[Path], None]
) -> None:
    project = yolofs.project
    (project / "one").symlink_to("somewhere") if kind == "symlink" else os.mkfifo(project / "one")
    for name in ("two", "three"):
        os.link(project / "one", project / name, follow_symlinks=False)
    with yolofs.mounted() as view:
        before(view)
        yolofs("snapshot", "before")
        earlier = _special(view)
        after(view)
        later = _special(view)
        assert earlier != later
        yolofs("commit", "--up-to", "before", "--yes")
        assert _special(project) == earlier
        assert _special(view) == later
        yolofs("commit", "--yes")
        assert _special(view) == later
        assert _names(_special(project)) == _names(later)  # a time of theirs alone is no change


def _names(special: dict[str, tuple[int, int, str, list[str]]]) -> dict[str, list[str]]:
    return {name: found[-1] for name, found in special.items()}


def _special(top: Path) -> dict[str, tuple[int, int, str, list[str]]]:
    """Return of each file that is neither regular nor a directory its type, time, target and
    names.
    """
    files = {path.name: path.lstat() for path in top.iterdir() if path.is_symlink() or path.is_fifo()}
    files.pop(".yolofs", None)
    return {
        name: (
            stat.S_IFMT(st.st_mode),
            int(st.st_mtime) if int(st.st_mtime) == 5 else 0,
            os.readlink(top / name) if stat.S_ISLNK(st.st_mode) else "",
            sorted(other for other, one in files.items() if one.st_ino == st.st_ino and one.st_nlink == st.st_nlink),
        )
        for name, st in sorted(files.items())
    }


def _linked(top: Path) -> dict[str, tuple[str, int, int, list[str]]]:
    """Return of each file its content, mode, how many names it has, and which these are."""
    files = [path for path in sorted(top.rglob("*")) if path.is_file() and path.name != ".yolofs.toml"]
    names: dict[int, list[str]] = {}
    for path in files:
        names.setdefault(path.stat().st_ino, []).append(str(path.relative_to(top)))
    found = {}
    for path in files:
        st = path.stat()
        found[str(path.relative_to(top))] = (path.read_text(), st.st_mode & 0o777, st.st_nlink, names[st.st_ino])
    return found


def test_a_dry_run_refuses_what_the_commit_refuses_for_hard_links(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "one").write_text("1\n")
    for name in (project / "two", tmp_path / "outside"):
        name.hardlink_to(project / "one")
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))  # no rule asks about the name outside
    view.unlink(b"two")
    view.append(b"one", b"2\n")
    view.close()
    yolofs("snapshot", "first")
    view = CoreDriver(os.fsencode(project))
    view.create(b"later", b"l\n", 0o644)
    view.close()
    said = yolofs("commit", "--up-to", "first", "--yes", code=19).err
    assert f"{project}/" in said
    assert "not all its names were found" in said
    assert "yolofs commit" in said.partition("hint: ")[2]
    for word in ("--dry-run", "--script"):
        assert yolofs.refused("commit", "--up-to", "first", word, code=19) == said


def test_a_generation_that_a_travel_left_behind_is_committed_and_the_view_stays(yolofs: Program) -> None:
    """What base loses or gets changed by it, and the view shows as it was, is staged."""
    project = yolofs.project
    (project / "old/in").mkdir(parents=True)
    (project / "old/in/f").write_text("f\n")
    (project / "linked").write_text("linked\n")
    (project / "other").hardlink_to(project / "linked")
    before = content(project)
    with yolofs.mounted() as view:
        (view / "a.txt").unlink()
        (view / "linked").write_text("changed\n")
        shutil.rmtree(view / "old")
        (view / "b.txt").write_text("left behind\n")
        yolofs("snapshot", "left behind")
        left_behind = content(view)
        yolofs("travel", "0")
        assert content(view) == before

        yolofs("commit", "--up-to", "left behind", "--dry-run")
        yolofs("commit", "--up-to", "left behind", "--yes")
        assert content(project) == left_behind
        assert content(view) == before
        assert (view / "linked").stat().st_ino == (view / "other").stat().st_ino
        yolofs("commit", "--yes")  # nothing of it is in conflict
        assert content(project) == before
        assert (project / "linked").stat().st_ino == (project / "other").stat().st_ino


def content(top: Path) -> dict[str, str | None]:
    found = ((str(path.relative_to(top)), path) for path in top.rglob("*"))
    return {
        name: path.read_text() if path.is_file() else None for name, path in found if not name.startswith(".yolofs")
    }
