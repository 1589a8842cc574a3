"""A commit or an undo is killed after its last step: what was noted before it, and
the texts that base had, belong to its chapter and to no other.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.crash.test_commands_killed import Scene, fresh
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import as_user, end_it, run, users
from yolofs.audit.audit import Point, RunStart, append_notes
from yolofs.session.history.chapters import chapters
from yolofs.session.session import Session, SessionAccess
from yolofs.state.kept_bases import find_kept

pytestmark = pytest.mark.timeout(300)

Told = list[tuple[int | None, list[str], set[bytes]]]


def work(project: bytes, number: int) -> None:
    """Edit a text in the view, as a run does."""
    view = CoreDriver(project)
    start = RunStart(number, number, ("command", str(number)), "/", Point(0, 0))
    append_notes(view.session.directory, [start])
    view.append(b"text", b"%d\n" % number)
    view.snapshot()
    view.close()


def three_chapters(project: bytes) -> None:
    """A commit, and what the second is to take."""
    (Path(os.fsdecode(project)) / "text").write_bytes(b"0\n")
    work(project, 1)
    assert run(project, "commit", "--yes").code == 0
    work(project, 2)


SCENES = {
    "commit": Scene(("commit", "--yes"), three_chapters),
    "undo": Scene(("undo", "1", "--yes", "--force"), three_chapters),
}


def told(project: bytes) -> Told:
    """Return what is told of each chapter: its commit, its runs, and the texts that base had."""
    with Session.open(project, SessionAccess.WRITE) as session, chapters(session) as found:
        return [
            (
                one.commit,
                [note.command[-1] for note in one.notes if isinstance(note, RunStart)],
                {kept.content for kept in find_kept(one.directory, lambda *_: True).values()},
            )
            for one in found
        ]


@pytest.mark.parametrize(
    ("name", "is_root"), [(name, is_root) for name in SCENES for is_root in users("put away killed", name)]
)
def test_what_came_before_a_commit_belongs_to_it_wherever_it_is_killed(
    monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool
) -> None:
    as_user(partial(check, name), monkeypatch, is_root=is_root)


def check(name: str, place: Path) -> None:
    scene = SCENES[name]
    project = fresh(scene, place)
    whole = run(project, *scene.words, faults=Faults(0, range(0)))
    assert whole.code == 0, whole
    work(project, 3)
    assert run(project, "commit", "--yes").code == 0
    expected = told(project)
    assert [(commit, runs) for commit, runs, _ in expected] == [(1, ["1"]), (2, ["2"]), (3, ["3"]), (None, [])]
    last_step = max(whole.switch)
    after = [line + 1 for line in sorted(set(whole.calls)) if line >= last_step] + [last_step - 2]
    assert len(after) > 10
    for line in points(after, "put away killed", name, some=3):
        where = f"killed at line {line} of {whole.lines}"
        project = fresh(scene, place)
        assert run(project, *scene.words, line=line).is_killed, where
        end_it(project, goes_back=False)  # the number of a line differs by a few: it may have been before the last step
        work(project, 3)
        assert run(project, "commit", "--yes").code == 0
        assert told(project) == expected, where
