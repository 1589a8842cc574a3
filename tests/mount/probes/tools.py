"""How a probe sets up, does and tells what it does."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
F_OFD_SETLK = 37
NOBODY = 65534
OTHER = 12345
"""A user and group that nothing here belongs to."""


def prepare(root: Path) -> None:
    """Fill a directory with what the probes work on."""
    (root / "f").write_bytes(bytes(range(256)) * 40)
    (root / "empty").write_bytes(b"")
    (root / "d/e").mkdir(parents=True)
    (root / "d/x").write_bytes(b"in d\n")
    (root / "d/e/y").write_bytes(b"in e\n")
    (root / "hollow").mkdir()
    (root / "twin").write_bytes(b"of two names\n")
    os.link(root / "twin", root / "d/twin")
    (root / "link").symlink_to("f")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    with (root / "sparse").open("wb") as file:
        file.write(b"head")
        file.seek(3 << 20)
        file.write(b"middle")
        file.truncate(8 << 20)
    (root / "program").write_text("#!/bin/sh\necho ran with $1\n")
    (root / "program").chmod(0o755)
    shutil.copy2("/bin/sleep", root / "sleep")


def outcome(operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what an operation returns, or the name of its errno."""
    try:
        result = operation(*args, **options)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return result.decode("latin-1") if isinstance(result, bytes) else result


def called(name: str, *args: Any) -> Any:
    """Call a function of libc; return its result, or the name of its errno."""
    result = getattr(libc, name)(*args)
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result


def facts(path: str | int) -> dict[str, Any]:
    """Return what stat(2) tells and any two directories agree on."""
    st = os.fstat(path) if isinstance(path, int) else os.lstat(path)
    size = st.st_size if not stat.S_ISDIR(st.st_mode) else 0
    return {"mode": oct(st.st_mode), "nlink": st.st_nlink, "uid": st.st_uid, "gid": st.st_gid, "size": size}


def content(path: str) -> str:
    """Return what is in a file."""
    return Path(path).read_bytes().decode("latin-1")


def opened(path: str, flags: int, mode: int = 0o644) -> str:
    """Open and close; return "open", or the name of the errno."""
    try:
        os.close(os.open(path, flags, mode))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "open"


class Child:
    """A forked process that runs ``work`` and sends its result; ``go`` lets it begin its next
    step.
    """

    def __init__(self, work: Callable[[Callable[[], None]], Any]) -> None:
        self._read, write = os.pipe()
        self._steps, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            os.close(self._steps)
            return
        os.close(self._go)

        def wait() -> None:
            os.write(write, b"\n")
            os.read(self._steps, 1)

        try:
            os.write(write, json.dumps(work(wait)).encode() + b"\n")
        finally:
            os._exit(0)

    def until_it_waits(self) -> None:
        """Wait for the child to be at its next step."""
        assert os.read(self._read, 1) == b"\n"

    def go(self) -> None:
        """Let it begin the step."""
        os.write(self._go, b"x")

    def result(self) -> Any:
        """Return what its work returned."""
        data = b""
        while chunk := os.read(self._read, 65536):
            data += chunk
        os.waitpid(self.pid, 0)
        return json.loads(data)


def as_other(work: Callable[[], Any], uid: int = OTHER, gid: int = OTHER) -> Any:
    """Do something as another user, in this directory; needs root."""

    def step(_: Callable[[], None]) -> Any:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        return work()

    return Child(step).result()


def main(probes: dict[str, Any]) -> None:
    """Run the probe that the command line names, and print what it saw."""
    print(json.dumps(probes[sys.argv[1]]()))  # noqa: T201 - what the test reads
