"""A commit names the programs with an open file among its own: it may take half of their output."""

from __future__ import annotations

import os
import re

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


@pytest.mark.parametrize("root", [".", "/"])
@pytest.mark.parametrize("which", ["everything", "PATH", "hunk"])
@pytest.mark.some(3)
def test_a_commit_names_the_program_that_goes_on_writing(yolofs: Program, which: str, root: str) -> None:
    with yolofs.mounted("--root", root) as mountpoint:
        view = mountpoint if root == "." else mountpoint / str(yolofs.project)[1:]
        for name in ("being-written", "being-read", "closed"):
            (view / name).write_text("first\n")
        with (view / "being-written").open("a") as file, (view / "being-read").open():
            if which == "hunk":
                (hunk,) = yolofs("hunks", "--json", "--", "being-written").json["hunks"]
                words = ["--hunk", str(hunk["id"])]
            else:
                words = ["being-written"] if which == "PATH" else []
            said = yolofs("commit", "--yes", *words).err
            file.write("second\n")
        (note,) = [line for line in said.splitlines() if "open for writing" in line]
        assert re.fullmatch(
            rf"note: \S+, process {os.getpid()}, has {yolofs.project}/being-written open for writing: "
            "what it writes from now on is staged anew",
            note,
        )
        assert (yolofs.project / "being-written").read_text() == "first\n"
        assert (view / "being-written").read_text() == "first\nsecond\n"
        assert "open for writing" not in yolofs("commit", "--yes").err


@pytest.mark.parametrize(
    ("count", "rest"), [(4, "1 more file of this commit is"), (5, "2 more files of this commit are")]
)
def test_of_many_open_files_three_are_named_and_the_rest_counted(yolofs: Program, count: int, rest: str) -> None:
    with yolofs.mounted() as view:
        files = [(view / f"{number}").open("w") for number in range(count)]
        said = yolofs("commit", "--yes").err
        for file in files:
            file.close()
        assert said.count("open for writing: what it writes") == 3
        assert f"note: {rest} open for writing" in said


@pytest.mark.parametrize("which", ["everything", "PATH", "hunk"])
@pytest.mark.some(1)
def test_json_has_the_program_before_and_after_a_commit(yolofs: Program, which: str) -> None:
    with yolofs.mounted() as view:
        for name in ("being-written", "closed"):
            (view / name).write_text("first\n")
        with (view / "being-written").open("a"):
            (found,) = yolofs("status", "--json").json["open_files"]
            if which == "hunk":
                (hunk,) = yolofs("hunks", "--json", "--", "being-written").json["hunks"]
                words = ["--hunk", str(hunk["id"])]
            else:
                words = ["being-written"] if which == "PATH" else []
            (committed,) = yolofs("commit", "--yes", "--json", *words).json["open_files"]
        assert found == committed
        assert (found["path"], found["pid"]) == (f"{yolofs.project}/being-written", os.getpid())
        (view / "closed").write_text("second\n")
        assert yolofs("status", "--json").json["open_files"] == []
        assert yolofs("commit", "--yes", "--json").json["open_files"] == []


def test_the_page_of_a_review_names_the_program(yolofs: Program) -> None:
    with (
        yolofs.mounted() as view,
        (view / "being-written").open("w"),
        Terminal(yolofs.project, ["review"], size=(200, 24)) as terminal,
    ):
        terminal.wait_for_screen("being-written", gone="comparing")
        terminal.type("a\r")
        terminal.wait_for_screen(
            "enter commits", f"process {os.getpid()}, has {yolofs.project}/being-written open for writing"
        )
        terminal.type("xqy")
        terminal.wait()
