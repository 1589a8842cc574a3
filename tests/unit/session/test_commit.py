"""What a commit of a session refuses before anything is done."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.support.core_driver import CoreDriver
from yolofs.commit.select.selection import Selection
from yolofs.errors import YolofsError
from yolofs.paths import RelPath
from yolofs.session.commit import commit, split_staged


def test_a_rest_that_would_not_show_what_the_view_shows_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "a").write_text("a")
    view = CoreDriver(os.fsencode(base))
    try:
        view.overwrite(b"a", b"changed")
        view.create(b"b", b"b", 0o644)
        view.create(b"c", b"c", 0o644)
        session = view.session
        split = split_staged(session, Selection(session.regions, paths=(RelPath(b"a"),)))
        assert {record.path for record in split.rest} >= {b"b", b"c"}
        wrong = tuple(record for record in split.rest if record.path != b"c")
        with pytest.raises(YolofsError, match="nothing was done"):
            commit(session, split=msgspec.structs.replace(split, rest=wrong))
        assert (base / "a").read_text() == "a"
        assert session.interrupted_commit() is None
    finally:
        view.close()
