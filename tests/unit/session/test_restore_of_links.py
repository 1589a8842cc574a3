"""A file with several names (hard links) that was edited in place comes back by all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.paths import RelPath
from yolofs.session.history.named_states import named_state
from yolofs.session.restore import restore


@pytest.mark.parametrize("is_seen", [True, False], ids=["both names seen", "one name seen"])
@pytest.mark.parametrize("path", [b"d/one", b"d/other", b"d"])
def test_all_names_come_back_whichever_were_seen(tmp_path: Path, path: bytes, is_seen: bool) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/one").write_text("base\n")
    os.link(tmp_path / "d/one", tmp_path / "d/other")
    view = CoreDriver(os.fsencode(tmp_path))
    view.overwrite(b"d/one", b"edited\n")
    if is_seen:
        view.chmod(b"d/other", 0o600)
    restored = restore(view.session, named_state(view.session, "base"), [RelPath(path)], b"restored")
    assert [change.path for change in restored.changes] == [b"d/one", b"d/other"]
    view.remount()
    assert [view.read(name) for name in (b"d/one", b"d/other")] == [b"base\n"] * 2
    assert not view.changes()
    view.close()


def test_what_was_replaced_by_another_file_comes_back_alone(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("base\n")
    os.link(tmp_path / "one", tmp_path / "other")
    view = CoreDriver(os.fsencode(tmp_path))
    view.overwrite(b"other", b"edited\n")
    view.unlink(b"one")
    view.create(b"one", b"another\n", 0o644)
    restored = restore(view.session, named_state(view.session, "base"), [RelPath(b"one")], b"restored")
    assert [change.path for change in restored.changes] == [b"one"]
    view.remount()
    assert (view.read(b"one"), view.read(b"other")) == (b"base\n", b"edited\n")
    view.close()


@pytest.mark.parametrize("is_edited", [True, False], ids=["content", "mode"])
def test_a_file_that_took_the_name_of_an_edited_one_is_what_it_was_before(tmp_path: Path, is_edited: bool) -> None:
    (tmp_path / "one").write_text("base\n")
    os.link(tmp_path / "one", tmp_path / "other")
    (tmp_path / "third").write_text("third\n")
    (tmp_path / "third").chmod(0o600)
    view = CoreDriver(os.fsencode(tmp_path))
    view.create(b"new", b"", 0o644)
    view.commit()
    if is_edited:
        view.append(b"one", b"edited\n")
    else:
        view.chmod(b"one", 0o640)
    view.rename(b"third", b"one")
    view.commit()
    restore(view.session, named_state(view.session, "commit 1"), [RelPath(b"third")], b"restored")
    view.remount()
    assert view.read(b"third") == b"third\n"
    assert view.tree()[b"third"][1:9] == view.tree()[b"one"][1:9]
    view.close()


@pytest.mark.parametrize("has_base", [True, False], ids=["a file of base", "a file of the view"])
@pytest.mark.parametrize("path", [b"one", b"other"])
def test_all_names_come_back_from_a_generation(tmp_path: Path, path: bytes, has_base: bool) -> None:
    if has_base:
        (tmp_path / "one").write_text("base\n")
        os.link(tmp_path / "one", tmp_path / "other")
    view = CoreDriver(os.fsencode(tmp_path))
    if has_base:
        view.overwrite(b"one", b"first\n")
    else:
        view.create(b"one", b"first\n", 0o644)
        view.link(b"one", b"other")
    view.session.snapshot(b"first")
    view.remount()
    view.overwrite(b"other", b"second\n")
    restored = restore(view.session, named_state(view.session, "first"), [RelPath(path)], b"restored")
    assert {change.path for change in restored.changes} == {b"one", b"other"}
    view.remount()
    assert [view.read(name) for name in (b"one", b"other")] == [b"first\n"] * 2
    view.overwrite(b"one", b"third\n")
    assert view.read(b"other") == b"third\n"
    view.close()


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[CoreDriver]:
    """A view in which one of the two names of a file has gone since the generation ``first``."""
    view = CoreDriver(os.fsencode(tmp_path))
    view.create(b"one", b"first\n", 0o644)
    view.link(b"one", b"other")
    view.session.snapshot(b"first")
    view.remount()
    view.unlink(b"one")
    yield view
    view.close()


def test_a_name_that_is_gone_comes_back_as_a_link_of_one_that_is_as_it_was(linked: CoreDriver) -> None:
    restore(linked.session, named_state(linked.session, "first"), [RelPath(b"one")], b"restored")
    linked.remount()
    linked.overwrite(b"one", b"second\n")
    assert linked.read(b"other") == b"second\n"


def test_a_name_that_is_gone_comes_back_alone_where_the_other_was_edited(linked: CoreDriver) -> None:
    linked.overwrite(b"other", b"edited\n")
    restore(linked.session, named_state(linked.session, "first"), [RelPath(b"one")], b"restored")
    linked.remount()
    assert (linked.read(b"one"), linked.read(b"other")) == (b"first\n", b"edited\n")
