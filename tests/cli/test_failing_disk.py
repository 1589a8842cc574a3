"""A disk that fails, or is full, while hunks are dropped or edited, or something is brought back:
it is said what came of it.
"""

from __future__ import annotations

import errno

import pytest

from tests.support.program import Program, run_code

pytestmark = pytest.mark.mount

FAILING = """
import os, sys
from yolofs.cli.main import main

def fail(*_):
    raise OSError({number}, os.strerror({number}))

os.fsync = os.fdatasync = fail
sys.exit(main())
"""


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """Return the program with a changed text and nothing mounted."""
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nTWO\n")
        (view / "dir/b.txt").unlink()
    return yolofs


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("what", ["drop", "edit"])
@pytest.mark.some(2)
def test_a_hunk_that_cannot_be_written_is_told_in_a_sentence(staged: Program, what: str, number: int) -> None:
    (hunk,) = [one for one in staged("hunks", "--json").json["hunks"] if one["kind"] == "text"]
    (staged.project / "edited").write_text("@@ -1,2 +1,2 @@\n one\n-two\n+other\n")
    words = {
        "drop": ["restore", "--hunk", hunk["id"]],
        "edit": ["hunks", "--edit", hunk["id"], "--edited", "edited"],
    }[what]
    before = staged("diff").out
    done = run_code(FAILING.format(number=number), words, staged.project)
    assert done.returncode == 1
    assert done.stderr.startswith("yolofs: nothing is done, and all is as it was: ")
    if number == errno.ENOSPC:
        assert "hint: " in done.stderr
    assert staged("diff").out == before
    staged(*words)
    assert staged("diff").out != before


def test_a_restore_on_a_failing_disk_fails_with_one_sentence(staged: Program) -> None:
    before = staged("diff").out
    done = run_code(FAILING.format(number=errno.EIO), ["restore", "dir/b.txt"], staged.project)
    assert done.returncode == 1
    assert done.stderr.startswith("yolofs: ")
    assert "brought back" in done.stderr
    assert staged("diff").out == before
