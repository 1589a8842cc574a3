"""What a run needs before it begins, a mount of / and a sandbox, and what is there after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.planting import interrupt_commit
from tests.support.program import Program, wait_until
from tests.support.started import start

pytestmark = pytest.mark.mount


def _small(tmp_path: Path) -> Program:
    project = tmp_path / "small"
    project.mkdir()
    small = Program(project)
    small.start_session()
    return small


@contextlib.contextmanager
def _unmounted_after(program: Program) -> Iterator[None]:
    """Take away the mount that a run in the block makes."""
    try:
        yield
    finally:
        program("unmount")


def _with_its_own_base(tmp_path: Path) -> Program:
    small = _small(tmp_path)
    with small.mounted("--root", ".") as view:
        (view / "made").write_text("x\n")
    return small


def test_a_base_that_is_not_the_whole_machine_is_refused(tmp_path: Path) -> None:
    small = _small(tmp_path)
    with small.mounted():
        refused = small.refused("run", "true", code=14)
        assert "only a view of / can be the root of a sandbox" in refused
        assert "hint: yolofs unmount, then: yolofs mount --root /; if something is staged" in refused


def test_where_the_settings_name_another_base_the_hint_says_so_and_no_mount_is_left(tmp_path: Path) -> None:
    project = tmp_path / "small"
    project.mkdir()
    (project / ".yolofs.toml").write_text('root = "."\n')
    small = Program(project)
    small.start_session()
    small.trust()
    refused = small.refused("run", "true", code=14)
    assert "yolofs mount --root /" in refused
    assert "root in .yolofs.toml is ." in refused
    assert "not mounted" in small("status").out
    small("mount", "--root", "/")
    with _unmounted_after(small):
        small("run", "--no-review", "true")


def test_without_a_sandbox_no_mount_is_left_but_one_that_was_there_stays(tmp_path: Path) -> None:
    small = _small(tmp_path)
    small.refused("run", "true", code=14, PATH="/nowhere")
    assert "not mounted" in small("status").out
    with small.mounted("--root", "/"):
        small.refused("run", "true", code=14, PATH="/nowhere")
        assert "mounted at" in small("status").out


def test_after_a_mount_of_another_base_a_run_has_the_whole_machine_again(tmp_path: Path) -> None:
    small = _with_its_own_base(tmp_path)
    refused = small.refused("run", "true", code=14)
    assert f"what is staged, snapshots too, is relative to {small.project}, so the root cannot be /" in refused
    assert (
        "yolofs commit keeps what is wanted, and yolofs abort drops the rest; then run the same command again"
        in refused
    )
    assert "not mounted" in small("status").out
    small("commit", "--yes")
    with _unmounted_after(small):
        assert small("run", "--no-review", "cat", "made").out == "x\n"


def test_snapshots_alone_keep_a_base_until_the_abort_that_the_hint_names(tmp_path: Path) -> None:
    small = _with_its_own_base(tmp_path)
    small("commit", "--yes")
    small("snapshot")
    small("commit", "--yes")
    assert "snapshots too" in small.refused("run", "true", code=14)
    small("abort", "--yes")
    with _unmounted_after(small):
        small("run", "--no-review", "true")


def test_after_a_mount_of_another_base_a_run_says_first_that_a_commit_was_interrupted(tmp_path: Path) -> None:
    small = _with_its_own_base(tmp_path)
    interrupt_commit(small.project, 1)
    assert "a commit was interrupted" in small.refused("run", "true", code=12)
    assert "not mounted" in small("status").out
    small("commit", "--continue")
    with _unmounted_after(small):
        assert small("run", "--no-review", "cat", "made").out == "x\n"


def test_without_bubblewrap_nothing_is_run(yolofs: Program, tmp_path: Path) -> None:
    assert "bubblewrap is not installed" in yolofs.refused(
        "run", "touch", str(tmp_path / "x"), code=14, PATH="/nowhere"
    )
    assert not (tmp_path / "x").exists()


def test_a_machine_that_forbids_namespaces_is_told_and_nothing_is_run(yolofs: Program, tmp_path: Path) -> None:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (bin_directory / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    (bin_directory / "bwrap").chmod(0o755)
    done = yolofs("run", "touch", str(tmp_path / "x"), code=14, PATH=f"{bin_directory}:{os.environ['PATH']}")
    assert "bwrap: No permissions" in done.err
    assert "bubblewrap cannot make the sandbox here" in done.err
    assert "hint: " in done.err
    assert not (tmp_path / "x").exists()


def test_the_first_run_mounts(tmp_path: Path) -> None:
    fresh = _small(tmp_path)
    with _unmounted_after(fresh):
        assert fresh("run", "echo", "hello").out == "hello\n"
        assert fresh("status", "--json").json["mounted"]


def test_a_mount_is_not_taken_away_from_under_a_run(tmp_path: Path) -> None:
    project = tmp_path / "busy"
    project.mkdir()
    busy = Program(project)
    busy.start_session()
    script = "echo > begun; while [ ! -e go ]; do sleep 0.05; done; echo end > late"
    try:
        busy("mount")
        with start(["run", "sh", "-c", script], project) as process:
            wait_until(lambda: "begun" in busy("status").out, "the command")
            said = busy.refused("unmount", code=8)
            assert "commands of yolofs run are at work in the view" in said
            assert "\n  run 1: sh -c " in said
            (project / "go").touch()
            assert process.wait(timeout=60) == 0
        assert "A  late\n" in busy("status").out
        busy("unmount")
    finally:
        busy("unmount", "--force")
