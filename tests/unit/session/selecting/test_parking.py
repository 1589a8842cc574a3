"""Names that are taken back in a circle: one thing waits beside the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.plain_directory import RENAME_EXCHANGE
from yolofs.changes.hunks import HunkKind
from yolofs.paths import RelPath
from yolofs.session.selecting import Hunks, drop_hunks
from yolofs.session.selecting.dropping import _TakingBack
from yolofs.state.tree import Tree


def test_nobody_can_tell_the_name_under_which_a_thing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or whoever may write to the directory would take that name, or any number of them."""
    names: list[bytes] = []

    def rename(self: _TakingBack, here: RelPath, there: RelPath) -> None:
        names.append(there)
        really(self, here, there)

    really = _TakingBack._rename
    monkeypatch.setattr(_TakingBack, "_rename", rename)
    for name in ("one", "other"):
        base = tmp_path / name
        base.mkdir()
        for letter in "ab":
            (base / letter).write_text(f"{letter}\n" * 20)
        view = CoreDriver(os.fsencode(base))
        view.rename(b"a", b"b", RENAME_EXCHANGE)
        view.overwrite(b"a", b"b\n" * 19 + b"edited\n")
        files = Hunks(view.session, Tree()).files()
        renames = {hunk.id: None for file in files for hunk in file.hunks if hunk.kind is HunkKind.RENAMED}
        assert not drop_hunks(view.session, Tree(), renames, b"dropped").held_hunks
        view.close()
    waited = [name for name in names if name not in (b"a", b"b")]
    assert len(set(waited)) == 2
