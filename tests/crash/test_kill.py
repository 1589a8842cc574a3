"""The daemon is killed at any moment: nothing that an operation has answered for is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import kill, run_program
from tests.support.seed import dice

pytestmark = [pytest.mark.mount, pytest.mark.timeout(300)]

WORKER = """
import os, sys
os.chdir(sys.argv[1])
number = int(sys.argv[2])
try:
    while True:
        number += 1
        with open(f"f{number}", "w") as file:
            file.write("x" * number)
        os.mkdir(f"d{number}")
        os.rename(f"f{number}", f"d{number}/g")
        if number % 3 == 0:
            os.unlink(f"d{number - 1}/g")
            os.rmdir(f"d{number - 1}")
        if number % 5 == 0:
            os.chmod(f"d{number}/g", 0o600)
        print(number, flush=True)
except OSError:
    pass
"""


class Project:
    """A project with a session, worked on by the real program."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.run("init")

    def run(self, *words: str, code: int = 0) -> str:
        done = run_program(words, self.directory)
        assert done.returncode == code, f"yolofs {words}: {done.stdout} {done.stderr}"
        return done.stdout

    @property
    def view(self) -> Path:
        return Path(os.readlink(self.directory / ".yolofs/mnt"))

    def kill_daemon(self) -> None:
        pid = json.loads((self.directory / ".yolofs/daemon.json").read_text())["pid"]
        kill(pid)


def expected(last: int) -> dict[str, int]:
    """The files that are there after the worker has said ``last``: their sizes by path."""
    removed = {number - 1 for number in range(3, last + 1, 3)}
    return {f"d{number}/g": number for number in range(1, last + 1) if number not in removed}


def listed(view: Path) -> dict[str, int]:
    return {str(path.relative_to(view)): path.stat().st_size for path in view.rglob("g")}


def take_back(view: Path, last: int) -> None:
    """Undo what the worker was in the middle of after it said ``last``, so that it can go on."""
    for name in (f"f{last + 1}", f"d{last + 1}/g"):
        (view / name).unlink(missing_ok=True)
    if (view / f"d{last + 1}").exists():
        (view / f"d{last + 1}").rmdir()
    if f"d{last}/g" in expected(last):
        (view / f"d{last}").mkdir(exist_ok=True)
        (view / f"d{last}/g").write_text("x" * last)


def test_all_operations_that_were_answered_are_there_after_every_kill_of_the_daemon(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    drawing = dice("the daemon is killed")
    last = 0
    generations = {}
    for _ in range(6):
        project.run("mount", "--root", ".")
        view = project.view
        command = [sys.executable, "-c", WORKER, str(view), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            stop_after = last + drawing.randrange(5, 60)
            for line in worker.stdout:
                last = int(line)
                if last == stop_after:
                    project.kill_daemon()
        project.run("mount")
        found = listed(view)
        wanted = expected(last)
        if (last + 1) % 3 == 0 and f"d{last}/g" not in found:  # the worker was in the middle of the next step
            del wanted[f"d{last}/g"]
        assert {path: size for path, size in found.items() if path in wanted} == wanted
        unanswered = set(found) - set(wanted)
        assert unanswered <= {f"d{last + 1}/g", f"d{last}/g"}
        take_back(view, last)
        project.run("snapshot", f"after-{last}")
        generations[f"after-{last}"] = listed(view)
    for name, tree in generations.items():
        project.run("travel", name)
        assert listed(project.view) == tree
    project.run("unmount")
    assert sorted(path.name for path in project.directory.iterdir()) == [".yolofs", ".yolofs.toml"]


def test_a_kill_in_the_middle_of_a_line_loses_that_line_only(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.run("mount", "--root", ".")
    (project.view / "whole").write_text("whole")
    project.run("unmount")
    journal = project.directory / ".yolofs/journal"
    good = journal.read_bytes()
    journal.write_bytes(good + b"S 1767225600123456789 torn 7 #12")
    project.run("mount")
    names = sorted(path.name for path in project.view.iterdir())
    project.run("unmount")
    assert names == [".yolofs.toml", "whole"]
    assert journal.read_bytes() == good
    assert b"\nS 1767225600123456789 torn 7 #12" in (project.directory / ".yolofs/journal.torn").read_bytes()


def test_changes_that_a_commit_left_staged_are_there_after_a_kill_of_the_daemon(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    for name in ("a", "b", "c"):
        (project.directory / name).write_text(f"{name}\n")
    project.run("mount", "--root", ".")
    (project.view / "a").write_text("A\n")
    (project.view / "b").rename(project.view / "moved")
    (project.view / "c").unlink()
    project.run("commit", "--yes", "a")
    (project.view / "late").write_text("late\n")
    project.kill_daemon()
    project.run("mount")
    names = {path.name: path.read_text() for path in project.view.iterdir() if path.name != ".yolofs.toml"}
    assert names == {"a": "A\n", "moved": "b\n", "late": "late\n"}
    assert [path.name for path in sorted(project.directory.iterdir())] == [".yolofs", ".yolofs.toml", "a", "b", "c"]
    project.run("commit", "--yes")
    project.run("unmount")
    names = {path.name: path.read_text() for path in project.directory.iterdir() if path.name[0] != "."}
    assert names == {"a": "A\n", "moved": "b\n", "late": "late\n"}


REMOVER = """
import os, sys
os.chdir(sys.argv[1])
held = []
for number in range(300):
    fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 5000)
    os.fsync(fd)
    if number % 10 == 0:
        held.append(fd)
    else:
        os.close(fd)
    if number % 3:
        os.unlink(f"f{number}")
print("done", flush=True)
sys.stdin.read()
"""


def test_a_kill_amid_removals_leaves_in_the_store_what_is_shown_and_no_more(tmp_path: Path) -> None:
    """Some are unlinked and open, some not forgotten by the kernel yet, some not freed yet."""
    project = Project(tmp_path / "project")
    project.run("mount", "--root", ".")
    (project.view / "old").write_text("old")
    project.run("snapshot", "before")
    (project.view / "old").unlink()
    command = [sys.executable, "-c", REMOVER, str(project.view)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "done\n"
        project.kill_daemon()
    kept = {f"f{number}" for number in range(0, 300, 3)}
    project.run("mount")
    store = project.directory / ".yolofs/files"
    assert len(list(store.glob("*/*"))) == len(kept) + 1
    (project.view / "new").write_text("new")
    (project.view / "f0").unlink()
    names = {path.name for path in project.view.iterdir() if path.name[0] != "."}
    assert names == kept - {"f0"} | {"new"}
    assert all((project.view / name).read_bytes() == b"x" * 5000 for name in kept - {"f0"})
    project.run("travel", "before")
    assert (project.view / "old").read_text() == "old"
    project.run("travel", "-")
    assert (project.view / "new").read_text() == "new"
    project.run("abort", "--yes")
    project.run("unmount")
    project.run("mount")
    assert list(store.glob("*/*")) == []
    (project.view / "first").write_text("first")
    assert len(list(store.glob("*/*"))) == 1
    project.run("unmount")
