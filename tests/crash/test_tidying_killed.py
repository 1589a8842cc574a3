"""A commit is killed while it removes the commits that are no longer kept: base is as after it, all
that is kept can be undone, and the next command removes the rest.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.crash.test_commands_killed import Scene, base_of, fresh, view_of
from tests.crash.test_gc_killed import listed, paths_in, several_commits
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import as_user, end_it, is_in_switch, run, users

pytestmark = pytest.mark.timeout(300)
SCENES = {
    "commit": (Scene(("commit", "--yes"), several_commits), [4, 5]),
    "part": (Scene(("commit", "--yes", "open"), several_commits), [4, 5]),
}
"""The command, and the commits that are kept after it."""


@pytest.mark.parametrize(
    ("name", "is_root"), [(name, is_root) for name in SCENES for is_root in users("tidying killed", name)]
)
def test_a_command_that_is_killed_while_it_removes_old_commits_has_done_its_work(
    monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool
) -> None:
    as_user(partial(check, name), monkeypatch, is_root=is_root)


def check(name: str, place: Path) -> None:
    scene, kept = SCENES[name]
    project = fresh(scene, place)
    before = base_of(project)
    whole = run(project, *scene.words, faults=Faults(0, range(0)))
    assert whole.code == 0, whole
    assert listed(project) == kept
    assert run(project, "gc").code == 0
    base, view, paths = base_of(project), view_of(project), paths_in(project)
    after = [line + 1 for line in sorted(set(whole.calls)) if line > max(whole.switch)]
    assert len(after) > 10
    for line in points(after, name, some=2):
        where = f"killed at line {line} of {whole.lines}"
        project = fresh(scene, place)
        assert run(project, *scene.words, line=line).is_killed, where
        if is_in_switch(project):  # the number of a line differs by a few
            end_it(project, goes_back=False)
        assert base_of(project) == base, where
        assert listed(project)[-2:] == kept, where
        status = run(project, "status")
        assert (status.code, "interrupted" in status.err) == (0, False), (where, status)
        would = run(project, "gc", "--dry-run", "--json")
        done = run(project, "gc", "--json")
        assert (would.code, done.code) == (0, 0), (where, would, done)
        assert view_of(project) == view, where
        assert listed(project) == kept, where
        assert paths_in(project) == paths, (where, paths_in(project) ^ paths)
        undone = run(project, "undo", str(kept[-1]), "--yes")
        assert undone.code == 0, (where, undone)
        assert base_of(project) == before, where
        assert view_of(project) == view, where
