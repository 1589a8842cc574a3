"""Files with a group that the user is not in, or of another user, in a view of an ordinary user:
the same as in a plain directory, and after a commit base is what the plain directory is.

As root these tests are run by ``make test-elsewhere``, which makes a user for them.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.manifest import manifest
from tests.support.ordinary_user import PAIRS, SHARED_VARIABLE
from tests.support.program import Program

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.getuid() == 0, reason="make test-elsewhere runs this as an ordinary user"),
]


_pairs = iter(range(PAIRS))


@pytest.fixture
def pair() -> Path:
    """Return a place with two equal directories of a group without the user, ``base`` and
    ``plain``, as left by ``chown -R $USER:GROUP; chmod g+s``; no other test has it.
    """
    if SHARED_VARIABLE not in os.environ:
        pytest.skip("only root can make files of another group; as root, test-elsewhere does")
    found = Path(os.environ[SHARED_VARIABLE]) / str(next(_pairs))
    assert manifest(found / "base") == manifest(found / "plain")
    assert (found / "base").stat().st_gid not in (os.getgid(), *os.getgroups())
    return found


@pytest.fixture
def plain(pair: Path) -> Path:
    """Return the plain directory."""
    return pair / "plain"


@pytest.fixture
def base(pair: Path) -> Path:
    """Return what is base of a view."""
    return pair / "base"


@pytest.fixture
def view(base: Path, tmp_path: Path) -> Iterator[tuple[Program, Path]]:
    """Mount the latter."""
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    program("init")
    with program.mounted("--root", base) as mountpoint:
        yield program, mountpoint


def outcome(operation: Callable[..., Any], *args: Any) -> Any:
    try:
        return operation(*args)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def make_unnamed(root: Path) -> None:
    fd = os.open(root / "shared", os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, b"had no name\n")
    os.link(f"/proc/self/fd/{fd}", root / "shared/named")
    os.close(fd)


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("appended\n")


def work(root: Path) -> list[Any]:
    """Do all that a program may do, and try the rest; return the outcomes."""
    found = [
        outcome(append, root / "file"),
        outcome(append, root / "shared/page"),
        outcome(append, root / "roots"),
        outcome(append, root / "shared/new"),
        outcome(os.mkdir, root / "shared/sub", 0o750),
        outcome(append, root / "shared/sub/below"),
        outcome(os.mkdir, root / "shared/sub/deep"),
        outcome(os.symlink, "page", root / "shared/soft"),
        outcome(os.mkfifo, root / "shared/pipe", 0o640),
        outcome(os.link, root / "shared/new", root / "shared/linked"),
        outcome(make_unnamed, root),
        outcome(append, root / "own"),
        outcome(os.rename, root / "own", root / "shared/moved"),
        outcome(append, root / "shared/temporary"),
        outcome(os.rename, root / "shared/temporary", root / "shared/saved"),
        outcome(os.rename, root / "old", root / "shared/renamed"),
        outcome(append, root / "shared/renamed/new"),
    ]
    for name in ("file", "shared/page", "shared/new", "shared/sub", "roots", "untouched"):
        path, st = root / name, (root / name).stat()
        found += [
            (st.st_mode, st.st_uid, st.st_gid),
            outcome(os.chown, path, -1, st.st_gid),
            outcome(os.chown, path, -1, 0),
            outcome(os.chown, path, 0, -1),
            outcome(os.chmod, path, stat.S_IMODE(st.st_mode)),
            outcome(os.utime, path),
            outcome(lambda path: os.utime(path, ns=(1, 2)), path),
        ]
    return found


def test_a_view_and_a_commit_are_what_a_plain_directory_is(plain: Path, base: Path, view: tuple[Program, Path]) -> None:
    yolofs, mountpoint = view
    before = manifest(base)
    assert work(mountpoint) == work(plain)
    assert manifest(mountpoint) == manifest(plain)
    assert manifest(base) == before
    assert "owner" not in yolofs("status").out
    yolofs("snapshot")
    append(mountpoint / "shared/new")  # a copy in the store of what lies in the store
    append(plain / "shared/new")
    assert manifest(mountpoint) == manifest(plain)
    inodes = {name: (base / name).stat().st_ino for name in ("file", "shared/page", "roots")}
    yolofs("commit", "--yes")
    after = manifest(plain)
    assert manifest(base) == after
    assert {name: (base / name).stat().st_ino for name in inodes} == inodes
    assert "no changes" in yolofs("status").out
    yolofs("undo", "--yes")
    assert manifest(base) == before
    assert manifest(mountpoint) == after
    yolofs("commit", "--yes")
    assert manifest(base) == after == manifest(mountpoint)


def test_a_remount_shows_the_group_that_was_shown_before(base: Path, tmp_path: Path) -> None:
    project = tmp_path / "another"
    project.mkdir()
    program = Program(project)
    program("init")
    with program.mounted("--root", base) as mountpoint:
        (mountpoint / "shared/after").write_text("a")
        shown = manifest(mountpoint)
        assert shown["shared/after"][3] == base.stat().st_gid != os.getgid()
    with program.mounted("--root", base) as mountpoint:
        assert manifest(mountpoint) == shown


def test_a_group_that_is_given_up_is_given_up_in_base_and_comes_back_with_an_undo(
    base: Path, view: tuple[Program, Path]
) -> None:
    yolofs, mountpoint = view
    append(mountpoint / "given")
    for root in (mountpoint, base):
        assert (root / "given").stat().st_gid not in (os.getgid(), *os.getgroups())
    os.chown(mountpoint / "given", -1, os.getgid())
    assert (mountpoint / "given").stat().st_gid == os.getgid()
    yolofs("commit", "--yes")
    assert (base / "given").stat().st_gid == os.getgid()
    assert (base / "given").read_text() == "base given\nappended\n"
    yolofs("undo", "--yes")
    assert (base / "given").read_text() == "base given\n"
    assert (base / "given").stat().st_gid not in (os.getgid(), *os.getgroups())


def test_programs_that_save_by_another_file_lose_the_group_as_in_a_plain_directory(
    plain: Path, view: tuple[Program, Path]
) -> None:
    yolofs, mountpoint = view
    for root in (mountpoint, plain):
        subprocess.run(["sed", "-i", "s/base/BASE/", root / "untouched", root / "shared/kept"], check=True)
    assert manifest(mountpoint) == manifest(plain)
    assert (plain / "untouched").stat().st_gid == os.getgid()
    assert "untouched  (owner" in yolofs("status").out
