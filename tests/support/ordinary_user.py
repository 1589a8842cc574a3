"""Lets root's tests be an ordinary user's, with all that such a user needs, and changes nothing on
the machine.

Run as ``ordinary_user.py ROOM COMMAND...`` in a mount namespace of its own
(:func:`run_as_ordinary_user` does), it gives the namespace

- a ``/dev/fuse`` that everybody may open, if the machine's is root's alone;
- an ``/etc/passwd`` with a line for the user, without which fusermount3 refuses;
- ways to the Python in use and to this checkout, where these lie in closed directories such as
  ``/root``;
- an empty ``/run`` in which everybody may make a directory, if root is to be beside the user;

and then runs the command as that user, who owns ``ROOM/home``, ``ROOM/run`` and ``ROOM/tmp``.  In
``ROOM/others`` lies what belongs to root, in ``ROOM/shared`` what belongs to a group that the user
is not in.  All mounts and processes end with the command.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

USER = "yolofs-test"
UID = GID = 47110
FOREIGN_GROUP = 47111
"""A group that the user is not in."""
CHECKOUT = Path(__file__).parents[2]
OTHERS_VARIABLE = "YOLOFS_TEST_OTHERS"
"""Names the directory in which root's files lie."""
SHARED_VARIABLE = "YOLOFS_TEST_SHARED"
"""Names the directory of :data:`PAIRS` pairs of directories, ``N/base`` and ``N/plain``, that are
equal and belong to a group that the user is not in.
"""
PAIRS = 5
HOME_VARIABLE = "YOLOFS_TEST_HOME"
"""Names the home of the user, for root beside him."""

_MS_NOSUID_NODEV, _MS_BIND, _MS_REC = 2 | 4, 4096, 16384
_libc = ctypes.CDLL(None, use_errno=True)


