"""A commit has brought a broken ``.yolofs.toml``: taking things back goes on, and all that depends
on the settings refuses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program, run_killed, wait_until

BROKEN = {"no TOML": b"[rules\n", "refused": b"[keep_commits]\ncount = -1\n"}
broken = pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)


def stage(yolofs: Program, text: bytes) -> None:
    view = CoreDriver(bytes(yolofs.project))
    view.overwrite(b".yolofs.toml", text)
    view.append(b"a.txt", b"more\n")
    view.close()


@pytest.fixture
def before(yolofs: Program) -> dict[str, tuple[object, ...]]:
    return looks_of(yolofs.project)


def looks_of(project: Path) -> dict[str, tuple[object, ...]]:
    """Return all that is in a project, with its settings."""
    return looks(project) | {".yolofs.toml": ((project / ".yolofs.toml").read_bytes(),)}


@broken
def test_the_commit_that_brought_it_is_undone(
    yolofs: Program, before: dict[str, tuple[object, ...]], text: bytes
) -> None:
    stage(yolofs, text)
    yolofs("commit", "--yes", "--trusted")
    assert "hint: mend it; or, if a commit has brought it into base: yolofs undo\n" in yolofs.refused("gc", code=3)
    done = yolofs("undo", "--yes")
    assert "this command goes on without it" in done.err
    assert looks_of(yolofs.project) == before
    yolofs("abort", "--yes")
    yolofs("gc")


@pytest.mark.mount
def test_a_commit_of_settings_that_cannot_be_read_is_undone_under_a_mount(
    yolofs: Program, before: dict[str, tuple[object, ...]]
) -> None:
    stage(yolofs, BROKEN["no TOML"])
    with yolofs.mounted("--root", ".", expected_in_log=("not TOML",)) as view:
        yolofs("commit", "--yes", "--trusted")
        wait_until(lambda: "not TOML" in yolofs.log, "the daemon has seen it")
        yolofs("undo", "--yes")
        assert looks_of(yolofs.project) == before
        assert (view / ".yolofs.toml").read_bytes() == BROKEN["no TOML"]


@broken
@pytest.mark.parametrize("way", ["--continue", "--roll-back"])
def test_a_commit_killed_after_it_brought_settings_that_cannot_be_read_is_settled(
    yolofs: Program, before: dict[str, tuple[object, ...]], text: bytes, way: str
) -> None:
    stage(yolofs, text)
    words = ["commit", "--yes", "--trusted"]
    run_killed(words, yolofs.project, module="commit.apply.execution", name="_complete", after=False)
    assert (yolofs.project / ".yolofs.toml").read_bytes() == text
    yolofs("commit", way)
    assert (looks_of(yolofs.project) == before) == (way == "--roll-back")
    if way == "--continue":
        yolofs("undo", "--yes")
        assert looks_of(yolofs.project) == before


def test_what_brings_back_goes_on_and_what_goes_by_the_settings_refuses(yolofs: Program) -> None:
    stage(yolofs, BROKEN["no TOML"])
    yolofs("commit", "--yes", "--trusted")
    for words in (["status"], ["commits"], ["log"], ["diff"]):
        yolofs(*words)
    for words in (["gc"], ["gc", "--dry-run"], ["commit", "--yes"], ["run", "true"]):
        assert "not TOML" in yolofs(*words, code=3).err
    yolofs("restore", "--from", "commit 1", "a.txt")
    assert yolofs("status", "--json").json["counts"]
    yolofs("abort", "--yes")


def test_an_undo_removes_no_commit_that_the_file_may_say_to_keep(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 100\n")
    for number in range(22):
        view = CoreDriver(bytes(yolofs.project))
        view.append(b"a.txt", b"%d\n" % number)
        view.close()
        yolofs("commit", "--yes")
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits\ncount = 100\n")
    yolofs("undo", "--yes")
    numbers = [one["commit"] for one in yolofs("commits", "--json", "--all").json["commits"]]
    assert numbers == [*range(1, 24)]
