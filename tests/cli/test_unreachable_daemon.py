"""A daemon whose socket is gone: every command says so, and what it names as the way out is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, kill, wait_for_end
from yolofs.system.mounts import is_ours, mounts_at

pytestmark = pytest.mark.mount


@pytest.fixture
def unreachable(yolofs: Program) -> Iterator[Program]:
    """Mount, stage a file, and remove the sockets of the daemon, as a cleaner of a runtime
    directory.
    """
    mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
    (mountpoint / "staged").write_text("kept\n")
    pid = yolofs.daemon["pid"]
    for path in mountpoint.parent.glob("*.sock"):
        path.unlink()
    yield yolofs
    for left in mounts_at(os.fsencode(mountpoint)):
        assert not is_ours(left)
    wait_for_end(pid)


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("diff",),
        ("log",),
        ("mount",),
        ("unmount",),
        ("run", "--", "true"),
        ("snapshot", "x"),
        ("travel", "0"),
        ("commit", "--yes"),
        ("abort", "--yes"),
        ("asks",),
        ("rule", "list"),
    ],
)
@pytest.mark.some(6)
def test_each_command_names_unmount_force_as_the_way_out(unreachable: Program, words: tuple[str, ...]) -> None:
    said = unreachable.refused(*words, code=11)
    assert f"the daemon, process {unreachable.daemon['pid']}, cannot be reached" in said
    assert "hint: yolofs unmount --force ends it" in said
    unreachable("unmount", "--force")


def test_unmount_force_ends_an_unreachable_daemon_and_keeps_what_is_staged(unreachable: Program) -> None:
    assert "unmount --force" in unreachable("doctor", code=1).out
    said = unreachable("unmount", "--force").err
    assert "ended it, and took its mount away" in said
    assert "A  staged" in unreachable("status").out
    assert unreachable("cat", ":staged").out == "kept\n"
    with unreachable.mounted() as view:
        assert (view / "staged").read_text() == "kept\n"
    assert "not mounted" in unreachable("unmount", "--force").err


def test_a_killed_daemon_is_not_taken_for_one_that_runs(yolofs: Program) -> None:
    yolofs("mount", "--root", ".")
    kill(yolofs.daemon["pid"])
    assert "the daemon has died" in yolofs("status").out
    assert "took away the mount" in yolofs("unmount").err


def test_unmount_force_ends_a_daemon_whose_sessions_disk_was_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the other daemons, which serve other projects, it ends none."""
    disk = tmp_path / "disk"
    (disk / "state").mkdir(0o700, parents=True)
    (tmp_path / "other").mkdir()
    other = Program(tmp_path / "other")
    other.start_session()
    with other.mounted() as view, monkeypatch.context() as environment:
        environment.setenv("YOLOFS_STATE", str(disk / "state"))
        (tmp_path / "project").mkdir()
        yolofs = Program(tmp_path / "project")
        yolofs("init")
        mountpoint = Path(yolofs("mount", "--root", ".").out.rstrip("\n"))
        (mountpoint / "staged").write_text("kept\n")
        pid = yolofs.daemon["pid"]
        disk.rename(tmp_path / "taken away")
        for command in ("status", "run", "mount", "unmount"):  # all that looks for a session
            refused = yolofs.refused(command, *(["--", "true"] if command == "run" else []), code=4)
            assert refused.startswith(f"yolofs: there is no session in {yolofs.project} or above it")
            assert f"but process {pid} still serves one of {yolofs.project} that is no longer here\n" in refused
            assert "yolofs unmount --force" in refused
        said = yolofs("unmount", "--force").err
        assert f"ended the daemon, process {pid}, of a session of {yolofs.project} that is no longer here" in said
        wait_for_end(pid)
        assert not any(map(is_ours, mounts_at(os.fsencode(mountpoint))))
        refused = yolofs.refused("unmount", "--force", code=4)
        assert "there is no session" in refused
        assert "still serves" not in refused
        (tmp_path / "taken away").rename(disk)
        assert yolofs("cat", ":staged").out == "kept\n"
        assert view.is_dir()


def test_unmount_force_ends_no_daemon_whose_session_only_lies_elsewhere(
    yolofs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with yolofs.mounted() as view, monkeypatch.context() as environment:
        (tmp_path / "other state").mkdir(0o700)
        environment.setenv("YOLOFS_STATE", str(tmp_path / "other state"))
        yolofs.refused("unmount", "--force", code=4)
        assert (view / "a.txt").read_text()
