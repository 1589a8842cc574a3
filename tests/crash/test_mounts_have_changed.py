"""A commit was interrupted, and now the filesystem that a part of it is about is not mounted, or
another one covers a directory: nothing goes on or back until that is put right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.test_commit_every_line import exactly
from tests.crash.test_commit_preparation import tree_of
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.planting import interrupt_commit
from tests.support.program import Program
from tests.support.second_disk import mounted_disk

pytestmark = [pytest.mark.timeout(300), pytest.mark.mount]
WAYS = ("--continue", "--roll-back")
STEPS = range(1, 13)


@contextmanager
def mounted(source: Path, place: Path) -> Iterator[None]:
    """Have a directory mounted at a place, until the block has let go of it."""
    with mounted_disk(place, source=source):
        yield


def prepare(project: Path) -> Program:
    """Stage something in two directories, of which one may be a disk."""
    for directory in ("d", "e"):
        for number in range(4):
            (project / directory / f"{directory}{number}").write_text(f"{number}\n")
    view = CoreDriver(bytes(project))
    for name in (b"d", b"e"):
        for number in range(3):
            view.append(b"%b/%b%d" % (name, name, number), b"more\n")
    view.mkdir(b"d/new", 0o755)
    view.create(b"d/new/file", b"made", 0o644)
    view.unlink(b"d/d3")
    view.rename(b"e/e3", b"e/e4")
    view.close()
    return Program(project)


def check_refused(program: Program, place: Path, why: str) -> None:
    """See that nothing is done, and that it is said why."""
    before = exactly(place)
    assert why in program("status").err
    for way in WAYS:
        refused = program("commit", way, code=None)
        assert refused.code
        assert why in refused.err
        assert "hint: " in refused.err
    assert exactly(place) == before


@pytest.mark.parametrize(("step", "way"), points([(step, way) for step in STEPS for way in WAYS], "away", some=3))
def test_nothing_goes_on_or_back_without_the_disk(tmp_path: Path, step: int, way: str) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    for path in (project / "d", project / "e", disk):
        path.mkdir(parents=True)
    with mounted(disk, project / "d"):
        program = prepare(project)
        before = exactly(project)
        interrupt_commit(project, step)
    check_refused(program, project, f"the filesystem that was mounted at {project / 'd'} is not there")
    with mounted(disk, project / "d"):
        program("commit", way)
        if way == "--roll-back":
            assert exactly(project) == before
            program("commit", "--yes")
        assert (project / "d/new/file").read_text() == "made"
        assert sorted(path.name for path in (project / "d").iterdir()) == ["d0", "d1", "d2", "new"]
        assert {(project / f"d/d{number}").read_text() for number in range(3)} == {f"{n}\nmore\n" for n in range(3)}


@pytest.mark.parametrize(("step", "way"), points([(step, way) for step in STEPS for way in WAYS], "over", some=3))
def test_nothing_goes_on_or_back_below_another_disk(tmp_path: Path, step: int, way: str) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for path in (project / "d", project / "e", other):
        path.mkdir(parents=True)
    (other / "d3").write_text("of another disk\n")
    program = prepare(project)
    before, view = exactly(project), CoreDriver(bytes(project))
    expected = view.tree()
    view.close()
    interrupt_commit(project, step)
    with mounted(other, project / "d"):
        check_refused(program, project, f"another filesystem has been mounted at {project / 'd'} meanwhile")
    assert [path.name for path in other.iterdir()] == ["d3"]
    program("commit", way)
    if way == "--roll-back":
        assert exactly(project) == before
        program("commit", "--yes")
    assert tree_of(project) == expected
