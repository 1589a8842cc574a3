"""Extended attributes are served without a setting: what programs do with them in a mount of the
program is what they do on a disk, and is committed and undone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.probes.tools import as_other, outcome
from tests.support.plain_directory import xattrs_of
from tests.support.program import Program
from tests.support.required import do_without
from yolofs.fuse.transport_choice import TRANSPORT_VARIABLE

pytestmark = pytest.mark.mount

NAMED = 47110
NOBODY = 0xFFFFFFFF
LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, who)
    for tag, rights, who in [(1, 6, NOBODY), (2, 6, NAMED), (4, 4, NOBODY), (16, 6, NOBODY), (32, 0, NOBODY)]
)
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
COPIES = """
set -e
cp -a library by-cp
tar --create --xattrs --xattrs-include='*' --acls --file t.tar library
mkdir by-tar
tar --extract --xattrs --xattrs-include='*' --acls --file t.tar --directory by-tar
rm t.tar
"""
BY_RSYNC = "rsync -aAX library/ by-rsync/"
IN_GIT = """
set -e
cd library
git init -q .
git add -A
git -c user.name=a -c user.email=a@example.org commit -qm one
git status --porcelain
rm -rf .git
"""


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project and a plain directory with the same in both, to which every user has a way."""
    monkeypatch.setenv(TRANSPORT_VARIABLE, "direct")
    with tempfile.TemporaryDirectory(prefix="yolofs-attributes-") as name:
        room = Path(name)
        room.chmod(0o755)
        tried = outcome(os.setxattr, room, "user.probe", b""), outcome(os.getxattr, room, "system.posix_acl_access")
        if not {"EOPNOTSUPP", "ENOTSUP"}.isdisjoint(tried):
            do_without("the disk of temporary files knows no extended attributes or lists")
        for directory in ("project", "plain"):
            fill(room / directory)
        yield room


def fill(directory: Path) -> None:
    below = directory / "library/below"
    below.mkdir(parents=True)
    for path in (directory, directory / "library", below):
        path.chmod(0o755)
    for path in (below, below / "noted", below / "listed", below / "plain"):
        if path != below:
            path.write_text("content")
            path.chmod(0o640)
        os.setxattr(path, "user.note", os.fsencode(path.name))
    os.removexattr(below / "plain", "user.note")
    os.setxattr(below / "listed", "system.posix_acl_access", LIST)
    os.setxattr(below, "system.posix_acl_default", LIST)
    if os.geteuid() == 0:
        (below / "capable").write_text("content")
        os.setxattr(below / "capable", "security.capability", CAPABILITY)
        os.setxattr(below / "noted", "trusted.note", b"root's")
    for path in sorted(directory.rglob("*")):
        os.utime(path, ns=(10**18, 10**18))


def all_of(directory: Path) -> dict[str, Any]:
    """Return type, mode and extended attributes of all in a directory."""
    return {
        str(path.relative_to(directory)): (oct(path.lstat().st_mode), xattrs_of(os.fsencode(path)))
        for path in sorted(directory.rglob("*"))
        if not any(part.startswith(".yolofs") for part in path.relative_to(directory).parts)
    }


def work(directory: Path) -> list[Any]:
    """Copy, pack, keep and change files with attributes; return what programs say."""
    done = [subprocess.run(["sh", "-c", COPIES], cwd=directory, capture_output=True, text=True, check=False)]
    if shutil.which("rsync") is not None:
        done.append(subprocess.run(["sh", "-c", BY_RSYNC], cwd=directory, capture_output=True, text=True, check=False))
    done.append(subprocess.run(["sh", "-c", IN_GIT], cwd=directory, capture_output=True, text=True, check=False))
    below = directory / "library/below"
    results: list[Any] = [(one.returncode, one.stdout, one.stderr) for one in done]
    os.setxattr(below / "plain", "user.new", b"1")
    os.removexattr(below / "noted", "user.note")
    results.append(outcome(os.setxattr, below / "plain", "trusted.new", b"1"))
    os.close(os.open(below / "made", os.O_CREAT | os.O_WRONLY, 0o666))
    if os.geteuid() == 0:
        with (below / "capable").open("a") as file:
            file.write("!")
        results.append(outcome(os.getxattr, below / "capable", "security.capability"))
    return results


def test_programs_carry_attributes_and_a_commit_and_an_undo_carry_them_on(room: Path) -> None:
    yolofs = Program(room / "project")
    yolofs("init")
    before = all_of(room / "project")
    assert before == all_of(room / "plain")
    with yolofs.mounted() as view:
        assert all_of(view) == before
        assert work(view) == work(room / "plain")
        after = all_of(room / "plain")
        assert all_of(view) == after
        assert all_of(room / "project") == before
    yolofs("commit", "--yes")
    assert all_of(room / "project") == after
    yolofs("undo", "--yes")
    assert all_of(room / "project") == before


@pytest.mark.root_only
def test_lists_are_enforced_without_a_setting(room: Path) -> None:
    yolofs = Program(room / "project")
    yolofs("init")

    def attempts(directory: Path) -> Any:
        with contextlib.chdir(directory / "library/below"):  # no other user has a way to the mountpoint from outside
            return as_other(lambda: [outcome(Path(name).read_bytes) for name in ("listed", "plain")], NAMED, NAMED)

    with yolofs.mounted() as view:
        assert attempts(view) == attempts(room / "plain") == ["content", "EACCES"]
        for directory in (view, room / "plain"):
            os.removexattr(directory / "library/below/listed", "system.posix_acl_access")
            os.setxattr(directory / "library/below/plain", "system.posix_acl_access", LIST)
        assert attempts(view) == attempts(room / "plain") == ["EACCES", "content"]
