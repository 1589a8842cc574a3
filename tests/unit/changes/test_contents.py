"""What files hold is compared and digested by their data, and not by their holes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yolofs.changes.contents import BLOCK_BYTES, digest_of, is_same_content

HUGE = 1 << 43


@contextmanager
def opened(*paths: Path) -> Iterator[list[int]]:
    fds = [os.open(path, os.O_RDONLY) for path in paths]
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def make(path: Path, size: int, data: Iterable[tuple[int, bytes]] = ()) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
        for at, what in data:
            os.pwrite(file.fileno(), what, at)
    return path


def same(left: Path, right: Path) -> bool:
    with opened(left, right) as (one, other):
        found = {is_same_content(one, other), is_same_content(other, one)}
        digests = {digest_of(fd, most_bytes=1 << 30) for fd in (one, other)}
    assert len(found) == 1
    assert found == {len(digests) == 1}
    return found.pop()


def test_eight_tebibytes_of_holes_are_compared_at_once(tmp_path: Path) -> None:
    left = make(tmp_path / "left", HUGE, [(HUGE - 1, b"x"), (5, b"y")])
    assert same(left, make(tmp_path / "same", HUGE, [(5, b"y"), (HUGE - 1, b"x")]))
    assert not same(left, make(tmp_path / "end", HUGE, [(5, b"y"), (HUGE - 1, b"z")]))
    assert not same(left, make(tmp_path / "more", HUGE, [(5, b"y"), (HUGE // 2, b"m"), (HUGE - 1, b"x")]))
    assert not same(left, make(tmp_path / "longer", HUGE + 1, [(5, b"y"), (HUGE - 1, b"x")]))


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 17])
def test_zeros_are_as_good_as_a_hole(tmp_path: Path, size: int) -> None:
    assert same(make(tmp_path / "hole", size), make(tmp_path / "zeros", size, [(0, bytes(size))]))


def test_a_byte_that_is_elsewhere_makes_another_file(tmp_path: Path) -> None:
    size = 4 * BLOCK_BYTES
    assert not same(
        make(tmp_path / "left", size, [(BLOCK_BYTES, b"x")]), make(tmp_path / "right", size, [(2 * BLOCK_BYTES, b"x")])
    )


def test_more_data_than_is_to_be_read_has_no_digest(tmp_path: Path) -> None:
    path = make(tmp_path / "data", 3 * BLOCK_BYTES + 1, [(0, b"x" * (3 * BLOCK_BYTES + 1))])
    with opened(path) as (fd,):
        assert digest_of(fd, most_bytes=3 * BLOCK_BYTES) is None
        assert digest_of(fd, most_bytes=3 * BLOCK_BYTES + 1) is not None
