"""``yolofs commit --up-to``: base becomes what the view showed at a generation, and the view stays
what it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.mount


def test_what_changed_after_it_stays_staged_under_a_mount(yolofs: Program) -> None:
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


def test_a_part_of_it_and_what_the_host_did_meanwhile(yolofs: Program) -> None:
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


def test_ours_takes_no_more_than_the_generation(yolofs: Program) -> None:
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
def test_a_file_with_hard_links_that_is_staged_before_and_after(yolofs: Program, second: str) -> None:
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
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
    ],
)
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
    (project / "one").symlink_to("somewhere")
    os.link(project / "one", project / "two", follow_symlinks=False)
    yolofs = Program(project)
    yolofs("init")
    with yolofs.mounted() as view:
        (view / "two").unlink()
        os.utime(view / "one", (5, 5), follow_symlinks=False)
        yolofs("snapshot", "first")
        (view / "later").write_text("l\n")
        said = yolofs("commit", "--up-to", "first", "--yes", code=19).err
        assert "has hard links that are staged" in said
        for word in ("--dry-run", "--script"):
            assert yolofs.refused("commit", "--up-to", "first", word, code=19) == said
