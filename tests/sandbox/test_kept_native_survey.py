"""The survey of native binds is kept from one mount to the next, and used only for directories that
have not changed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.binds import native_binds
from tests.support.fault_points import way_of, ways
from tests.support.program import Program, wait_until
from yolofs.system.own_names import NATIVE_SURVEY

pytestmark = [pytest.mark.mount, pytest.mark.slow]

MANY = 20
"""As many as tests are below, and more."""
STARTS = ("forked", "started")
"""How a daemon begins."""


def reads(program: Program) -> list[int]:
    """Return how many directories each survey has read, one after the other."""
    return [int(count) for count in re.findall(r"(\d+) directories were read", program.log)]


@contextmanager
def surveyed(program: Program) -> Iterator[int]:
    """Mount, and return how many directories the first survey has read when it is done."""
    before = len(reads(program))
    with program.mounted("--root", "/"):
        wait_until(lambda: len(reads(program)) > before, "the survey is done")
        yield reads(program)[before]


def surveys_of(daemon: int) -> list[str]:
    """Return the command lines of the surveys that a daemon has not ended."""
    pids = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in pids]
    return [line for line in lines if "native_survey" in line]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return as many directories as tests here want, made at the same time: each is to be some
    seconds old.
    """
    found = []
    for number in range(MANY):
        static = tmp_path_factory.getbasetemp() / f"native.{number}" / "static"
        (static / "sub").mkdir(parents=True)
        (static / "other").mkdir()
        (static / "file").write_text("base\n")
        found.append(static)
    return found


@pytest.fixture
def static(made: list[Path]) -> Path:
    """Return a read-only directory outside of the project, which a test has for itself."""
    return made.pop()


@pytest.fixture(params=ways(*STARTS))
def yolofs(tmp_path: Path, static: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a session with a kept survey of all of that directory.

    A daemon that is started, and not forked, has its first survey begun before it has read any
    rule: by night each test has both, else one of them.
    """
    monkeypatch.setenv(
        "XDG_STATE_HOME", str(tmp_path / "state")
    )  # what other tests wanted would be looked through, too
    project = tmp_path / "project"
    project.mkdir()
    rules = f'preset = "none"\n[rules]\n"/" = "allow"\n"{static}" = "read-only"\n'
    (project / ".yolofs.toml").write_text(rules)
    program = Program(project, daemon_starts_cold=way_of(request, *STARTS) == "started")
    program.start_session()
    program.trust()
    quiet_at_s = static.stat().st_ctime + 3
    wait_until(lambda: time.time() > quiet_at_s, "it was not changed just now")
    with surveyed(program) as count:
        assert count == 3
    return program


def test_of_what_has_not_changed_nothing_is_read_at_the_next_mount(yolofs: Program, static: Path) -> None:
    with surveyed(yolofs) as count:
        assert count == 0
        assert native_binds(yolofs) == [str(static)]


def test_what_was_changed_between_two_mounts_is_read_and_what_leads_elsewhere_is_found(
    yolofs: Program, static: Path
) -> None:
    os.mkfifo(static / "sub/fifo")
    with surveyed(yolofs) as count:
        assert count == 1
        assert native_binds(yolofs) == [f"{static}/other"]


def test_a_directory_in_the_place_of_another_is_surveyed_anew(yolofs: Program, static: Path) -> None:
    times = (static / "sub").stat()
    (static / "sub").rename(static.parent / "aside")
    (static / "sub").mkdir()
    os.mkfifo(static / "sub/fifo")
    for path in (static, static / "sub"):
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with surveyed(yolofs):
        assert native_binds(yolofs) == [f"{static}/other"]


def test_a_link_in_the_place_of_a_directory_is_surveyed_anew(yolofs: Program, static: Path) -> None:
    static.rename(static.parent / "aside")
    static.symlink_to("aside")
    os.mkfifo(static.parent / "aside/sub/fifo")
    with surveyed(yolofs):
        assert native_binds(yolofs) == [f"{static.parent}/aside/other"]  # as rules follow links


def test_rules_made_since_the_survey_was_kept_hold_for_the_next_mount(yolofs: Program, static: Path) -> None:
    yolofs("rule", "deny", static / "sub")
    with surveyed(yolofs) as count:
        assert count == 0
        assert native_binds(yolofs) == [f"{static}/other"]
        assert "Permission denied" in yolofs("run", "ls", static / "sub", code=2).err
        yolofs("rule", "hidden", "**/file")
        assert native_binds(yolofs) == []
        assert yolofs("run", "ls", static).out.split() == ["other", "sub"]


def test_a_file_that_was_changed_by_another_of_its_names_is_shown_as_it_was_changed(
    yolofs: Program, static: Path
) -> None:
    os.link(static / "file", static.parent / "linked")
    with surveyed(yolofs):
        yolofs("rule", "allow", static)
        yolofs("run", "sh", "-c", f"echo staged > {static.parent}/linked")
        yolofs("rule", "unset", static)
    with surveyed(yolofs):
        assert str(static) not in native_binds(yolofs)
        assert yolofs("run", "cat", static / "file").out == "staged\n"


def test_a_survey_that_began_before_the_settings_were_read_ends_if_they_do_not_want_it(yolofs: Program) -> None:
    settings = yolofs.project / ".yolofs.toml"
    settings.write_text(f"{settings.read_text()}[run]\nnative_binds = false\n")
    yolofs.trust()
    with yolofs.mounted("--root", "/"):
        pid = yolofs.daemon["pid"]
        wait_until(lambda: not surveys_of(pid), "no survey is there")
        assert native_binds(yolofs) == []


def test_a_kept_survey_that_others_could_write_is_not_used(yolofs: Program) -> None:
    kept = yolofs.session.parent.parent / os.fsdecode(NATIVE_SURVEY)
    kept.chmod(0o666)
    with surveyed(yolofs) as count:
        assert count == 3
    assert kept.stat().st_mode & 0o777 == 0o600
    with surveyed(yolofs) as count:
        assert count == 0


def test_no_view_shows_the_kept_survey(yolofs: Program) -> None:
    kept = yolofs.session.parent.parent / os.fsdecode(NATIVE_SURVEY)
    assert kept.is_file()
    with surveyed(yolofs):
        assert "No such file" in yolofs("run", "ls", kept, code=2).err
