"""A login has given the user ``/run/user/UID``: runs start, and see nothing of what is in there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import COMMAND, Program

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can have such a directory made, where there is none"),
]
LOGIN = f"/run/user/{os.geteuid()}"
SETUP = f"mount -t tmpfs none /run && mkdir -p {LOGIN} && chmod 700 {LOGIN} && echo secret > {LOGIN}/keyring"


def logged_in(project: Path, script: str, runtime: str = LOGIN) -> subprocess.CompletedProcess[str]:
    """Carry out a shell script in a project, in which ``y`` is yolofs, after a login."""
    functions = f'y() {{ {" ".join(COMMAND)} "$@"; }}'
    end = "code=$?; y unmount --force 2> /dev/null; exit $code"
    text = f"{SETUP}\n{functions}\n({script}\n)\n{end}"
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", text],
        cwd=project,
        env=os.environ | {"XDG_RUNTIME_DIR": runtime, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    Program(path).start_session()
    return path


@pytest.mark.some(1)
@pytest.mark.parametrize("runtime", [LOGIN, "/run", ""], ids=["there", "elsewhere", "unknown"])
def test_a_run_starts_and_has_the_directory_empty_and_for_itself(project: Path, runtime: str) -> None:
    done = logged_in(project, f"y run -- sh -c 'cat {LOGIN}/*; echo own > {LOGIN}/made && cat {LOGIN}/made'", runtime)
    assert (done.returncode, done.stdout) == (0, "own\n"), done.stderr
    assert "secret" not in done.stderr


def test_a_view_without_a_sandbox_shows_the_login_directory_empty(project: Path) -> None:
    done = logged_in(project, f'cd "$(y mount)" && ls -A .{LOGIN} && ! touch .{LOGIN}/made')
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Permission denied" in done.stderr


def test_runs_start_without_a_login_directory_that_a_rule_hides(project: Path) -> None:
    script = f"y rule hidden {LOGIN} > /dev/null && y run -- sh -c 'ls -d {LOGIN}; echo started'"
    done = logged_in(project, script, "/run")
    assert done.stdout == "started\n", done.stderr


def test_a_run_whose_socket_lies_where_a_rule_hides_it_says_so(project: Path) -> None:
    done = logged_in(project, f"y rule hidden {LOGIN} > /dev/null && y run -- true")
    assert done.returncode == 14
    assert f"yolofs: the sandbox needs {LOGIN}/yolofs for its socket, and the view does not show that" in done.stderr
    assert f"yolofs rule explain {LOGIN}/yolofs" in done.stderr
