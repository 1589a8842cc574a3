"""``yolofs commit --up-to`` of one name of a file; another is in a directory that has moved."""

from __future__ import annotations

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_a_name_in_a_directory_that_the_view_has_moved_is_found(yolofs: Program) -> None:
    project = yolofs.project
    (project / "one").write_text("old\n")
    (project / "odd").mkdir()
    (project / "odd/two").hardlink_to(project / "one")
    with yolofs.mounted() as view:
        yolofs("snapshot", "start")
        (view / "one").unlink()
        yolofs("snapshot", "gone")
        yolofs("travel", "start")
        (view / "odd").rename(view / "moved")
        yolofs("commit", "--up-to", "gone", "--dry-run")
        yolofs("commit", "--up-to", "gone", "--yes")
        assert not (project / "one").exists()
        assert (project / "odd/two").read_text() == "old\n"
        assert (view / "one").read_text() == (view / "moved/two").read_text() == "old\n"
        yolofs("commit", "--yes")
    assert (project / "one").samefile(project / "moved/two")
