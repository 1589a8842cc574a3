"""An OverlayFS as a container has it: the image's files below, and what was changed since above."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_DETACH = 2


class Container:
    """A directory of two layers, with a project in the image's."""

    def __init__(self, layers: Path, root: Path) -> None:
        self._layers = layers
        self.root = root
        self.project = root / "project"
        self._is_mounted = False

    def renew(self, populate: Callable[[Path], object]) -> None:
        """Have nothing in it but an image, which ``populate`` makes in a directory."""
        self.close()
        for name in ("image", "changes", "work"):
            directory = self._layers / name
            if directory.exists():
                shutil.rmtree(directory)
            directory.mkdir()
        populate(self._layers / "image")
        self._mount()

    def mount_anew(self) -> None:
        """Mount it once more, with all that was changed: its files may have other numbers."""
        self.close()
        self._mount()

    def _mount(self) -> None:
        options = ",".join(
            f"{option}={self._layers / name}"
            for option, name in (("lowerdir", "image"), ("upperdir", "changes"), ("workdir", "work"))
        )
        options += ",redirect_dir=off"  # as without that option in most kernels, and in containers
        assert _libc.mount(b"overlay", bytes(self.root), b"overlay", 0, options.encode()) == 0, ctypes.get_errno()
        self._is_mounted = True

    def close(self) -> None:
        if self._is_mounted:
            assert _libc.umount2(bytes(self.root), _DETACH) == 0
            self._is_mounted = False


@contextmanager
def container(directory: Path) -> Iterator[Container]:
    """Make one in a directory, without an image yet, for the time of the block."""
    layers, root = directory / "layers", directory / "merged"
    layers.mkdir(parents=True)
    root.mkdir()
    assert _libc.mount(b"none", bytes(layers), b"tmpfs", 0, b"mode=755") == 0
    made = Container(layers, root)
    try:
        yield made
    finally:
        made.close()
        assert _libc.umount2(bytes(layers), _DETACH) == 0
