"""A checkpoint and the rest of the journal make what the whole journal makes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.core_driver import CoreDriver
from yolofs.paths import Generation, RelPath
from yolofs.session.session import Session, SessionAccess
from yolofs.state import checkpoint
from yolofs.state.tree import Entry, Staged, Tree

PATHS = [b"a", b"b", b"d", b"d/a", b"d/\xff", b"d/e", b"d/e/f", b"base", b"base/f", b"base/g", b"base/hard"]
paths = st.sampled_from(PATHS)
steps = st.one_of(
    st.tuples(st.just("create"), paths, st.binary(max_size=3), st.sampled_from([0o600, 0o644])),
    st.tuples(st.just("append"), paths, st.binary(min_size=1, max_size=3)),
    st.tuples(st.just("write_without_name"), paths, st.binary(min_size=1, max_size=3)),
    st.tuples(st.just("chmod"), paths, st.sampled_from([0o600, 0o755])),
    st.tuples(st.just("mkdir"), paths, st.just(0o755)),
    st.tuples(st.just("unlink"), paths),
    st.tuples(st.just("rmdir"), paths),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("link"), paths, paths),
    st.tuples(st.just("snapshot")),
    st.tuples(st.just("travel"), st.integers(0, 20)),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("reopen"), st.booleans()),
)


@given(st.lists(steps, max_size=40))
@example([("append", b"base/g", b"x"), ("unlink", b"base/g"), ("snapshot",)])
@example(
    [
        ("create", b"a", b"", 0o600),
        ("snapshot",),
        ("reopen", True),
        ("write_without_name", b"a", b"x"),
        ("create", b"a", b"", 0o600),
    ]
)
def test_a_session_is_the_same_with_and_without_its_checkpoint(program: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory(prefix="yolofs-test.") as top:
        root = os.fsencode(top)
        os.mkdir(os.path.join(root, b"base"))
        for name in (b"base/f", b"base/g"):
            with open(os.path.join(root, name), "wb") as file:
                file.write(name)
        os.link(os.path.join(root, b"base/f"), os.path.join(root, b"base/hard"))
        driver = CoreDriver(root)
        try:
            for word, *arguments in program:
                if word == "reopen":
                    reopen(driver, with_checkpoint=arguments[0])
                elif word == "checkpoint":
                    with Session.open(root, SessionAccess.READ, root=root) as other:
                        assert other.write_checkpoint(least_records=0)
                elif word == "travel":
                    driver.travel(arguments[0] % (driver.session.timeline.present + 1))
                else:
                    with contextlib.suppress(OSError):
                        getattr(driver, word)(*arguments)
            reopen(driver, with_checkpoint=True)
        finally:
            driver.close()


def reopen(driver: CoreDriver, *, with_checkpoint: bool) -> None:
    """Close and open a session, and compare it with what a replay of the whole journal gives."""
    if with_checkpoint:
        driver.session.write_checkpoint(least_records=0)
    driver.remount()
    session = driver.session
    assert bool(session.journal.known_bytes) == (checkpoint.read(session.directory) is not None)
    present = session.present()
    path = os.path.join(session.directory, checkpoint.FILE_NAME)
    if not os.path.exists(path):
        return
    os.rename(path, path + b".away")
    try:
        with Session.open(driver.root, SessionAccess.READ, root=driver.root) as replayed:
            assert not replayed.journal.known_bytes
            assert session.journal.markers == replayed.journal.markers
            assert session.journal.segment_counts() == replayed.journal.segment_counts()
            assert session.journal_numbers() == replayed.journal_numbers()
            # Numbers in between were those of files that have lost their last name: nothing is
            # there any more.
            between = range(*sorted((present.fresh_from, replayed.present().fresh_from)))
            assert not set(session.store).intersection(between)
            assert described(present.tree) == described(replayed.present().tree)
            states = [described(replayed.state(Generation(number))) for number in range(session.timeline.present + 1)]
            for number, state in enumerate(states):
                generation = Generation(number)
                assert described(session.state(generation)) == state
                both = session.states(generation, None)
                assert [described(tree) for tree in both] == [state, described(present.tree)]
                for other in range(number):
                    both = session.states(Generation(other), generation)
                    assert [described(tree) for tree in both] == [states[other], state]
    finally:
        os.rename(path + b".away", path)


def described(tree: Tree) -> dict[str, Any]:
    """Return all that a tree holds, as plain values."""
    entries = {path: described_entry(entry) for path, entry in [(RelPath(b""), tree.root), *tree.walk()]}
    names = attributes(tree) - {"root", "_last_dir"}
    rest = {name: described_value(getattr(tree, name)) for name in names}
    return {"entries": entries, **rest}


def attributes(value: object) -> set[str]:
    """Return the names of an object's attributes, of a compiled class too."""
    kind = type(value)
    for listed in ("__mypyc_attrs__", "__slots__"):
        if hasattr(kind, listed):
            return set(getattr(kind, listed))
    return set(vars(value))


def described_entry(entry: Entry) -> dict[str, Any]:
    names = attributes(entry) - {"parent", "children"}
    return {name: described_value(getattr(entry, name)) for name in names}


def described_value(value: Any) -> Any:
    if isinstance(value, Staged):
        rest = {name: getattr(value, name) for name in attributes(value) - {"names"}}
        return rest | {"names": sorted(entry.path() for entry in value.names)}
    if isinstance(value, dict):
        return {key: described_value(below) for key, below in value.items()}
    return value
