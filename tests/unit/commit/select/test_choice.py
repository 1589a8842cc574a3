"""What of a state is taken, and what stays though it was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.support.commit_model import CommitScribe
from tests.support.old_base import at, scribe
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.restate import Rebased, restate
from yolofs.commit.select.selection import Selection
from yolofs.commit.select.split import Split, split_state
from yolofs.commit.select.units import Units
from yolofs.journal.records import Fingerprint
from yolofs.paths import ROOT, RelPath
from yolofs.state.regions import Regions
from yolofs.state.tree import Tree
from yolofs.text.path_patterns import Patterns

__all__ = ["scribe"]
NOBODY = Authors((), 0)


def split_of(scribe: CommitScribe, selection: Selection) -> Split:
    return split_state(scribe.tree, scribe.base, scribe.store, selection, NOBODY)


def paths(*names: bytes) -> tuple[RelPath, ...]:
    return tuple(map(RelPath, names))


def test_a_removed_directory_stays_that_would_take_something_left_out_with_it(scribe: CommitScribe) -> None:
    at(scribe, b"d/sub").mkdir(parents=True)
    at(scribe, b"d/sub/x").write_text("x\n")
    scribe.remove(b"d")
    excluded: Patterns[str] = Patterns([((b"d", b"sub", b"x"), "d/sub/x")])
    split = split_of(scribe, Selection(Regions(ROOT), excluded=excluded))
    (held,) = split.held_back
    assert held.reason(os.fsdecode) == "d/sub/x would go with it"
    assert held.needs == (b"d/sub/x",)
    assert split.taken.find(b"d") is None


def test_what_has_to_be_named_is_not_removed_without_that(scribe: CommitScribe) -> None:
    scribe.remove(b"a")
    split = split_of(scribe, Selection(Regions(ROOT), unnamed={RelPath(b"a"): "it is run"}))
    (held,) = split.held_back
    assert (held.reason(os.fsdecode), held.unnamed) == ("it is run", (b"a",))
    assert split.taken.find(b"a") is None


def test_a_file_of_which_a_name_lies_outside_of_base_stays(scribe: CommitScribe, tmp_path: Path) -> None:
    (tmp_path / "outside").hardlink_to(at(scribe, b"a"))
    scribe.write(b"a", b"new\n")
    (held,) = split_of(scribe, Selection(Regions(ROOT), paths=paths(b"a"))).held_back
    assert held.reason(os.fsdecode) == "base has more names for the same file (hard links), which were not found"


def test_what_stays_in_the_place_of_something_of_base_is_still_known_to_do_so(scribe: CommitScribe) -> None:
    """Else nobody would be told if the host removes that."""
    at(scribe, b"b").write_text("b\n")
    scribe.write(b"new", b"new\n")
    scribe.rename(b"a", b"b")
    entry = scribe.tree.find(b"b")
    assert entry is not None
    assert entry.had_base
    rest = Tree(split_of(scribe, Selection(Regions(ROOT), paths=paths(b"new"))).rest).find(b"b")
    assert rest is not None
    assert rest.had_base


def test_a_file_that_was_changed_in_a_removed_directory_goes_with_it(scribe: CommitScribe) -> None:
    """It has another name, by which it shows, until the host removes that."""
    at(scribe, b"d").mkdir()
    at(scribe, b"d/x").write_text("x\n")
    os.link(at(scribe, b"d/x"), at(scribe, b"other"))
    scribe.write(b"d/x", b"changed\n")
    scribe.remove(b"d")
    at(scribe, b"other").unlink()
    units = Units(scribe.tree, scribe.base, scribe.store)
    (staged,) = scribe.tree.staged.values()
    entry = scribe.tree.find(b"d")
    assert entry is not None
    assert not staged.names
    assert units.of[staged] is units.of[entry]


# ---- a state said anew


def test_files_in_a_dropped_directory_are_dropped_too(scribe: CommitScribe) -> None:
    scribe.mkdir(b"new")
    scribe.mkdir(b"new/sub")
    scribe.write(b"new/sub/x", b"x\n")
    scribe.write(b"stays", b"1\n")
    again = restate(scribe.tree, scribe.base, scribe.store, NOBODY, dropped=paths(b"new"))
    assert again.dropped == (b"new", b"new/sub", b"new/sub/x")
    assert [record.path for record in again.records if record.ino is not None] == [b"stays"]


@pytest.mark.parametrize("has_links", [False, True])
def test_a_merged_file_is_the_same_file_and_is_by_the_same_run(scribe: CommitScribe, has_links: bool) -> None:
    if has_links:
        os.link(at(scribe, b"a"), at(scribe, b"other"))
    scribe.write(b"a", b"ours\n")
    entry = scribe.tree.find(b"a")
    assert entry is not None
    assert entry.staged is not None
    staged = entry.staged
    marks, run = ("marks", b"1"), ("run", b"7")
    (change,) = (record for record in scribe.records if getattr(record, "ino", None) == staged.ino)
    change = msgspec.structs.replace(change, extra=(run,))
    rebased = Rebased(staged.ino, RelPath(b"a"), Fingerprint(1, 2, 3), False, (marks,))
    again = restate(scribe.tree, scribe.base, scribe.store, Authors([change], 0), rebased={staged.ino: rebased})
    (record,) = (record for record in again.records if record.path == b"a")
    assert record.extra == (run, marks)
    assert record.key == (staged.key if isinstance(staged.key, int) else 0)
    assert bool(record.key) is has_links
    assert Tree(again.records).staged[staged.ino].key == staged.key or not has_links
