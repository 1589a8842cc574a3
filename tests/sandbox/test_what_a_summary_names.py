"""The commands that the summary of a run names do what it says, also later."""

from __future__ import annotations

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


def test_the_command_that_shows_a_run_shows_it_after_a_commit_too(repository: Program) -> None:
    done = repository("run", "sh", "-c", "echo 'one = 2' > src/one.py")
    see = done.err.splitlines()[-1].partition("see it: yolofs ")[2].partition("   ")[0].split()
    shown = repository(*see).out
    assert "+one = 2" in shown
    repository("commit", "--yes")
    repository("run", "sh", "-c", "echo 'two = 3' > src/two.py")
    assert repository(*see).out == shown
