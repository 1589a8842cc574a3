"""The host changes base just after the view has replaced or removed the same: no clock tells that,
but what base had does.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.clocks import let_clocks_pass
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.plain_directory import RENAME_EXCHANGE
from tests.support.program import Program

Work = Callable[[CoreDriver], None]
Edit = Callable[[Path], None]


def remove_all(view: CoreDriver, path: bytes) -> None:
    """Remove what `rm -r` would, of the fixture's directory."""
    for name in (b"sub/y", b"x"):
        view.unlink(path + b"/" + name)
    view.rmdir(path + b"/sub")
    view.rmdir(path)


def save(view: CoreDriver, path: bytes) -> None:
    view.create(b"temporary", b"by the view\n", 0o644)
    view.rename(b"temporary", path)


def unlinked(view: CoreDriver) -> None:
    view.unlink(b"file")


def made_anew(view: CoreDriver) -> None:
    view.unlink(b"file")
    view.create(b"file", b"by the view\n", 0o644)


def renamed_over(view: CoreDriver) -> None:
    save(view, b"file")


def moved_over(view: CoreDriver) -> None:
    view.rename(b"other", b"file")


def exchanged(view: CoreDriver) -> None:
    view.create(b"temporary", b"by the view\n", 0o644)
    view.rename(b"temporary", b"file", RENAME_EXCHANGE)
    view.unlink(b"temporary")


def moved_and_removed(view: CoreDriver) -> None:
    view.rename(b"file", b"moved")
    view.unlink(b"moved")


def moved_and_made_anew(view: CoreDriver) -> None:
    view.rename(b"file", b"moved")
    save(view, b"file")
    view.unlink(b"moved")


def file_by_symlink(view: CoreDriver) -> None:
    view.unlink(b"file")
    view.symlink(b"other", b"file")


def file_by_directory(view: CoreDriver) -> None:
    view.unlink(b"file")
    view.mkdir(b"file", 0o755)


def directory_removed(view: CoreDriver) -> None:
    view.rmdir(b"empty")


def directory_by_file(view: CoreDriver) -> None:
    view.rmdir(b"empty")
    view.create(b"empty", b"by the view\n", 0o644)


def symlink_by_file(view: CoreDriver) -> None:
    save(view, b"link")


def symlink_removed(view: CoreDriver) -> None:
    view.unlink(b"link")


def tree_removed(view: CoreDriver) -> None:
    remove_all(view, b"dir")


def tree_made_anew(view: CoreDriver) -> None:
    remove_all(view, b"dir")
    view.mkdir(b"dir", 0o755)
    view.create(b"dir/x", b"by the view\n", 0o644)


def tree_moved_and_removed(view: CoreDriver) -> None:
    view.rename(b"dir", b"moved")
    remove_all(view, b"moved")


def tree_moved_and_made_anew(view: CoreDriver) -> None:
    view.rename(b"dir", b"moved")
    view.mkdir(b"dir", 0o755)
    view.create(b"dir/x", b"by the view\n", 0o644)
    remove_all(view, b"moved")


def inside_removed_after_a_move(view: CoreDriver) -> None:
    view.rename(b"dir", b"moved")
    view.unlink(b"moved/x")


def tree_replaced(view: CoreDriver) -> None:
    view.unlink(b"dir/sub/y")
    view.mkdir(b"new", 0o755)
    view.rename(b"new", b"dir/sub")


def new(view: CoreDriver) -> None:
    view.create(b"new", b"by the view\n", 0o644)


def moved_to_a_new_name(view: CoreDriver) -> None:
    view.rename(b"other", b"new")


def writes(path: str) -> Edit:
    def edit(project: Path) -> None:
        (project / path).write_text("host\n")

    return edit


def replaces(path: str) -> Edit:
    """By a file of the same size and time."""

    def edit(project: Path) -> None:
        before = (project / path).stat()
        (project / "by the host").write_text("host\n")
        os.utime(project / "by the host", ns=(before.st_atime_ns, before.st_mtime_ns))
        (project / "by the host").rename(project / path)

    return edit


