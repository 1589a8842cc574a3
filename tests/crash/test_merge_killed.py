"""Merging under a mount: what programs at work see of it, and what a kill at any moment of it
leaves.
"""

from __future__ import annotations

import mmap
import os
import signal
from pathlib import Path

import pytest

from tests.support.program import Program, run_killed, wait_until

pytestmark = pytest.mark.mount

TEN = "".join(f"{number}\n" for number in range(1, 11))
BOTH = TEN.replace("2\n", "two\n").replace("9\n", "nine\n")
MARKED = TEN.replace("5\n", "<<<<<<< staged\nfive\n=======\nFIVE\n>>>>>>> base\n")


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("clean", "clash"):
        (project / name).write_text(TEN)
    program = Program(project)
    program("init")
    return program


def change_both(view: Path, project: Path) -> None:
    with (view / "clean").open("r+") as file:
        file.write(TEN.replace("2\n", "two\n"))
    (view / "clash").write_text(TEN.replace("5", "five"))
    (project / "clean").write_text(TEN.replace("9\n", "nine\n"))
    (project / "new").write_text(TEN.replace("5", "FIVE"))
    (project / "new").rename(project / "clash")  # another file is in its place


def test_files_that_programs_have_open_show_what_a_merge_made(yolofs: Program) -> None:
    project = yolofs.project
    with yolofs.mounted() as view:
        change_both(view, project)
        status = yolofs("status")
        assert [line[3:8] for line in status.out.splitlines() if line.startswith("!")] == ["clash", "clean"]
        with (view / "clean").open("rb") as clean, (view / "clash").open("a+") as clash:
            mapping = mmap.mmap(clean.fileno(), 0, prot=mmap.PROT_READ)
            assert clean.read() == TEN.replace("2\n", "two\n").encode()
            yolofs("commit", "--yes", "--merge", code=9)
            clean.seek(0)
            assert clean.read() == BOTH.encode()
            assert mapping[:] == BOTH[: len(mapping)].encode()
            clash.seek(0)
            assert clash.read() == MARKED
            clash.write("appended\n")
            clash.flush()
            assert (view / "clash").read_text() == MARKED + "appended\n"
            mapping.close()
        assert (project / "clean").read_text() == BOTH
        assert (project / "clash").read_text() == TEN.replace("5", "FIVE")
        (view / "clash").write_text("settled\n")
        yolofs("commit", "--yes")
        assert (project / "clash").read_text() == "settled\n"


def kill_at(yolofs: Program, module: str, name: str, *, after: bool) -> None:
    """Have a merging commit killed when it calls a function, or has."""
    done = run_killed(["commit", "--yes", "--merge"], yolofs.project, module=module, name=name, after=after)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_kill_between_merge_and_commit_shows_what_was_merged(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        change_both(view, yolofs.project)
        with (view / "clean").open("rb") as clean:
            kill_at(yolofs, "cli.commit.settling", "settle_conflicts", after=True)
            # nobody waits until the mount has taken the session back, and told the kernel of the
            # new size
            wait_until(lambda: os.fstat(clean.fileno()).st_size == len(BOTH), "what was merged")
            assert clean.read() == BOTH.encode()
        assert (view / "clean").read_text() == BOTH
        assert (view / "clash").read_text() == MARKED
        assert (yolofs.project / "clean").read_text() == TEN.replace("9\n", "nine\n")
    assert [one["how"] for one in yolofs("status", "--json").json["drift"]] == ["marked"]
    with yolofs.mounted() as view:
        assert (view / "clean").read_text() == BOTH
    yolofs("commit", "--yes", "clean")
    assert (yolofs.project / "clean").read_text() == BOTH


@pytest.mark.parametrize("name", ["Rebased", "Snapshot"])
def test_a_kill_while_a_merge_is_staged_leaves_what_was_staged_before(yolofs: Program, name: str) -> None:
    """Of the new journal, before it is in its place; of what is merged, before anything tells of
    it.
    """
    with yolofs.mounted() as view:
        change_both(view, yolofs.project)
        kill_at(yolofs, "session.merge", name, after=False)
        assert (view / "clean").read_text() == TEN.replace("2\n", "two\n")
    yolofs("commit", "--yes", "--merge", "clean")
    assert (yolofs.project / "clean").read_text() == BOTH