def run_as_ordinary_user(
    command: Sequence[str | Path], *, cwd: Path = CHECKOUT, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user; needs root.  Its stdout and stderr come together as
    ``stdout``.
    """
    return _run(command, cwd=cwd, timeout_s=timeout_s)


def run_beside_ordinary_user(
    command: Sequence[str | Path], *, cwd: Path = CHECKOUT, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command as root where there is an ordinary user, whose home :data:`HOME_VARIABLE`
    names; else the same.
    """
    return _run(command, "--stay", cwd=cwd, timeout_s=timeout_s)


def _run(command: Sequence[str | Path], *options: str, cwd: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="yolofs-u.") as room:
        unshare = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc")
        return subprocess.run(
            [*unshare, sys.executable, "-P", __file__, *options, room, *map(str, command)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )


def _main(room: Path, command: Sequence[str], *, stays_root: bool) -> None:
    room.chmod(0o755)
    os.chown(room, UID, GID)
    stage = room / "stage"
    stage.mkdir()
    _mount("tmpfs", stage, "tmpfs", 0, "mode=755")
    _open_device(stage)
    _add_user(stage)
    _open_ways(stage, [CHECKOUT, Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent])
    for name in ("home", "run", "tmp"):
        (room / name).mkdir(mode=0o700)
        os.chown(room / name, UID, GID)
    if stays_root:
        # Who works as this user has no other place for runtime, and would leave something in /tmp.
        _mount("tmpfs", Path("/run"), "tmpfs", _MS_NOSUID_NODEV, "mode=1777")
        os.execvpe(command[0], list(command), {**os.environ, HOME_VARIABLE: str(room / "home")})
    _make_others(room / "others")
    for number in range(PAIRS):
        for name in ("base", "plain"):
            _make_shared(room / f"shared/{number}/{name}")
    os.setgroups([])
    os.setresgid(GID, GID, GID)
    os.setresuid(UID, UID, UID)
    os.umask(0o022)
    environment = {
        **os.environ,
        "HOME": str(room / "home"),
        "USER": USER,
        "LOGNAME": USER,
        "XDG_RUNTIME_DIR": str(room / "run"),
        "XDG_STATE_HOME": str(room / "home/.local/state"),
        "TMPDIR": str(room / "tmp"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(room / "tmp/hypothesis"),
        "PYTHONDONTWRITEBYTECODE": "1",
        OTHERS_VARIABLE: str(room / "others"),
        SHARED_VARIABLE: str(room / "shared"),
    }
    os.execvpe(command[0], list(command), environment)


def _open_device(stage: Path) -> None:
    st = os.stat("/dev/fuse")
    if st.st_mode & 0o006 == 0o006:
        return
    os.mknod(stage / "fuse", stat.S_IFCHR | 0o600, st.st_rdev)
    (stage / "fuse").chmod(0o666)
    _bind(stage / "fuse", Path("/dev/fuse"))


def _add_user(stage: Path) -> None:
    text = Path("/etc/passwd").read_text()
    (stage / "passwd").write_text(f"{text.rstrip()}\n{USER}:x:{UID}:{GID}::{stage.parent}/home:/bin/sh\n")
    _bind(stage / "passwd", Path("/etc/passwd"))


def _open_ways(stage: Path, needed: Sequence[Path]) -> None:
    """Cover each closed directory above a needed path with an open one that shows that path."""
    closed: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(needed):
        for above in reversed(path.parents):
            if not above.stat().st_mode & 0o001:
                closed.setdefault(above, []).append(path)
                break
    for number, (above, paths) in enumerate(closed.items()):
        kept: list[Path] = []
        for path in paths:
            kept.append(stage / f"way-{number}-{len(kept)}")
            kept[-1].mkdir()
            _bind(path, kept[-1])
        _mount("tmpfs", above, "tmpfs", _MS_NOSUID_NODEV, "mode=755")
        for path, source in zip(paths, kept, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            _bind(source, path)


def _make_others(others: Path) -> None:
    """Make what an ordinary user meets of other users' files, in every state of permission."""
    others.mkdir(mode=0o755)
    for name, mode in (("listed", 0o755), ("locked", 0o700), ("blind", 0o711), ("sticky", 0o1777), ("open", 0o777)):
        (others / name).mkdir()
        (others / name / "file").write_text(f"in {name}\n")
        (others / name).chmod(mode)
    for name, mode in (
        ("readable", 0o644),
        ("secret", 0o600),
        ("writable", 0o666),
        ("program", 0o711),
        ("sticky/writable", 0o666),
    ):
        (others / name).write_text("as root made it\n")
        (others / name).chmod(mode)
    (others / "link").symlink_to("secret")


def _make_shared(directory: Path) -> None:
    """Make a directory of the user's as ``chown -R $USER:GROUP; chmod g+s`` leaves it, with a file
    of the user's own group and one of root's that everybody may write to.
    """
    for name in ("shared", "old"):
        (directory / name).mkdir(parents=True)
    for name in ("file", "given", "untouched", "own", "roots", "shared/page", "shared/kept", "old/in"):
        (directory / name).write_text(f"base {name}\n")
    for path in (directory, *directory.rglob("*")):
        os.chown(path, UID, FOREIGN_GROUP)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    directory.chmod(0o755)
    os.chown(directory / "own", UID, GID)
    os.chown(directory / "roots", 0, 0)
    (directory / "roots").chmod(0o666)


def _bind(source: Path, target: Path) -> None:
    _mount(str(source), target, None, _MS_BIND | _MS_REC, None)


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str | None) -> None:
    words = (source.encode(), os.fsencode(target), kind.encode() if kind else None)
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() if options else None):
        number = ctypes.get_errno()
        raise OSError(number, f"mount: {os.strerror(number)}", str(target))


if __name__ == "__main__":
    assert shutil.which("fusermount3"), "fusermount3 is not there; scripts/setup.sh installs it"
    stays = sys.argv[1] == "--stay"
    _main(Path(sys.argv[1 + stays]), sys.argv[2 + stays :], stays_root=stays)
