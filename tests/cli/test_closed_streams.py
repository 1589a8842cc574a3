"""Commands that begin with stdin, stdout or stderr closed (``>&-``), as some services start
them.
"""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.support.program import COMMAND, Program

pytestmark = pytest.mark.mount
CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]


def run_closed(yolofs: Program, words: str, closed: str) -> subprocess.CompletedProcess[str]:
    command = f"exec {shlex.join(COMMAND)} {words} {closed}"
    return subprocess.run(
        ["sh", "-c", command], cwd=yolofs.project, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.some(2)
def test_a_commit_is_done_with_a_stream_closed(yolofs: Program, closed: str) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("what was staged\n")
        assert run_closed(yolofs, "status", closed).returncode == 0
        done = run_closed(yolofs, "commit --yes", closed)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (yolofs.project / "new").read_text() == "what was staged\n"


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-"])
def test_a_question_that_nobody_can_answer_is_not_answered(yolofs: Program, closed: str) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("x")
        done = run_closed(yolofs, "commit", closed)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert not (yolofs.project / "new").exists()


@pytest.mark.parametrize("buffering", ["-u", ""])
def test_an_output_that_takes_nothing_is_named(
    yolofs: Program, monkeypatch: pytest.MonkeyPatch, buffering: str
) -> None:
    """If that is seen at the end alone, the commit is done, and says so."""
    monkeypatch.setenv("PYTHONUNBUFFERED", buffering)
    with yolofs.mounted() as view:
        (view / "new").write_text("x")
        done = run_closed(yolofs, "commit --yes", ">/dev/full")
        assert done.returncode == 1
        assert ("commit 1 done" in done.stderr) == (yolofs.project / "new").exists() == (not buffering)
        assert "yolofs: the output cannot be written: No space left on device\nhint: make room where" in done.stderr
        assert "Exception ignored" not in done.stderr
    for words in ("log -v", "timeline", "status --json"):
        said = run_closed(yolofs, words, ">/dev/full").stderr
        assert said.endswith("hint: make room where the output goes; what was done: yolofs log, yolofs commits\n")
