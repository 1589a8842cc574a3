"""Everything also as an ordinary user: tests of the view, run by one whom root makes for the purpose.

An ordinary user runs those tests directly.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.mount.ordinary_user import CHECKOUT, run_as_ordinary_user

pytestmark = [
    pytest.mark.mount,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.getuid() != 0, reason="this run is an ordinary user's already"),
]


def run_tests(*words: str) -> None:
    """Run tests as an ordinary user; they have to pass, and none may be left out."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *words]
    done = run_as_ordinary_user(command, timeout_s=800)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout
    assert "skipped" not in done.stdout, done.stdout


def test_the_whole_path_and_what_is_refused() -> None:
    run_tests("tests/mount/test_ordinary_user.py")


def test_the_view_as_a_plain_directory() -> None:
    run_tests("tests/mount/test_posix_compared.py", "-k", "test_by_anybody and base")


def test_real_programs() -> None:
    run_tests("tests/mount/test_real_programs.py", "-k", "plain_directory and (git or wal or rsync)")


def test_staging_snapshots_and_travel() -> None:
    run_tests("tests/mount/test_snapshot_and_travel.py", "tests/mount/test_host_changes.py")


def test_commits_of_a_part() -> None:
    run_tests("tests/cli/test_partial_commit.py")


def test_rules() -> None:
    run_tests("tests/mount/test_gate.py", "tests/mount/test_gate_paths.py", "tests/mount/test_gate_refusals.py")


def test_settings_of_a_tree() -> None:
    run_tests("tests/security/trust", "-k", "cloned or tightens or inside or remembered")


def test_nothing_of_it_is_left_on_the_machine() -> None:
    def machine() -> tuple[object, ...]:
        return Path("/etc/passwd").read_text(), os.stat("/dev/fuse").st_mode, os.stat(CHECKOUT).st_dev

    before = machine()
    done = run_as_ordinary_user(["sh", "-c", "id -un; test -w /dev/fuse && echo device; pwd"], timeout_s=60)
    assert (done.returncode, done.stdout.split()) == (0, ["yolofs-test", "device", str(CHECKOUT)])
    assert machine() == before
    assert "yolofs-u." not in Path("/proc/self/mountinfo").read_text()
