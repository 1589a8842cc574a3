"""A command that is started in a mount that does not answer ends: it looks at nothing there.

The kernel lets only a signal that ends a process at once end its wait for a mount, and a command
catches Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import COMMAND, with_few_files

pytestmark = pytest.mark.mount
ATTRIBUTES_S = 1.5
"""Longer than the kernel may keep what base has."""
PATIENCE_S = 20


@pytest.fixture(autouse=True, scope="module")
def _in_silence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Be in a directory of a mount whose daemon has stopped: nothing that is started there may
    change it.
    """
    yolofs = with_few_files(tmp_path_factory.mktemp("silence") / "project")
    (yolofs.project / "d").mkdir()
    with yolofs.mounted() as view, pytest.MonkeyPatch.context() as patch:
        patch.chdir(view / "d")  # before it stops: nobody gets there then
        time.sleep(ATTRIBUTES_S)  # the kernel tells nobody when it has forgotten them
        pid = yolofs.daemon["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def started(*words: str) -> tuple[int, str]:
    """Return how a command ends, and what it says."""
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return process.returncode, said


@pytest.mark.parametrize(
    "words",
    [("status",), ("-C", ".", "diff"), ("-C", "..", "log"), ("commit", "--yes"), ("init",), ("-C", "..", "init")],
)
@pytest.mark.some(3)
def test_a_command_started_in_such_a_mount_is_refused(words: tuple[str, ...]) -> None:
    code, said = started(*words)
    assert code == 4, said
    assert "is inside a mount, where no session can be seen" in said


@pytest.mark.parametrize("words", [("status",), ("init",), ("--as-owner", "status")])
@pytest.mark.parametrize("link", ["link", "above/link", "around/link", "above/../link"])
@pytest.mark.some(5)
def test_a_command_started_where_a_link_leads_into_such_a_mount_is_refused(
    tmp_path: Path, link: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "link").symlink_to(os.getcwd())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/link").symlink_to("../link")
    (tmp_path / "above").symlink_to("deep")
    (tmp_path / "around").symlink_to(tmp_path / "above")
    code, said = started("-C", str(tmp_path / link), *words)
    assert code == 4, said
    assert "is inside a mount, where no session can be seen" in said


def test_a_project_is_not_made_where_a_link_leads_into_such_a_mount(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.getcwd())
    code, said = started("-C", str(tmp_path), "init", "link")
    assert code == 4, said
    assert "is inside a mount, where no session can be seen" in said


def test_links_that_lead_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    code, said = started("-C", str(tmp_path / "link"), "status")
    assert code == 1, said
    assert os.strerror(errno.ELOOP) in said


def test_commands_that_need_no_project_work_in_such_a_mount() -> None:
    assert started("--version") == (0, "")
    assert started("sessions")[0] == 0
