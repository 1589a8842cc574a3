"""A file ``.git`` may lead into the mount that a commit pauses: the commit does not look there."""

from __future__ import annotations

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_a_commit_does_not_wait_for_the_mount_that_it_has_paused(yolofs: Program) -> None:
    """As `git init --separate-git-dir` in the view makes it."""
    with yolofs.mounted() as view:
        for name in ("elsewhere/objects", "elsewhere/refs", "tree"):
            (view / name).mkdir(parents=True)
        (view / "elsewhere/HEAD").write_text("ref: refs/heads/main\n")
        (view / "tree/.git").write_text(f"gitdir: {view}/elsewhere\n")
        yolofs("commit", "--yes", "--trusted")  # no commit looks where that leads
        assert (yolofs.project / "elsewhere/HEAD").exists()
        assert (yolofs.project / "tree/.git").exists()
