"""Changes that the host makes to base under the mount."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def at(view: MountedView, name: str) -> Path:
    return Path(os.fsdecode(view.mountpoint)) / name


def test_they_show_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "f").write_bytes(b"longer than before")
    assert at(view, "f").read_bytes() == b"longer than before"


def test_a_replaced_file_shows_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "g").write_bytes(b"another")
    (base / "g").rename(base / "f")
    assert at(view, "f").read_bytes() == b"another"


def test_a_deleted_file_is_gone_at_open(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted(base_timeout_s=1000.0)
    assert at(view, "f").read_bytes() == b"one"
    (base / "f").unlink()
    with pytest.raises(FileNotFoundError):
        at(view, "f").read_bytes()


def test_they_show_in_stat_within_a_second(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"one")
    view = mounted()
    assert at(view, "f").stat().st_size == 3
    assert not at(view, "new").exists()
    (base / "f").write_bytes(b"longer")
    (base / "new").write_bytes(b"")
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline and (at(view, "f").stat().st_size != 6 or not at(view, "new").exists()):
        pass
    assert at(view, "f").stat().st_size == 6
    assert at(view, "new").exists()


def test_an_open_base_file_that_the_host_deletes_stays_readable(base: Path, mounted: Mounter) -> None:
    (base / "f").write_bytes(b"held")
    view = mounted()
    with at(view, "f").open("rb") as held:
        (base / "f").unlink()
        assert held.read() == b"held"


def test_a_staged_name_hides_what_the_host_makes_there(base: Path, mounted: Mounter) -> None:
    view = mounted()
    at(view, "f").write_bytes(b"staged")
    (base / "f").write_bytes(b"host")
    assert at(view, "f").read_bytes() == b"staged"
    at(view, "f").unlink()
    assert not at(view, "f").exists()
    assert (base / "f").read_bytes() == b"host"
