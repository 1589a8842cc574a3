"""Directories of many thousand names: listed whole, once each, while names come and go."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.in_process import MountedView
from tests.support.model_steps import how_many

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
COUNT = how_many(ci=8_000, nightly=100_000)

libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
NAME_OFFSET = 19
"""Of d_name in struct dirent: after ino_t, off_t, the length and the type."""


class Stream:
    """A directory stream of libc."""

    def __init__(self, path: Path) -> None:
        self._stream = ctypes.c_void_p(libc.opendir(os.fsencode(path)))
        assert self._stream

    def read(self) -> str | None:
        """Return the next name, None at the end."""
        entry = libc.readdir(self._stream)
        return os.fsdecode(ctypes.string_at(entry + NAME_OFFSET)) if entry else None

    def rest(self) -> Iterator[str]:
        """Yield all names that are left."""
        while (name := self.read()) is not None:
            yield name

    def tell(self) -> int:
        return int(libc.telldir(self._stream))

    def seek(self, position: int) -> None:
        libc.seekdir(self._stream, ctypes.c_long(position))

    def rewind(self) -> None:
        libc.rewinddir(self._stream)

    def close(self) -> None:
        libc.closedir(self._stream)


@contextmanager
def opened(path: Path) -> Iterator[Stream]:
    stream = Stream(path)
    yield stream
    stream.close()


@pytest.fixture
def large(base: Path) -> Path:
    """Base, with a directory of many files."""
    (base / "large").mkdir()
    fd = os.open(base / "large", os.O_RDONLY)
    for number in range(COUNT):
        os.close(os.open(f"name{number}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
    os.close(fd)
    return base


def test_a_listing_is_whole_while_names_come_and_go(large: Path, mounted: Mounter) -> None:
    directory = Path(os.fsdecode(mounted().mountpoint)) / "large"
    names = {".", ".."} | {f"name{number}" for number in range(COUNT)}
    gone, come, renamed = set(), set(), set()
    with opened(directory) as stream:
        seen = []
        for number in range(0, COUNT, 2000):
            seen += [name for _ in range(1900) if (name := stream.read()) is not None]
            (directory / f"name{number}").unlink()
            gone.add(f"name{number}")
            (directory / f"new{number}").write_bytes(b"")
            come.add(f"new{number}")
            (directory / f"name{number + 1}").rename(directory / f"moved{number}")
            renamed |= {f"name{number + 1}", f"moved{number}"}
        seen += stream.rest()
        assert len(seen) == len(set(seen)), "a name is listed twice"
        untouched = names - gone - renamed
        assert untouched <= set(seen), "a name that stayed is missing"
        assert set(seen) <= names | come | renamed
        stream.rewind()
        now = list(stream.rest())
        assert sorted(now) == sorted(untouched | come | {name for name in renamed if name.startswith("moved")})
    assert sorted(os.listdir(directory)) == sorted(set(now) - {".", ".."})
    with opened(directory) as stream:
        assert list(stream.rest()) == now, "a listing's order is stable"


def test_a_listing_goes_on_from_where_one_goes_back_to(large: Path, mounted: Mounter) -> None:
    directory = Path(os.fsdecode(mounted().mountpoint)) / "large"
    for number in range(100):
        (directory / f"staged{number}").write_bytes(b"")
    with opened(directory) as stream:
        order, places = [], []
        for name in stream.rest():
            order.append(name)
            places.append(stream.tell())
        assert len(order) == COUNT + 102
        for at in (COUNT // 2, 3, COUNT - 1, COUNT + 50, len(order) - 1, 0, COUNT * 7 // 10 + 1):
            stream.seek(places[at])
            assert [stream.read() for _ in range(3)] == [*order[at + 1 : at + 4], None, None, None][:3]
        (directory / order[500]).unlink()
        (directory / "another").write_bytes(b"")
        stream.seek(places[400])
        rest = list(stream.rest())
        assert [name for name in rest if name not in (order[500], "another")] == [
            name for name in order[401:] if name != order[500]
        ]
        stream.rewind()
        assert set(stream.rest()) == set(order) - {order[500]} | {"another"}


@pytest.mark.nightly
def test_a_large_directory_can_be_emptied_and_removed(large: Path, mounted: Mounter) -> None:
    view = mounted()
    directory = Path(os.fsdecode(view.mountpoint)) / "large"
    with os.scandir(directory) as entries:
        for entry in entries:
            os.unlink(entry.path)
    assert os.listdir(directory) == []
    directory.rmdir()
    view.remount()
    assert not directory.exists()
    assert len(os.listdir(large / "large")) == COUNT
