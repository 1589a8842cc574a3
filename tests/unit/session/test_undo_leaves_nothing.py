"""An undo that does not begin leaves nothing in the store, where a full disk would miss it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from yolofs.errors import NotPreparedError
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import choose_commit, undo
from yolofs.store.store import Store


@pytest.fixture
def project(tmp_path: Path) -> bytes:
    """A commit of new and changed files, all to be copied by its undo."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "linked").write_text("linked\n")
    os.link(place / "linked", place / "other")
    view = CoreDriver(os.fsencode(place))
    for number in range(4):
        view.create(b"new%d" % number, b"new", 0o644)
    view.overwrite(b"linked", b"written\n")
    view.commit()
    view.close()
    return os.fsencode(place)


@pytest.mark.parametrize("fails_at", range(1, 8))
def test_a_disk_that_gets_full_has_as_much_room_afterwards(
    project: bytes, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    calls, really = 0, Store.copy_into

    def copy(store: Store, *words: object, **options: bool) -> tuple[str, ...]:
        nonlocal calls
        calls += 1
        found = really(store, *words, **options)  # type: ignore[arg-type]  # passed on as they came
        if calls == fails_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return found

    monkeypatch.setattr(Store, "copy_into", copy)
    with Session.open(project, SessionAccess.WRITE) as session:
        before = list(session.store)
        if fails_at < 7:
            with pytest.raises(NotPreparedError):
                undo(session, choose_commit(session, None))
            assert list(session.store) == before
        else:  # there are no more
            undo(session, choose_commit(session, None))
        assert calls == min(fails_at, 6)
