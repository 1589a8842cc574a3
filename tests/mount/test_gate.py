"""Rules on a mounted view: what is let through, what is refused and how."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_points import points
from tests.support.gate_tools import Answers, Mounter, at, book, path_rule, renameat2
from tests.support.in_process import MountedView
from yolofs.access.questions import Decision
from yolofs.rules import NameRule, Rule, RuleState, SuffixRule

pytestmark = pytest.mark.mount


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read()


def opened(flags: int) -> Callable[[str], None]:
    def operation(path: str) -> None:
        os.close(os.open(path, flags))

    return operation


MAP = """
import mmap, os, sys
try:
    with open(sys.argv[1], "rb") as file:
        assert mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:2] == b"#!"
except OSError as error:
    sys.exit(error.errno)
"""


def mapped(path: str) -> None:
    """Have another process map a file: a page fault of ours would wait for us to serve it."""
    code = subprocess.run([sys.executable, "-S", "-c", MAP, path], check=False).returncode
    if code:
        raise OSError(code, os.strerror(code))


def with_fd(path: str, operation: Callable[[int], object]) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        operation(fd)
    finally:
        os.close(fd)


def copied(path: str, fd: int) -> None:
    with open(path, "rb") as file:
        assert os.copy_file_range(file.fileno(), fd, 2) == 2


def new_directory(free: str) -> str:
    os.makedirs(free + ".directory", exist_ok=True)
    return free + ".directory"


def bound(path: str) -> None:
    """Bind a socket, by a path that is not too long for it."""
    directory, name = os.path.split(path)
    fd = os.open(directory, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)


# ---- the table: every state, every operation, wherever the rule stands

FILE_OPERATIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "stat": ("stat", lambda path, _: os.stat(path)),
    "access": ("stat", lambda path, _: os.access(path, os.R_OK) or (_ for _ in ()).throw(OSError(errno.ENOENT, ""))),
    "O_PATH": ("stat", lambda path, _: os.close(os.open(path, os.O_PATH))),
    "read": ("read", lambda path, _: read(path)),
    "mapped for reading": ("read", lambda path, _: mapped(path)),
    "execute": ("read", lambda path, _: subprocess.run([path], check=True)),
    "write": ("write", lambda path, _: opened(os.O_WRONLY)(path)),
    "read and write": ("write", lambda path, _: opened(os.O_RDWR)(path)),
    "append": ("write", lambda path, _: opened(os.O_WRONLY | os.O_APPEND)(path)),
    "open with O_CREAT": ("replace", lambda path, _: opened(os.O_WRONLY | os.O_CREAT)(path)),
    "O_TRUNC": ("write", lambda path, _: opened(os.O_RDONLY | os.O_TRUNC)(path)),
    "truncate": ("write", lambda path, _: os.truncate(path, 1)),
    "fallocate": ("write", lambda path, _: with_fd(path, lambda fd: os.posix_fallocate(fd, 0, 100))),
    "copy_file_range": ("write", lambda path, free: with_fd(path, lambda fd: copied(free, fd))),
    "chmod": ("write", lambda path, _: os.chmod(path, 0o700)),
    "chown": ("write", lambda path, _: os.chown(path, os.getuid(), os.getgid())),
    "utime": ("write", lambda path, _: os.utime(path, ns=(1, 2))),
    "getxattr": ("read", lambda path, _: os.getxattr(path, "user.note")),
    "listxattr": ("stat", lambda path, _: os.listxattr(path)),
    "setxattr": ("write", lambda path, _: os.setxattr(path, "user.note", b"new")),
    "removexattr": ("write", lambda path, _: os.removexattr(path, "user.note")),
    "unlink": ("write", lambda path, _: os.unlink(path)),
    "rename away": ("write", lambda path, free: os.rename(path, free + ".new")),
    "rename onto": ("replace", lambda path, free: os.rename(free, path)),
    "exchange": ("write", lambda path, free: renameat2(free, path, 2)),
    "exchange the other way": ("write", lambda path, free: renameat2(path, free, 2)),
    "link from": ("write", lambda path, free: os.link(path, free + ".new")),
}
DIRECTORY_OPERATIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "stat": ("stat", lambda path, _: os.stat(path)),
    "list": ("list", lambda path, _: os.listdir(path)),
    "chmod": ("write", lambda path, _: os.chmod(path, 0o700)),
    "chown": ("write", lambda path, _: os.chown(path, os.getuid(), os.getgid())),
    "utime": ("write", lambda path, _: os.utime(path, ns=(1, 2))),
    "getxattr": ("read", lambda path, _: os.getxattr(path, "user.note")),
    "setxattr": ("write", lambda path, _: os.setxattr(path, "user.note", b"new")),
    "removexattr": ("write", lambda path, _: os.removexattr(path, "user.note")),
    "rmdir": ("write", lambda path, _: os.rmdir(path)),
    "rename away": ("write", lambda path, free: os.rename(path, free + ".new")),
    "rename onto": ("replace", lambda path, free: os.rename(new_directory(free), path)),
    "exchange": ("write", lambda path, free: renameat2(new_directory(free), path, 2)),
}
NEW_OPERATIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "create": ("create", lambda path, _: opened(os.O_WRONLY | os.O_CREAT | os.O_EXCL)(path)),
    "mkdir": ("create", lambda path, _: os.mkdir(path)),
    "symlink": ("create", lambda path, _: os.symlink("target", path)),
    "mkfifo": ("create", lambda path, _: os.mkfifo(path)),
    "mknod": ("create", lambda path, _: os.mknod(path, stat.S_IFREG | 0o600)),
    "bind": ("create", lambda path, _: bound(path)),
    "link to": ("create", lambda path, free: os.link(free, path)),
    "rename to": ("create", lambda path, free: os.rename(free, path)),
    "rename without replacing": ("create", lambda path, free: renameat2(free, path, 1)),
}
LINK_OPERATIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "readlink": ("stat", lambda path, _: os.readlink(path)),
    "lstat": ("stat", lambda path, _: os.lstat(path)),
    "unlink": ("write", lambda path, _: os.unlink(path)),
    "rename away": ("write", lambda path, free: os.rename(path, free + ".new")),
    "rename onto": ("replace", lambda path, free: os.rename(free, path)),
    "lchown": ("write", lambda path, _: os.lchown(path, os.getuid(), os.getgid())),
    "utime": ("write", lambda path, _: os.utime(path, ns=(1, 2), follow_symlinks=False)),
    "link from": ("write", lambda path, free: os.link(path, free + ".new", follow_symlinks=False)),
}
KINDS = {
    "file": FILE_OPERATIONS,
    "directory": DIRECTORY_OPERATIONS,
    "new": NEW_OPERATIONS,
    "link": LINK_OPERATIONS,
}
PLACES: dict[str, Callable[[Path, str, RuleState], Rule]] = {
    "own": lambda base, name, state: path_rule(base, f"g/p/{name}", state),
    "parent": lambda base, _, state: path_rule(base, "g/p", state),
    "grandparent": lambda base, _, state: path_rule(base, "g", state),
    "name": lambda _, name, state: NameRule(name.encode(), state, "test:1"),
    "suffix": lambda _, name, state: SuffixRule(name[name.index(".") :].encode(), state, "test:1"),
}


def expected(state: RuleState, column: str, place: str) -> int | str:
    """Return the errno of an operation by the table of the design, 0 if it works, "asks" if that
    depends.
    """
    if state is RuleState.HIDDEN:
        is_named = place not in ("parent", "grandparent")  # else the way there ends before
        return errno.EACCES if column in ("create", "replace") and is_named else errno.ENOENT
    if column == "stat":
        return 0
    if column == "list":
        return 0 if state.may_list else errno.EACCES
    free, asks = (state.may_read, state.asks_to_read) if column == "read" else (state.may_write, state.asks_to_write)
    return 0 if free else "asks" if asks else errno.EACCES


def fill(base: Path) -> None:
    (base / "g/p/directory.x").mkdir(parents=True)
    (base / "g/p/file.x").write_text("#!/bin/true\n")
    (base / "g/p/file.x").chmod(0o755)
    (base / "g/p/link.x").symlink_to("nowhere")
    for name in ("directory.x", "file.x"):
        os.setxattr(base / "g/p" / name, "user.note", b"old")


def outcome(operation: Callable[[str, str], Any], path: str, free: str) -> int:
    Path(free).write_text("free")
    try:
        operation(path, free)
    except subprocess.CalledProcessError as error:
        raise AssertionError(str(error)) from error
    except OSError as error:
        return error.errno or errno.EIO
    return 0


TABLE = [
    pytest.param(kind, state, place, id=f"{kind}-{state.value}-{place}")
    for kind, state, place in itertools.product(KINDS, RuleState, PLACES)
]


@pytest.mark.parametrize(("kind", "state", "place"), points(TABLE, "the table of the gate", some=28))
def test_each_state_of_a_rule_decides_each_operation(
    base: Path, mounted: Mounter, kind: str, state: RuleState, place: str
) -> None:
    fill(base)
    name = f"{kind}.x"
    view = mounted(book=book(base, PLACES[place](base, name, state)), asker=(answers := Answers()), xattrs=True)
    free = at(view, "free")
    for label, (column, operation) in KINDS[kind].items():
        want = expected(state, column, place)
        for decision in (Decision.DENY, Decision.ALLOW) if want == "asks" else (Decision.DENY,):
            answers.decision = decision
            answers.asked.clear()
            answers.refusals.clear()
            got = outcome(operation, at(view, f"g/p/{name}"), free)
            should = want if want != "asks" else 0 if decision is Decision.ALLOW else errno.EACCES
            assert got == should, f"{label}, {decision}: {errno.errorcode.get(got, got)}"
            assert bool(answers.asked) == (want == "asks"), label
            if got == errno.EACCES and want != "asks":
                assert [question.state for question in answers.refusals] == [state], label
            if got:
                assert at(view, "free.new") not in view_tree(view), label
            else:
                view.abort()
    assert (base / "g/p/file.x").read_text() == "#!/bin/true\n"


def view_tree(view: MountedView) -> set[str]:
    top = os.fsdecode(view.mountpoint)
    return {os.path.join(top, name) for top, names, files in os.walk(top) for name in (*names, *files)}
