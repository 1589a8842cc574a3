"""Base lies on a disk that takes names for one that differ in nothing but case (FAT, exFAT, NTFS,
SMB).  The view tells them apart, and shows each by its own spelling alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.disk_without_case import disk_without_case
from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "state"))
    with disk_without_case(tmp_path) as disk:
        project = disk / "project"
        (project / "dir").mkdir(parents=True)
        for name in ("one", "two", "dir/file"):
            (project / name).write_text(f"{name}\n")
        yolofs = Program(project)
        yolofs.start_session()
        yield yolofs


def content(project: Path) -> dict[str, str]:
    files = (path for path in project.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(project)): path.read_text() for path in files}


def rename_over_another_spelling(view: CoreDriver) -> None:
    view.rename(b"one", b"other")
    view.rename(b"two", b"One")


def make_something_in_a_directory_that_moves(view: CoreDriver) -> None:
    view.rename(b"dir", b"other")
    view.mkdir(b"Dir", 0o755)
    view.create(b"Dir/new", b"new\n", 0o644)


def replace_by_another_spelling(view: CoreDriver) -> None:
    view.unlink(b"one")
    view.create(b"One", b"view\n", 0o644)


def make_two(view: CoreDriver) -> None:
    view.create(b"new", b"new\n", 0o644)
    view.create(b"NEW", b"NEW\n", 0o644)


def make_two_in_a_new_directory(view: CoreDriver) -> None:
    view.mkdir(b"made", 0o755)
    view.create(b"made/new", b"new\n", 0o644)
    view.create(b"made/NEW", b"NEW\n", 0o644)


BOTH: dict[Callable[[CoreDriver], None], tuple[str, str]] = {
    rename_over_another_spelling: ("One", "one"),
    make_something_in_a_directory_that_moves: ("Dir", "dir"),
    replace_by_another_spelling: ("One", "one"),
    make_two: ("NEW", "new"),
    make_two_in_a_new_directory: ("made/NEW", "made/new"),
}


@pytest.mark.parametrize("work", BOTH, ids=lambda work: work.__name__)
@pytest.mark.some(3)
def test_what_is_one_name_on_that_disk_is_not_committed_as_two(
    on_it: Program, work: Callable[[CoreDriver], None]
) -> None:
    project = on_it.project
    before = content(project)
    view = CoreDriver(os.fsencode(project))
    work(view)
    view.close()
    for words in (("commit", "--yes"), ("commit", "--dry-run")):
        refused = on_it(*words, code=1)
        for path in BOTH[work]:
            assert f"{project}/{path}" in refused.err
        assert "one name on that disk" in refused.err
    assert content(project) == before
    assert on_it("commits", "--json").json["commits"] == []


def test_a_name_that_the_disk_tells_apart_is_committed_and_undone(on_it: Program) -> None:
    project = on_it.project
    before = content(project)
    view = CoreDriver(os.fsencode(project))
    view.rename(b"one", b"three")
    view.overwrite(b"two", b"view\n")
    view.create(b"dir/One", b"new\n", 0o644)
    view.close()
    on_it("commit", "--yes")
    after = {"three": "one\n", "two": "view\n", "dir/file": "dir/file\n", "dir/One": "new\n"}
    assert content(project) == after
    on_it("undo", "--yes")
    assert content(project) == before


def test_a_view_shows_a_file_by_no_other_spelling_than_its_own(on_it: Program) -> None:
    """Rules know it by that one."""
    project = on_it.project
    (project / ".env").write_text("secret\n")
    (project / "dir/1").write_text("one\n")  # a name that tells nothing of the disk
    on_it("rule", "hidden", str(project / ".env"))
    with on_it.mounted() as mount:
        view = Path(f"{mount}")
        assert (view / "dir/1").read_text() == "one\n"
        for spelling in (".ENV", ".Env", "ONE", "DIR", "DIR/file", "dir/FILE", ".YOLOFS.toml"):
            assert not os.path.lexists(view / spelling), spelling
        assert sorted(os.listdir(view / "dir")) == ["1", "file"]
        (project / "dir/later").write_text("later\n")  # the names were read before
        assert (view / "dir/later").read_text() == "later\n"
        (view / ".ENV").write_text("mine\n")
    refused = on_it("commit", "--yes", "--ours", code=1).err
    assert f"{project}/.ENV and {project}/.env are one name on that disk" in refused
    assert (project / ".env").read_text() == "secret\n"


def test_what_is_found_where_the_disk_is_mounted_tells_nothing_of_the_disk(on_it: Program, tmp_path: Path) -> None:
    """That name lies in a directory of another disk, which takes it for one name alone."""
    with on_it.mounted("--root", tmp_path) as mount:
        assert (mount / "shown").is_dir()
        assert (mount / "shown/project/one").read_text() == "one\n"
        assert not os.path.lexists(mount / "shown/project/ONE")
        assert not os.path.lexists(mount / "shown/PROJECT")


def test_two_spellings_are_two_names_on_any_other_disk(yolofs: Program) -> None:
    (yolofs.project / "one").write_text("one\n")
    before = content(yolofs.project)
    view = CoreDriver(os.fsencode(yolofs.project))
    view.rename(b"one", b"ONE")
    make_two(view)
    make_two_in_a_new_directory(view)
    view.close()
    yolofs("commit", "--yes")
    made = {"ONE": "one\n", "new": "new\n", "NEW": "NEW\n", "made/new": "new\n", "made/NEW": "NEW\n"}
    assert content(yolofs.project) == {**made, "a.txt": before["a.txt"], "dir/b.txt": before["dir/b.txt"]}
    yolofs("undo", "--yes")
    assert content(yolofs.project) == before
