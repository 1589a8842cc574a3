"""A project on OverlayFS, which the files of a container lie on: what the image has changes when it is copied up."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from yolofs.registry.identity import identity_of, lasting_identity_of
from yolofs.system import syscalls

pytestmark = [pytest.mark.mount, pytest.mark.root_only]
_libc = ctypes.CDLL(None, use_errno=True)
_DETACH = 2


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Path]:
    """A directory of two layers; the image's has a project."""
    layers, merged = tmp_path / "layers", tmp_path / "merged"
    layers.mkdir()
    merged.mkdir()
    assert _libc.mount(b"none", bytes(layers), b"tmpfs", 0, b"mode=755") == 0
    try:
        for name in ("image", "changes", "work"):
            (layers / name).mkdir()
        project = layers / "image/project"
        (project / "d").mkdir(parents=True)
        for name in ("a", "b", "d/c"):
            (project / name).write_text(f"base {name}\n")
        os.link(project / "a", project / "also a")
        options = f"lowerdir={layers}/image,upperdir={layers}/changes,workdir={layers}/work"
        assert _libc.mount(b"overlay", bytes(merged), b"overlay", 0, options.encode()) == 0, ctypes.get_errno()
        try:
            yield merged
        finally:
            assert _libc.umount2(bytes(merged), _DETACH) == 0
    finally:
        assert _libc.umount2(bytes(layers), _DETACH) == 0


def test_no_time_of_birth_is_told_that_changes_with_the_file(container: Path) -> None:
    file = bytes(container / "project/b")
    assert not syscalls.look(file).keeps_birth
    assert syscalls.birth_ns(file) is None
    assert syscalls.birth_ns(bytes(container.parent)) is not None


def test_a_directory_of_the_image_keeps_its_identity(container: Path) -> None:
    project = bytes(container / "project")
    known = lasting_identity_of(project)
    (container / "project/new").touch()
    assert identity_of(project) == known


def test_a_project_of_the_image_keeps_its_session(container: Path) -> None:
    project = container / "project"
    program = Program(project)
    program("init")
    with program.mounted("--root", ".") as view:
        (view / "a").write_text("changed\n")
        (view / "d/c").rename(view / "d/e")
        program("commit", "--yes")
        (view / "b").unlink()
        assert "D  b" in program("status").out
    program("commit", "--yes")
    assert sorted(os.listdir(project)) == [".yolofs", ".yolofs.toml", "a", "also a", "d"]
    program("undo", "--yes")
    program("undo", "--yes", "1")
    assert (project / "a").read_text() == "base a\n"
    assert (project / "b").read_text() == "base b\n"
    assert (project / "d/c").read_text() == "base d/c\n"
