"""``yolofs commit --dry-run`` and ``--script``: what a commit would do, and nothing of it done."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """A project in which a file is changed, one is made and one is moved."""
    (yolofs.project / "old").write_text("old\n")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "it's new").write_text("new\n")
        (view / "old").rename(view / "moved")
    return yolofs


def test_it_names_each_real_file_and_does_nothing(staged: Program) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in staged.project.iterdir()}
    lines = staged("commit", "--dry-run").out.splitlines()
    project = staged.project
    assert f"replace {project}/a.txt" in lines
    assert f"create {project}/it's new" in lines or f'create "{project}/it\'s new"' in lines
    assert f"move {project}/old to {project}/moved" in lines
    assert lines[-1] == "set the time of 1 directory"
    assert not [line for line in lines if "out of the way" in line or "in its place" in line]
    assert {path.name: path.stat().st_mtime_ns for path in project.iterdir()} == before
    assert staged("status", "--json").json["counts"]
    assert staged("commit", "--dry-run", "a.txt").out.splitlines()[0] == f"replace {project}/a.txt"


def test_the_script_does_it(staged: Program) -> None:
    done = staged("commit", "--script")
    assert done.out.startswith("#!/bin/sh\n")
    ran = subprocess.run(["sh"], input=done.out, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    project = staged.project
    assert f"what was replaced lies in {project}/.yolofs-script-" in ran.stderr
    assert (project / "a.txt").read_text() == "changed\n"
    assert (project / "it's new").read_text() == "new\n"
    assert (project / "moved").read_text() == "old\n"
    assert not (project / "old").exists()


def test_both_options_together_print_the_script(staged: Program) -> None:
    assert staged("commit", "--dry-run", "--script").out == staged("commit", "--script").out


def test_what_is_replaced_by_a_move_is_said(yolofs: Program) -> None:
    for name in ("f2", "f3", "one", "other"):
        (yolofs.project / name).write_text(name)
    (yolofs.project / "linked").hardlink_to(yolofs.project / "one")
    with yolofs.mounted() as view:
        (view / "f2").rename(view / "f3")
        (view / "one").write_text("changed")
        (view / "other").unlink()
    project = yolofs.project
    assert yolofs("commit", "--dry-run").out.splitlines() == [
        f"remove {project}/other",
        f"move {project}/f2 to {project}/f3, and replace what is there",
        f"rewrite {project}/one in its place: its other names (hard links) get the same",
        "set the time of 1 directory",
    ]


def test_a_script_shows_a_terminal_no_control_characters(yolofs: Program) -> None:
    """It is read before it is run, and a name could hide a line of it."""
    names = ("a\x1b[31m", "b\rc", "'\x07'", "d\x7f\x1b", "e\u009b2J", "two\nlines", "\x1b")
    with yolofs.mounted() as view:
        for name in names:
            (view / name).write_bytes(name.encode())
    script = yolofs("commit", "--script").out
    assert all(char.isprintable() or char == "\n" for char in script)
    ran = subprocess.run(["sh"], input=script, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert [(yolofs.project / name).read_bytes().decode() for name in names] == list(names)


def test_nothing_staged_is_said(yolofs: Program) -> None:
    assert "nothing to commit" in yolofs("commit", "--dry-run").err
    assert yolofs("commit", "--script").out == ""


def test_it_is_one_of_them_and_no_json(yolofs: Program) -> None:
    assert "print no JSON" in yolofs.refused("commit", "--script", "--json", code=2)


def test_what_would_be_refused_is(staged: Program) -> None:
    time.sleep(0.05)  # a change by the host shows if it comes a tick of the clock later
    (staged.project / "a.txt").write_text("the host's\n")
    assert "base has changed at 1 path" in staged("commit", "--dry-run", code=9).err
    assert f"replace {staged.project}/a.txt" in staged("commit", "--dry-run", "--force").out
    assert "stand alone" in staged.refused("commit", "--dry-run", "--continue", code=2)
