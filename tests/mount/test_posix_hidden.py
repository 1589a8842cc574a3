"""What the view never shows or never lets in: its own mountpoint, pseudo filesystems, the session
directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.in_process import MountedView

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]


def test_the_mountpoint_inside_base_shows_as_an_empty_directory(
    base: Path, mounted: Mounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "f").write_bytes(b"")
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    view = mounted()
    mountpoint = os.fsdecode(os.path.basename(view.mountpoint))
    try:
        found = subprocess.run(
            ["find", "."], cwd=view.mountpoint, timeout=60, check=True, capture_output=True, text=True
        ).stdout
    except subprocess.TimeoutExpired:
        subprocess.run(["umount", "--lazy", "--force", view.mountpoint], check=False)
        raise
    assert set(found.split()) == {".", "./" + mountpoint, "./f"}


@pytest.mark.parametrize("flags", [0, 1, 2])
@pytest.mark.parametrize("other", ["f", "d", "missing"])
@pytest.mark.some(4)
def test_no_rename_reaches_the_session_directory(base: Path, mounted: Mounter, flags: int, other: str) -> None:
    (base / "f").write_bytes(b"")
    (base / "d").mkdir()
    view = mounted()
    script = (
        "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True);"
        "print(libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), int(sys.argv[3])))"
    )
    for old, new in ((".yolofs", other), (other, ".yolofs"), ("d/../.yolofs", other), (other, "d/../.yolofs")):
        command = [sys.executable, "-c", script, old, new, str(flags)]
        assert subprocess.run(command, cwd=view.mountpoint, check=True, capture_output=True).stdout == b"-1\n"
    assert sorted(os.listdir(view.mountpoint)) == [b"d", b"f"]
    assert (base / ".yolofs/journal").exists()


def test_a_directory_named_like_the_session_directory_is_free_elsewhere(base: Path, mounted: Mounter) -> None:
    (base / "d").mkdir()
    view = mounted()
    root = Path(os.fsdecode(view.mountpoint))
    (root / "d/.yolofs").mkdir()
    with pytest.raises(PermissionError):
        (root / "d/.yolofs").rename(root / ".yolofs")
    assert os.listdir(root / "d") == [".yolofs"]


def test_another_session_below_cannot_be_reached(base: Path, mounted: Mounter) -> None:
    (base / "other/.yolofs").mkdir(parents=True)
    (base / "other/.yolofs/journal").write_bytes(b"theirs")
    view = mounted()
    other = Path(os.fsdecode(view.mountpoint)) / "other"
    assert os.listdir(other) == []
    with pytest.raises(FileNotFoundError):
        (other / ".yolofs/journal").read_bytes()
    with pytest.raises(PermissionError):
        (other / ".yolofs").mkdir()
    with pytest.raises(OSError, match="busy"):
        other.rmdir()
    other.rename(other.with_name("elsewhere"))
    with pytest.raises(FileNotFoundError):
        os.listdir(other.with_name("elsewhere") / ".yolofs")
