"""Which directory is in the way of somebody who has closed it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.user_identity import ORDINARY, room_of
from yolofs.system.closed_directories import closed_directory


@pytest.fixture
def room() -> Iterator[bytes]:
    """A directory of an ordinary user, whom the system takes this process for."""
    with room_of(ORDINARY) as room:
        os.makedirs(room + b"/open/closed/inner")
        yield room


@pytest.mark.parametrize("mode", [0, 0o111, 0o444])
def test_the_topmost_directory_is_named_that_its_owner_has_closed(room: bytes, mode: int) -> None:
    os.chmod(room + b"/open/closed/inner", 0)
    os.chmod(room + b"/open/closed", mode)
    assert closed_directory(room + b"/open/closed/inner/file") == room + b"/open/closed"


def test_none_is_named_where_all_are_open_or_something_else_is_in_the_way(room: bytes) -> None:
    for path in (room + b"/open/closed/inner", room + b"/open/nothing/file", b"/root/file", b"/"):
        assert closed_directory(path) is None
