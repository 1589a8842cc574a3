"""Which runs a change is due to, from the records between two states."""

from __future__ import annotations

import pytest

from yolofs.changes.changes import Change, ChangeKind
from yolofs.journal.records import Delete, Record, Rename, Stage
from yolofs.paths import RelPath, StoreIno
from yolofs.session.attribution import NO_RUN, Attribution


def extra(run: int) -> tuple[tuple[str, bytes], ...]:
    return (("run", b"%d" % run),) if run else ()


def stage(run: int, path: bytes) -> Stage:
    return Stage(0, RelPath(path), StoreIno(1), extra=extra(run))


def delete(run: int, path: bytes) -> Delete:
    return Delete(0, RelPath(path), extra=extra(run))


def rename(run: int, src: bytes, dst: bytes, *, exchange: bool = False) -> Rename:
    return Rename(0, RelPath(src), RelPath(dst), exchange=exchange, extra=extra(run))


def change(kind: str, path: bytes, old_path: bytes | None = None) -> Change:
    return Change(ChangeKind(kind), RelPath(path), RelPath(old_path) if old_path is not None else None)


@pytest.mark.parametrize(
    ("records", "found", "runs"),
    [
        pytest.param([stage(1, b"a"), stage(2, b"b")], change("A", b"a"), {1}, id="each its own"),
        pytest.param([stage(1, b"a"), stage(2, b"a")], change("M", b"a"), {1, 2}, id="both the same"),
        pytest.param([stage(0, b"a"), stage(2, b"a")], change("M", b"a"), {NO_RUN, 2}, id="somebody in no run"),
        pytest.param([stage(1, b"a")], change("A", b"other"), set(), id="no record tells"),
        pytest.param([stage(1, b"a"), delete(2, b"a")], change("D", b"a"), {2}, id="gone by the run that deleted it"),
        pytest.param(
            [delete(1, b"a"), stage(2, b"a")], change("M", b"a"), {1, 2}, id="deleted by one and made again by another"
        ),
        pytest.param([rename(1, b"a", b"b")], change("R", b"b", b"a"), {1}, id="moved"),
        pytest.param(
            [rename(1, b"src", b"lib"), stage(2, b"lib/x")],
            change("M", b"lib/x", b"src/x"),
            {2},
            id="written in a directory that another moved",
        ),
        pytest.param(
            [stage(2, b"src/x"), rename(1, b"src", b"lib")],
            change("M", b"lib/x", b"src/x"),
            {2},
            id="written before another moved its directory",
        ),
        pytest.param(
            [stage(2, b"src/x"), rename(1, b"src", b"lib")],
            change("R", b"lib", b"src"),
            {1},
            id="the directory is the mover's",
        ),
        pytest.param(
            [rename(1, b"src", b"lib")], change("R", b"lib/deep/x", b"src/deep/x"), {1}, id="what came along, expanded"
        ),
        pytest.param(
            [rename(1, b"src", b"lib"), delete(2, b"lib/x")],
            change("D", b"src/x"),
            {2},
            id="deleted in a directory that another moved",
        ),
        pytest.param(
            [rename(1, b"src", b"lib"), stage(2, b"src"), stage(2, b"src/x")],
            change("A", b"src/x"),
            {2},
            id="made anew where something was moved away",
        ),
        pytest.param(
            [stage(1, b"file.new"), rename(1, b"file.new", b"file")], change("M", b"file"), {1}, id="replaced by rename"
        ),
        pytest.param(
            [rename(1, b"a", b"b"), delete(2, b"b")],
            change("D", b"a"),
            {1, 2},
            id="moved by one and deleted by another",
        ),
        pytest.param(
            [stage(2, b"a"), rename(1, b"a", b"b", exchange=True)], change("R", b"b", b"a"), {1, 2}, id="exchanged"
        ),
        pytest.param(
            [rename(1, b"a", b"b", exchange=True), stage(2, b"a/x")],
            change("M", b"a/x", b"b/x"),
            {2},
            id="in the other",
        ),
        pytest.param([stage(3, b"")], change("X", b""), {3}, id="base itself"),
        pytest.param([delete(4, b"dir/x"), delete(4, b"dir")], change("D", b"dir/x"), {4}, id="with its directory"),
    ],
)
def test_a_change_is_due_to_the_runs_that_made_it(records: list[Record], found: Change, runs: set[int]) -> None:
    assert Attribution(records).runs_of(found) == runs


def test_twenty_thousand_records_take_no_time_to_speak_of() -> None:
    """Renames of a directory with many names do not copy them."""
    records: list[Record] = [stage(1, b"dir0/%d" % at) for at in range(10_000)]
    records += [rename(2, b"dir%d" % at, b"dir%d" % (at + 1)) for at in range(10_000)]
    attribution = Attribution(records)
    assert attribution.runs_of(change("A", b"dir10000/77")) == {1}
