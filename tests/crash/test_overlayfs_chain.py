"""Undos one after the other on OverlayFS: directories that were moved name by name are new ones,
and earlier commits know them all the same, also after the filesystem was mounted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.test_two_devices_chain import committed, exactly, undone, without_links
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.overlayfs import Container, container

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount, pytest.mark.root_only]
View = Callable[[CoreDriver], None]


@pytest.fixture(params=["on it", "elsewhere"])
def image(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    """A container; the session lies in it, or on another device."""
    with container(tmp_path) as made:
        place = made.root if request.param == "on it" else tmp_path
        monkeypatch.setenv("YOLOFS_STATE", str(place / "state"))
        made.renew(populate)
        yield made


def populate(image: Path) -> None:
    """Make what the image has."""
    directory = image / "project/d"
    (directory / "sub").mkdir(parents=True)
    for name in ("x", "y", "sub/z", "one"):
        (directory / name).write_text(f"base {name}")
    (directory / "two").hardlink_to(directory / "one")


def close_the_directory(view: CoreDriver) -> None:
    view.chmod(b"d", 0o700)


def close_the_one_in_it(view: CoreDriver) -> None:
    view.chmod(b"d/sub", 0o700)


def make_files(view: CoreDriver) -> None:
    view.create(b"d/new", b"new", 0o644)
    view.create(b"d/sub/new", b"new", 0o644)


def edit(view: CoreDriver) -> None:
    view.overwrite(b"d/x", b"edited")


def edit_what_has_links(view: CoreDriver) -> None:
    view.overwrite(b"d/one", b"edited")


def make_a_directory(view: CoreDriver) -> None:
    view.mkdir(b"d/made", 0o750)
    view.create(b"d/made/file", b"made", 0o640)


def rename_the_directory(view: CoreDriver) -> None:
    view.rename(b"d", b"other")


def rename_the_one_in_it(view: CoreDriver) -> None:
    view.rename(b"d/sub", b"sub")


def remove(view: CoreDriver, top: bytes) -> None:
    for path, what in sorted(view.tree().items(), reverse=True):
        if (path + b"/").startswith(top + b"/"):
            (view.rmdir if what[0] == "dir" else view.unlink)(path)


def remove_the_directory(view: CoreDriver) -> None:
    remove(view, b"d")


def remove_the_one_in_it(view: CoreDriver) -> None:
    remove(view, b"d/sub")


FIRST: list[View] = [
    close_the_directory,
    close_the_one_in_it,
    make_files,
    edit,
    edit_what_has_links,
    make_a_directory,
]
SECOND: list[View] = [rename_the_directory, rename_the_one_in_it, remove_the_directory, remove_the_one_in_it]
CASES = [pytest.param(first, second, id=f"{first.__name__}-{second.__name__}") for first in FIRST for second in SECOND]


@pytest.mark.parametrize("is_mounted_anew", [False, True])
@pytest.mark.parametrize(("first", "second"), points(CASES, "chains on OverlayFS", some=2))
def test_base_is_what_it_was_before_each_commit_and_after_it_when_that_is_done_again(
    image: Container, first: View, second: View, *, is_mounted_anew: bool
) -> None:
    project = image.project

    def looks() -> object:
        return without_links(exactly(project))  # OverlayFS cuts links of the image when one is changed

    before = looks()
    committed(project, first)
    between = looks()
    committed(project, second)
    after = looks()
    chain: list[tuple[Callable[[], None], object]] = [
        (lambda: undone(project, None), between),
        (lambda: committed(project), after),
        (lambda: undone(project, None), between),
        (lambda: undone(project, 1), before),
        (lambda: committed(project), after),
        (lambda: undone(project, None), before),
    ]
    for act, expected in chain:
        if is_mounted_anew:
            image.mount_anew()
        act()
        assert looks() == expected
