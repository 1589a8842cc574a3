"""A commit of an earlier state: base becomes that state, and the view stays, without conflicts."""

from __future__ import annotations

import os
import stat

import msgspec
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.test_commit_property import Operation, after, hard_links, perform_all, programs
from tests.support.commit_model import CommitScribe, besides, is_spare, scan
from tests.support.model_steps import so_many
from yolofs.commit import execute, find_conflicts, plan_commit
from yolofs.commit.plan.last_check import check_rest
from yolofs.commit.select.compose import compose, foretell
from yolofs.errors import HardLinksError
from yolofs.journal.codec import decode, encode
from yolofs.journal.records import Keep
from yolofs.paths import StoreIno
from yolofs.state.hard_links import nlink_of
from yolofs.state.tree import Tree
from yolofs.store.restored import InodeCtime


def changed_ns(root: bytes) -> set[InodeCtime]:
    """Return the inode ctimes of all in base, which is newer than anything that a scribe does."""
    found = [os.lstat(os.path.join(top, name)) for top, *names in os.walk(root) for name in (*names[0], *names[1])]
    return {(st.st_ino, st.st_ctime_ns) for st in found}


def check_link_counts(scribe: CommitScribe) -> None:
    """See that the view tells of each file how many names it has, as it is without looking for
    them.
    """
    for path, node in scribe.expected().items():
        shown = scribe.shown(path)
        assert shown is not None
        if shown.staged is not None:
            count = scribe.tree.nlink(shown.staged)
        else:
            assert shown.base is not None
            count = nlink_of(scribe.tree, scribe.base, scribe.base.lstat(shown.base))
        assert node.kind == stat.S_IFDIR or count == len(node.links), path


def without_numbers(records: list[Keep]) -> list[Keep]:
    return [msgspec.structs.replace(record, ino=record.ino and StoreIno(1)) for record in records]


def told_beforehand(scribe: CommitScribe, earlier: Tree, commits: bytes) -> list[Keep] | str:
    """Return what is to stay staged, without numbers of store inodes, or the refusal; see that
    nothing is made.
    """
    before = scan(scribe.store.directory)
    try:
        return without_numbers(foretell(earlier, scribe.tree, scribe.base, scribe.store, commits).records)
    except HardLinksError as error:
        return error.message
    finally:
        assert scan(scribe.store.directory) == before


def check(
    first: list[Operation],
    second: list[Operation],
    links: list[tuple[bytes, ...]],
    *,
    may_be_refused: bool = True,
    travels: bool = False,
) -> None:
    """Check a commit of the state after ``first`` while the view shows ``second``, which follows
    it; if the user ``travels``, it follows base.
    """
    with after(first, links) as (scribe, parking):
        root, wanted, earlier = scribe.base.root, scribe.expected(), scribe.freeze()
        if travels:
            scribe.travel_to_base()
        perform_all(scribe, second)
        view, present = scribe.expected(), scribe.tree
        check_link_counts(scribe)
        commits = os.path.dirname(parking) + b"/commits"
        os.makedirs(commits)
        foretold = told_beforehand(scribe, earlier, commits)
        composed, refused = None, ""
        try:
            composed = compose(earlier, present, scribe.base, scribe.store, commits)
        except HardLinksError as error:
            event("refused for hard links")
            refused = error.message
        if composed is None:
            assert may_be_refused
            assert foretold == refused
            return
        assert foretold == without_numbers(composed.records)
        for record in composed.records:
            note(f"left: {record}")
            assert decode(encode(record)) == record
        plan = plan_commit(earlier, scribe.base, scribe.store)
        rest = Tree(composed.records)
        if composed.records:
            check_rest(plan, present, scribe.base, rest, composed.stands_for)
        known, spare = changed_ns(root), besides(composed.records)
        execute(
            plan,
            scribe.store,
            parking=parking,
            is_spare=spare,
            arrived=lambda came: known.update(came.inode_ctimes),
            durable=False,
        )
        assert scan(root) == wanted
        scribe.freeze()
        scribe.tree = rest
        assert scribe.expected() == view
        check_link_counts(scribe)
        event(f"something stays: {bool(composed.records)}")
        assert not find_conflicts(rest, scribe.base, scribe.store, restored=known)
        plan = plan_commit(rest, scribe.base, scribe.store)
        execute(plan, scribe.store, parking=parking + b"2", is_spare=is_spare, durable=False)
        assert scan(root) == view


