"""A commit of an earlier state of the view: base is what that showed, and the view is what it is, without conflicts."""

from __future__ import annotations

import os

from hypothesis import event, example, given, note

from tests.property.test_commit_property import Operation, after, hard_links, perform, programs
from tests.support.commit_model import besides, is_spare, scan
from yolofs.commit import execute, find_conflicts, plan_commit
from yolofs.commit.plan.last_check import check_rest
from yolofs.commit.select.compose import compose
from yolofs.errors import HardLinksError
from yolofs.journal.codec import decode, encode
from yolofs.state.tree import Tree


def changed_ns(root: bytes) -> dict[int, int]:
    """Return the ctime of all in base, which is newer than anything that a scribe does."""
    found = [os.lstat(os.path.join(top, name)) for top, *names in os.walk(root) for name in (*names[0], *names[1])]
    return {st.st_ino: st.st_ctime_ns for st in found}


def check(first: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]) -> None:
    with after(first, links) as (scribe, parking):
        root, wanted, earlier = scribe.base.root, scribe.expected(), scribe.freeze()
        for name, *arguments in second:
            if name == "freeze":
                scribe.freeze()
            else:
                perform(scribe, name, *arguments)
        view, present = scribe.expected(), scribe.tree
        commits = os.path.dirname(parking) + b"/commits"
        os.makedirs(commits)
        try:
            composed = compose(earlier, present, scribe.base, scribe.store, commits)
        except HardLinksError:
            event("refused for hard links")
            return
        for record in composed.records:
            note(f"left: {record}")
            assert decode(encode(record)) == record
        plan = plan_commit(earlier, scribe.base, scribe.store)
        rest = Tree(composed.records)
        if composed.records:
            check_rest(plan, present, scribe.base, rest)
        execute(plan, scribe.store, parking=parking, is_spare=besides(composed.records), durable=False)
        assert scan(root) == wanted
        scribe.freeze()
        scribe.tree = rest
        assert scribe.expected() == view
        event(f"something stays: {bool(composed.records)}")
        assert not find_conflicts(rest, scribe.base, scribe.store, restored=changed_ns(root))
        plan = plan_commit(rest, scribe.base, scribe.store)
        execute(plan, scribe.store, parking=parking + b"2", is_spare=is_spare, durable=False)
        assert scan(root) == view


@given(programs, programs, hard_links)
def test_base_is_what_was_shown_and_the_view_stays(
    first: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(first, second, links)


@given(programs, programs)
@example([("write", b"b", b"one")], [("write", b"b", b"two")])
@example([("write", b"b", b"one"), ("rename", b"b", b"d/q")], [("write", b"d/q", b"three")])
@example([("chmod", b"b", 0o600)], [("write", b"b", b"three")])
@example(
    [("mkdir", b"x"), ("write", b"x/f", b"1")], [("rename", b"x", b"y"), ("write", b"y/f", b"22"), ("remove", b"b")]
)
def test_it_is_the_same_where_no_file_has_several_names(first: list[Operation], second: list[Operation]) -> None:
    check(first, second, [])
