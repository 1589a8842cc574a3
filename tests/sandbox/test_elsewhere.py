"""The sandbox on a machine that allows none: whoever tries it leaves nothing behind.

That it is the same for an ordinary user, and for root in a container, tests/support/elsewhere.py
shows.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.elsewhere import FORBID, as_root_without_user_namespaces
from tests.support.ordinary_user import run_as_ordinary_user
from tests.support.program import COMMAND

pytestmark = [
    pytest.mark.mount,
    pytest.mark.disk,  # in a user namespace only what lies at the top may be root's
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
]


def test_an_ordinary_user_without_user_namespaces_is_told_and_nothing_is_run() -> None:
    """The view is mounted outside, as fusermount3 needs what an ordinary user's namespace does not
    have.
    """
    yolofs = " ".join(COMMAND)
    script = f"""
        mkdir "$HOME/project" && cd "$HOME/project" && {yolofs} init && {yolofs} mount
        unshare --user --map-current-user --keep-caps sh -c '{FORBID} exec {yolofs} run touch made'
        echo "exit code $?"; {yolofs} status; {yolofs} unmount; ls
    """
    done = run_as_ordinary_user(["sh", "-c", script], timeout_s=100)
    assert "exit code 14\n" in done.stdout
    assert "bubblewrap cannot make the sandbox here" in done.stdout
    assert "hint: as root: sysctl user.max_user_namespaces=" in done.stdout
    assert "no changes\n" in done.stdout
    assert "made\n" not in done.stdout


def test_a_run_without_user_namespaces_leaves_nothing_on_the_machine() -> None:
    limit = Path("/proc/sys/user/max_user_namespaces")
    before = limit.read_text()
    assert as_root_without_user_namespaces(["cat", str(limit)], timeout_s=60).stdout == "0\n"
    assert limit.read_text() == before
