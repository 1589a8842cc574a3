"""An undo of files with access control lists, of times, and of hard links that the host works on
before it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.access_lists import acl
from tests.support.fault_points import points
from tests.support.program import Program, run_program

pytestmark = pytest.mark.mount

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
OF_FILE = acl("user:6 alice:6 group:4 mask:6 other:0")
OF_DIRECTORY = acl("user:7 alice:5 group:5 mask:7 other:5")


class Look(NamedTuple):
    """All that an undo has to put back of one path; the number of a file that goes by a copy may be
    another.
    """

    mode: int
    owner: tuple[int, int]
    mtime_ns: int
    names: int
    content: bytes
    xattrs: dict[str, bytes]


def look(path: Path) -> Look:
    st = path.lstat()
    content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
    names = os.listxattr(path, follow_symlinks=False)
    xattrs = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
    links = 0 if stat.S_ISDIR(st.st_mode) else st.st_nlink
    return Look(st.st_mode, (st.st_uid, st.st_gid), st.st_mtime_ns, links, content, xattrs)


def looks(top: Path) -> dict[str, Look]:
    paths = [top, *(path for path in top.rglob("*") if ".yolofs" not in str(path.relative_to(top)))]
    return {str(path.relative_to(top)): look(path) for path in paths}


# ---- access control lists


def overwrite(view: Path) -> None:
    (view / "listed/f").write_text("changed\n")


def save_by_rename(view: Path) -> None:
    (view / "listed/new").write_text("changed\n")
    (view / "listed/new").rename(view / "listed/f")


def change_mode(view: Path) -> None:
    (view / "listed/f").chmod(0o600)
    (view / "listed").chmod(0o700)


def remove(view: Path) -> None:
    shutil.rmtree(view / "listed")


def move(view: Path) -> None:
    (view / "listed").rename(view / "elsewhere")


def make_in_it(view: Path) -> None:
    (view / "listed/new").mkdir()
    (view / "listed/new/f").write_text("new\n")


def move_out(view: Path) -> None:
    (view / "listed/f").rename(view / "f")


def write_to_linked(view: Path) -> None:
    (view / "listed/g").write_text("changed\n")


def remove_linked(view: Path) -> None:
    (view / "listed/g").write_text("changed\n")
    (view / "listed/g").unlink()


def change_times_and_mode(view: Path) -> None:
    os.utime(view / "listed/sub", ns=(0, 0))
    (view / "listed/f").write_text("changed\n")
    (view / "listed/f").chmod(0o755)


def replace_by_link(view: Path) -> None:
    shutil.rmtree(view / "listed")
    (view / "listed").symlink_to("dir")


WORKS = (
    overwrite,
    save_by_rename,
    change_mode,
    remove,
    move,
    make_in_it,
    move_out,
    write_to_linked,
    remove_linked,
    change_times_and_mode,
    replace_by_link,
)


@pytest.mark.parametrize("work", points(WORKS, "access control lists", some=3))
def test_access_control_lists_come_back_bit_for_bit(yolofs: Program, work: Callable[[Path], None]) -> None:
    listed = yolofs.project / "listed"
    (listed / "sub").mkdir(parents=True)
    for name in ("f", "g", "sub/h"):
        (listed / name).write_text(f"{name}\n")
    os.link(listed / "g", yolofs.project / "g")
    try:
        for name in ("f", "g", "sub/h"):
            os.setxattr(listed / name, ACCESS, OF_FILE)
        for path in (listed, listed / "sub"):
            os.setxattr(path, ACCESS, OF_DIRECTORY)
            os.setxattr(path, DEFAULT, OF_DIRECTORY)
    except OSError:
        pytest.skip("this filesystem has no access control lists")
    for path in (*listed.rglob("*"), listed, yolofs.project):
        os.utime(path, ns=(10**18 + 1, 10**18 + 1))
    before = looks(yolofs.project)
    assert set(before["listed"].xattrs) == {ACCESS, DEFAULT}
    with yolofs.mounted() as view:
        work(view)
    yolofs("commit", "--yes")
    after = looks(yolofs.project)
    assert after != before
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == after
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before


# ---- times


def touch(view: Path, when: int = 10**18) -> None:
    """Set a directory's time, beside a change: by itself that is nothing to commit."""
    os.utime(view / "dir", ns=(when, when))
    (view / "beside it").write_text("new\n")


def make_one(view: Path) -> None:
    (view / "dir/new").write_text("new\n")


def remove_one(view: Path) -> None:
    (view / "dir/b.txt").unlink()


def move_one(view: Path) -> None:
    (view / "dir/b.txt").rename(view / "b.txt")


@pytest.mark.parametrize(
    ("work", "when"),
    points(list(itertools.product([touch, make_one, remove_one, move_one], [0, 1])), "beginning of times", some=4),
)
def test_the_time_of_a_directory_comes_back_also_if_it_is_the_beginning_of_all_times(
    yolofs: Program, work: Callable[[Path], None], when: int
) -> None:
    for path in (yolofs.project / "dir", yolofs.project):
        os.utime(path, ns=(when, when))
    os.setxattr(yolofs.project / "dir", "user.x", b"kept")
    before = looks(yolofs.project)
    with yolofs.mounted() as view:
        work(view)
    yolofs("commit", "--yes")
    after = looks(yolofs.project)
    assert after["dir"].mtime_ns != when
    yolofs("undo", "--yes")
    assert looks(yolofs.project) == before
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == after


