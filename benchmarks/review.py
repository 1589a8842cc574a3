"""``yolofs review`` over many changes, at a terminal: how long to the first screen, and how long a
key takes.

``python -m benchmarks.review [CHANGES]`` prints the figures.  The session is made without a mount,
by the view's own operations; what is measured is the command as it is started, up to the bytes that
the terminal gets.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from yolofs.overlay import Overlay
from yolofs.overlay.inodes import Inode
from yolofs.session.session import Session, SessionAccess

CHANGES = 20_000
KEYS = 100
ROUNDS = 7
_QUIET_S = 2.0
_DEADLINE_S = 60.0
_IN_EACH = 100
_SHOWN = b"f19.py"
_HEARS = b"\x1b[?2004h"
"""prompt_toolkit takes the terminal."""
_TEXT = b"import os\n\n\ndef f(x):\n    return x + 1\n\n\nprint(f(1))\n"


def main() -> None:
    """Print the figures."""
    changes = int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES
    with tempfile.TemporaryDirectory(prefix="yolofs-review-") as directory:
        os.environ["XDG_STATE_HOME"] = os.path.join(directory, "state")
        project = Path(directory, "project")
        _build(project, changes)
        _stage(project, changes)
        for size in ((80, 24), (60, 15), (200, 50)):
            print(f"{changes:,} changes, {size[0]}x{size[1]}:")
            for name, figure in measure(project, size).items():
                print(f"  {name}: {figure * 1000:.0f} ms")
        ratios = [first_screen(project, (80, 24)) / nothing() for _ in range(ROUNDS)]
        print(f"the first screen, as a multiple of `python -c pass`: {statistics.median(ratios):.1f}")


def _build(project: Path, changes: int) -> None:
    for number in range(changes):
        file = _file(project, number)
        if number % _IN_EACH == 0:
            file.parent.mkdir(parents=True)
        file.write_bytes(_TEXT)


def _file(project: Path, number: int) -> Path:
    return project / f"src/m{number // _IN_EACH:04}/f{number % _IN_EACH:02}.py"


def _stage(project: Path, changes: int) -> None:
    """Change each file; one in twenty is removed."""
    Session.create(bytes(project))
    with Session.open(bytes(project), SessionAccess.WRITE, root=bytes(project)) as session:
        state = session.present()
        overlay = Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from)
        try:
            for number in range(changes):
                _change(overlay, os.fsencode(_file(project, number).relative_to(project)), is_removed=number % 20 == 19)
        finally:
            overlay.close()
        session.write_checkpoint()  # as a daemon does every 20,000 records


def _change(overlay: Overlay, path: bytes, *, is_removed: bool) -> None:
    *directories, name = path.split(b"/")
    held = [overlay.root]
    for directory in directories:
        held.append(_look(overlay, held[-1], directory))
    if is_removed:
        overlay.unlink(held[-1], name)
    else:
        held.append(_look(overlay, held[-1], name))
        overlay.open(held[-1], os.O_WRONLY)
        overlay.write(held[-1], 0, _TEXT.replace(b"x + 1", b"x + 2"))
        overlay.release(held[-1], writer=True)
    for inode in reversed(held[1:]):
        overlay.forget(inode.number, 1)


def _look(overlay: Overlay, directory: Inode, name: bytes) -> Inode:
    found = overlay.lookup(directory, name)
    assert found is not None
    return found[0]


def nothing() -> float:
    """Return how long Python takes to do nothing, in seconds: what the machine is good for now."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=_environment())
    return time.perf_counter() - start


def first_screen(project: Path, size: tuple[int, int]) -> float:
    """Return how long it takes from the start to the first screen with changes, in seconds."""
    start = time.perf_counter()
    with _review(project, size) as (_, master):
        return _until(master, _SHOWN) - start


def measure(project: Path, size: tuple[int, int]) -> dict[str, float]:
    """Return how long things take, in seconds."""
    start = time.perf_counter()
    with _review(project, size) as (process, master):
        figures = {"the first screen, with changes": _until(master, _SHOWN) - start}
        figures["  of which CPU"] = _cpu_s(process.pid)
        figures["until keys are heard"] = _until(master, _HEARS) - start
        early = [_key(master, b"j") for _ in range(KEYS // 4)]
        figures["moving while all is compared, median"] = statistics.median(early)
        figures["moving while all is compared, the longest"] = max(early)
        _quiet(master)
        moves = [_key(master, b"j") for _ in range(KEYS)]
        figures["moving down, median"] = statistics.median(moves)
        figures["moving down, 95 of 100"] = sorted(moves)[KEYS * 95 // 100]
        pages = [_key(master, b"\x1b[6~") for _ in range(20)]
        figures["a page down, median"] = statistics.median(pages)
        figures["to the end"] = _key(master, b">")
        figures["accepting everything"] = _key(master, b"a")
        return figures


@contextlib.contextmanager
def _review(project: Path, size: tuple[int, int]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a review at a terminal; give it, and the terminal's other end."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    command = [sys.executable, "-P", "-m", "yolofs.cli.main", "review"]
    process = subprocess.Popen(
        command, cwd=project, env=_environment(), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _environment() -> dict[str, str]:
    """Return an environment in which Python keeps what it has compiled, as any installed program
    does.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TERM": "xterm-256color"}


def _until(master: int, text: bytes) -> float:
    """Read until some text is shown; return when that was."""
    seen = b""
    deadline = time.perf_counter() + _DEADLINE_S
    while text not in seen:
        if not select.select([master], [], [], deadline - time.perf_counter())[0]:
            raise TimeoutError(f"{text!r} is not shown, but {seen[-2000:]!r}")
        seen += os.read(master, 1 << 16)
    return time.perf_counter()


def _cpu_s(pid: int) -> float:
    """Return how much CPU time a process has had: what a wait would be on a machine that does
    nothing else.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _quiet(master: int) -> None:
    while select.select([master], [], [], _QUIET_S)[0]:
        os.read(master, 1 << 16)


def _key(master: int, key: bytes) -> float:
    """Return how long it takes until something of what a key does is shown."""
    start = time.perf_counter()
    os.write(master, key)
    select.select([master], [], [], _DEADLINE_S)
    end = time.perf_counter()
    os.read(master, 1 << 16)
    _settle(master)
    return end - start


def _settle(master: int) -> None:
    while select.select([master], [], [], 0.05)[0]:
        os.read(master, 1 << 16)


if __name__ == "__main__":
    main()
