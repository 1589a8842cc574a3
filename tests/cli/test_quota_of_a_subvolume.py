"""The session lies in a subvolume of btrfs that has a limit (a qgroup), and that is reached: not
even a rename is possible there then.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until
from tests.support.sharing_disk import disk_image

pytestmark = [pytest.mark.mount, pytest.mark.root_only]
MOST = 8 << 20


class Subvolume:
    """One with a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for words in (
            ("quota", "enable", path.parent),
            ("subvolume", "create", path),
            ("qgroup", "limit", str(MOST), path),
        ):
            subprocess.run(["btrfs", *words], check=True, stdout=subprocess.DEVNULL)

    def fill(self) -> None:
        """Write until nothing more can be."""
        for _ in range(2):  # what was set aside for the first is given back as it comes to the disk
            with open(self.path / "fill", "ab", buffering=0) as file:
                try:
                    while True:
                        file.write(os.urandom(4096))
                except OSError:
                    os.sync()
        with pytest.raises(OSError, match="Disk quota exceeded"):
            (self.path / "fill").rename(self.path / "filled")

    @property
    def taken(self) -> int:
        """How many bytes count for the limit."""
        os.sync()
        shown = subprocess.run(
            ["btrfs", "qgroup", "show", "-f", "--raw", self.path], check=True, capture_output=True, text=True
        )
        return int(shown.stdout.split("\n")[2].split()[1])


@pytest.fixture
def subvolume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Subvolume]:
    with disk_image("btrfs", tmp_path) as disk:
        subvolume = Subvolume(disk / "subvolume")
        monkeypatch.setenv("YOLOFS_STATE", str(subvolume.path / "state"))
        yield subvolume


@pytest.fixture
def program(subvolume: Subvolume) -> Program:
    """A project with something staged, which takes a third of what there may be."""
    project = subvolume.path / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    program = Program(project)
    program.start_session()
    with program.mounted("--root", ".") as view:
        (view / "big").write_bytes(os.urandom(MOST // 3))
    return program


def test_an_abort_makes_room_each_time(program: Program, subvolume: Subvolume) -> None:
    for _ in range(2):
        subvolume.fill()
        program("abort", "--yes")
        assert "no changes" in program("status").out
        assert subvolume.taken < MOST * 3 // 4
        (subvolume.path / "fill").unlink()
        with program.mounted() as view:
            (view / "big").write_bytes(os.urandom(MOST // 3))
    program("commit", "--yes")
    assert (program.project / "big").stat().st_size == MOST // 3


def test_an_abort_makes_room_each_time_in_a_mount(program: Program, subvolume: Subvolume) -> None:
    with program.mounted() as view:
        for _ in range(3):
            subvolume.fill()
            program("abort", "--yes")
            assert not (view / "big").exists()
            wait_until(lambda: subvolume.taken < MOST * 3 // 4, "the daemon has freed what was staged")
            (subvolume.path / "fill").unlink()
            (view / "big").write_bytes(os.urandom(MOST // 3))
        program("commit", "--yes")
    assert (program.project / "big").stat().st_size == MOST // 3


@pytest.mark.parametrize("is_mounted", [False, True], ids=["unmounted", "mounted"])
def test_gc_makes_room(program: Program, subvolume: Subvolume, *, is_mounted: bool) -> None:
    """The big file is in a generation that a travel has left, and in a commit that is not kept."""
    with contextlib.ExitStack() as stack:
        view = stack.enter_context(program.mounted())
        program("commit", "--yes")
        for text in ("small\n", "smaller\n"):
            (view / "big").write_text(text)
            program("commit", "--yes")
        (view / "dead").write_bytes(os.urandom(MOST // 4))
        program("snapshot")
        program("travel", "0")
        (view / "a").write_text("staged\n")
        if not is_mounted:
            stack.close()
        (program.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
        program.trust()
        subvolume.fill()
        done = program("gc", "--json").json
        assert done["commits"] == [1, 2]
        program("snapshot")  # with that, the reserve is there again
        subvolume.fill()
        done = program("gc", "--generations", "--json").json
        assert done["generations"] == 2
        assert done["freed_bytes"] >= MOST // 4
        wait_until(lambda: subvolume.taken < MOST - MOST // 4, "there is room")
        assert "M  a" in program("status").out
