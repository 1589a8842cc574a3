"""A state that is said anew is the same; without some changes it still can be committed, without
any it is base.
"""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from tests.property.test_commit_property import Operation, after, hard_links, programs
from tests.property.test_partial_commit_property import commit
from tests.support.commit_model import scan
from tests.support.model_steps import so_many
from yolofs.commit.select.entry_authors import Authors
from yolofs.commit.select.restate import Restated, restate
from yolofs.journal.codec import decode, encode
from yolofs.paths import RelPath
from yolofs.state.tree import Tree

few = so_many(ci=10, nightly=2000)


@few
@given(programs, hard_links, st.lists(st.integers(0, 20), max_size=3))
def test_what_is_dropped_is_as_in_base_and_all_else_as_it_was(
    program: list[Operation], links: list[tuple[bytes, ...]], picks: list[int]
) -> None:
    with after(program, links) as (scribe, parking):
        view, base = scribe.expected(), scan(scribe.base.root)

        def said_anew(*without: RelPath) -> Restated:
            authors = Authors(scribe.records, 1)
            return restate(scribe.tree, scribe.base, scribe.store, authors, dropped=without)

        whole = said_anew()
        assert not whole.dropped
        for record in whole.records:
            assert decode(encode(record)) == record
        changed = sorted(path for path in {*view, *base} if view.get(path) != base.get(path))
        dropped = [RelPath(changed[pick % len(changed)]) for pick in picks] if changed else []
        part, nothing = said_anew(*dropped), said_anew(*map(RelPath, changed), *whole_paths(whole))
        scribe.tree = Tree(whole.records)
        assert scribe.expected() == view
        scribe.tree = Tree(nothing.records)
        assert {path: node.content for path, node in scribe.expected().items()} == (
            {path: node.content for path, node in base.items()}
        )
        scribe.tree = Tree(part.records)
        event(f"something is dropped: {bool(part.dropped)}")
        kept = scribe.expected()
        commit(scribe, scribe.tree, parking)
        assert scan(scribe.base.root) == kept


def whole_paths(whole: Restated) -> list[RelPath]:
    """Return all paths that a state says anything of."""
    paths = [record.path for record in whole.records]
    return paths + [path for record in whole.records for path in (record.home, record.source) if path is not None]
