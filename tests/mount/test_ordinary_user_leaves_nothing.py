"""The ordinary user as whom root runs tests (tests/support/elsewhere.py) leaves the machine as it
was.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.ordinary_user import CHECKOUT, run_as_ordinary_user

pytestmark = [pytest.mark.mount, pytest.mark.root_only]


def test_a_run_as_the_ordinary_user_leaves_nothing_on_the_machine() -> None:
    def machine() -> tuple[object, ...]:
        return Path("/etc/passwd").read_text(), os.stat("/dev/fuse").st_mode, os.stat(CHECKOUT).st_dev

    before = machine()
    done = run_as_ordinary_user(["sh", "-c", "id -un; test -w /dev/fuse && echo device; pwd"], timeout_s=60)
    assert (done.returncode, done.stdout.split()) == (0, ["yolofs-test", "device", str(CHECKOUT)])
    assert machine() == before
    assert "yolofs-u." not in Path("/proc/self/mountinfo").read_text()
