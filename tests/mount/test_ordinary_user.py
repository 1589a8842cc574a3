"""The whole path as an ordinary user, and what is not permitted to one.

As root these tests are run by ``make test-elsewhere``, which makes a user for them.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mount.manifest import manifest, untouched
from tests.support.ordinary_user import OTHERS_VARIABLE
from tests.support.program import Program

pytestmark = [
    pytest.mark.mount,
    pytest.mark.skipif(os.getuid() == 0, reason="make test-elsewhere runs this as an ordinary user"),
]


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    """Return the program in a project with a session."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    (project / "dir").mkdir()
    (project / "dir/b").write_text("b\n")
    os.symlink("dir/b", project / "link")
    program = Program(project)
    program("init")
    return program


@pytest.fixture
def others() -> Path:
    """Return a directory of files that belong to root."""
    if OTHERS_VARIABLE not in os.environ:
        pytest.skip("only root can make files of another user; as root, make test-elsewhere does")
    return Path(os.environ[OTHERS_VARIABLE])


@pytest.fixture
def others_view(others: Path, tmp_path: Path) -> Iterator[tuple[Program, Path]]:
    """Mount root's files; their directory is not ours, so the session lies elsewhere."""
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project)
    program("init")
    with program.mounted("--root", others) as mountpoint:
        yield program, mountpoint


def test_an_ordinary_user_stages_travels_and_commits(yolofs: Program) -> None:
    project = yolofs.project
    before = untouched(project)
    yolofs("doctor")
    with yolofs.mounted() as view:
        assert manifest(view) == manifest(project)
        (view / "a").write_text("changed\n")
        (view / "dir").rename(view / "moved")
        (view / "new").mkdir(mode=0o750)
        (view / "new/program").write_text("#!/bin/sh\necho it runs\n")
        (view / "new/program").chmod(0o755)
        os.link(view / "a", view / "new/hard")
        os.mkfifo(view / "new/fifo")
        assert subprocess.run([view / "new/program"], capture_output=True, check=True).stdout == b"it runs\n"
        first = manifest(view)
        yolofs("snapshot", "first")
        (view / "link").unlink()
        shutil.rmtree(view / "moved")
        second = manifest(view)
        yolofs("travel", "first")
        assert manifest(view) == first
        yolofs("travel", "0")
        assert manifest(view) == manifest(project)
        yolofs("travel", "2")
        assert manifest(view) == second
        assert untouched(project) == before
    with yolofs.mounted() as view:
        assert manifest(view) == second
        assert "M  a" in yolofs("status").out
        yolofs("commit", "--yes")
        assert manifest(project) == second == manifest(view)
        (view / "a").write_text("dropped\n")
        yolofs("abort", "--yes")
        assert manifest(project) == second == manifest(view)


@pytest.mark.parametrize("transport", ["direct", "pyfuse3"])
def test_the_mountpoint_is_ones_own_from_the_first_request_on(yolofs: Program, transport: str) -> None:
    mountpoint = yolofs("mount", "--root", ".", YOLOFS_TRANSPORT=transport).out.strip()
    try:
        os.chmod(mountpoint, 0o750)  # looks no name up, so the kernel has asked for no attributes yet
        assert stat.S_IMODE(os.stat(mountpoint).st_mode) == 0o750
    finally:
        yolofs("unmount")


