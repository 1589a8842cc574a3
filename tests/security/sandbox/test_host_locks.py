"""No lock that a sandbox takes on what it has straight from the disk holds up anybody on the
host.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.sandbox.going import PYTHON, going
from tests.support.binds import native_binds
from tests.support.program import Program, wait_until

pytestmark = pytest.mark.mount

HOLD = """
import fcntl, os, struct, sys, time
held = []
for path in sys.argv[1:]:
    for kind in ("flock", "fcntl", "ofd"):
        fd = os.open(path, os.O_RDONLY)
        held.append(fd)
        if kind == "flock":
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif not os.path.isdir(path):
            lock = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0)
            F_OFD_SETLK = 37
            fcntl.fcntl(fd, fcntl.F_SETLK if kind == "fcntl" else F_OFD_SETLK, lock)
print("ready", flush=True)
time.sleep(611)
"""


@pytest.fixture(scope="module")
def static(shared: Program) -> Iterator[Path]:
    """Return a directory that comes straight from the disk, with a script in it that locks
    itself.
    """
    path = shared.project.parent / "locked"
    (path / "sub").mkdir(parents=True)
    script = path / "script"
    script.write_text('#!/bin/sh\n[ "$LOCKED" ] || LOCKED=1 exec flock --wait 30 "$0" "$0"\necho ran\n')
    script.chmod(0o755)
    shared("rule", "read-only", f"{path}/**")
    wait_until(lambda: str(path) in native_binds(shared), "the directory is bound")
    yield path
    shared("rule", "unset", f"{path}/**")


@contextlib.contextmanager
def held(yolofs: Program, *paths: Path | str) -> Iterator[None]:
    """Have a sandbox hold each kind of lock on some paths."""
    with going(yolofs, PYTHON, "-c", HOLD, *map(str, paths)):
        yield


def test_a_script_of_the_host_that_locks_itself_runs(yolofs: Program, static: Path) -> None:
    with held(yolofs, static / "script"):
        started = time.monotonic()
        assert subprocess.run([static / "script"], capture_output=True, check=True, timeout=60).stdout == b"ran\n"
        assert time.monotonic() - started < 20


def test_the_host_gets_each_kind_of_lock(yolofs: Program, static: Path) -> None:
    with held(yolofs, static / "script", static, static / "sub"):
        for path in (static / "script", static, static / "sub"):
            fd = os.open(path, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(fd)
        with (static / "script").open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_host_gets_locks_on_programs_and_what_every_program_opens(yolofs: Program) -> None:
    """What a session has without any rule of its own; with the host's locks only tried."""
    bound = native_binds(yolofs)
    assert "/usr" in bound
    paths = ["/usr/bin/env", "/usr", "/usr/bin"]
    paths += [path for path in ("/etc/ld.so.cache", "/etc/locale.alias") if path in bound]
    with held(yolofs, *paths):
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(fd)


def test_a_lock_of_the_host_does_not_hold_up_a_sandbox(yolofs: Program, static: Path) -> None:
    with (static / "script").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert yolofs("run", "--no-review", "flock", "-n", static / "script", "echo", "free").out == "free\n"


def test_locks_hold_within_a_run(yolofs: Program, static: Path) -> None:
    """A program in a run is not to be surprised: what two of its processes lock is locked."""
    script = 'exec 9< "$1"; flock -n 9 && flock -n "$1" true; echo $?; flock -u 9; flock -n "$1" echo free'
    assert yolofs("run", "--no-review", "sh", "-c", script, "x", static / "script").out == "1\nfree\n"


def test_nothing_that_a_sandbox_has_from_the_disk_is_a_file_of_the_disk(yolofs: Program, static: Path) -> None:
    """Whatever is bound lies on an overlay, but for links and the restricted socket, which nobody
    can open, and for the session's own directories for temporary files.
    """
    disks = set()
    for line in yolofs("run", "--no-review", "cat", "/proc/self/mountinfo").out.splitlines():
        fields, _, rest = line.partition(" - ")
        place = fields.split(" ")[4]
        if rest.split(" ")[0] not in ("overlay", "fuse.yolofs", "proc", "devpts", "devtmpfs", "tmpfs"):
            disks.add(place)
    disks -= {"/tmp", "/var/tmp"}
    assert [path for path in disks if not os.path.islink(path) and not path.endswith("/agent.sock")] == []


SEES = """
import os, sys, time
static, until = sys.argv[1], time.monotonic() + 30
assert not os.path.exists(f"{static}/sub/new") and open(f"{static}/sub/replaced").read() == "old"
print("ready", flush=True)
while time.monotonic() < until:
    if os.path.exists(f"{static}/sub/new") and open(f"{static}/sub/replaced").read() == "new":
        print("seen", open(f"{static}/sub/written").read())
        break
    time.sleep(0.05)
"""


def test_what_the_host_makes_and_replaces_meanwhile_is_seen(yolofs: Program, static: Path) -> None:
    """A program, for example, that is installed since the command asked for it."""
    for name in ("replaced", "written"):
        (static / "sub" / name).write_text("old")
    with going(yolofs, PYTHON, "-c", SEES, str(static)) as run:
        (static / "sub/written").write_text("new")
        (static / "sub/new").write_text("new")
        (static / "sub/replaced.new").write_text("new")
        (static / "sub/replaced.new").rename(static / "sub/replaced")
        assert run.end()[:2] == (0, "seen new\n")
