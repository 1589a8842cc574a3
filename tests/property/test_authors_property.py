"""The runs noted for an entry are those found by following each record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yolofs.audit.runs import ALSO, run_of
from yolofs.journal.records import ChangeRecord, Delete, Keep, Rename, Stage
from yolofs.paths import RelPath, StoreIno
from yolofs.session.attribution import NO_RUN, Attribution
from yolofs.session.authors import authors_of

PATHS = [RelPath(path) for path in (b"a", b"b", b"d", b"d/a", b"d/b", b"e", b"e/a", b"e/f", b"e/f/a")]


def extra(run: int) -> tuple[tuple[str, bytes], ...]:
    return (("run", b"%d" % run),) if run else ()


paths, runs = st.sampled_from(PATHS), st.integers(0, 3)
records = st.one_of(
    st.builds(lambda path, run: Stage(1, path, StoreIno(1), extra=extra(run)), paths, runs),
    st.builds(lambda path, run: Delete(1, path, extra=extra(run)), paths, runs),
    st.builds(
        lambda src, dst, is_exchange, run: Rename(1, src, dst, exchange=is_exchange, extra=extra(run)),
        paths,
        paths,
        st.booleans(),
        runs,
    )
    .filter(lambda one: not (one.src + b"/").startswith(one.dst + b"/"))
    # no path is moved into itself
    .filter(lambda one: not (one.dst + b"/").startswith(one.src + b"/")),
    st.builds(
        lambda path, also: Keep(1, path, StoreIno(1), extra=(*extra(2), (ALSO, b"%d" % also))),
        paths,
        st.sampled_from([1, 3]),
    ),
)


@given(st.lists(records, max_size=12))
def test_runs_of_a_restated_path_are_those_of_all_its_records(found: list[ChangeRecord]) -> None:
    authors, whole = authors_of(lambda: found), Attribution(found)
    for path in PATHS:
        signed = authors.sign(Keep(0, path, StoreIno(9)), None)
        last = [one for one in found if path in (getattr(one, "path", None), getattr(one, "src", None))]
        last += [one for one in found if isinstance(one, Rename) and one.dst == path]
        if not last:
            continue
        run = run_of(signed)
        expected = sorted(whole.runs_at(path, path, is_gone=False) - {NO_RUN, run})
        also = dict(signed.extra).get(ALSO, b"")
        assert [int(one) for one in also.split(b",") if one] == expected, path
