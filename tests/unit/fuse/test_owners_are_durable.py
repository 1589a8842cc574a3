"""fsync makes the shown owners of store inodes durable, before the journal that names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of


def test_shown_owners_are_durable_before_the_journal(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base / "file").write_text("x")
    with handlers_of(base) as handlers:
        store, journal = handlers.overlay.store, handlers.overlay.journal
        store.owners.note(1, 1000, 33)
        synced: list[str] = []
        for call in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, call, lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
        handlers.sync_job(None)()
        names = [os.fsencode(path) for path in synced]
        assert names == [os.path.join(store.directory, b"owners"), journal.path]
        handlers.sync_job(None)()
        assert synced.count(os.fsdecode(names[0])) == 1
