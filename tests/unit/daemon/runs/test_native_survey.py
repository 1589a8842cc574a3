"""The process that looks through directories that are to be bound: alone, as the daemon starts
it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.too_deep import steps_down
from yolofs.daemon.runs import native_survey
from yolofs.registry.state_directory import SESSIONS
from yolofs.system import own_names


def test_a_daemon_that_is_gone_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", native_survey.__file__, "-1", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()  # before the interpreter is even up
        assert process.stdin is not None
        process.stdin.write(os.fsencode(tmp_path))
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_the_survey_knows_what_belongs_to_sessions_by_the_same_names_as_a_view() -> None:
    names = ("SESSION_LINK", "JOURNAL", "STATE_MARK", "DISK_STATE", "NATIVE_SURVEY")
    assert [getattr(native_survey, name) for name in names] == [getattr(own_names, name) for name in names]
    assert native_survey.SESSIONS == SESSIONS


def test_whatever_belongs_to_a_session_is_found(tmp_path: Path) -> None:
    (tmp_path / "plain/sessions").mkdir(parents=True)
    for place in ("anywhere", "home/yolofs"):
        (tmp_path / place / "sessions/1").mkdir(parents=True)
        (tmp_path / place / os.fsdecode(own_names.STATE_MARK)).touch()
    (tmp_path / "disk/.yolofs-1000/sessions").mkdir(parents=True)
    (tmp_path / "old/.yolofs").mkdir(parents=True)
    (tmp_path / "old/.yolofs/journal").touch()
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.yolofs").symlink_to("/anywhere")
    survey = native_survey.Survey({})
    found = {Path(os.fsdecode(path)).relative_to(tmp_path) for path in survey.find(os.fsencode(tmp_path))}
    assert found == set(map(Path, ("anywhere", "home/yolofs", "disk/.yolofs-1000", "old/.yolofs", "project/.yolofs")))


def test_a_directory_too_deep_for_a_path_counts_as_an_obstacle(tmp_path: Path) -> None:
    """A program in a sandbox gets there step by step."""
    with steps_down(tmp_path) as steps:
        for _ in steps:
            pass
        os.mkfifo("fifo")
    assert native_survey.Survey({}).find(os.fsencode(tmp_path)) != []


def test_a_directory_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    survey = native_survey.Survey({})
    assert survey.find(os.fsencode(tmp_path / "gone")) == []
    assert survey.find(os.fsencode(tmp_path / "not-there")) == []
    assert survey.to_keep() == {}
