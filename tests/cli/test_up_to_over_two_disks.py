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


def leave_behind(yolofs: Program, view: Path, *moved: str) -> None:
    """Leave a generation behind in which the file is edited, and these names are on the other
    disk.
    """
    yolofs("snapshot", "start")
    with (view / "one").open("a") as file:
        file.write("more\n")
    for name in moved:
        (view / name).rename(view / "far" / name)
    yolofs("snapshot", "moved")
    yolofs("travel", "start")


@pytest.mark.parametrize("moved", [("two",), NAMES], ids=["one name", "all names"])
def test_names_that_the_view_would_no_longer_show_as_one_file_are_a_refusal_that_says_so(
    yolofs: Program, project: Path, moved: tuple[str, ...]
) -> None:
    with yolofs.mounted() as view:
        leave_behind(yolofs, view, *moved)
        before = exactly(project)
        for words in (("--dry-run",), ("--yes",)):
            refused = yolofs("commit", "--up-to", "moved", *words, code=19).err
            assert f"{project}/{moved[0]} is a hard link of a file that the view still shows" in refused
            assert "it is to go to another disk" in refused
            assert "hint: yolofs travel to that generation" in refused
        assert exactly(project) == before
        assert {(view / name).stat().st_nlink for name in NAMES} == {3}
        yolofs("travel", "moved")
        yolofs("commit", "--yes")
        assert (project / "far/two").read_text() == "old\nmore\n"
