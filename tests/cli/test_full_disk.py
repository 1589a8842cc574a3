"""The session's disk is full, or read-only: one line says so and what to do; nothing is lost."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.mount, pytest.mark.root_only]
_libc = ctypes.CDLL(None, use_errno=True)
_REMOUNT, _READ_ONLY, _DETACH = 32, 1, 2
SIZE = b"size=1m,nr_inodes=1k,mode=755"


class Disk:
    """A small disk, on which the state directory lies."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        assert _libc.mount(b"none", bytes(path), b"tmpfs", 0, SIZE) == 0

    def fill(self) -> None:
        with open(self.path / "fill", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    def take_all_numbers(self) -> None:
        """Make files until there is no inode number left."""
        (self.path / "many").mkdir()
        with contextlib.suppress(OSError):
            for number in range(100_000):
                (self.path / "many" / f"{number}").touch()

    @property
    def free(self) -> int:
        """How many bytes may be written."""
        room = os.statvfs(self.path)
        return room.f_bavail * room.f_frsize

    def make_room(self) -> None:
        (self.path / "fill").unlink()

    def set_read_only(self, *, is_read_only: bool) -> None:
        flags = _REMOUNT | (_READ_ONLY if is_read_only else 0)
        assert _libc.mount(b"none", bytes(self.path), b"tmpfs", flags, SIZE) == 0

    def close(self) -> None:
        assert _libc.umount2(bytes(self.path), _DETACH) == 0


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    monkeypatch.setenv("YOLOFS_STATE", str(disk.path / "state"))
    try:
        yield disk
    finally:
        disk.close()


@pytest.fixture
def program(tmp_path: Path, disk: Disk) -> Program:
    """A project with something staged."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    program = Program(project)
    program.start_session()
    with program.mounted("--root", ".") as view:
        (view / "a").write_text("changed\n")
    return program


def hinted(program: Program, *words: str, code: int = 1) -> str:
    """Run a command that is refused, see that it is in two lines, and return them."""
    done = program(*words, code=code)
    assert "Traceback" not in done.err, done.err
    lines = [line for line in done.err.splitlines() if not line.startswith("warning:")]
    assert [line.split(":")[0] for line in lines] == ["yolofs", "hint"], done.err
    assert os.environ["YOLOFS_STATE"] in lines[1], done.err
    return done.err


def test_on_a_full_disk_each_command_says_where_to_make_room(program: Program, disk: Disk) -> None:
    disk.fill()
    for words, code in ((["mount"], 11), (["commit", "--yes"], 17)):
        said = hinted(program, *words, code=code)
        assert "No space left on device" in said
        assert "PATH" not in said  # there is no room for a part of it either
    assert "M  a" in program("status").out
    assert (program.project / "a").read_text() == "a\n"
    disk.make_room()
    program("commit", "--yes")
    assert (program.project / "a").read_text() == "changed\n"


def test_the_state_directory_of_the_session_is_named_where_it_is_not_the_users_own(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = disk.path / "apart"
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "own"))
    (tmp_path / "project").mkdir()
    program = Program(tmp_path / "project")
    program("init", "--state", apart)
    disk.fill()
    assert f"keeps its files in {apart}: make room there" in program("mount", "--root", ".", code=11).err


def test_a_review_on_a_full_disk_says_where_to_make_room_and_goes_on_then(program: Program, disk: Disk) -> None:
    with program.mounted(), Terminal(program.project, ["review"], size=(100, 24), EDITOR="true") as terminal:
        terminal.wait_for_screen("+changed")
        disk.fill()
        full = "No space left on device (yolofs keeps its files in ", "make room there"
        terminal.type("a\r")
        terminal.wait_for_screen(*full)
        terminal.type("l")
        terminal.wait_for_screen("+changed", gone=full[1])  # else what comes next is not told from it
        terminal.type("e")
        terminal.wait_for_screen(*full)
        disk.make_room()
        terminal.type("h\r")
        terminal.wait_for_screen("enter commits")
        terminal.type("\r")
        terminal.wait_for_screen("commit 1 done")
    assert (program.project / "a").read_text() == "changed\n"


def test_a_daemon_on_a_full_disk_says_where_to_make_room(program: Program, disk: Disk) -> None:
    with program.mounted("--root", ".") as view:
        (view / "a").write_text("changed again\n")
        journal = program.session / "journal"
        os.truncate(journal, journal.stat().st_size)  # as if what it has ahead of its end were used up
        disk.fill()
        assert "No space left on device" in hinted(program, "snapshot", "x" * 200, code=11)
        disk.make_room()
        program("snapshot", "x" * 200)


def test_a_mount_stays_where_there_is_no_room_to_note_who_has_the_session(program: Program, disk: Disk) -> None:
    with program.mounted("--root", ".") as view:
        os.truncate(program.session / "lock", 0)  # as a disk that shares its blocks needs a new one to write to
        disk.fill()
        assert "No space left on device" in hinted(program, "commit", "--yes", code=17)
        assert (view / "a").read_text() == "changed\n"
        disk.make_room()
        program("commit", "--yes")
    assert (program.project / "a").read_text() == "changed\n"


@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
def test_an_abort_makes_room_where_there_is_none(program: Program, disk: Disk, *, is_mounted: bool) -> None:
    with contextlib.ExitStack() as stack:
        view = stack.enter_context(program.mounted("--root", ".")) if is_mounted else None
        if view is not None:
            (view / "big").write_bytes(bytes(100_000))
        journal = program.session / "journal"
        os.truncate(journal, journal.stat().st_size)  # as if what it has ahead of its end were used up
        disk.fill()
        full = disk.free
        program("abort", "--yes")
        assert disk.free > full
        assert "no changes" in program("status").out
        disk.make_room()
        if view is not None:
            (view / "a").write_text("again\n")
    assert ("M  a" in program("status").out) == is_mounted


@pytest.mark.parametrize("lacks", ["room", "numbers"])
def test_dropping_generations_makes_room_where_there_is_none(program: Program, disk: Disk, lacks: str) -> None:
    with program.mounted("--root", ".") as view:
        (view / "dead").write_bytes(bytes(100_000))
        program("snapshot", "dead")
        program("travel", "0")
        (view / "a").write_text("again\n")
    if lacks == "room":
        disk.fill()
    else:
        disk.take_all_numbers()
    foretold = program("gc", "--generations", "--dry-run", "--json").json
    assert foretold["freed_bytes"] >= 100_000
    done = program("gc", "--generations", "--json").json
    assert done["generations"] == foretold["generations"] == 2
    assert done["freed_bytes"] >= 100_000
    assert "M  a" in program("status").out
    assert program("gc", "--generations", "--json").json["generations"] == 0


@pytest.mark.parametrize("room", [0, 4096, 3 * 4096, 6 * 4096, 60_000])
@pytest.mark.some(2)
def test_an_undo_on_a_full_disk_says_where_to_make_room_and_what_to_do_then(
    program: Program, disk: Disk, room: int
) -> None:
    """Whether it is the first thing that does not fit, or one of the last."""
    (program.project / "a").write_text("base\n" * 20_000)
    program("commit", "--ours", "--yes")
    committed = (program.project / "a").read_text()
    disk.fill()
    with open(disk.path / "fill", "r+b") as file:
        file.truncate((disk.path / "fill").stat().st_size - room)
    for words in (["undo", "--yes"], ["undo", "--yes", "1"], ["undo", "--dry-run"]):
        done = program(*words, code=None)
        if done.code == 0:
            assert words[1] == "--dry-run"
            continue
        problem, hint = [line for line in done.err.splitlines() if line.startswith(("yolofs: ", "hint: "))]
        assert "No space left on device" in problem
        assert str(disk.path) in problem
        assert str(program.project) not in problem + hint
        assert "yolofs undo" in hint
        assert "PATH" not in hint  # there is no room for a part of it either
        assert (program.project / "a").read_text() == committed
    disk.make_room()
    program("undo", "--yes")
    assert (program.project / "a").read_text() == "base\n" * 20_000


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_a_project_that_was_moved_follows_as_soon_as_it_can_be_written_down(
    program: Program, disk: Disk, trouble: str
) -> None:
    moved = program.project.rename(program.project.with_name("moved"))
    program = Program(moved)
    disk.fill() if trouble == "full" else disk.set_read_only(is_read_only=True)
    said = "No space left on device" if trouble == "full" else "Read-only file system"
    for words in (["status"], ["mount"], ["commit", "--yes"]):
        assert said in hinted(program, *words)
    disk.make_room() if trouble == "full" else disk.set_read_only(is_read_only=False)
    assert "M  a" in program("status").out
    program("commit", "--yes")
    assert (moved / "a").read_text() == "changed\n"


def test_settings_for_which_there_is_no_room_leave_no_empty_file(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOLOFS_STATE", str(tmp_path / "own"))
    program = Program(disk.path / "project")
    program.project.mkdir()
    disk.fill()
    assert ".yolofs.toml cannot be written: No space left on device" in program("init").err
    assert not (program.project / ".yolofs.toml").exists()
    disk.make_room()
    assert "wrote .yolofs.toml" in program("init").err
    assert (program.project / ".yolofs.toml").read_text().startswith("# Settings")
