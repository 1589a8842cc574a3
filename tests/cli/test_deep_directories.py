"""Directories that lie too deep for a path: a program in the view makes them step by step, and base
may have some.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from tests.support.too_deep import steps_down

NAME = b"d" * 200
DEEP = b"/".join([NAME] * 40)


def content(top: Path) -> dict[bytes, str | None]:
    """Return what is in a directory: texts of files, None for directories."""
    found: dict[bytes, str | None] = {}
    todo = [(b"", os.open(top, os.O_RDONLY))]
    while todo:
        above, fd = todo.pop()
        for name in map(os.fsencode, os.listdir(fd)):
            if name.startswith(b".yolofs"):
                continue
            path = above + b"/" + name
            one = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
            if stat.S_ISDIR(os.fstat(one).st_mode):
                found[path] = None
                todo.append((path, one))
            else:
                with open(one) as file:
                    found[path] = file.read()
        os.close(fd)
    return found


@pytest.fixture
def deep(yolofs: Program) -> Program:
    """A project with such directories."""
    (yolofs.project / "base").mkdir()
    with steps_down(yolofs.project / "base") as steps:
        for _ in steps:
            pass
        Path("edited").write_text("base\n")
        Path("removed").write_text("base\n")
    return yolofs


def work(project: Path) -> None:
    view = CoreDriver(os.fsencode(project))
    view.overwrite(b"base/" + DEEP + b"/edited", b"view\n")
    view.unlink(b"base/" + DEEP + b"/removed")
    for depth in range(41):
        view.mkdir(b"/".join([b"new", *[NAME] * depth]), 0o755)
    view.create(b"new/" + DEEP + b"/made", b"view\n", 0o644)
    view.overwrite(b"a.txt", b"view\n")
    view.close()


def test_what_lies_too_deep_for_a_path_is_committed_and_undone(deep: Program) -> None:
    before = content(deep.project)
    work(deep.project)
    deep("commit", "--yes")
    after = content(deep.project)
    assert after[b"/base/" + DEEP + b"/edited"] == after[b"/new/" + DEEP + b"/made"] == after[b"/a.txt"] == "view\n"
    assert b"/base/" + DEEP + b"/removed" not in after
    deep("undo", "--yes")
    assert content(deep.project) == before
    deep("commit", "--yes")
    assert content(deep.project) == after


@pytest.mark.mount
def test_what_base_has_too_deep_for_a_path_is_seen_and_removed(deep: Program) -> None:
    with deep.mounted() as view:
        assert content(view / "base") == content(deep.project / "base")
        shutil.rmtree(view / "base")
    deep("commit", "--yes")
    assert not (deep.project / "base").exists()
    deep("undo", "--yes")
    assert content(deep.project)[b"/base/" + DEEP + b"/edited"] == "base\n"


def test_a_script_that_would_need_a_path_which_is_too_long_is_refused_before_it_begins(deep: Program) -> None:
    work(deep.project)
    done = deep("commit", "--script", code=1)
    assert done.out == ""
    assert "no script does this commit, as something lies too deep for a path" in done.err
    assert len(done.err) < 1000
    deep("commit", "--script", "a.txt")


@pytest.mark.mount
def test_a_script_removes_what_is_too_deep_inside_and_says_that_links_stay(deep: Program) -> None:
    (deep.project / "base/one").write_text("two names\n")
    (deep.project / "base/one").rename(deep.project / "one")
    (deep.project / "base/other").hardlink_to(deep.project / "one")
    with deep.mounted() as view:
        shutil.rmtree(view / "base")
    script = deep("commit", "--script").out
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    told, kept = done.stderr.splitlines()
    assert told == f"cannot be copied, so what is kept of it has the same links: {deep.project / 'base'}"
    assert not (deep.project / "base").exists()
    assert sorted(os.listdir(kept.removeprefix("what was replaced lies in "))) == ["parked", "replaced"]
