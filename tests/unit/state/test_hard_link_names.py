"""Which of several names of a file moved: in journals of older versions, and in plans that would
lose one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.support.commit_model import CommitScribe
from tests.support.core_driver import CoreDriver
from tests.support.core_in_python import core_in_python
from yolofs.commit import Plan, plan_commit
from yolofs.commit.plan.last_check import check_names, check_rest
from yolofs.commit.plan.plan import Create, Link, MakeDirectory, Park, Place, Remove, Step
from yolofs.errors import YolofsError
from yolofs.journal.records import ChangeRecord, Keep, Rename, Stage
from yolofs.paths import RelPath, StoreIno
from yolofs.session.commit import commit
from yolofs.session.session import Session, SessionAccess
from yolofs.state.hard_links import find_misnamed
from yolofs.state.tree import Tree

A, B, C, G = RelPath(b"a"), RelPath(b"b"), RelPath(b"c"), RelPath(b"g")


# ---- journals of older versions


class OldSession:
    """A session with the names ``a`` and ``b`` of one file in base; writes records as they were."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "a").write_bytes(b"data\n")
        (root / "b").hardlink_to(root / "a")
        Session.create(os.fsencode(root))

    def write(self, make: Callable[[Session, StoreIno], list[ChangeRecord]]) -> None:
        with Session.open(os.fsencode(self.root), SessionAccess.WRITE, root=os.fsencode(self.root)) as session:
            ino = session.store.copy_up(os.fsencode(self.root / "a"), data=False)
            os.chmod(session.store.path(ino), 0o600)
            session.journal.append(*make(session, ino))

    def commit(self) -> None:
        with Session.open(os.fsencode(self.root), SessionAccess.WRITE, root=os.fsencode(self.root)) as session:
            commit(session)

    def find_misnamed(self) -> list[tuple[RelPath | None, RelPath]]:
        with Session.open(os.fsencode(self.root), SessionAccess.READ, root=os.fsencode(self.root)) as session:
            return [(staged.home, recorded) for staged, recorded in find_misnamed(session.live_changes())[1]]

    def check(self, *names: str) -> None:
        """These are the names that base has, of one file, with the new mode."""
        assert {path.name for path in self.root.iterdir()} - {".yolofs", ".yolofs.toml"} == set(names)
        stats = [(self.root / name).stat() for name in names]
        assert {st.st_ino for st in stats} == {stats[0].st_ino}
        assert {(stat.S_IMODE(st.st_mode), st.st_nlink) for st in stats} == {(0o600, len(names))}
        assert {(self.root / name).read_bytes() for name in names} == {b"data\n"}


@pytest.fixture
def old(tmp_path: Path) -> OldSession:
    return OldSession(tmp_path)


def staged_as(session: Session, path: RelPath, ino: StoreIno, origin: RelPath) -> Stage:
    fingerprint = session.base.fingerprint(session.base.lstat(A))
    return Stage(3, path, ino, base=fingerprint, origin=origin, links=2)


def test_the_name_that_was_seen_last_stays_where_the_other_moved(old: OldSession) -> None:
    old.write(lambda session, ino: [Rename(2, A, C), staged_as(session, C, ino, B)])
    assert old.find_misnamed() == [(A, B)]
    old.commit()
    old.check("b", "c")


def test_the_name_that_was_seen_last_stays_with_another_link_made_in_the_view(old: OldSession) -> None:
    old.write(
        lambda session, ino: [Rename(2, A, C), staged_as(session, C, ino, B), Stage(4, RelPath(b"z"), ino, origin=B)]
    )
    assert old.find_misnamed() == [(A, B)]
    old.commit()
    old.check("b", "c", "z")


def test_a_file_whose_two_names_both_moved_is_named_right(old: OldSession) -> None:
    old.write(lambda session, ino: [Rename(2, B, G), Rename(2, A, C), staged_as(session, C, ino, B)])
    assert old.find_misnamed() == [(A, B)]
    old.commit()
    old.check("c", "g")


def test_names_that_a_partial_commit_of_an_older_version_mixed_up_are_found(old: OldSession) -> None:
    def left(session: Session, ino: StoreIno) -> list[ChangeRecord]:
        stage = staged_as(session, C, ino, B)
        assert stage.base is not None
        kept = Keep(1, C, ino, origin=B, home=A, base=stage.base, key=-stage.base.ino, links=2)
        return [Keep(1, RelPath(b""), source=RelPath(b""), unlinked=(stage.base.ino, 1)), Keep(1, A), kept]

    old.write(left)
    assert old.find_misnamed() == [(A, B)]
    old.commit()
    old.check("b", "c")


