"""The forms that `yolofs diff` has beside a patch, and what a terminal gets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    """Return a view in which a few files have changed."""
    (yolofs.project / "spaces.txt").write_text("if a:\n    b\nlast\n")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("one\nthree\nfour\n")
        (view / "dir/b.txt").rename(view / "dir/c.txt")
        (view / "dir/c.txt").write_text("b\nc\n")
        (view / "spaces.txt").write_text("if a:\n\tb\nlast\n")
        (view / "image").write_bytes(b"\0" * 24576)
        yield view


def test_stat_counts_lines_and_names_sizes_of_binary_files(yolofs: Program, view: Path) -> None:
    assert yolofs("diff", "--stat").out.splitlines() == [
        " a.txt                  |   3 ++-",
        " dir/b.txt => dir/c.txt |   1 +",
        " image                  | Bin 0 B -> 24 KiB",
        " spaces.txt             |   2 +-",
        " 4 files changed, 4 insertions(+), 2 deletions(-)",
    ]


def test_name_only_names_files_as_git_quotes_them(yolofs: Program, view: Path) -> None:
    (view / "new\nline").write_text("x")
    (view / "empty").mkdir()
    (view / "spaces.txt").unlink()
    assert yolofs("diff", "--name-only").out == 'a.txt\ndir/c.txt\nimage\n"new\\nline"\nspaces.txt\n'


def test_without_white_space_a_file_in_which_only_that_changed_is_left_out(yolofs: Program, view: Path) -> None:
    patch = yolofs("diff", "-w").out
    assert "spaces.txt" not in patch
    assert "+three\n" in patch
    assert " spaces.txt" not in yolofs("diff", "-w", "--stat").out
    assert "-w is about lines, and --name-only shows none" in yolofs.refused("diff", "-w", "--name-only", code=2)


def test_a_word_diff_marks_the_words(yolofs: Program, view: Path) -> None:
    (view / "a.txt").write_text("one\ntwo, or three\n")
    out = yolofs("diff", "--word-diff", "--", "a.txt").out
    assert out.splitlines()[2:] == ["--- a/a.txt", "+++ b/a.txt", "@@ -1,2 +1,2 @@", "one", "two{+, or three+}"]
    with Terminal(yolofs.project, ["diff", "--word-diff", "--", "a.txt"]) as terminal:
        assert terminal.wait() == 0
        assert "two\x1b[32m{+, or three+}\x1b[0m" in terminal.seen


def test_two_forms_at_once_are_refused(yolofs: Program) -> None:
    assert "--list and --stat are two forms of the same output" in yolofs.refused("diff", "--list", "--stat", code=2)


def test_a_terminal_gets_the_size_of_a_binary_file_and_a_pipe_the_patch(yolofs: Program, view: Path) -> None:
    with Terminal(yolofs.project, ["diff", "--", "image"]) as terminal:
        assert terminal.wait() == 0
        assert "binary, 24 KiB\r\n" in terminal.seen
        assert "GIT binary patch" not in terminal.seen
    with Terminal(yolofs.project, ["diff", "--binary", "--", "image"]) as terminal:
        assert terminal.wait() == 0
        assert "GIT binary patch" in terminal.seen
    patch = yolofs("diff").out
    assert "GIT binary patch\n" in patch
    subprocess.run(["git", "apply"], cwd=yolofs.project, input=patch.encode(), check=True)
    assert (yolofs.project / "image").read_bytes() == b"\0" * 24576


def test_more_than_a_screen_goes_through_the_pager_and_less_does_not(
    yolofs: Program, view: Path, tmp_path: Path
) -> None:
    pager = tmp_path / "my pager"
    pager.write_text('#!/bin/sh\necho "paged with $1"; cat\n')
    pager.chmod(0o755)
    variables: dict[str, Any] = {"PAGER": f"'{pager}' option"}
    with Terminal(yolofs.project, ["diff", "--", "a.txt"], size=(80, 24), **variables) as terminal:
        assert terminal.wait() == 0
        assert "paged" not in terminal.seen
    (view / "long.txt").write_text("line\n" * 30)
    with Terminal(yolofs.project, ["diff", "--", "long.txt"], size=(80, 24), **variables) as terminal:
        assert terminal.wait() == 0
        assert "paged with option" in terminal.seen
        assert terminal.text.count("+line") == 30
    for more, option in (({"YOLOFS_PAGER": ""}, "--"), ({"TERM": "dumb"}, "--"), ({}, "--no-pager")):
        words = ["diff", *dict.fromkeys((option, "--")), "long.txt"]
        with Terminal(yolofs.project, words, size=(80, 24), **dict[str, Any](variables | more)) as terminal:
            assert terminal.wait() == 0
            assert "paged" not in terminal.seen
            assert terminal.text.count("+line") == 30


def test_whoever_leaves_the_pager_early_sees_no_error(yolofs: Program, view: Path) -> None:
    (view / "long.txt").write_text("".join(f"line {number}\n" for number in range(200_000)))
    with Terminal(yolofs.project, ["diff"], size=(80, 24), PAGER="less", LESS="FRX") as terminal:
        terminal.wait_for_screen("diff --git a/a.txt b/a.txt")
        terminal.type("q")
        assert terminal.wait() == 0
        assert "Broken" not in terminal.text
        assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("pager", "told"), [("false", "failed (exit code 1)"), ("sh -c 'kill -9 $$'", "was ended by signal 9")]
)
def test_a_pager_that_fails_is_told(yolofs: Program, view: Path, pager: str, told: str) -> None:
    (view / "long.txt").write_text("line\n" * 30)
    with Terminal(yolofs.project, ["diff"], size=(100, 24), PAGER=pager) as terminal:
        assert terminal.wait() == 0
        assert f"the pager {pager.split()[0]} {told}; YOLOFS_PAGER=cat does without" in terminal.text


def test_a_pager_in_the_view_is_not_started(yolofs: Program, view: Path, tmp_path: Path) -> None:
    (view / "bin").mkdir()
    (view / "bin/mypager").write_text(f"#!/bin/sh\ntouch {tmp_path}/trap\ncat\n")
    (view / "bin/mypager").chmod(0o755)
    (view / "long.txt").write_text("line\n" * 30)
    path = f"{view}/bin:{os.environ['PATH']}"
    with Terminal(yolofs.project, ["diff"], size=(80, 24), PAGER="mypager", PATH=path) as terminal:
        assert terminal.wait() == 0
        assert "+line" in terminal.text
    assert not (tmp_path / "trap").exists()


def test_a_word_diff_names_the_sizes_of_binary_files_in_a_pipe_too(yolofs: Program) -> None:
    """Nobody can read the patch of one, and no program can apply what is around it."""
    (yolofs.project / "binary").write_bytes(b"\0" * 9)
    with yolofs.mounted() as view:
        (view / "binary").write_bytes(b"\0" * 2048)
        (view / "a.txt").write_text("one\n2\n")
        said = yolofs("diff", "--word-diff").out
        assert "[-two-]{+2+}" in said
        assert "GIT binary patch" not in said
        assert "binary, 9 B -> 2 KiB\n" in said
        assert "GIT binary patch" in yolofs("diff", "--word-diff", "--binary").out
