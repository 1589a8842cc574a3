"""The daemon is killed while files without a name are open: those that got one are there, and
nothing is left of the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.test_kill import Project

pytestmark = [pytest.mark.mount, pytest.mark.timeout(300)]

WORKER = """
import ctypes, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
lost, named = (os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600) for _ in range(2))
os.write(lost, b"l" * 10000)
os.write(named, b"n" * 10000)
assert not libc.linkat(-100, b"/proc/self/fd/%d" % named, -100, b"named", 0x400)
print("linked", flush=True)
sys.stdin.read()
"""


def test_a_kill_keeps_unnamed_files_that_got_a_name_and_nothing_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOLOFS_TRANSPORT", "direct")
    project = Project(tmp_path / "project")
    project.run("mount", "--root", ".")
    command = [sys.executable, "-c", WORKER, str(project.view)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "linked\n"
        files = project.directory / ".yolofs/files"
        assert len([name for _, _, names in os.walk(files) for name in names]) == 2
        project.kill_daemon()
    project.run("mount")
    assert (project.view / "named").read_bytes() == b"n" * 10000
    assert len([name for _, _, names in os.walk(files) for name in names]) == 1
    project.run("unmount")
