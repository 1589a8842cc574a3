"""What ``yolofs commit --up-to`` refuses while it works out what stays staged: a dry run refuses it
with the same words.
"""

from __future__ import annotations

import pytest

from tests.support.looks import exactly
from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_a_dry_run_refuses_names_that_cannot_be_told_with_the_words_of_the_commit(yolofs: Program) -> None:
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
        before = exactly(project)
        refused = [yolofs("commit", "--up-to", "gone", *words, code=19).err for words in (("--dry-run",), ("--yes",))]
        assert f"{project}/one has hard links that are staged and that this would change, too" in refused[0]
        assert refused[0] == refused[1]
        assert exactly(project) == before
        assert (view / "one").read_text() == (view / "moved/two").read_text() == "old\n"