def test_names_that_this_version_records_are_not_found_mixed_up(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data\n")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    driver = CoreDriver(os.fsencode(tmp_path))
    try:
        driver.look(b"a")
        driver.look(b"b")
        driver.rename(b"a", b"c")
        driver.chmod(b"c", 0o600)
        driver.snapshot()
        driver.unlink(b"c")
        driver.chmod(b"b", 0o640)  # the first entry of that name, and of another version
        (record,) = [
            record for record in driver.session.live_changes() if isinstance(record, Stage) and record.path == b"b"
        ]
        assert record.origin == b"b"
        assert find_misnamed(driver.session.live_changes())[1] == []
    finally:
        driver.close()


# ---- the last check


class Planned:
    """A base with two names of one file, a single file and a directory, and what was done to its
    view.
    """

    def __init__(self, scribe: CommitScribe) -> None:
        self.scribe = scribe

    def refused(self, *steps: Step) -> str:
        """Check a plan made by hand, which has to be refused; return what is said."""
        before = sorted(os.listdir(self.scribe.base.root))
        with pytest.raises(YolofsError) as caught:
            check_names(Plan(self.scribe.base.root, steps), self.scribe.tree, self.scribe.base)
        assert sorted(os.listdir(self.scribe.base.root)) == before
        assert "nothing was done" in caught.value.message
        assert "report it" in caught.value.hint
        return caught.value.message

    def plan(self) -> tuple[Step, ...]:
        return self.scribe.plan().steps


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    (base / "a").write_bytes(b"data\n")
    (base / "b").hardlink_to(base / "a")
    (base / "single").write_bytes(b"single\n")
    (base / "d/in").write_bytes(b"in\n")
    return Planned(CommitScribe(os.fsencode(base), os.fsencode(tmp_path / "store")))


def test_a_plan_that_takes_the_name_that_stays_is_refused(planned: Planned) -> None:
    """What older versions did with ``stat a b; mv a c; chmod 600 c``."""
    planned.scribe.rename(b"a", b"c")
    planned.scribe.chmod(b"c", 0o600)
    assert "would remove b, which the view still shows" in planned.refused(Remove(A, 1, 0), Park(B, 2, 0), Place(C, 2))


def test_a_plan_that_loses_a_name_of_a_file_with_one_is_refused(planned: Planned) -> None:
    planned.scribe.write(b"new", b"new")
    (create,) = (step for step in planned.plan() if isinstance(step, Create))
    assert "would remove single," in planned.refused(create, Remove(RelPath(b"single"), 9, 0))


def test_a_plan_that_parks_a_name_and_does_not_place_it_is_refused(planned: Planned) -> None:
    planned.scribe.rename(b"single", b"moved")
    assert "would remove moved," in planned.refused(Park(RelPath(b"single"), 1, 0))


def test_a_directory_that_goes_with_what_is_in_it_is_missed(planned: Planned) -> None:
    planned.scribe.write(b"d/new", b"new")
    assert "would remove d," in planned.refused(Remove(RelPath(b"d"), 1, 0))


def test_an_empty_directory_in_the_place_of_one_with_names_is_refused(planned: Planned) -> None:
    planned.scribe.chmod(b"d", 0o700)
    planned.scribe.write(b"d/new", b"new")
    d, new = (planned.scribe.tree.find(path) for path in (b"d", b"d/new"))
    assert d is not None
    assert new is not None
    assert d.staged is not None
    assert new.staged is not None
    steps = (
        Remove(RelPath(b"d"), 1, 0),
        MakeDirectory(RelPath(b"d"), d.staged.ino),
        Create(RelPath(b"d/new"), new.staged.ino, 2, 3, 0),
    )
    assert "would put something else at d than" in planned.refused(*steps)


def test_a_name_that_the_view_does_not_show_is_not_to_stay(planned: Planned) -> None:
    planned.scribe.remove(b"single")
    assert "would bring back single," in planned.refused()


def test_a_plan_that_leaves_out_a_new_name_is_refused(planned: Planned) -> None:
    planned.scribe.write(b"new", b"new")
    assert "would remove new," in planned.refused()


def test_another_file_under_a_name_is_refused(planned: Planned) -> None:
    planned.scribe.rename(b"single", b"c")
    planned.scribe.remove(b"d/in")
    steps = (Park(RelPath(b"d/in"), 1, 0), Remove(RelPath(b"single"), 2, 0), Place(C, 1))
    assert "would put something else at c than" in planned.refused(*steps)


def test_links_that_would_be_two_files_are_refused(planned: Planned) -> None:
    planned.scribe.write(b"new", b"new")
    planned.scribe.link(b"new", b"other")
    entry = planned.scribe.tree.find(b"new")
    assert entry is not None
    assert entry.staged is not None
    ino = entry.staged.ino
    steps = (Create(RelPath(b"new"), ino, 1, 3, 0), Create(RelPath(b"other"), ino, 2, 3, 0))
    assert re.search("would part or join (new|other) and", planned.refused(*steps))


def test_a_name_that_nobody_looked_at_is_not_to_be_parted_from_the_others(planned: Planned) -> None:
    planned.scribe.write(b"a", b"new")
    entry = planned.scribe.tree.find(b"a")
    assert entry is not None
    assert entry.staged is not None
    assert "would part a from other names" in planned.refused(Create(A, entry.staged.ino, 1, 3, 0, replaced=1))


def test_two_files_that_would_be_one_are_refused(planned: Planned) -> None:
    planned.scribe.rename(b"single", b"c")
    steps = (Remove(RelPath(b"single"), 1, 0), Link(C, A, 2))
    assert "would put something else at c than" in planned.refused(*steps)


def test_a_rest_that_would_not_show_the_view_is_refused(planned: Planned) -> None:
    planned.scribe.rename(b"a", b"c")
    tree, base = planned.scribe.tree, planned.scribe.base
    nothing = Plan(base.root, ())
    good = Tree([Keep(1, A), Keep(1, C, source=A)])
    check_rest(nothing, tree, base, good)
    for bad, name in ((Tree([Keep(1, A)]), "c"), (Tree([Keep(1, B), Keep(1, A), Keep(1, C, source=A)]), "b")):
        with pytest.raises(YolofsError, match=f"would remove {name}, which the view still shows"):
            check_rest(nothing, tree, base, bad)


def test_each_name_in_a_directory_that_goes_is_to_be_staged(planned: Planned) -> None:
    gone, f, g = RelPath(b"gone"), RelPath(b"gone/f"), RelPath(b"gone/g")
    base = planned.scribe.base
    os.mkdir(base.path(gone))
    for path in (f, g):
        Path(os.fsdecode(base.path(path))).write_bytes(path)
    plan = Plan(base.root, (Remove(gone, 1, 0),))
    directory, first, second = (Keep(1, path, StoreIno(ino)) for ino, path in enumerate((gone, f, g), 101))
    stands_for: dict[StoreIno, RelPath | StoreIno] = {StoreIno(101): gone, StoreIno(102): f, StoreIno(103): g}
    check_rest(plan, Tree(), base, Tree([directory, first, second]), stands_for)
    with pytest.raises(YolofsError, match="would remove gone/g, which the view still shows"):
        check_rest(plan, Tree(), base, Tree([directory, first]), stands_for)
    with pytest.raises(YolofsError, match="would remove gone/f, which the view still shows"):
        check_rest(plan, Tree(), base, Tree([directory]), stands_for)
    with pytest.raises(YolofsError, match="would put something else at gone/f than the view shows"):
        check_rest(plan, Tree(), base, Tree([directory, first, second]), stands_for | {StoreIno(102): g})


@core_in_python
def test_a_commit_with_a_wrong_plan_does_nothing(old: OldSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner itself refuses: here one that takes the wrong name, as it did."""
    from yolofs.commit.plan import planner

    real = planner._Planner.plan

    def wrong(self: planner._Planner) -> Plan:
        plan = real(self)
        steps = [msgspec.structs.replace(step, path=B) if isinstance(step, Park) else step for step in plan.steps]
        return Plan(plan.root, tuple(steps))

    old.write(lambda session, ino: [Rename(2, A, C), staged_as(session, C, ino, A)])
    monkeypatch.setattr(planner._Planner, "plan", wrong)
    with pytest.raises(YolofsError, match="would remove b, which the view still shows"):
        old.commit()
    assert sorted(path.name for path in old.root.iterdir() if path.name[0] != ".") == ["a", "b"]
    assert not (old.root / ".yolofs/commits/1/plan.json").exists()
    monkeypatch.undo()
    old.commit()
    old.check("b", "c")


def test_a_right_plan_passes_the_last_check(planned: Planned) -> None:
    planned.scribe.rename(b"a", b"c")
    planned.scribe.chmod(b"c", 0o600)
    planned.scribe.exchange(b"single", b"b")
    assert plan_commit(planned.scribe.tree, planned.scribe.base, planned.scribe.store).steps
