"""Directories of root and of an ordinary user to work in."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.user_identity import ORDINARY, ROOT, room_of


@pytest.fixture(params=[ROOT, ORDINARY])
def room(request: pytest.FixtureRequest) -> Iterator[bytes]:
    """A directory of the user that the test then runs as."""
    if request.param == ROOT and os.geteuid() != 0:
        pytest.skip("not root")
    with room_of(request.param) as path:
        yield path


@pytest.fixture
def ordinary_room() -> Iterator[bytes]:
    with room_of(ORDINARY) as path:
        yield path


@pytest.fixture
def root_room() -> Iterator[bytes]:
    with room_of(ROOT) as path:
        yield path


@pytest.fixture
def plain_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