def test_the_mount_of_an_ordinary_user_is_closed_to_others(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (line,) = (line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {view} " in line)
        assert f"user_id={os.getuid()}" in line
        assert "allow_other" not in line
        assert "nosuid" in line
        assert "nodev" in line


def test_a_directory_that_is_closed_in_base_stays_so_until_a_commit_opens_it(yolofs: Program) -> None:
    closed = yolofs.project / "dir"
    closed.chmod(0)
    with yolofs.mounted() as view:
        (view / "dir").chmod(0o700)
        assert outcome(os.listdir, view / "dir") == outcome(os.lstat, view / "dir/b") == "EACCES"
        (view / "dir").rename(view / "renamed")
        yolofs("commit", "--yes", "--trusted")  # nobody can look into it
        assert (view / "renamed/b").read_text() == (yolofs.project / "renamed/b").read_text() == "b\n"
        yolofs("undo", "--yes")
        assert outcome(os.listdir, closed) == "EACCES"
    closed.chmod(0o700)


def outcome(operation: Callable[..., Any], *args: Any) -> Any:
    try:
        return operation(*args)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def opened(path: Path, flags: int) -> None:
    os.close(os.open(path, flags))


def refusals(root: Path) -> dict[str, Any]:
    """Try what is not permitted, and what is and changes nothing."""
    found: dict[str, Any] = {}
    for path in [*sorted(root.glob("**/*")), root / "locked/file", root / "missing"]:
        name = str(path.relative_to(root))
        st = outcome(os.lstat, path)
        found[name] = {
            "stat": (st.st_mode, st.st_uid, st.st_gid) if isinstance(st, os.stat_result) else st,
            "access": [os.access(path, how) for how in (os.R_OK, os.W_OK, os.X_OK)],
            "read": outcome(opened, path, os.O_RDONLY),
            "list": outcome(lambda path: sorted(os.listdir(path)), path),
            "chmod": outcome(os.chmod, path, 0o777),
            "chown": outcome(os.chown, path, os.getuid(), -1),
            "utime": outcome(lambda path: os.utime(path, ns=(1, 2)), path),
        }
        if not os.access(path, os.X_OK):
            found[name]["run"] = outcome(os.execv, path, ["x"])
        if not os.access(path, os.W_OK):
            found[name] |= {
                "write": outcome(opened, path, os.O_WRONLY),
                "truncate": outcome(os.truncate, path, 0),
                "make": outcome(os.mkdir, path / "x"),
                "link": outcome(os.link, path, root / "open/hard"),
            }
        if not os.access(path.parent, os.W_OK) or path.parent.name == "sticky":
            found[name] |= {
                "unlink": outcome(os.unlink, path),
                "rmdir": outcome(os.rmdir, path),
                "rename": outcome(os.rename, path, root / "open/moved"),
                "replace": outcome(os.rename, root / "open/file", path),
            }
    return found


def test_other_users_files_are_refused_as_the_disk_would(others: Path, others_view: tuple[Program, Path]) -> None:
    before = untouched(others / "open"), os.listdir(others)
    program, view = others_view
    expected = refusals(others)
    assert expected["secret"]["read"] == "EACCES", "the disk permits it, so this test shows nothing"
    assert expected["sticky/file"]["unlink"] == "EPERM"
    assert refusals(view) == expected
    assert program("status", "--json").json["changes"] == []
    assert (untouched(others / "open"), os.listdir(others)) == before


def test_a_file_of_others_that_the_user_may_write_is_staged_and_committed(
    others: Path, others_view: tuple[Program, Path]
) -> None:
    program, view = others_view
    for name in ("writable", "sticky/writable"):
        (view / name).write_text("written by a user\n")
    (view / "open/new").write_text("new\n")
    (view / "open/file").unlink()
    with pytest.raises(PermissionError):
        (view / "writable").chmod(0o600)  # it is root's still, as in a plain directory
    assert (others / "writable").read_text() == "as root made it\n"
    assert sorted(os.listdir(others / "open")) == ["file"]
    done = program("commit", "--yes")
    assert "times" in done.err  # it has that at which it was written
    for name in ("writable", "sticky/writable"):
        assert (others / name).read_text() == "written by a user\n"
        st = (others / name).lstat()
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o666)
    assert (others / "open/new").read_text() == "new\n"
    assert sorted(os.listdir(others / "open")) == ["new"]
    assert program("status", "--json").json["changes"] == []


def test_the_whole_machine_is_shown_by_default(yolofs: Program) -> None:
    with yolofs.mounted("--root", "/") as view:
        assert (view / "etc/passwd").read_bytes() == Path("/etc/passwd").read_bytes()
        for path in ("etc/shadow", "etc/gshadow"):
            with pytest.raises(PermissionError):
                (view / path).read_bytes()
        with pytest.raises(PermissionError):
            (view / "etc/new").write_bytes(b"")
        here = view / str(yolofs.project / "a")[1:]
        here.write_text("staged\n")
        assert (yolofs.project / "a").read_text() == "a\n"
        yolofs("abort", "--yes")
        assert here.read_text() == "a\n"


def test_what_one_writes_by_a_mapping_lends_no_rights_any_more(yolofs: Program, tmp_path: Path) -> None:
    """On a plain disk the bits stay: no write(2) tells the kernel to take them away."""
    with yolofs.mounted("--root", ".") as mountpoint:
        for directory, expected in ((tmp_path, 0o6755), (mountpoint, 0o755)):
            path = directory / "program"
            path.write_bytes(bytes(100))
            path.chmod(0o6755)
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
                mapping[0] = 1
                mapping.flush()
                os.fsync(file.fileno())
            assert stat.S_IMODE(path.stat().st_mode) == expected