@pytest.mark.parametrize("when", [0, 1])
def test_a_directory_whose_time_alone_was_changed_has_it_again_when_that_is_done_again(
    yolofs: Program, when: int
) -> None:
    with yolofs.mounted() as view:
        touch(view, when)
    yolofs("commit", "--yes")
    after = looks(yolofs.project)
    assert after["dir"].mtime_ns == when
    yolofs("undo", "--yes")
    yolofs("commit", "--yes")
    assert looks(yolofs.project) == after


# ---- hard links: a, b and beside/c are one file, and the commit knows of a alone


def write(top: Path) -> None:
    (top / "a").write_text("the view's\n")


def remove_name(top: Path) -> None:
    (top / "a").unlink()


def rename(top: Path) -> None:
    (top / "a").rename(top / "z")


def allow_execution(top: Path) -> None:
    (top / "a").chmod(0o755)


def remove_two(top: Path) -> None:
    (top / "a").unlink()
    (top / "b").unlink()


def put_another(top: Path) -> None:
    (top / "new").write_text("the view's\n")
    (top / "new").rename(top / "a")


def put_link(top: Path) -> None:
    (top / "a").unlink()
    (top / "a").symlink_to("beside/c")


def host_renames(project: Path) -> None:
    (project / "beside/c").rename(project / "beside/d")


def host_replaces(project: Path) -> None:
    (project / "beside/c").unlink()
    (project / "beside/c").write_text("the host's\n")


def host_deletes(project: Path) -> None:
    (project / "beside/c").unlink()


def host_writes(project: Path) -> None:
    (project / "beside/c").write_text("the host's\n")


def host_puts_link(project: Path) -> None:
    (project / "beside/c").unlink()
    (project / "beside/c").symlink_to("../../victim")


def host_puts_link_for_directory(project: Path) -> None:
    (project / "beside").rename(project / "was beside")
    (project / "beside").symlink_to("../outside")


def host_puts_link_at_name(project: Path) -> None:
    """At a name that the commit was about, or may have taken away."""
    (project / "a").unlink(missing_ok=True)
    (project / "a").symlink_to("../victim")


def host_puts_link_to_it(project: Path) -> None:
    """A name of the file in which others trust is given to them."""
    if (project / "b").exists():
        os.link(project / "b", project.parent / "outside/b")


COMMITS = (write, remove_name, rename, allow_execution, remove_two, put_another, put_link)
EDITS = (
    host_renames,
    host_replaces,
    host_deletes,
    host_writes,
    host_puts_link,
    host_puts_link_for_directory,
    host_puts_link_at_name,
    host_puts_link_to_it,
)


def contents(top: Path) -> set[bytes]:
    return {path.read_bytes() for path in top.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.parametrize(
    ("work", "edit"), points(list(itertools.product(COMMITS, EDITS)), "hard links that the host works on", some=6)
)
def test_hard_links_that_the_host_works_on_lose_nothing_and_lead_nowhere(
    yolofs: Program, work: Callable[[Path], None], edit: Callable[[Path], None]
) -> None:
    project = yolofs.project
    victim, outside = project.parent / "victim", project.parent / "outside"
    outside.mkdir()
    for path in (victim, outside / "c"):
        path.write_text("no business of a commit\n")
    (project / "beside").mkdir()
    (project / "a").write_text("base's\n")
    os.link(project / "a", project / "b")
    os.link(project / "a", project / "beside/c")
    before = looks(project)
    with yolofs.mounted() as view:
        work(view)
    yolofs("commit", "--yes")
    edit(project)
    guarded = look(victim), look(outside / "c")
    of_host = looks(project)
    known = contents(project)
    if edit is not host_writes or work not in (rename, allow_execution):  # else the host has written over all of it
        known.add(b"base's\n")
    done = run_program(("undo", "--yes"), project)
    is_done = not done.returncode
    if not is_done:  # it says why, and base is as the host has it
        assert "yolofs: " in done.stderr
        assert looks(project) == of_host
        done = run_program(("undo", "--yes", "--force"), project)
    assert "Traceback" not in done.stderr
    assert (look(victim), look(outside / "c")) == guarded
    assert known <= contents(project) | contents(yolofs.session)
    now = looks(project)
    beside = {path for path in of_host if path.startswith("beside/")}
    assert {path for path in now if path.startswith("beside/")} == beside
    content = b"the host's\n" if edit is host_writes and work is not write else b"base's\n"
    stays = edit is host_puts_link_at_name and work in (write, allow_execution)
    if stays:  # the name has gone by the host's hand; other names keep what the commit made of the file, and it is told
        assert "stays: " in done.stderr
        assert now["a"].content == b"../victim"
    else:
        for name in ("a", "b"):
            assert (now[name].mode, now[name].content) == (before[name].mode, content)
    assert yolofs("status").code == 0