@given(programs, programs, hard_links)
@example([("remove", b"a"), ("write", b"b", b"x")], [], [(b"b", b"a", b"link"), (b"b", b"d", b"link")])
@example([("write", b"b", b"x"), ("remove", b"a")], [], [(b"b", b"a", b"link"), (b"b", b"d", b"link")])
def test_base_is_what_was_shown_and_the_view_stays(
    first: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(first, second, links)


programs_without_links = programs.map(
    lambda program: [operation for operation in program if operation[0] not in ("link", "link_metadata")]
)


@given(programs_without_links, programs_without_links)
@example(  # its path stays the same, and leads through another directory
    [("write", b"d/b", b"one")], [("rename", b"d/b", b"x"), ("exchange", b"d", b"a"), ("rename", b"x", b"d/b")]
)
@example([("write", b"b", b"one")], [("write", b"b", b"two")])
@example([("write", b"b", b"one"), ("rename", b"b", b"d/q")], [("write", b"d/q", b"three")])
@example([("chmod", b"b", 0o600)], [("write", b"b", b"three")])
@example(
    [("mkdir", b"x"), ("write", b"x/f", b"1")], [("rename", b"x", b"y"), ("write", b"y/f", b"22"), ("remove", b"b")]
)
def test_a_commit_up_to_a_generation_keeps_the_view_where_no_file_has_several_names(
    first: list[Operation], second: list[Operation]
) -> None:
    check(first, second, [], may_be_refused=False)


@given(programs_without_links, programs_without_links)
@example([("remove", b"b")], [])
@example([("write", b"b", b"one"), ("remove", b"d")], [])
@example([("remove", b"d")], [("chmod", b"d", 0o700)])
@example([("chmod", b"d", 0o700), ("rename", b"d/d", b"x")], [("remove", b"x")])
@example([("rename", b"d", b"x")], [("write", b"d/b", b"one")])
def test_a_commit_of_a_generation_that_a_travel_left_behind_keeps_the_view(
    first: list[Operation], second: list[Operation]
) -> None:
    check(first, second, [], may_be_refused=False, travels=True)


linked_paths = st.sampled_from((b"b", b"d/b", b"d/link", b"a/link", b"a/x", b"x", b"d/d/x", b"c/link"))
on_links = st.one_of(
    st.tuples(st.just("write"), linked_paths, st.sampled_from((b"one", b"two", b"three"))),
    st.tuples(st.just("chmod"), linked_paths, st.sampled_from((0o600, 0o640))),
    st.tuples(st.sampled_from(("link", "link_metadata", "rename", "exchange")), linked_paths, linked_paths),
    st.tuples(st.sampled_from(("link", "link_metadata", "rename")), linked_paths, linked_paths),
    st.tuples(st.just("remove"), linked_paths),
    st.tuples(st.sampled_from(("rename", "exchange")), st.sampled_from((b"d", b"d/d", b"a")), st.just(b"c/a")),
    st.tuples(st.just("freeze")),
)
programs_on_links = st.lists(on_links, max_size=6)
few_links = st.lists(
    st.tuples(st.just(b"b"), st.sampled_from((b"d", b"a", b"d/d")), st.sampled_from((b"link", b"x"))), max_size=3
)


@so_many(ci=20, nightly=5000)
@example([("link", b"b", b"x")], [("write", b"b", b"two")], [(b"b", b"d", b"link")])  # a name comes, then content
@example([("link", b"b", b"x")], [("link", b"b", b"d/d/x"), ("remove", b"x")], [(b"b", b"d", b"link")])
@example([("remove", b"d/link")], [("remove", b"a/link")], [(b"b", b"d", b"link"), (b"b", b"a", b"link")])
@example([("remove", b"d/link")], [("write", b"b", b"one")], [(b"b", b"d", b"link"), (b"b", b"a", b"link")])
@example([("write", b"b", b"one")], [("rename", b"b", b"d/b")], [(b"b", b"d", b"link")])
@example([], [("write", b"b", b"one"), ("rename", b"d/d/x", b"d/b")], [(b"b", b"d/d", b"x")])
@example([("write", b"x", b"one")], [("link", b"x", b"a/x")], [])  # a file born in the view
@example(  # its directories change places
    [("link", b"b", b"a/link")], [("exchange", b"d", b"c/a"), ("exchange", b"a", b"c/a")], [(b"b", b"d", b"link")]
)
@given(programs_on_links, programs_on_links, few_links)
def test_names_of_one_file_may_change_before_and_after(
    first: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(first, second, links)


@so_many(ci=20, nightly=5000)
@example([("write", b"b", b"one")], [], [(b"b", b"d", b"link")])
@example([("remove", b"b")], [], [(b"b", b"d", b"link")])
@given(programs_on_links, programs_on_links, few_links)
def test_names_of_one_file_may_change_before_a_travel_and_after(
    first: list[Operation], second: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(first, second, links, travels=True)
