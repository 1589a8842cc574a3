"""Moving a directory name by name, with somebody else's directory in the way."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from tests.support.user_identity import in_child
from yolofs.commit.apply import by_names
from yolofs.system import syscalls

SOMEBODY = 12345


def moved(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        by_names.move((fd, b"old"), (fd, b"new"), by_names.listing_of((fd, b"old")))
    finally:
        os.close(fd)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "old/inner").mkdir(parents=True)
    (tmp_path / "old/inner/file").write_text("x")
    return tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory for somebody else")
@pytest.mark.parametrize("place", ["new", "new/inner"])
def test_nothing_is_moved_into_a_directory_that_somebody_else_has_made_there(tree: Path, place: str) -> None:
    (tree / place).mkdir(parents=True)
    (tree / place / ".envrc").write_text("planted")
    os.chown(tree / place, SOMEBODY, SOMEBODY)
    with pytest.raises(FileExistsError):
        moved(tree)
    assert (tree / "old/inner/file").read_text() == "x"


def test_a_move_that_was_interrupted_goes_on_in_what_it_has_made(tree: Path) -> None:
    (tree / "new/inner").mkdir(parents=True)
    moved(tree)
    assert (tree / "new/inner/file").read_text() == "x"
    assert not (tree / "old").exists()


def test_the_new_directories_are_all_that_the_old_ones_were(tree: Path) -> None:
    for name, mode in (("old/inner", 0o2750), ("old", 0o700)):
        (tree / name).chmod(mode)
        os.utime(tree / name, ns=(1, 1_400_000_000_000_000_007))
    moved(tree)
    for name, mode in (("new/inner", 0o2750), ("new", 0o700)):
        st = (tree / name).stat()
        assert (st.st_mode & 0o7777, st.st_mtime_ns) == (mode, 1_400_000_000_000_000_007)


def test_a_name_that_is_taken_there_ends_it_and_nothing_is_written_over(tree: Path) -> None:
    (tree / "new/inner").mkdir(parents=True)
    (tree / "new/inner/file").write_text("the host's")
    with pytest.raises(FileExistsError):
        moved(tree)
    assert (tree / "new/inner/file").read_text() == "the host's"
    assert (tree / "old/inner/file").read_text() == "x"


def test_a_directory_that_is_emptied_and_gone_already_is_passed_over(tree: Path) -> None:
    fd = os.open(tree, os.O_PATH | os.O_DIRECTORY)
    try:
        listing = by_names.listing_of((fd, b"old"))
        by_names.move((fd, b"old"), (fd, b"new"), listing)
        by_names.move((fd, b"old"), (fd, b"new"), listing)
    finally:
        os.close(fd)
    assert (tree / "new/inner/file").read_text() == "x"


def test_a_listing_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "names")
    assert by_names.read(path) is None
    by_names.write({}, path, durable=True)
    assert by_names.read(path) == {}
    (tmp_path / "names").write_bytes(b"\xc1")
    with pytest.raises(OSError, match="the note about a directory is damaged"):
        by_names.read(path)


def test_nobody_else_may_enter_the_new_directories_while_names_are_moved(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    really_rename = syscalls.rename_noreplace

    def rename(src: int, old: bytes, dst: int, new: bytes) -> None:
        seen.update(stat.S_IMODE((tree / name).stat().st_mode) for name in ("new", "new/inner"))
        really_rename(src, old, dst, new)

    monkeypatch.setattr(syscalls, "rename_noreplace", rename)
    (tree / "old").chmod(0o755)
    umask = os.umask(0)
    try:
        moved(tree)
    finally:
        os.umask(umask)
    assert seen == {0o700}
    assert stat.S_IMODE((tree / "new").stat().st_mode) == 0o755


def test_directories_that_their_owner_may_not_write_in_are_moved_by_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o777)

        def act() -> None:
            (place / "old/inner").mkdir(parents=True)
            (place / "old/inner/file").write_text("x")
            (place / "old/inner").chmod(0o500)
            (place / "old").chmod(0o500)
            moved(place)

        assert in_child(act, is_root=False) == 0
        modes = [stat.S_IMODE((place / path).stat().st_mode) for path in ("new", "new/inner")]
        assert modes == [0o500, 0o500]
        for path in ("new", "new/inner"):
            (place / path).chmod(0o777)
        assert (place / "new/inner/file").read_text() == "x"
