"""A directory of base that a bind mount shows at a second place, changed at both in one commit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.looks import looks
from tests.support.program import Program
from tests.support.second_disk import mounted_disk

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root binds a mount"),
]


def edit_both(view: Path) -> None:
    (view / "one/d/x").write_text("by the first\n")
    (view / "two/d/x").write_text("by the second\n")


def make_both(view: Path) -> None:
    (view / "one/d/new").write_text("by the first\n")
    (view / "two/d/new").write_text("by the second\n")


def edit_and_remove(view: Path) -> None:
    (view / "one/d/x").write_text("by the first\n")
    (view / "two/d/x").unlink()


def edit_and_rename(view: Path) -> None:
    (view / "one/d/x").write_text("by the first\n")
    (view / "two/d/x").rename(view / "two/d/renamed")


def change_the_mode_of_both(view: Path) -> None:
    (view / "one/d/x").chmod(0o600)
    (view / "two/d/x").chmod(0o640)


def edit_in_what_is_removed(view: Path) -> None:
    (view / "one/d/x").write_text("by the first\n")
    shutil.rmtree(view / "two/d")


def make_in_what_is_renamed(view: Path) -> None:
    (view / "one/d/new").write_text("by the first\n")
    (view / "two/d").rename(view / "two/renamed")


BOTH = {
    act.__name__: act
    for act in (
        edit_both,
        make_both,
        edit_and_remove,
        edit_and_rename,
        change_the_mode_of_both,
        edit_in_what_is_removed,
        make_in_what_is_renamed,
    )
}


@pytest.fixture
def seen_twice(yolofs: Program) -> Iterator[Program]:
    """A project in which ``one`` and ``two`` are the same directory."""
    (yolofs.project / "one/d").mkdir(parents=True)
    (yolofs.project / "two").mkdir()
    for name in ("x", "y"):
        (yolofs.project / "one/d" / name).write_text(f"{name}\n")
    with mounted_disk(yolofs.project / "two", source=yolofs.project / "one"):
        yield yolofs


@pytest.mark.parametrize("act", BOTH)
@pytest.mark.some(3)
def test_a_name_changed_at_both_places_is_refused_and_committed_one_after_the_other(
    seen_twice: Program, act: str
) -> None:
    work: Callable[[Path], None] = BOTH[act]
    project = seen_twice.project
    before = looks(project)
    with seen_twice.mounted() as view:
        work(view)
    for words in (("commit", "--yes"), ("commit", "--dry-run")):
        refused = seen_twice(*words, code=1)
        assert f"{project}/one/d" in refused.err
        assert f"{project}/two/d" in refused.err
        assert "lie in the same directory" in refused.err
        assert "yolofs commit PATH" in refused.err
    assert looks(project) == before
    assert seen_twice("commits", "--json").json["commits"] == []
    seen_twice("commit", "--yes", "one")
    after = looks(project)
    assert after != before
    assert "two/d" in seen_twice("status").out
    if seen_twice("commit", "--yes", code=None).code == 0:
        assert looks(project) != after
        seen_twice("undo", "--yes")
    assert looks(project) == after
    seen_twice("undo", "1", "--yes")
    assert looks(project) == before


def test_different_names_in_a_directory_seen_twice_are_committed_together(seen_twice: Program) -> None:
    with seen_twice.mounted() as view:
        (view / "one/d/x").write_text("by the first\n")
        (view / "two/d/y").write_text("by the second\n")
        (view / "two/d/new").write_text("new\n")
    seen_twice("commit", "--yes")
    texts = {path.name: path.read_text() for path in (seen_twice.project / "one/d").iterdir()}
    assert texts == {"x": "by the first\n", "y": "by the second\n", "new": "new\n"}
    seen_twice("undo", "--yes")
    texts = {path.name: path.read_text() for path in (seen_twice.project / "one/d").iterdir()}
    assert texts == {"x": "x\n", "y": "y\n"}