def writes_back_in_time(path: str) -> Edit:
    """In place, as many bytes, and the time is set back."""

    def edit(project: Path) -> None:
        before = (project / path).stat()
        (project / path).write_text("host\n")
        os.utime(project / path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return edit


def sets_an_attribute(path: str) -> Edit:
    def edit(project: Path) -> None:
        os.setxattr(project / path, "user.by", b"host")

    return edit


def chmods(path: str) -> Edit:
    def edit(project: Path) -> None:
        (project / path).chmod(0o700)

    return edit


def relinks(project: Path) -> None:
    (project / "link").unlink()
    (project / "link").symlink_to("dir")


def replaces_the_tree(project: Path) -> None:
    shutil.rmtree(project / "dir")
    (project / "dir").mkdir()
    (project / "dir/x").write_text("host\n")


def puts_a_directory_there(project: Path) -> None:
    (project / "file").unlink()
    (project / "file").mkdir()


class Case(NamedTuple):
    """A change of the view, the host's change after it, and the path with drift."""

    work: Work
    edit: Edit
    at: str


def touches(project: Path) -> None:
    os.utime(project / "file", ns=(0, 1_450_000_000_000_000_000))


def writes_the_same_again(project: Path) -> None:
    writes("file")(project)
    (project / "file").write_text("base\n")


def puts_the_same_there(project: Path) -> None:
    (project / "by the host").write_text("base\n")
    (project / "by the host").rename(project / "file")


def links_and_unlinks(project: Path) -> None:
    (project / "linked").hardlink_to(project / "file")
    (project / "linked").unlink()


def edited(view: CoreDriver) -> None:
    view.append(b"file", b"by the view\n")


def moved_and_edited(view: CoreDriver) -> None:
    view.rename(b"file", b"moved")
    view.append(b"moved", b"by the view\n")


FILE = (unlinked, made_anew, renamed_over, moved_over, exchanged, moved_and_removed, moved_and_made_anew)
TREE = (tree_removed, tree_made_anew, tree_moved_and_removed, tree_moved_and_made_anew)
CASES = (
    *(
        Case(work, edit, at)
        for work, at in (*((work, "file") for work in (*FILE, edited)), (moved_and_edited, "moved"))
        for edit in (
            *(writes("file"), replaces("file"), chmods("file")),
            *(writes_back_in_time("file"), sets_an_attribute("file")),
        )
    ),
    *(Case(work, writes("file"), "file") for work in (file_by_symlink, file_by_directory)),
    Case(unlinked, puts_a_directory_there, "file"),
    *(
        Case(work, edit, "empty")
        for work in (directory_removed, directory_by_file)
        for edit in (writes("empty/new"), chmods("empty"))
    ),
    *(Case(work, relinks, "link") for work in (symlink_removed, symlink_by_file)),
    *(
        Case(work, edit, "dir")
        for work in TREE
        for edit in (
            writes("dir/x"),
            writes_back_in_time("dir/x"),
            writes("dir/new"),
            writes("dir/sub/y"),
            chmods("dir/sub"),
            replaces_the_tree,
        )
    ),
    Case(inside_removed_after_a_move, writes("dir/x"), "moved/x"),
    *(Case(tree_replaced, edit, "dir/sub") for edit in (writes("dir/sub/y"), writes("dir/sub/new"))),
    *(Case(work, writes("new"), "new") for work in (new, moved_to_a_new_name)),
)
THEN = (
    *("at once", "travelled", "mounted again", "from a checkpoint"),
    *("with the rest of a commit", "after an earlier state", "merged beside it"),
)
"""What the view does between that and the look at base."""


def name_of(case: Case) -> str:
    return f"{case.work.__name__}-{case.edit.__qualname__.partition('.')[0]}-{case.at}"


def project_of(top: Path) -> Path:
    """Make a project with something of every kind, that has lain there for longer than clocks are
    apart.
    """
    project = top / "project"
    (project / "dir/sub").mkdir(parents=True)
    (project / "empty").mkdir()
    for name in ("file", "other", "third", "clash", "dir/x", "dir/sub/y"):
        (project / name).write_text("base\n")
        (project / name).chmod(0o644)
    (project / "link").symlink_to("other")
    return project


def drift_of(program: Program) -> list[str]:
    project = os.fspath(program.project)
    return [os.path.relpath(one["path"], project) for one in program("status", "--json").json["drift"]]


def go_on(program: Program, view: CoreDriver, then: str) -> None:
    """Do what is to make no difference, and end the view."""
    match then:
        case "travelled":
            here = view.snapshot()
            view.create(b"later", b"later", 0o644)
            view.snapshot()
            view.travel(0)
            view.travel(here)
        case "mounted again":
            view.remount()
        case "from a checkpoint":
            assert view.session.write_checkpoint(least_records=1)
        case "with the rest of a commit":
            view.append(b"third", b"more\n")
        case "merged beside it":
            view.append(b"clash", b"more\n")
        case _:
            pass
    view.close()
    if then == "with the rest of a commit":
        program("commit", "--yes", "third")
        assert (program.project / "third").read_text() == "base\nmore\n"
    elif then == "after an earlier state":
        program("commit", "--yes", "--up-to", "1")
        assert (program.project / "third").read_text() == "base\nmore\n"
    elif then == "merged beside it":
        (program.project / "clash").write_text("host's\n")
        program("commit", "--yes", "--theirs", "clash")


def done(top: Path, work: Work, then: str = "") -> tuple[Program, CoreDriver]:
    """Return a project in whose view something was done just now."""
    project = project_of(top)
    program = Program(project)
    program("init")
    view = CoreDriver(os.fsencode(project))
    if then == "after an earlier state":
        view.append(b"third", b"more\n")
        view.snapshot()
    work(view)
    return program, view


@pytest.mark.parametrize(
    ("case", "delay_s", "then"),
    [
        pytest.param(case, delay_s, then, id=f"{name_of(case)}-{delay_s * 1000:.0f} ms-{then}")
        for case, delay_s, then in points(list(itertools.product(CASES, (0, 0.005), THEN)), "at once", some=14)
    ],
)
def test_a_change_by_the_host_right_after_that_of_the_view_is_drift(
    tmp_path: Path, case: Case, delay_s: float, then: str
) -> None:
    program, view = done(tmp_path, case.work, then)
    time.sleep(delay_s)  # the case itself: how soon the host acts
    case.edit(program.project)
    go_on(program, view, then)
    assert case.at in drift_of(program)
    before = described(program.project)
    assert "base has changed" in program("commit", "--yes", code=9).err
    assert described(program.project) == before


@pytest.mark.parametrize("case", [pytest.param(case, id=name_of(case)) for case in points(CASES, "undone", some=6)])
def test_a_change_by_the_host_right_after_an_undo_is_drift(tmp_path: Path, case: Case) -> None:
    program, view = done(tmp_path, case.work)
    view.close()
    program("commit", "--yes")
    program("undo", "--yes")
    assert drift_of(program) == []
    case.edit(program.project)
    assert case.at in drift_of(program)
    before = described(program.project)
    program("commit", "--yes", code=9)
    assert described(program.project) == before


def described(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return kind, mode and content of all that lies in a directory."""
    found = {}
    for path in top.rglob("*"):
        st = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[os.fspath(path)] = st.st_mode, st.st_ino, content
    return found


TO_THE_SAME_EFFECT = tuple(
    itertools.product(
        (edited, made_anew, renamed_over, moved_and_edited),
        (touches, writes_the_same_again, puts_the_same_there, links_and_unlinks),
    )
)


@pytest.mark.parametrize(
    ("case", "then"),
    [
        pytest.param(case, then, id=f"{case[0].__name__}-{case[1].__name__}-{then}")
        for case, then in points(list(itertools.product(TO_THE_SAME_EFFECT, THEN)), "to the same effect", some=7)
    ],
)
def test_a_text_that_the_host_touched_or_wrote_again_unchanged_is_no_drift(
    tmp_path: Path, case: tuple[Work, Edit], then: str
) -> None:
    """By what was kept of it: a commit loses no more than a time."""
    work, edit = case
    program, view = done(tmp_path, work, then)
    let_clocks_pass()
    edit(program.project)
    go_on(program, view, then)
    assert drift_of(program) == []
    program("commit", "--yes")
    assert b"by the view\n" in b"".join(content for _, _, content in described(program.project).values())


def test_a_binary_file_has_drifted_if_its_ctime_has_no_other_reason(tmp_path: Path) -> None:
    """A further name explains another ctime; what came and went does not."""
    program, view = done(tmp_path, lambda _: None)
    binary = program.project / "binary"
    binary.write_bytes(b"\0base")
    let_clocks_pass()
    view.append(b"binary", b"by the view")
    view.close()
    linked = program.project / "linked"
    linked.hardlink_to(binary)
    assert drift_of(program) == []
    linked.unlink()
    assert drift_of(program) == ["binary"]
    told = program("commit", "--yes", "--merge", code=9).err
    assert "binary: it is no text, so it is not merged" in told


WORKS = tuple(dict.fromkeys(case.work for case in CASES if case.work not in (edited, moved_and_edited)))
"""What is staged of base would be written in place if base's file had got another name."""


@pytest.mark.parametrize(
    ("work", "then"),
    [
        pytest.param(work, then, id=f"{work.__name__}-{then}")
        for work, then in points(list(itertools.product(WORKS, THEN)), "nothing", some=8)
    ],
)
def test_a_base_file_that_only_got_another_name_is_no_drift(tmp_path: Path, work: Work, then: str) -> None:
    """Even if the file, removed and never staged, has got another name since: that is no change of
    it.
    """
    program, view = done(tmp_path, work, then)
    let_clocks_pass()
    for name in ("file", "dir/x"):
        os.link(program.project / name, program.project / f"{os.path.basename(name)} linked")
    go_on(program, view, then)
    assert drift_of(program) == []
    program("commit", "--yes")
    assert (program.project / "file linked").read_text() == "base\n"
