"""What a plan that has lain on the disk may not do, though its seal fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.file_flags import APPEND, IMMUTABLE, flagged
from tests.support.second_disk import mounted_disk
from yolofs.commit.plan.plan import Create, Link, MakeDirectory, Park, Place, Plan, Remove, Step
from yolofs.commit.plan.recheck import find_in_way, find_obstacle, find_problem
from yolofs.paths import RelPath, StoreIno
from yolofs.store.base import Base
from yolofs.store.store import Store


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        (b"home/state", True),
        (b"home/state/key", True),
        (b"home/state/sessions/x/journal", True),
        (b"home/state2", False),
        (b"home/other/state", False),
        (b"home", False),
    ],
)
@pytest.mark.parametrize("done", [0, 1])
def test_nothing_is_committed_into_a_closed_directory(tmp_path: Path, path: bytes, is_refused: bool, done: int) -> None:
    """Whether the step is done already or not: it tells that the plan is none of ours."""
    state = tmp_path / "base/home/state"
    state.mkdir(parents=True)
    store = Store(os.fsencode(tmp_path / "store"))
    Path(os.fsdecode(store.path(1))).parent.mkdir(parents=True)
    Path(os.fsdecode(store.path(1))).write_text("content")
    base = Base(os.fsencode(tmp_path / "base"))
    plan = Plan(base.root, (Create(RelPath(path), StoreIno(1), 1, 7, 1),))
    closed = [os.fsencode(state), b"/elsewhere"]
    problem = find_problem(plan, base, closed=closed) or find_obstacle(plan, base, store, done=done)
    expected = f"its plan has {os.fsdecode(path)}, where no view and no commit may do anything" if is_refused else ""
    assert problem == expected


def test_a_base_that_is_closed_itself_takes_nothing(tmp_path: Path) -> None:
    base = Base(os.fsencode(tmp_path))
    plan = Plan(base.root, (Create(RelPath(b"x"), StoreIno(1), 1, 1, 1),))
    assert "its plan has x" in find_problem(plan, base, closed=[base.root])


def test_a_plan_for_another_base_is_refused(tmp_path: Path) -> None:
    base = Base(os.fsencode(tmp_path))
    problem = find_problem(Plan(b"/elsewhere", ()), base)
    assert problem == f"its plan is for the base /elsewhere, and the session's is {tmp_path}"


@pytest.mark.parametrize(
    ("path", "is_refused"), [(b"secret/x", True), (b"later", True), (b"runtime/x", True), (b"secrets/x", False)]
)
def test_nothing_is_committed_where_no_view_shows_anything(tmp_path: Path, path: bytes, is_refused: bool) -> None:
    for name in ("secret", "runtime"):
        (tmp_path / name).mkdir()
    hidden = [bytes(tmp_path / name) for name in ("secret", "later")]  # of which one is not there
    base = Base(os.fsencode(tmp_path), hidden=hidden, runtime=[bytes(tmp_path / "runtime")])
    problem = find_problem(Plan(base.root, (Create(RelPath(path), StoreIno(1), 1, 7, 1),)), base)
    assert bool(problem) is is_refused


@pytest.mark.root_only
def test_nothing_is_committed_where_another_mount_shows_what_is_hidden(tmp_path: Path) -> None:
    for name in ("home/secret", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    with mounted_disk(tmp_path / "elsewhere", source=tmp_path / "home"):
        base = Base(os.fsencode(tmp_path), hidden=[bytes(tmp_path / "home/secret")])
        plan = Plan(base.root, (Create(RelPath(b"elsewhere/secret/x"), StoreIno(1), 1, 7, 1),))
        assert "where no view and no commit may do anything" in find_problem(plan, base)


# ---- what would stop the steps that are left


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """A base with a directory, two files and a link."""
    root = tmp_path / "base"
    (root / "d/sub").mkdir(parents=True)
    (root / "a").write_text("a\n")
    (root / "d/x").write_text("x\n")
    (root / "link").symlink_to("d")
    return Base(os.fsencode(root))


def at(base: Base, path: str) -> Path:
    return Path(os.fsdecode(base.root), path)


def number(base: Base, path: str) -> int:
    return at(base, path).lstat().st_ino


def create(path: bytes, replaced: int | None = None) -> Create:
    return Create(RelPath(path), StoreIno(1), 7, 0, 0, replaced)


def obstacle(base: Base, *steps: Step, done: int = 0, is_settled: bool = False) -> str:
    store = Store(os.path.join(os.path.dirname(base.root), b"store"))
    return find_obstacle(Plan(base.root, steps), base, store, done=done, is_settled=is_settled)


@pytest.mark.parametrize("path", [b"link/x", b"link/sub/x"])
def test_a_link_on_the_way_is_named(base: Base, path: bytes) -> None:
    step = Link(RelPath(path), RelPath(b"a"), 1)
    said = f"a symbolic link lies at {at(base, 'link')}, on the way to {os.fsdecode(path)}"
    assert obstacle(base, step) == said
    assert obstacle(base, step, done=1) == ""


def test_a_link_that_the_plan_itself_takes_away_or_puts_there_is_no_obstacle(base: Base) -> None:
    goes = Remove(RelPath(b"link"), 1, number(base, "link"))
    assert obstacle(base, goes, Link(RelPath(b"link/x"), RelPath(b"a"), 2)) == ""


@pytest.mark.parametrize("is_settled", [False, True])
def test_what_the_store_lacks_is_named_unless_all_is_done(base: Base, is_settled: bool) -> None:
    said = "" if is_settled else "the content of new is missing from the store"
    assert obstacle(base, create(b"new"), is_settled=is_settled) == said


def in_way(base: Base, *steps: Step, done: int = 0, made: set[int] | None = None) -> str:
    return find_in_way(Plan(base.root, steps), base, done=done, made=made or set())


def test_a_file_of_the_hosts_where_something_new_is_to_be_is_in_the_way(base: Base) -> None:
    said = f"{at(base, 'a')} has been made there meanwhile and is in the way"
    assert in_way(base, create(b"a")) == said
    assert in_way(base, MakeDirectory(RelPath(b"a"), StoreIno(1), 1)) == said
    assert in_way(base, create(b"a"), done=1) == ""
    assert in_way(base, create(b"a"), made={number(base, "a")}) == ""  # the commit's own, and not in the log yet
    assert in_way(base, create(b"a", replaced=number(base, "a"))) == ""


def test_what_is_to_move_away_first_is_not_in_the_way(base: Base) -> None:
    park = Park(RelPath(b"a"), 1, number(base, "a"))
    assert in_way(base, park, create(b"a"), Place(RelPath(b"z"), 1)) == ""


def test_what_the_host_has_put_where_something_is_to_move_away_first_is_in_the_way(base: Base) -> None:
    park = Park(RelPath(b"a"), 1, number(base, "d/x"))
    said = f"{at(base, 'a')} has been made there meanwhile and is in the way"
    assert in_way(base, park, create(b"a"), Place(RelPath(b"z"), 1)) == said


def test_what_has_arrived_already_is_not_in_its_own_way(base: Base) -> None:
    """It was moved, which the log does not say yet."""
    park = Park(RelPath(b"z"), 1, number(base, "a"))
    assert in_way(base, park, Place(RelPath(b"a"), 1), done=1) == ""


@pytest.mark.parametrize("flag", [IMMUTABLE, APPEND], ids=["immutable", "append-only"])
def test_a_directory_that_nobody_may_change_is_in_the_way(base: Base, flag: int) -> None:
    with flagged(at(base, "d"), flag):
        said = f"{at(base, 'd')} is immutable or append-only (chattr)"
        assert in_way(base, create(b"d/new")) == said
        assert in_way(base, create(b"d/sub/new")) == ""
        assert in_way(base, create(b"new")) == ""
        moved = Park(RelPath(b"d"), 1, number(base, "d"))
        assert in_way(base, moved, create(b"d/new"), Place(RelPath(b"e"), 1)) == ""  # another will be there by then


@pytest.mark.root_only
def test_a_read_only_base_is_in_the_way(base: Base) -> None:
    with mounted_disk(at(base, "d"), is_read_only=True):
        inner = Base(os.path.join(base.root, b"d"))
        assert in_way(inner, create(b"new")) == f"{at(base, 'd')} is read-only"
        assert in_way(inner, create(b"new"), done=1) == ""
