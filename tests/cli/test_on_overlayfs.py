"""A project on OverlayFS, which the files of a container lie on: what the image has changes when it
is copied up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.overlayfs import container
from tests.support.program import Program
from yolofs.registry.identity import identity_of, lasting_identity_of
from yolofs.system import syscalls

pytestmark = [pytest.mark.mount, pytest.mark.root_only]


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    """A directory of two layers; the image's has a project."""
    with container(tmp_path) as made:
        made.renew(populate)
        yield made.root


def populate(image: Path) -> None:
    (image / "project/d").mkdir(parents=True)
    for name in ("a", "b", "d/c"):
        (image / "project" / name).write_text(f"base {name}\n")
    os.link(image / "project/a", image / "project/also a")


def test_files_of_the_lower_layer_have_no_birth_as_copying_up_changes_that(image: Path) -> None:
    file = bytes(image / "project/b")
    assert not syscalls.look(file).keeps_birth
    assert syscalls.birth_ns(file) is None
    assert syscalls.birth_ns(bytes(image.parent)) is not None


def test_a_directory_of_the_image_keeps_its_identity(image: Path) -> None:
    project = bytes(image / "project")
    known = lasting_identity_of(project)
    (image / "project/new").touch()
    assert identity_of(project) == known


def test_a_project_of_the_image_keeps_its_session(image: Path) -> None:
    project = image / "project"
    program = Program(project)
    program("init")
    with program.mounted("--root", ".") as view:
        (view / "a").write_text("changed\n")
        (view / "d").rename(view / "e")
        program("commit", "--yes")
        (view / "b").unlink()
        assert "D  b" in program("status").out
    program("commit", "--yes")
    assert sorted(os.listdir(project)) == [".yolofs", ".yolofs.toml", "a", "also a", "e"]
    program("undo", "--yes")
    program("undo", "--yes", "1")
    assert (project / "a").read_text() == "base a\n"
    assert (project / "b").read_text() == "base b\n"
    assert (project / "d/c").read_text() == "base d/c\n"


def test_a_device_number_that_is_used_again_is_looked_at_anew(tmp_path: Path) -> None:
    told: list[bool] = []
    for _ in range(4):  # the device that goes first is no OverlayFS, and the next one gets its number
        with container(tmp_path / str(len(told))) as made:
            made.renew(populate)
            told.append(syscalls.look(bytes(made.root / "project/b")).keeps_birth)
            assert syscalls.look(bytes(made.root.parent / "layers/image")).keeps_birth
    assert told == [False] * 4
