"""Without /dev/fuse tests that mount are skipped, unless YOLOFS_REQUIRE_MOUNT=1 makes that a
failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.required import do_without
from tests.support.terminal import Terminal

TESTS = Path(__file__).parents[1]
UNMARKED = "from tests.support import may_mount\n\n\ndef test_it() -> None:\n    may_mount.check()\n"
"""What a test does that mounts and does not say so."""
SAMPLE = "import pytest\n\n\n@pytest.mark.mount\ndef test_it() -> None:\n    pass\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests mount and whose machine has no FUSE."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['mount']\n")
    (tmp_path / "tests").mkdir()
    for name in (
        "conftest.py",
        "support/leftovers.py",
        "support/model_steps.py",
        "support/fork_server.py",
        "support/forked.py",
        "support/seed.py",
        "support/elsewhere.py",
        "support/fault_points.py",
        "support/huge_pages.py",
        "support/kept_survey.py",
        "support/may_mount.py",
        "support/memory_disk.py",
        "support/background_removal.py",
        "support/session_cleaning.py",
        "support/signals.py",
        "support/unsynced.py",
        "support/spread.py",
        "support/vfork.py",
        "support/ordinary_user.py",
    ):
        (tmp_path / "tests" / name).parent.mkdir(exist_ok=True)
        shutil.copy(TESTS / name, tmp_path / "tests" / name)
    conftest = tmp_path / "tests/conftest.py"
    text = conftest.read_text()
    assert text.count('"/dev/fuse"') == 1
    conftest.write_text(text.replace('"/dev/fuse"', '"/dev/no-fuse-here"'))
    (tmp_path / "tests/test_sample.py").write_text(SAMPLE)
    return tmp_path


def run(project: Path, require: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--import-mode=importlib"]
    environment = {**os.environ, "YOLOFS_REQUIRE_MOUNT": require}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_without_fuse_a_test_that_mounts_is_skipped_with_the_reason(project: Path) -> None:
    done = run(project, "")
    assert done.returncode == 0
    assert "1 skipped" in done.stdout
    assert "/dev/fuse cannot be opened: No such file or directory" in done.stdout


def test_a_required_mount_turns_the_skip_into_a_failure(project: Path) -> None:
    done = run(project, "1")
    assert done.returncode == 1
    assert "YOLOFS_REQUIRE_MOUNT=1, but /dev/fuse cannot be opened" in done.stdout
    assert "skipped" not in done.stdout


def test_a_test_that_mounts_and_is_not_marked_so_fails_everywhere(project: Path) -> None:
    (project / "tests/test_sample.py").write_text(UNMARKED)
    done = run(project, "")
    assert done.returncode == 1
    assert "tests/test_sample.py::test_it mounts, so it needs @pytest.mark.mount" in done.stdout


def test_a_terminal_in_which_a_command_would_mount_needs_the_mark_too(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"mounts, so it needs @pytest\.mark\.mount"):
        Terminal(tmp_path, ["run", "true"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, of whom it is required")
def test_a_required_mount_makes_a_test_without_one_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOLOFS_REQUIRE_MOUNT", "1")
    with pytest.raises(pytest.fail.Exception, match="YOLOFS_REQUIRE_MOUNT=1, but no disk"):
        do_without("no disk")
    monkeypatch.setenv("YOLOFS_REQUIRE_MOUNT", "")
    with pytest.raises(pytest.skip.Exception, match="no disk"):
        do_without("no disk")


def test_no_test_skips_by_itself_where_it_cannot_mount() -> None:
    skipping = re.compile(r"pytest\.skip\([^\n]*(mounting is|second device|loop device)")
    paths = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert len(paths) > 100
    assert [path for path in paths if skipping.search(path.read_text())] == []
