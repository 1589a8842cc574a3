"""A file with several names (hard links) that was edited in place comes back by all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.property.core_driver import CoreDriver
from yolofs.paths import RelPath
from yolofs.session.named_states import source_of
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
    restored = restore(view.session, source_of(view.session, "base"), [RelPath(path)], b"restored")
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
    restored = restore(view.session, source_of(view.session, "base"), [RelPath(b"one")], b"restored")
    assert [change.path for change in restored.changes] == [b"one"]
    view.remount()
    assert (view.read(b"one"), view.read(b"other")) == (b"base\n", b"edited\n")
    view.close()
