"""A commit whose output goes into a file of the view that it pauses."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.support.program import COMMAND, Program

pytestmark = pytest.mark.mount
MANY = 200
"""So many that the list is longer than what Python keeps back by itself."""


@pytest.mark.parametrize("through", ["tee", "terminal"])
def test_a_command_does_not_wait_for_a_reader_that_writes_into_the_view(yolofs: Program, through: str) -> None:
    """Once nothing more fits between the two, the command would wait for the reader, and that for
    the mount.
    """
    name = "x" * 100
    with yolofs.mounted() as view:
        for number in range(MANY * 5):
            (view / f"{name}{number}").touch()
        command = f"{shlex.join(COMMAND)} commit --yes"
        command += f" | tee {view}/out" if through == "tee" else ""
        words = ["sh", "-c", command] if through == "tee" else ["script", "-qec", command, f"{view}/out"]
        subprocess.run(words, cwd=yolofs.project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)
        assert f"{name}{MANY * 5 - 1}" in (view / "out").read_text()
        assert len(list(yolofs.project.glob(f"{name}*"))) == MANY * 5


@pytest.mark.parametrize("kind", ["commit", "abort"])
def test_output_into_the_view_is_written_when_the_mount_goes_on(yolofs: Program, kind: str) -> None:
    name = "a-name-that-is-long-enough-for-a-long-list-of-"
    with yolofs.mounted() as view:
        for number in range(MANY):
            (view / f"{name}{number}").touch()
        with (view / "out").open("w") as out, (view / "err").open("w") as err:
            done = subprocess.run(
                [*COMMAND, kind, "--yes"],
                cwd=yolofs.project,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                timeout=60,
                check=False,
            )
        if kind == "abort":  # with all else that was staged the two files are gone
            assert done.returncode == 0
            assert not (view / f"{name}1").exists()
            return
        assert done.returncode == 0, (view / "err").read_text()
        assert f"{name}{MANY - 1}" in (view / "out").read_text()
        assert "commit 1 done" in (view / "err").read_text()
        assert len(list(yolofs.project.glob(f"{name}*"))) == MANY
