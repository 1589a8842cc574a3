"""A commit puts store inodes themselves into base, but never one that a program in the mount could
go on writing to.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.program import Program, connected
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.paths import StoreIno
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Tree

pytestmark = pytest.mark.mount

HOLDER = """
import mmap, os, sys
where = sys.argv[1]
os.chdir(where)

def made(name, flags=os.O_RDWR):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"as it was staged\\n" * 300)
    os.close(fd)
    return os.open(name, flags)

def again(fd, flags):
    return os.open(f"/proc/self/fd/{fd}", flags)

written = made("new/written")
appended = made("new/appended", os.O_WRONLY | os.O_APPEND)
read = made("new/read", os.O_RDONLY)
path = made("new/path", os.O_PATH)
kept = made("new/duplicated")
duplicated = os.dup(kept)
os.close(kept)
fd = made("new/mapped")
mapped = mmap.mmap(fd, 4096)
mapped[:4] = b"MAP1"
os.close(fd)
cut = made("new/cut")
changed = made("new/changed")
linked = made("new/linked")
os.link("new/linked", "new/other name")
renamed = made("new/before")
os.rename("new/before", "new/renamed")
removed = made("new/removed")
os.unlink("new/removed")
one = made("new/child")
print("ready", flush=True)
for line in sys.stdin:
    os.pwrite(written, b"WRITTEN AFTER", 0)
    os.write(appended, b"APPENDED AFTER")
    os.pwrite(again(read, os.O_WRONLY), b"THROUGH READ", 0)
    os.pwrite(again(path, os.O_WRONLY), b"THROUGH PATH", 0)
    os.pwrite(duplicated, b"DUPLICATED", 0)
    mapped[:4] = b"MAP2"
    mapped.flush()
    os.ftruncate(cut, 3)
    os.fchmod(changed, 0o600)
    os.utime(changed, ns=(1, 1))
    os.pwrite(linked, b"LINKED", 0)
    os.pwrite(renamed, b"RENAMED", 0)
    os.pwrite(removed, b"REMOVED", 0)
    os.pwrite(one, b"CHILD", 0)
    for fd in (written, appended, duplicated, cut, changed, linked, renamed, one):
        os.fsync(fd)
    print("done", flush=True)
"""
STAGED = b"as it was staged\n" * 300


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    program = Program(project)
    program.start_session()
    return program


@contextmanager
def holder(view: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a program that makes files in the mount and keeps them open."""
    (view / "new").mkdir()
    words = [sys.executable, "-c", HOLDER, str(view)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def write_on(process: subprocess.Popen[str]) -> None:
    """Have the program write to all that it has open."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def everything(directory: Path) -> dict[str, tuple[object, ...]]:
    """Return all of base: content, attributes and the time of the last change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(directory.rglob("*")):
        st = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        looks = (st.st_ino, st.st_mode, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
        found[str(path.relative_to(directory))] = (*looks, content, tuple(os.listxattr(path, follow_symlinks=False)))
    return found


def store_inodes(yolofs: Program) -> dict[str, int]:
    """Return the inode numbers, on the disk, of the staged files by their names."""
    with Session.open(os.fsencode(yolofs.project), SessionAccess.READ) as session:
        tree: Tree = session.state()
        return {
            os.fsdecode(entry.name): os.lstat(session.store.path(ino)).st_ino
            for ino, staged in tree.staged.items()
            for entry in staged.names
        }


def numbers_in_store(yolofs: Program) -> set[int]:
    """Return the inode numbers of all files in the store."""
    return {path.lstat().st_ino for path in (yolofs.session / "files").rglob("*") if path.is_file()}


def test_what_programs_have_open_is_written_to_the_store_afterwards_and_never_to_base(yolofs: Program) -> None:
    with yolofs.mounted() as view, holder(view) as process:
        (view / "new/closed").write_bytes(STAGED)
        with connected(yolofs) as client:
            client.flush()
        staged = store_inodes(yolofs)
        yolofs("commit", "--yes")
        base = yolofs.project / "new"
        now = {path.name: path.stat().st_ino for path in base.iterdir()}
        assert {name for name in now if now[name] == staged[name]} == {"closed", "path"}
        assert (base / "closed").stat().st_nlink == 1
        assert staged["closed"] not in numbers_in_store(yolofs)
        before = everything(base)
        write_on(process)
        with connected(yolofs) as client:
            client.flush()
        assert everything(base) == before
        assert (view / "new/written").read_bytes().startswith(b"WRITTEN AFTER")
        assert (view / "new/appended").read_bytes() == STAGED + b"APPENDED AFTER"
        assert (view / "new/read").read_bytes().startswith(b"THROUGH READ")
        assert (view / "new/path").read_bytes().startswith(b"THROUGH PATH")
        assert (view / "new/duplicated").read_bytes().startswith(b"DUPLICATED")
        assert (view / "new/mapped").read_bytes().startswith(b"MAP2")
        assert (view / "new/cut").read_bytes() == STAGED[:3]
        assert (view / "new/changed").stat().st_mode & 0o777 == 0o600
        assert (view / "new/other name").read_bytes().startswith(b"LINKED")
        assert (view / "new/renamed").read_bytes().startswith(b"RENAMED")
        assert (view / "new/child").read_bytes().startswith(b"CHILD")
        assert not (view / "new/removed").exists()
        assert everything(base) == before
    assert everything(base) == before


def test_writes_to_files_opened_after_a_commit_do_not_reach_base(yolofs: Program) -> None:
    """The daemon keeps descriptors of what nobody has open; none of them leads to base."""
    with yolofs.mounted() as view:
        for number in range(20):
            (view / f"f{number}").write_bytes(STAGED)
        yolofs("commit", "--yes")
        before = everything(yolofs.project)
        for number in range(20):
            with (view / f"f{number}").open("r+b") as file:
                file.write(b"AFTER")
        with connected(yolofs) as client:
            client.flush()
        assert everything(yolofs.project) == before
        assert all((view / f"f{number}").read_bytes().startswith(b"AFTER") for number in range(20))


def test_a_version_that_a_travel_left_open_counts_as_in_use(yolofs: Program) -> None:
    """A program has a version of a file open that another generation shows, and which shows again
    by now.
    """
    with yolofs.mounted() as view:
        (view / "f").write_bytes(STAGED)
        with connected(yolofs) as client, (view / "f").open("rb") as held:
            client.snapshot(b"with", if_changed=False)
            client.travel("0", force=True)
            client.travel("with", force=True)
            staged = store_inodes(yolofs)["f"]
            yolofs("commit", "--yes")
            assert (yolofs.project / "f").stat().st_ino != staged
            assert held.read() == STAGED
            assert (view / "f").read_bytes() == STAGED


def test_lending_the_session_tells_which_store_inodes_are_open(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "closed").write_text("1")
        with (view / "open").open("w") as file, connected(yolofs) as client:
            file.write("2")
            file.flush()
            with client.lend(LoanKind.ABORT) as in_use:
                assert in_use is not None
                with Session.open(os.fsencode(yolofs.project), SessionAccess.READ) as session:
                    staged = session.state().staged
                    assert {entry.name for ino in in_use for entry in staged[StoreIno(ino)].names} == {b"open"}
