"""The sandbox of an ordinary user, of root in a container without user namespaces, and where there can be none.

The tests of the sandbox themselves are run there, so that each place protects from the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import COMMAND
from tests.mount.ordinary_user import CHECKOUT, run_as_ordinary_user

pytestmark = [
    pytest.mark.mount,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
]

TIMEOUT_S = 800
FORBID = "echo 0 > /proc/sys/user/max_user_namespaces; ! unshare --user true 2> /dev/null || exit 99; "
"""Forbids user namespaces in the one where it is run; no other one is touched."""


def as_ordinary_user(*command: str) -> subprocess.CompletedProcess[str]:
    return run_as_ordinary_user(command, timeout_s=TIMEOUT_S)


def as_root_without_user_namespaces(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as in a container: root may mount, and can make no user namespace."""
    container = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    return subprocess.run(
        [*container, "sh", "-c", f'{FORBID} exec "$@"', "x", *command],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


Somewhere = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("somewhere", [as_ordinary_user, as_root_without_user_namespaces])
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/sandbox/test_escapes.py", "-k", "keeps_in or no_stream or descriptor"),
        ("tests/sandbox/test_run.py", "-k", "exit_code or streams or summary or refused or killed or background"),
        ("tests/sandbox/test_native_binds.py", "-k", "straight_from_base or read_only or leads_elsewhere"),
        (
            "tests/security/sandbox/test_first_process.py",
            "-k",
            "not (terminal or some_time_after or ten_seconds)",
        ),
        ("tests/security/sandbox/test_socket_families.py",),
        ("tests/security/sandbox/test_host_locks.py",),
        ("tests/sandbox/test_parallel_runs.py", "-k", "three_runs or both or own_refusals or in_no_run"),
    ],
    ids=["escapes", "runs", "native-binds", "first-process", "sockets", "locks", "parallel-runs"],
)
def test_it_is_the_same_sandbox(somewhere: Somewhere, tests: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as own:  # in pytest's own directories others clean up meanwhile
        os.chmod(own, 0o777)
        options = ("-q", "-p", "no:cacheprovider", "-rs", f"--basetemp={own}/tmp")
        done = somewhere(sys.executable, "-P", "-m", "pytest", *options, *tests)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout
    assert "skipped" not in done.stdout, done.stdout


def test_an_ordinary_user_without_user_namespaces_is_told_and_nothing_is_run() -> None:
    """The view is mounted outside, as fusermount3 needs what an ordinary user's namespace does not have."""
    yolofs = " ".join(COMMAND)
    script = f"""
        mkdir "$HOME/project" && cd "$HOME/project" && {yolofs} init && {yolofs} mount
        unshare --user --map-current-user --keep-caps sh -c '{FORBID} exec {yolofs} run touch made'
        echo "exit code $?"; {yolofs} status; {yolofs} unmount; ls
    """
    done = as_ordinary_user("sh", "-c", script)
    assert "exit code 14\n" in done.stdout
    assert "bubblewrap cannot make the sandbox here" in done.stdout
    assert "hint: as root: sysctl user.max_user_namespaces=" in done.stdout
    assert "no changes\n" in done.stdout
    assert "made\n" not in done.stdout


def test_nothing_of_it_is_left_on_the_machine() -> None:
    limit = Path("/proc/sys/user/max_user_namespaces")
    before = limit.read_text()
    assert as_root_without_user_namespaces("cat", str(limit)).stdout == "0\n"
    assert limit.read_text() == before
