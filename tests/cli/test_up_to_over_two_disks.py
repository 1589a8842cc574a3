"""``yolofs commit --up-to`` of a generation that a travel has left behind, in which names of a file
with hard links go to another disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.looks import exactly
from tests.support.program import Program
from tests.support.second_disk import mounted_disk

pytestmark = [pytest.mark.mount, pytest.mark.root_only]
NAMES = ("one", "two", "three")


@pytest.fixture
def project(yolofs: Program) -> Iterator[Path]:
    """A project with a file of three names, and another disk in it."""
    (yolofs.project / "one").write_text("old\n")
    for name in NAMES[1:]:
        (yolofs.project / name).hardlink_to(yolofs.project / "one")
    (yolofs.project / "far").mkdir()
    with mounted_disk(yolofs.project / "far"):
        yield yolofs.project


def leave_behind(yolofs: Program, view: Path, *moved: str, is_edited: bool = True) -> None:
    """Leave a generation behind in which the file is edited, and these names are on the other
    disk.
    """
    yolofs("snapshot", "start")
    if is_edited:
        with (view / "one").open("a") as file:
            file.write("more\n")
    for name in moved:
        (view / name).rename(view / "far" / name)
    yolofs("snapshot", "moved")
    yolofs("travel", "start")


@pytest.mark.parametrize("is_edited", [True, False])
@pytest.mark.parametrize("moved", [("two",), NAMES], ids=["one name", "all names"])
def test_names_that_the_view_would_no_longer_show_as_one_file_are_a_refusal_that_says_so(
    yolofs: Program, project: Path, moved: tuple[str, ...], *, is_edited: bool
) -> None:
    with yolofs.mounted() as view:
        leave_behind(yolofs, view, *moved, is_edited=is_edited)
        before = exactly(project)
        for words in (("--dry-run",), ("--yes",)):
            refused = yolofs("commit", "--up-to", "moved", *words, code=19).err
            assert f"{project}/{min(moved)} is a hard link of a file that the view still shows" in refused
            assert "it is to go to another disk" in refused
            assert "hint: yolofs travel to that generation" in refused
        assert exactly(project) == before
        assert {(view / name).stat().st_nlink for name in NAMES} == {3}
        yolofs("travel", "moved")
        yolofs("commit", "--yes")
        assert (project / "far/two").read_text() == ("old\nmore\n" if is_edited else "old\n")


def test_a_name_that_the_view_shows_elsewhere_on_the_old_disk_is_not_parted_either(
    yolofs: Program, project: Path
) -> None:
    with yolofs.mounted() as view:
        leave_behind(yolofs, view, "two", is_edited=False)
        (view / "two").rename(view / "other")
        for words in (("--dry-run",), ("--yes",)):
            assert f"{project}/two is a hard link" in yolofs("commit", "--up-to", "moved", *words, code=19).err
        assert (view / "other").stat().st_ino == (view / "one").stat().st_ino


@pytest.mark.parametrize("others", ["in the directory", "beside it"])
def test_a_directory_takes_a_name_along_only_with_all_others_of_the_file(
    yolofs: Program, project: Path, others: str
) -> None:
    (project / "folder/deep").mkdir(parents=True)
    (project / "folder/deep/four").write_text("four\n")
    (project / ("folder/five" if others == "in the directory" else "five")).hardlink_to(project / "folder/deep/four")
    with yolofs.mounted() as view:
        leave_behind(yolofs, view, "folder", is_edited=False)
        for words in (("--dry-run",), ("--yes",)):
            done = yolofs("commit", "--up-to", "moved", *words, code=0 if others == "in the directory" else 19)
            assert (f"{project}/folder/deep/four is a hard link" in done.err) == (others == "beside it")
            assert "could not be carried over" not in done.err
        five = view / ("folder/five" if others == "in the directory" else "five")
        assert five.stat().st_ino == (view / "folder/deep/four").stat().st_ino
        assert (project / "far/folder").exists() == (others == "in the directory")


def test_a_name_that_the_view_shows_on_the_other_disk_too_parts_as_by_any_commit(
    yolofs: Program, project: Path
) -> None:
    with yolofs.mounted() as view:
        (view / "two").rename(view / "far/two")
        yolofs("snapshot", "moved")
        (view / "later").write_text("later\n")
        for words in (("--dry-run",), ("--yes",)):
            said = yolofs("commit", "--up-to", "moved", *words).err
            assert f"{project}/far/two moves to another disk or mount, and is no longer a hard link of" in said
        assert (project / "far/two").read_text() == "old\n"
