"""Changes that depend on no others are dropped without a look at the rest, and any drop can be
stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.changes.changes import compare
from yolofs.changes.picks import Picks
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks, drop_hunks
from yolofs.session.selecting.separate_changes import changes_apart
from yolofs.state.tree import Tree
from yolofs.store.base import Base


def view_of(root: Path, count: int) -> CoreDriver:
    """Stage so many edits, and as many new files: some beside base's, some in a new directory."""
    (root / "old").mkdir(parents=True)
    for number in range(count):
        (root / f"old/{number}").write_text("one\ntwo\n")
    view = CoreDriver(os.fsencode(root))
    view.mkdir(b"new", 0o755)
    for number in range(count):
        view.overwrite(b"old/%d" % number, b"one\nTWO\n")
        view.create(b"old/more%d" % number, b"more\n", 0o644)
        view.create(b"new/%d" % number, b"new\n", 0o644)
    return view


def picks_of(view: CoreDriver, *paths: bytes) -> Picks:
    files = Hunks(view.session, Tree(), paths=[RelPath(path) for path in paths]).files()
    return {hunk.id: None for file in files for hunk in file.hunks}


@pytest.mark.parametrize("path", [b"old/3", b"old/more3", b"new/3"])
def test_a_change_of_many_is_dropped_as_quickly_as_one_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: bytes
) -> None:
    looks = 0

    def look(self: Base, rel: RelPath) -> os.stat_result:
        nonlocal looks
        looks += 1
        return really(self, rel)

    really = Base._lstat
    monkeypatch.setattr(Base, "_lstat", look)
    found = []
    for count in (6, 60):
        view = view_of(tmp_path / str(count), count)
        before, records = view.session.state(), view.session.journal.record_count
        picks = picks_of(view, path)
        looks = 0
        dropped = drop_hunks(view.session, Tree(), picks, b"dropped", paths=[RelPath(path)])
        found.append((looks, view.session.journal.record_count - records))
        assert [change.path for change in dropped.changes] == [path]
        left = {change.path for change in compare(Tree(), view.session.state(), view.session.base, view.session.store)}
        was = {change.path for change in compare(Tree(), before, view.session.base, view.session.store)}
        assert left == was - {path}
        view.close()
    assert found[0] == found[1]
    assert found[0][1] <= 4  # one for each file, and three markers


def test_what_was_edited_and_dropped_shows_base_as_the_host_changes_it(tmp_path: Path) -> None:
    view = view_of(tmp_path / "p", 3)
    drop_hunks(view.session, Tree(), picks_of(view, b"old/1"), b"dropped")
    (tmp_path / "p/old/1").write_text("of the host\n")
    view.remount()
    assert view.read(b"old/1") == b"of the host\n"
    view.overwrite(b"old/1", b"again\n")
    assert view.read(b"old/1") == b"again\n"
    drop_hunks(view.session, Tree(), picks_of(view, b"old/1"), b"dropped")
    view.remount()
    assert view.read(b"old/1") == b"of the host\n"
    view.close()


def rename(view: CoreDriver) -> None:
    view.rename(b"old/1", b"old/moved")


def move_above(view: CoreDriver) -> None:
    view.rename(b"old", b"elsewhere")


def replace(view: CoreDriver) -> None:
    view.unlink(b"old/1")
    view.create(b"old/1", b"another\n", 0o644)


def link(view: CoreDriver) -> None:
    view.link(b"old/1", b"old/link")


def make_directory(view: CoreDriver) -> None:
    view.unlink(b"old/1")
    view.mkdir(b"old/1", 0o755)


def take_place(view: CoreDriver) -> None:
    view.unlink(b"old/2")
    view.rename(b"old/1", b"old/2")
    view.create(b"old/1", b"another\n", 0o644)


@pytest.mark.parametrize("change", [rename, move_above, replace, link, make_directory, take_place])
def test_what_depends_on_others_is_not_taken_to_stand_apart(
    tmp_path: Path, change: Callable[[CoreDriver], None]
) -> None:
    view = view_of(tmp_path / "p", 3)
    change(view)
    paths = [RelPath(path) for path in (b"old/1", b"old/moved", b"elsewhere/1")]
    session = view.session
    for path in paths:
        assert changes_apart(Tree(), session.state(), session.base, session.store, [path]) is None
    view.close()


def test_a_change_that_stands_apart_is_the_one_of_a_whole_comparison(tmp_path: Path) -> None:
    view = view_of(tmp_path / "p", 3)
    view.chmod(b"old/1", 0o600)
    view.utimes(b"old/2", 1_300_000_000_000_000_000)
    session, state = view.session, view.session.state()
    whole = compare(Tree(), state, session.base, session.store)
    alone = {path: changes_apart(Tree(), state, session.base, session.store, [path]) for path in _paths(state)}
    assert [change for path in sorted(alone) for change in alone[path] or ()] == [
        change for change in whole if alone.get(change.path)
    ]
    assert sum(found is not None for found in alone.values()) == 9
    view.close()


def _paths(state: Tree) -> list[RelPath]:
    return [path for path, entry in state.walk() if entry.staged is not None]


@pytest.mark.parametrize("path", [b"old/1", b"old", b""])
def test_a_drop_that_is_stopped_at_any_moment_leaves_all_as_it_was(tmp_path: Path, path: bytes) -> None:
    view = view_of(tmp_path / "p", 4)
    view.rename(b"old/2", b"old/renamed")
    picks = picks_of(view, path) if path else picks_of(view, b"old", b"new")
    journal = view.session.journal.path
    before = Path(os.fsdecode(journal)).read_bytes()
    inodes = set(view.session.store.since(1))
    calls, at = 0, 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > at:
            raise KeyboardInterrupt

    while True:
        calls = 0
        try:
            drop_hunks(view.session, Tree(), picks, b"dropped", check=check)
        except KeyboardInterrupt:
            assert Path(os.fsdecode(journal)).read_bytes() == before
            assert set(view.session.store.since(1)) == inodes
            at += 1
            continue
        break
    assert at >= (len(picks) if path != b"old/1" else 2)
    assert Path(os.fsdecode(journal)).read_bytes() != before
    view.close()
