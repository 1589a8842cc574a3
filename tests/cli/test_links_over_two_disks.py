"""What is told before names of a file with hard links part, as one moves to another disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from tests.support.second_disk import mounted_disk
from tests.support.terminal import Terminal

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a second device"),
]


@pytest.fixture
def project(yolofs: Program) -> Iterator[Path]:
    """A project with another disk in it."""
    (yolofs.project / "far").mkdir()
    with mounted_disk(yolofs.project / "far"):
        yield yolofs.project


def make(*names: Path) -> None:
    """Make one file of some names."""
    names[0].write_text("old\n")
    for name in names[1:]:
        name.hardlink_to(names[0])


def moved(project: Path, name: str, *, is_edited: bool) -> None:
    """Move a file to the other disk, in the view."""
    view = CoreDriver(bytes(project))
    if is_edited:
        view.overwrite(name.encode(), b"new\n")
    view.rename(name.encode(), b"far/" + name.encode())
    view.close()


def told(yolofs: Program) -> str:
    """Return the warnings before a commit; a dry run, the question and the commit give the same."""
    found = [
        [line.partition("warning: ")[2] for line in text.splitlines() if "moves to another disk" in line]
        for text in (yolofs("commit", "--dry-run").err, _at_the_question(yolofs), yolofs("commit", "--yes").err)
    ]
    assert found[0] == found[1] == found[2]
    return "\n".join(found[0])


def _at_the_question(yolofs: Program) -> str:
    with Terminal(yolofs.project, ["commit"], size=(1000, 24), NO_COLOR="1") as terminal:
        terminal.wait_for("? [y/N] ")
        terminal.type("n\n")
        assert terminal.wait() == 1
        return terminal.text


@pytest.mark.parametrize("is_edited", [False, True])
def test_names_on_the_old_disk_that_a_moved_link_loses_are_named(
    yolofs: Program, project: Path, *, is_edited: bool
) -> None:
    make(project / "one", project / "two", project.parent / "outside")
    moved(project, "one", is_edited=is_edited)
    text = told(yolofs)
    assert text == (
        f"{project}/far/one moves to another disk or mount, and is no longer a hard link of {project}/two and"
        f" {project.parent}/outside"
    )
    assert {(project / "two").read_text(), (project.parent / "outside").read_text()} == {
        "new\n" if is_edited else "old\n"
    }


def test_names_that_keep_the_old_content_are_named(yolofs: Program, project: Path) -> None:
    make(project / "one", project.parent / "outside", project.parent / "other")
    moved(project, "one", is_edited=True)
    text = told(yolofs)
    for name in ("outside", "other"):
        assert f"{project.parent}/{name}" in text
        assert (project.parent / name).read_text() == "old\n"
    assert text.endswith("; these keep the old content")
    assert (project / "far/one").read_text() == "new\n"


def test_names_on_the_old_disk_that_are_not_found_are_counted(yolofs: Program, project: Path) -> None:
    hidden = project.parent / "hidden"
    hidden.mkdir()
    make(project / "one", hidden / "other")
    moved(project, "one", is_edited=True)
    with mounted_disk(hidden):
        text = told(yolofs)
    assert text.endswith("is no longer a hard link of 1 name that was not found; that keeps the old content")
    assert (hidden / "other").read_text() == "old\n"


def test_the_files_in_a_directory_that_moves_are_named(yolofs: Program, project: Path) -> None:
    (project / "d/deep").mkdir(parents=True)
    make(project / "d/deep/one", project / "d/two")
    make(project / "d/three", project / "four")
    moved(project, "d", is_edited=False)
    assert told(yolofs) == (
        f"{project}/far/d/three moves to another disk or mount, and is no longer a hard link of {project}/four"
    )


def test_no_note_is_printed_where_no_hard_link_is_cut(yolofs: Program, project: Path) -> None:
    make(project / "one", project / "two")
    make(project / "three")
    view = CoreDriver(bytes(project))
    view.rename(b"one", b"other")
    view.rename(b"three", b"far/three")
    view.close()
    assert told(yolofs) == ""


def test_new_names_on_another_disk_that_become_copies_are_told_before_the_commit(
    yolofs: Program, project: Path
) -> None:
    make(project / "far/one")
    view = CoreDriver(bytes(project))
    for name in (b"a", b"b"):
        view.link(b"far/one", name)
    view.create(b"new", b"new\n", 0o644)
    view.link(b"new", b"other")
    view.link(b"new", b"far/new")
    view.close()

    def copies(text: str) -> set[str]:
        return {line.partition("warning: ")[2] for line in text.splitlines() if "becomes a copy of" in line}

    why = "no hard link leads to another disk or mount"
    foretold = copies(yolofs("commit", "--dry-run").err)
    assert {
        f"{project}/a becomes a copy of {project}/far/one: {why}",
        f"{project}/b becomes a copy of {project}/far/one: {why}",
    } < foretold
    assert copies(_at_the_question(yolofs)) == foretold
    done = yolofs("commit", "--yes").err
    assert copies(done) == foretold
    assert done.count("hard link could not be carried over") == len(foretold)
    files = [(project / name).stat() for name in ("far/one", "a", "b", "new", "other", "far/new")]
    assert len({(st.st_dev, st.st_ino) for st in files}) == 2 + len(foretold)  # of two in the view


def test_an_undo_tells_which_hard_links_it_cuts_before(yolofs: Program, project: Path) -> None:
    (project / "far/one").write_text("one\n")
    view = CoreDriver(bytes(project))
    view.rename(b"far/one", b"one")
    view.close()
    yolofs("commit", "--yes")
    (project / "host").hardlink_to(project / "one")
    said = f"{project}/far/one moves to another disk or mount, and is no longer a hard link of {project}/host"
    assert said in yolofs("undo", "--force", "--dry-run").err
    with Terminal(yolofs.project, ["undo", "--force"], size=(1000, 24), NO_COLOR="1") as terminal:
        terminal.wait_for("? [y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
        assert said in terminal.text
    assert (project / "far/one").read_text() == (project / "host").read_text() == "one\n"
    assert (project / "host").stat().st_nlink == 1
