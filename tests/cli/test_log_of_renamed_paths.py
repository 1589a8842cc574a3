"""``log -- PATH`` tells what was done at a path before it, or a directory above it, was renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from yolofs.system.syscalls import rename_exchange

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "p"
    (project / "old").mkdir(parents=True)
    (project / "old/f").write_text("one\n")
    program = Program(project)
    program.start_session()
    return program


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def told(yolofs: Program, *words: str) -> list[str]:
    """Return what the log has, without times."""
    return [" ".join(line.split()[3:]) for line in yolofs("log", *words).out.splitlines()]


def test_what_was_done_before_a_directory_was_renamed_is_told(yolofs: Program, view: Path) -> None:
    (view / "old/f").write_text("two\n")
    (view / "other").write_text("x\n")
    (view / "old").rename(view / "new")
    (view / "old").mkdir()
    (view / "old/f").write_text("another file\n")
    (view / "new/f").unlink()
    lines = told(yolofs, "--", "new/f")
    assert lines[0].startswith("stage old/f (copied up")
    assert lines[-2:] == ["rename old -> new", "delete new/f"]
    assert sum(line.startswith("stage old/f") for line in lines) == sum(
        line.startswith("stage old/f (copied up") for line in lines
    )


def test_a_log_follows_renamed_directories_into_earlier_commits(yolofs: Program, view: Path) -> None:
    (view / "old/f").write_text("two\n")
    yolofs("commit", "--yes")
    (view / "old").rename(view / "new")
    yolofs("commit", "--yes")
    (view / "new").rename(view / "newest")
    lines = told(yolofs, "--", "newest/f")
    assert [line for line in lines if line.startswith("rename")] == ["rename old -> new", "rename new -> newest"]
    assert lines[0].startswith("stage old/f (copied up")
    documents = yolofs("log", "--json", "--", "newest/f").json["records"]
    assert os.fspath(yolofs.project / "old/f") in [one.get("path") for one in documents]


def test_a_log_follows_exchanged_names_and_both_branches_of_a_travel(yolofs: Program, view: Path) -> None:
    (view / "a").write_text("a\n")
    (view / "b").write_text("b\n")
    yolofs("snapshot", "two")
    (view / "old").rename(view / "left")
    yolofs("travel", "two")
    directory = os.open(view, os.O_RDONLY)
    assert rename_exchange(directory, b"a", directory, b"b")
    os.close(directory)
    (view / "a").rename(view / "left")
    lines = told(yolofs, "--", "left")
    assert [line.removesuffix(" [dead]") for line in lines] == [
        "stage b",
        "rename old -> left",
        "exchange a <-> b",
        "rename a -> left",
    ]
