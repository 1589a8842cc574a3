"""A change of time alone of a file with hard links: it holds up no other change of the names that
go, and the names that stay keep their time in base.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount

OLD_NS, NEW_NS = 1_400_000_000_000_000_000, 1_500_000_000_000_000_000


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """A project beside another directory, with a file in it that is old."""
    for name in ("project", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other/pack").write_text("pack\n")
    (tmp_path / "project/text").write_text("text\n")
    os.utime(tmp_path / "other/pack", ns=(OLD_NS, OLD_NS))
    (tmp_path / "project/.yolofs.toml").write_text(f'scratch = ["{tmp_path}/cache"]\n')
    program = Program(tmp_path / "project")
    program.start_session()
    program.trust()
    return program


def view_of(yolofs: Program, mountpoint: Path) -> Path:
    return mountpoint / str(yolofs.project.parent)[1:]


def test_a_link_is_committed_without_the_time_that_its_file_was_given(yolofs: Program) -> None:
    """As in a clone, in which git sets the time of a pack that has an object already."""
    pack, link = yolofs.project.parent / "other/pack", yolofs.project / "pack"
    with yolofs.mounted("--root", "/") as mountpoint:
        view = view_of(yolofs, mountpoint)
        (view / "project/pack").hardlink_to(view / "other/pack")
        os.utime(view / "project/pack", ns=(NEW_NS, NEW_NS))
        done = yolofs("commit", "--yes")
        assert done.err == "commit 1 done; to take it back: yolofs undo 1\n"
        assert link.samefile(pack)
        assert pack.stat().st_mtime_ns == OLD_NS
        for name in ("project/pack", "other/pack"):
            st = (view / name).stat()
            assert (st.st_mtime_ns, st.st_nlink) == (NEW_NS, 2), name
        yolofs("commit", "--yes", "--outside")
        assert pack.stat().st_mtime_ns == NEW_NS
        assert yolofs("status", "--json").json["changes"] == []


@pytest.mark.parametrize("is_seen", [False, True])
@pytest.mark.parametrize("what", ["removed", "renamed", "directory removed", "replaced"])
@pytest.mark.some(4)
def test_a_name_of_a_file_with_another_time_goes_without_its_other_names(
    yolofs: Program, what: str, is_seen: bool
) -> None:
    pack, directory = yolofs.project.parent / "other/pack", yolofs.project / "clone"
    directory.mkdir()
    (directory / "pack").hardlink_to(pack)
    before = pack.stat()
    with yolofs.mounted("--root", "/") as mountpoint:
        view = view_of(yolofs, mountpoint)
        name = view / "project/clone/pack"
        os.utime(name, ns=(NEW_NS, NEW_NS))
        if is_seen:
            os.utime(view / "other/pack", ns=(NEW_NS, NEW_NS))
        if what == "renamed":
            name.rename(view / "project/moved")
        elif what == "replaced":
            (view / "project/new").write_text("new\n")
            (view / "project/new").rename(name)
        else:
            name.unlink()
        if what == "directory removed":
            name.parent.rmdir()
        shown = (view / "other/pack").stat()
        done = yolofs("commit", "--yes")
        assert done.err == "commit 1 done; to take it back: yolofs undo 1\n"
        names = sorted(path.name for path in (*yolofs.project.iterdir(), *yolofs.project.glob("clone/*")))
        expected = {"renamed": ["clone", "moved"], "removed": ["clone"], "directory removed": []}
        assert [each for each in names if not each.startswith(".")] == [
            *expected.get(what, ["clone", "pack"]),
            "text",
        ]
        after = pack.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, OLD_NS)
        assert after.st_nlink == (2 if what == "renamed" else 1)
        there = (view / "other/pack").stat()
        assert (there.st_mtime_ns, there.st_nlink, there.st_ino) == (NEW_NS, shown.st_nlink, shown.st_ino)
        yolofs("undo", "--yes")
        assert (directory / "pack").samefile(pack)
        assert pack.stat().st_mtime_ns == OLD_NS
        assert (view / "other/pack").stat().st_mtime_ns == NEW_NS


def test_a_time_alone_of_a_file_with_another_name_elsewhere_stays_without_a_word(yolofs: Program) -> None:
    (yolofs.project / "pack").hardlink_to(yolofs.project.parent / "other/pack")
    with yolofs.mounted("--root", "/") as mountpoint:
        view = view_of(yolofs, mountpoint)
        os.utime(view / "project/pack", ns=(NEW_NS, NEW_NS))
        (view / "project/text").write_text("changed\n")
        told = yolofs("status").out
        assert "outside the project" not in told
        assert "-  times alone: pack and 1 more  (2 changes; --unfold)\n" in told
        assert yolofs("commit", "--yes").err == "commit 1 done; to take it back: yolofs undo 1\n"
        assert (yolofs.project / "pack").stat().st_mtime_ns == OLD_NS
        assert (view / "project/pack").stat().st_mtime_ns == NEW_NS
        done = yolofs("commit", "--yes", "pack", code=16)
        assert "is the same file (hard link); yolofs commit" in done.err


def test_a_mode_of_a_file_with_another_name_elsewhere_still_holds_it_up(yolofs: Program) -> None:
    (yolofs.project / "pack").hardlink_to(yolofs.project.parent / "other/pack")
    with yolofs.mounted("--root", "/") as mountpoint:
        view = view_of(yolofs, mountpoint)
        os.utime(view / "project/pack", ns=(NEW_NS, NEW_NS))
        (view / "project/pack").chmod(0o600)
        (view / "project/pack").unlink()
        assert "is the same file (hard link)" in yolofs("commit", "--yes").err
        assert (yolofs.project / "pack").exists()


def test_a_dry_run_and_a_script_leave_that_time_alone_too(yolofs: Program) -> None:
    with yolofs.mounted("--root", "/") as mountpoint:
        view = view_of(yolofs, mountpoint)
        (view / "project/pack").hardlink_to(view / "other/pack")
        os.utime(view / "project/pack", ns=(NEW_NS, NEW_NS))
        assert "other/pack: " not in yolofs("commit", "--dry-run").out
        assert "@1500000000" not in yolofs("commit", "--dry-run", "--script").out
