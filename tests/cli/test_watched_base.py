"""What the host changes in a watched project shows in the view at once, however long the kernel may
cache it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fault_points import way_of, ways
from tests.support.program import Program, connected, kill, wait_until

pytestmark = [pytest.mark.disk, pytest.mark.mount]

CONFIG = "[mount]\nbase_timeout = 3600.0\n"
"""What the kernel was told it would keep for an hour, in new directories too."""
BRIEFLY_UNWATCHED = "[mount]\nbase_timeout = 1.0\nwatched_timeout = 3600.0\n"
"""What no watch sees shows within a second, as it does by default."""


STARTS = ("forked", "forked", "started")
"""A daemon that is forked forks its watcher; one that is started starts it, as everywhere."""
STARTED = pytest.mark.parametrize("yolofs", ["started"], indirect=True)
"""The test knows a watcher by how it was started."""


@pytest.fixture(params=ways(*sorted(set(STARTS))))
def yolofs(yolofs: Program, request: pytest.FixtureRequest) -> Program:
    """The program in the project: by night with both kinds of daemons, else with one of them."""
    return replace(yolofs, daemon_starts_cold=way_of(request, *STARTS) == "started")


@contextmanager
def watched(yolofs: Program, *expected_in_log: str, config: str = CONFIG) -> Iterator[Path]:
    """Mount a project whose base files are watched, and may be cached for an hour."""
    project = yolofs.project
    (project / ".yolofs.toml").write_text(config)
    (project / "top/sub").mkdir(parents=True)
    (project / "top/file").write_text("1")
    with yolofs.mounted(expected_in_log=expected_in_log) as mountpoint:
        wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
        yield mountpoint


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with watched(yolofs) as view:
        yield view


@pytest.fixture
def briefly_unwatched(yolofs: Program) -> Iterator[Path]:
    with watched(yolofs, config=BRIEFLY_UNWATCHED) as view:
        yield view


def test_the_kernel_is_told_what_the_host_changed(yolofs: Program, view: Path) -> None:
    project = yolofs.project
    assert (view / "top/file").stat().st_size == 1
    (project / "top/file").write_text("longer")
    wait_until(lambda: (view / "top/file").stat().st_size == 6, "the new size")
    assert (view / "top/file").read_text() == "longer"

    assert not (view / "top/sub/new").exists()
    (project / "top/sub/new").write_text("x")
    wait_until((view / "top/sub/new").exists, "the new file")
    (project / "top/sub/new").unlink()
    wait_until(lambda: not (view / "top/sub/new").exists(), "the file to go")

    assert (view / "top/file").stat().st_mode & 0o777 == 0o644
    (project / "top/file").chmod(0o600)
    wait_until(lambda: (view / "top/file").stat().st_mode & 0o777 == 0o600, "the new mode")

    (project / "other").write_text("replaced")
    (project / "other").rename(project / "top/file")
    wait_until(lambda: (view / "top/file").stat().st_size == 8, "the replaced file")
    assert (view / "top/file").read_text() == "replaced"


def test_a_write_through_a_shared_mapping_makes_no_notice_and_shows_all_the_same(
    yolofs: Program, briefly_unwatched: Path
) -> None:
    view = briefly_unwatched
    script = """if True:
        import mmap, sys
        file = open(sys.argv[1], "r+b")
        mapping = mmap.mmap(file.fileno(), 0)
        print("mapped", flush=True)
        for line in sys.stdin:
            mapping[0:1] = line[:1].encode()
            mapping.flush()  # so that the next write moves the time again
            print("written", flush=True)
    """
    file = yolofs.project / "top/file"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", script, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "mapped\n"
        for content in "23":
            before = (view / "top/file").stat().st_mtime_ns
            process.stdin.write(content + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "written\n"
            wait_until(lambda: (view / "top/file").stat().st_mtime_ns != before, "the new time")  # noqa: B023 - now
            assert (view / "top/file").stat().st_mtime_ns == file.stat().st_mtime_ns
            assert (view / "top/file").read_text() == content


def test_a_write_by_a_name_outside_of_what_is_watched_shows_within_a_second(
    yolofs: Program, briefly_unwatched: Path, tmp_path: Path
) -> None:
    view = briefly_unwatched
    (yolofs.project / "linked").write_text("one")
    os.link(yolofs.project / "linked", tmp_path / "elsewhere")
    wait_until(lambda: (view / "linked").exists() and (view / "linked").stat().st_nlink == 2, "both names")
    time.sleep(1)  # what was told of the new file has arrived
    assert (view / "linked").stat().st_size == 3
    (tmp_path / "elsewhere").write_text("longer")
    end = time.monotonic() + 10  # a second, and what a busy machine adds
    while (view / "linked").stat().st_size != 6:
        assert time.monotonic() < end
        time.sleep(0.02)  # between two looks at a condition with a deadline


def test_directories_that_come_later_are_watched_too(yolofs: Program, view: Path) -> None:
    project = yolofs.project
    assert not (view / "fresh").exists()
    (project / "fresh/a/b").mkdir(parents=True)
    wait_until((view / "fresh/a/b").is_dir, "the new directory")
    for number in range(3):
        check_new_file(project, view, f"fresh/a/b/{number}")
    (project / "fresh/a").rename(project / "top/sub/moved")
    wait_until(lambda: not (view / "fresh/a").exists(), "the directory to go")
    assert sorted(os.listdir(view / "top/sub/moved/b")) == ["0", "1", "2"]
    check_new_file(project, view, "top/sub/moved/b/3")


def test_a_change_by_the_host_shows_below_a_directory_renamed_in_the_view(yolofs: Program, view: Path) -> None:
    project = yolofs.project
    (view / "top").rename(view / "elsewhere")
    assert (view / "elsewhere/file").stat().st_size == 1
    assert not (view / "elsewhere/new").exists()
    (project / "top/file").write_text("longer")
    (project / "top/new").write_text("x")
    wait_until(lambda: (view / "elsewhere/file").stat().st_size == 6, "the new size")
    wait_until((view / "elsewhere/new").exists, "the new file")
    assert not (view / "top").exists()


def test_a_staged_file_stays_when_the_host_writes_to_that_of_base(yolofs: Program, view: Path) -> None:
    (view / "top/file").write_text("staged")
    (yolofs.project / "top/file").write_text("from the host")
    (yolofs.project / "top/marker").write_text("")
    wait_until((view / "top/marker").exists, "the marker")
    assert (view / "top/file").read_text() == "staged"


def is_in(directory: Path) -> bool:
    """Tell whether the working directory is one that has come back: what the kernel is told late of
    its going takes the name away until somebody looks it up again.
    """
    try:
        return directory.exists() and os.getcwd() == str(directory)
    except FileNotFoundError:
        return False


def test_a_working_directory_stays_where_it_is(yolofs: Program, view: Path) -> None:
    before = os.getcwd()
    os.chdir(view / "top/sub")
    try:
        (yolofs.project / "top/sub").rename(yolofs.project / "top/gone")
        wait_until(lambda: not (view / "top/sub").exists(), "the directory to go")
        (yolofs.project / "top/gone").rename(yolofs.project / "top/sub")
        wait_until(lambda: is_in(view / "top/sub"), "the directory to come back")
    finally:
        os.chdir(before)


def test_names_that_are_not_utf8_do_no_harm(yolofs: Program, view: Path) -> None:
    assert not (view / "top/plain").exists()
    (yolofs.project / os.fsdecode(b"top/\xff")).write_text("x")
    (yolofs.project / "top/plain").write_text("x")
    wait_until((view / "top/plain").exists, "the plain file")
    wait_until((view / os.fsdecode(b"top/\xff")).exists, "the other file")
    (yolofs.project / "top/plain").unlink()
    wait_until(lambda: not (view / "top/plain").exists(), "the plain file to go")


@STARTED
def test_the_watcher_ends_with_the_mount(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text(CONFIG)
    with yolofs.mounted():
        wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
        assert watchers(yolofs.project)
    assert not watchers(yolofs.project)


@STARTED
def test_a_watcher_ends_with_a_daemon_that_is_killed(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text(CONFIG)
    yolofs("mount", "--root", ".")
    wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
    kill(yolofs.daemon["pid"])
    wait_until(lambda: not watchers(yolofs.project), "the watcher to end")
    yolofs("mount", "--root", ".")
    yolofs("unmount")


@STARTED
def test_what_the_host_does_shows_though_the_watcher_was_killed_and_another_one_follows(yolofs: Program) -> None:
    project, said = yolofs.project, "the watcher of the project has ended"
    (project / "other").write_text("1")
    with watched(yolofs, said) as view:
        assert (view / "other").exists()
        assert (view / "top/file").stat().st_size == 1
        assert not (view / "fresh").exists()
        assert not (view / "top/fresh").exists()
        for _ in range(2):
            (watcher,) = watchers(project)
            kill(int(watcher.split()[0]))
            (project / "top/file").write_text("longer")
            (project / "fresh").write_text("x")
            (project / "top/fresh").write_text("x")
            (project / "other").unlink()
            wait_until(lambda: (view / "top/file").stat().st_size == 6, "the new size")
            wait_until((view / "fresh").exists, "the new file")
            wait_until((view / "top/fresh").exists, "the new file in a directory")
            wait_until(lambda: not (view / "other").exists(), "the file to go")
            wait_until(lambda: bool(watchers(project)), "another watcher")
            (project / "top/file").write_text("1")
            (project / "fresh").unlink()
            (project / "top/fresh").unlink()
            (project / "other").write_text("1")
            wait_until(lambda: (view / "top/file").stat().st_size == 1, "the old size")
            wait_until(lambda: not (view / "fresh").exists(), "it to go")
            wait_until(lambda: not (view / "top/fresh").exists(), "it to go")
            wait_until((view / "other").exists, "the other file again")
        assert yolofs.log.count(said) == 2


@STARTED
def test_a_file_that_is_gone_before_it_is_known_that_the_watcher_has_ended_is_gone_in_the_view(
    yolofs: Program,
) -> None:
    project = yolofs.project
    (project / "other").write_text("1")
    with watched(yolofs, "the watcher of the project has ended") as view:
        assert (view / "other").exists()
        (watcher,) = watchers(project)
        with connected(yolofs) as client:
            daemon = client.pid
        os.kill(daemon, signal.SIGSTOP)
        try:
            kill(int(watcher.split()[0]))
            (project / "other").unlink()
        finally:
            os.kill(daemon, signal.SIGCONT)
        wait_until(lambda: not (view / "other").exists(), "the file to go")


@STARTED
def test_a_watcher_that_ends_as_the_project_is_gone_takes_nobody_along(yolofs: Program) -> None:
    project, away = yolofs.project, yolofs.project.with_name("away")
    said, log = "the watcher of the project has ended", yolofs.session / "daemon.log"
    with watched(yolofs, said, config=BRIEFLY_UNWATCHED) as view:
        (watcher,) = watchers(project)
        project.rename(away)
        try:
            kill(int(watcher.split()[0]))
            wait_until(lambda: "is no directory" in log.read_text(), "another one has looked")
        finally:
            away.rename(project)
        assert said in log.read_text()
        wait_until((view / "top/file").exists, "the project is back")
        (project / "fresh").write_text("x")  # nobody watches, so it takes as long as base_timeout
        wait_until((view / "fresh").exists, "the new file")


@STARTED
def test_no_watcher_starts_if_the_settings_say_so(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[mount]\nwatch = false\n")
    with yolofs.mounted():
        time.sleep(2)  # one starts a second after the mount
        assert not watchers(yolofs.project)
    assert "watched" not in yolofs.log


def check_new_file(project: Path, view: Path, name: str) -> None:
    """Have the kernel learn that a file is not there, then make it on the host: it has to be
    seen.
    """
    assert not (view / name).exists()
    (project / name).write_text("x")
    wait_until((view / name).exists, name)


def watchers(project: Path) -> list[str]:
    """Return the number and command line of each process that watches a project."""
    done = subprocess.run(["ps", "-e", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
    return [
        line for line in done.stdout.splitlines() if f" {project} " in line and "yolofs.daemon.follow.watcher" in line
    ]
