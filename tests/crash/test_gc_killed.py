"""`yolofs gc` is killed at one line of its code after another: what is to be kept is there, and the
next ends it.
"""

from __future__ import annotations

import itertools
import os
from functools import partial
from pathlib import Path

import pytest

from tests.crash.test_commands_killed import Driver, Scene, base_of, fresh, view_of
from tests.support.core_driver import CoreDriver
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import as_user, end_it, kill_points, place_of, run, users
from tests.support.model_steps import how_many
from tests.support.user_identity import USERS
from yolofs.system.disk_usage import size_of

pytestmark = pytest.mark.timeout(300)
SHARES = how_many(ci=1, nightly=12)
POINTS = 4
"""For each share."""
NOTES_BYTES = 4 * 4096
"""What a command that looks may note (sizes, numbers)."""


def several_commits(project: bytes) -> None:
    """Four commits, of which two are kept, with something staged in generations that are live and
    dead.
    """
    (Path(os.fsdecode(project)) / "big").write_bytes(b"0" * 20_000)
    view = CoreDriver(project)
    for number in (b"1", b"2", b"3", b"4"):
        view.overwrite(b"big", number * 20_000)
        view.create(b"new" + number, number * 20_000, 0o644)
        view.commit()
    view.create(b"kept", b"kept", 0o644)
    kept = view.snapshot()
    view.create(b"dead", b"dead" * 5000, 0o644)
    view.snapshot()
    view.travel(kept)
    view.create(b"after", b"after", 0o644)
    view.snapshot()
    view.create(b"open", b"open", 0o644)
    view.close()
    (Path(os.fsdecode(project)) / ".yolofs.toml").write_text("[keep_commits]\ncount = 2\n")
    digest = run(project, "trust", "--json").json["digest"]
    assert run(project, "trust", "--digest", digest).code == 0


SCENES = {
    "gc": Scene(("gc", "--json"), several_commits),
    "generations": Scene(("gc", "--generations", "--json"), several_commits),
}


def paths_in(project: bytes) -> set[str]:
    """Return what there is in a project's session."""
    session = Path(os.path.realpath(os.path.join(os.fsdecode(project), ".yolofs")))
    return {str(path.relative_to(session)) for path in session.rglob("*")}


def listed(project: bytes) -> list[int]:
    return [one["commit"] for one in run(project, "commits", "--json").json["commits"]]


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(
    ("name", "is_root"), [(name, is_root) for name in SCENES for is_root in users("gc killed", name)]
)
@pytest.mark.some(1)
def test_a_killed_gc_leaves_all_commits_that_are_to_be_kept(
    monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool, share: int
) -> None:
    at = share + (SHARES if is_root else 0)
    as_user(partial(check, SCENES[name], at), monkeypatch, is_root=is_root)


def check(scene: Scene, share: int, place: Path) -> None:
    project = fresh(scene, place)
    base, view = base_of(project), view_of(project)
    whole = run(project, *scene.words, faults=Faults(0, range(0)))
    assert whole.code == 0, whole
    assert whole.json["commits"] == [1, 2]
    assert whole.json["freed_bytes"] >= 40_000
    view_of(project)
    paths = paths_in(project)
    for point, line in enumerate(kill_points(whole, share, SHARES * len(USERS), POINTS)):
        where = f"killed at line {line} of {whole.lines}"
        project = fresh(scene, place)
        assert run(project, *scene.words, line=line).is_killed, where
        assert base_of(project) == base, where
        assert listed(project)[-2:] == [3, 4], where
        if point % 2:
            assert view_of(project) == view, where
        would = run(project, *scene.words, "--dry-run")
        assert would.code == 0, (where, would)
        ended = run(project, *scene.words)
        assert ended.code == 0, (where, ended)
        sizes = would.json["freed_bytes"], ended.json["freed_bytes"]
        assert abs(sizes[0] - sizes[1]) <= NOTES_BYTES, (where, sizes)
        assert ended.json == would.json | {"dry_run": False, "freed_bytes": sizes[1]}, where
        assert run(project, *scene.words).json == {
            "commits": [],
            "generations": 0,
            "freed_bytes": 0,
            "freed_when_closed_bytes": 0,
            "killed_commands": 0,
            "dry_run": False,
            "waiting": [],
            "once_agreed": [],
        }, where
        check_kept(project, where)
        assert view_of(project) == view, where
        assert paths_in(project) == paths, where
        check_undo(project, where)


def check_kept(project: bytes, where: str) -> None:
    """Check that the kept commits and an earlier generation are still there."""
    assert listed(project) == [3, 4], where
    for one in run(project, "commits", "--json").json["commits"]:
        assert one["kept_bytes"] >= 20_000, where
    view = Driver(project)
    view.snapshot()
    view.travel(1)
    names = {path for path in view.tree() if path.startswith((b"k", b"d", b"a", b"o"))}
    assert names == {b"kept"}, where
    view.travel(view.session.timeline.resolve("-"))
    view.close()


def check_undo(project: bytes, where: str) -> None:
    """Take back the last commit that is kept; the undo is a commit, and takes none out."""
    view = view_of(project)
    undone = run(project, "undo", "4", "--yes")
    assert undone.code == 0, (where, undone)
    assert base_of(project)[b"big"][2] == b"3" * 20_000, where
    assert view_of(project) == view, where
    assert listed(project) == [3, 4, 5], where


def test_gc_removes_files_that_a_killed_command_had_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_of(monkeypatch, is_root=True) as place:
        project = fresh(SCENES["gc"], place)
        run(project, "gc")
        before = paths_in(project)
        session = Path(os.path.realpath(os.path.join(os.fsdecode(project), ".yolofs")))
        for name in ("journal.next", "journal.merged", "journal.merged.length"):
            (session / name).write_bytes(b"0" * 4096)
        assert run(project, "gc", "--dry-run", "--json").json["freed_bytes"] >= 3 * 4096
        assert run(project, "gc", "--json").json["freed_bytes"] >= 3 * 4096
        assert paths_in(project) == before


def replaced_by_a_commit(project: bytes) -> None:
    """One commit that keeps something, and something staged of which a commit will."""
    here = Path(os.fsdecode(project))
    for name in ("big", "other"):
        (here / name).write_bytes(b"0" * 20_000)
    view = CoreDriver(project)
    view.unlink(b"big")
    view.commit()
    view.unlink(b"other")
    view.close()


@pytest.mark.parametrize(
    ("goes_back", "words"),
    points(list(itertools.product([False, True], [("undo", "1", "--yes"), ("commit", "--yes")])), "sizes", some=1),
)
def test_sizes_of_commits_are_right_after_a_look_at_an_interrupted_one(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], goes_back: bool
) -> None:
    with place_of(monkeypatch, is_root=os.geteuid() == 0) as place:
        scene = Scene(words, replaced_by_a_commit)
        whole = run(fresh(scene, place), *words, faults=Faults(0, range(0)))
        ends = set()
        for line in whole.switch[:: max(1, len(whole.switch) // 6)]:
            project = fresh(scene, place)
            assert run(project, *words, line=line + 1).is_killed
            ends.add(end_it(project, goes_back=goes_back))  # which looks at the status first
            commits = Path(os.path.realpath(os.path.join(os.fsdecode(project), ".yolofs"))) / "commits"
            for one in run(project, "commits", "--all", "--json").json["commits"]:
                kept = size_of(os.fsencode(commits / str(one["commit"]) / "replaced"))
                assert one["kept_bytes"] == kept, (line, one)
        assert ends >= {"taken back" if goes_back else "finished"}
