"""``yolofs commits`` counts what the commit itself has listed."""

from __future__ import annotations

import os

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.planting import interrupt
from tests.support.program import Program


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """Return the program with a change of each kind staged, and a time of a directory."""
    project = yolofs.project
    for name in ("deleted", "type", "mode", "moved"):
        (project / name).write_text(f"{name}\n")
    (project / "full").mkdir()
    for number in range(3):
        (project / f"full/{number}").write_text(f"{number}\n")
    view = CoreDriver(os.fsencode(project))
    view.append(b"a.txt", b"more\n")
    view.unlink(b"deleted")
    view.unlink(b"type")
    view.mkdir(b"type", 0o755)
    view.chmod(b"mode", 0o600)
    view.rename(b"moved", b"moved-here")
    view.append(b"moved-here", b"more\n")
    view.create(b"new", b"new\n", 0o644)
    for number in range(3):
        view.unlink(b"full/%d" % number)
    view.rmdir(b"full")
    view.utimes(b"dir", 10**18)
    view.close()
    return yolofs


def test_each_commit_and_undo_has_the_counts_that_it_listed(staged: Program) -> None:
    expected = staged("status", "--json").json["counts"]
    listed = staged("commit", "--yes").out.splitlines()[-1]
    to_undo = next(line for line in staged("undo", "--dry-run").out.splitlines() if " changes: " in line)
    staged("undo", "--yes")
    assert listed.startswith("10 changes: ")
    first, second = staged("commits").out.splitlines()
    assert listed.removeprefix("10 changes: ") in first
    assert to_undo.partition(": ")[2] in second
    assert staged("commits", "--json").json["commits"][0]["counts"] == expected


def test_a_commit_of_some_paths_and_one_of_an_earlier_generation_count_their_own(staged: Program) -> None:
    staged("commit", "--yes", "new")
    staged("snapshot", "early")
    view = CoreDriver(os.fsencode(staged.project))
    view.create(b"late", b"late\n", 0o644)
    view.close()
    listed = staged("commit", "--yes", "--up-to", "early").out.splitlines()[-1]
    first, second = staged("commits").out.splitlines()
    assert "  1 added" in first
    assert listed.partition(": ")[2] in second


def test_a_commit_whose_counts_are_lost_or_malformed_has_no_counts(staged: Program) -> None:
    staged("commit", "--yes")
    (staged.session / "commits/1/counts").write_text('{"A": "\x1b[2J"}')
    assert "no counts kept" in staged("commits").out
    (staged.session / "commits/1/counts").unlink()
    assert staged("commits", "--json").json["commits"][0]["counts"] is None


@pytest.mark.mount
def test_leftovers_of_a_commit_that_was_taken_back_are_not_counted_as_a_commit(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").unlink()
        (view / "new").write_text("new\n")
    interrupt(yolofs.project, 1, "commit", "--yes")
    (yolofs.project / "a.txt").write_text("by the host\n")
    assert "/commits/1/found" in yolofs("commit", "--roll-back").err
    yolofs("commit", "--yes", "new")
    assert (yolofs.session / "commits/1/found").is_dir()
    for options in ((), ("--all",)):
        assert yolofs("commits", *options).err == ""


def test_older_commits_that_are_not_shown_are_counted(yolofs: Program) -> None:
    settings = yolofs.project / ".yolofs.toml"
    settings.write_text(settings.read_text() + "[keep_commits]\ncount = 30\n")
    for number in range(22):
        view = CoreDriver(os.fsencode(yolofs.project))
        view.create(b"%d" % number, b"new\n", 0o644)
        view.close()
        yolofs("commit", "--yes")
    assert yolofs("commits").err == "2 older ones are not shown; --all shows them\n"
    assert yolofs("commits", "--all").err == ""
