"""Any selection of hunks of any work: base and the rest of the staging add up to all that was
staged.

And dropping everything gives base.  A session does it, on real files, by the view's own operations.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.support.clocks import let_clocks_pass
from tests.support.core_driver import CoreDriver
from tests.support.model_steps import so_many
from tests.support.plain_directory import RENAME_EXCHANGE
from tests.support.session_cleaning import remove_sessions_below
from yolofs.changes.changes import ChangeKind, compare
from yolofs.changes.hunks import PLACES, FileHunks, Hunk, HunkKind, hunks_of
from yolofs.changes.picks import LineNumbers, all_but
from yolofs.errors import HardLinksError, StaleHunkError
from yolofs.paths import Generation
from yolofs.session.commit import split_staged
from yolofs.session.selecting import HeldHunk, Hunks, actions, drop_hunks, select_hunks
from yolofs.session.up_to import commit_up_to
from yolofs.state.tree import Tree

pytestmark = pytest.mark.timeout(600)  # on a busy machine

Operation: TypeAlias = tuple[Any, ...]
Picks: TypeAlias = dict[str, LineNumbers | None]

TEXT = b"".join(b"%d\n" % number for number in range(12))
BASE = {b"a": TEXT, b"d/a": b"one\ntwo\n", b"d/b": TEXT * 2, b"d/e/a": b"no end", b"d/e/bin": b"\0" * 9, b"e/a": b""}
NAMES = (b"a", b"b", b"c", b"d", b"n")
names = st.sampled_from(NAMES)
places = st.tuples(st.integers(0, 30), st.none() | st.none() | names)
"""A number to choose among the paths there are, and perhaps a name in that directory, or beside
that file.
"""
files = st.sampled_from((*BASE, b"link"))
directories = st.sampled_from((b"d", b"d/e", b"e"))
lines = st.sampled_from((b"x\n", b"y\r\n", b"3\n", b"\xff\n", b"end"))
edits = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 2), st.lists(lines, max_size=2)), min_size=1, max_size=4)
new = st.sampled_from((b"", b"new\nnewer\n", b"\0"))
operations = st.one_of(
    st.tuples(st.sampled_from(("edit", "save")), files | places, edits),
    st.tuples(st.just("edit"), st.sampled_from(tuple(BASE)), edits),
    st.tuples(st.just("create"), places, new, st.sampled_from((0o644, 0o755))),
    st.tuples(st.just("chmod"), files | places, st.sampled_from((0o600, 0o755, 0o4755))),
    st.tuples(st.just("chown"), files | places, st.just(17), st.sampled_from((-1, 18))),
    st.tuples(st.just("setxattr"), places, st.just(b"user.one"), st.just(b"1")),
    st.tuples(st.just("utimes"), places, st.just(1_300_000_000_000_000_000)),
    st.tuples(st.just("mkdir"), places, st.just(0o755)),
    st.tuples(st.just("symlink"), names, places),
    st.tuples(st.just("retarget"), st.just(b"link"), names),
    st.tuples(st.just("remove"), files | directories | places),
    st.tuples(st.just("rename"), files | directories | places, places),
    st.tuples(st.just("rename"), places, places),
    st.tuples(st.just("exchange"), files | directories | places, files | directories | places),
    st.tuples(st.just("truncate"), files | places, st.sampled_from((0, 5, 1 << 20))),
    st.tuples(st.just("snapshot")),
)
programs = st.lists(operations, max_size=12)
with_links = st.lists(operations | st.tuples(st.just("link"), files | places, places), max_size=12)


class Work:
    """A view of a small base, by paths."""

    def __init__(self, directory: bytes, links: tuple[tuple[bytes, bytes], ...]) -> None:
        self.root = os.path.join(directory, b"base")
        for path, data in BASE.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(data)
            os.chmod(full, 0o644)
            os.utime(full, ns=(0, 1_400_000_000_000_000_000))
        os.symlink(b"a", os.path.join(self.root, b"link"))
        for old, new in links:
            os.link(os.path.join(self.root, old), os.path.join(self.root, new))
        self.driver = CoreDriver(self.root)
        self.driver.may_leave = True

    def perform(self, name: str, *arguments: Any) -> None:
        """Do what a program could do; what the view refuses is not done."""
        found: list[Any] = [self._find(one) if isinstance(one, tuple) else one for one in arguments]
        with contextlib.suppress(OSError):
            match name:
                case "edit" | "save":
                    self._edit(name, *found)
                case "remove":
                    self._remove(found[0])
                case "exchange":
                    self.driver.rename(found[0], found[1], RENAME_EXCHANGE)
                case "retarget":
                    self.driver.unlink(found[0])
                    self.driver.symlink(found[1], found[0])
                case _:
                    getattr(self.driver, name)(*found)
            note(f"{name} {found!r}")
            event(f"did {name}")

    def _find(self, place: tuple[int, bytes | None]) -> bytes:
        number, name = place
        tree = self.driver.tree()
        path = sorted(tree)[number % len(tree)]
        if name is None:
            return path
        return os.path.join(path if tree[path][0] == "dir" else os.path.dirname(path), name)

    def _edit(self, name: str, path: bytes, edits: list[tuple[int, int, list[bytes]]]) -> None:
        kept = self.driver.read(path).splitlines(keepends=True)
        for at, count, new in edits:
            kept[at : at + count] = new
        if name == "edit":
            self.driver.overwrite(path, b"".join(kept))
        else:
            self.driver.create(path + b"~", b"".join(kept), 0o600)
            self.driver.rename(path + b"~", path)

    def _remove(self, path: bytes) -> None:
        inside = [found for found in self.driver.tree() if found == path or found.startswith(path + b"/")]
        for one in sorted(inside, key=len, reverse=True):
            try:
                self.driver.unlink(one)
            except IsADirectoryError:
                self.driver.rmdir(one)

    def look(self) -> dict[bytes, tuple[Any, ...]]:
        """Return what the view shows; of directories not their times, and how often nothing they
        are linked.
        """
        self.driver.remount()
        return without_times(self.driver.tree())

    def facts(self, tree: Tree | None = None, old: Tree | None = None) -> Counter[Any]:
        """Return what leads from base, or an ``old`` state, to a state, by default the view."""
        session = self.driver.session
        changes = compare(old or Tree(), tree if tree is not None else session.state(), session.base, session.store)
        return net(fact for change in changes for fact in facts_of(hunks_of(change, session.store), None))


def net(facts: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """Count facts, without lines that go and come: a last line gets an end where another
    follows.
    """
    found = Counter(facts)
    for fact in [fact for fact in found if fact[0] == "-"]:
        both = min(found[fact], found["+", *fact[1:]])
        found[fact] -= both
        found["+", *fact[1:]] -= both
    return +found


def without_times(found: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Return the description of a tree without the times of directories and links, which are no
    change.
    """
    at = {"dir": 4, "link": 5}
    return {
        path: (*what[: at[what[0]]], 0, *what[at[what[0]] + 1 :]) if what[0] in at else what
        for path, what in found.items()
    }


def facts_of(file: FileHunks, kept: Picks | None) -> Iterator[tuple[Any, ...]]:
    """Yield what the kept hunks of a change say, without the paths that other changes move."""
    for hunk in file.hunks:
        if kept is not None and hunk.id not in kept:
            continue
        chosen = None if kept is None else kept[hunk.id]
        if hunk.kind in (HunkKind.TEXT, HunkKind.ADDED):
            yield from lines_of(hunk, chosen)
        if hunk.kind is HunkKind.TIME:
            continue  # a file that is written anew and has its old content may get its old time, or be its old self
        if hunk.kind is not HunkKind.TEXT:
            was = os.path.basename(hunk.old_path or hunk.path)
            yield hunk.kind, os.path.basename(hunk.path) if hunk.kind in PLACES else was, was, hunk.old, hunk.new


def lines_of(hunk: Hunk, chosen: LineNumbers | None) -> Iterator[tuple[Any, ...]]:
    for number, line in enumerate((*hunk.old_lines, *hunk.new_lines), 1):
        if chosen is None or number in chosen:
            where = os.path.basename(hunk.old_path or hunk.path)
            yield "-" if number <= len(hunk.old_lines) else "+", where, line.rstrip(b"\n")


@contextlib.contextmanager
def work(program: list[Operation], links: tuple[tuple[bytes, bytes], ...] = ()) -> Iterator[Work]:
    with tempfile.TemporaryDirectory(prefix="yolofs-selecting-") as directory:
        made = Work(os.fsencode(directory), links)
        try:
            for operation in program:
                made.perform(*operation)
            yield made
        finally:
            made.driver.close()
            remove_sessions_below(os.fsencode(directory))


def drawn_picks(data: st.DataObject, files: list[FileHunks]) -> Picks:
    picks: Picks = {}
    for file in files:
        for hunk in file.hunks:
            kinds = ("none", "whole", "part") if hunk.is_splittable else ("none", "whole")
            match data.draw(st.sampled_from(kinds), label=f"{hunk.kind.value} {hunk.path!r}"):
                case "whole":
                    picks[hunk.id] = None
                case "part":
                    picks[hunk.id] = data.draw(st.frozensets(st.integers(1, hunk.line_count), min_size=1))
    return picks


def listed(work: Work, old: Tree | None = None) -> list[FileHunks]:
    return list(Hunks(work.driver.session, old or Tree()).files())


def expected(files: list[FileHunks], kept: Picks, held: tuple[HeldHunk, ...], *, is_drop: bool) -> Counter[Any]:
    """Return what is to be there, once what was held is added to it, or taken out."""
    for one in held:
        if is_drop:
            kept[one.hunk.id] = None
        else:
            kept.pop(one.hunk.id, None)
    if is_drop:
        let_directories_come_back(files, kept)
    return net(fact for file in files for fact in facts_of(file, kept))


def let_directories_come_back(files: list[FileHunks], kept: dict[str, Any]) -> None:
    """Take out of what is kept the deletions of directories in which something is brought back, by
    its deletion or its rename.
    """
    gone = {file.path: file.hunks[0].id for file in files if file.change.kind is ChangeKind.DELETED}
    left = gone | {
        file.change.old_path: file.hunks[0].id
        for file in files
        if file.change.kind is ChangeKind.RENAMED and file.change.old_path is not None
    }
    for path, name in left.items():
        if name not in kept:
            for above, its_name in gone.items():
                if path.startswith(above + b"/"):
                    kept.pop(its_name, None)


def is_new_directory(fact: tuple[Any, ...]) -> bool:
    return fact[0] is HunkKind.ADDED


@given(programs, st.data())
@so_many(ci=5, nightly=3000)
def test_what_is_dropped_is_as_in_base_and_everything_else_as_it_was(
    program: list[Operation], data: st.DataObject
) -> None:
    with work(program) as done:
        check_dropped(done, None, data)


@given(st.just([("rename", b"d/e/a", b"n"), ("remove", b"d/e")]))
def test_a_rename_that_is_taken_back_brings_back_the_directory_that_it_left(program: list[Operation]) -> None:
    with work(program) as done:
        files = listed(done)
        picks: Picks = {file.hunks[0].id: None for file in files if file.change.kind is ChangeKind.RENAMED}
        dropped = drop_hunks(done.driver.session, Tree(), picks, b"dropped")
        assert not dropped.held_hunks
        done.look()
        assert done.facts() == expected(files, all_but(files, picks), (), is_drop=True)
        assert [change.path for change in dropped.changes] == [b"d/e", b"d/e/a"]


@given(programs, programs, st.data())
@so_many(ci=5, nightly=3000)
def test_what_is_dropped_is_as_in_a_generation_and_everything_else_as_it_was(
    before: list[Operation], program: list[Operation], data: st.DataObject
) -> None:
    with work(before) as done:
        generation = done.driver.snapshot()
        let_clocks_pass()  # what is done twice has another time than before, or else there is no change
        for operation in program:
            done.perform(*operation)
        check_dropped(done, generation, data)


def check_dropped(done: Work, generation: int | None, data: st.DataObject) -> None:
    view = done.look()
    old = done.driver.session.state(Generation(generation)) if generation is not None else Tree()
    files = listed(done, old)
    picks = drawn_picks(data, files)
    present = done.driver.session.timeline.present
    with patch.object(actions, "_FEW", data.draw(st.sampled_from((0, 1, 100)))):
        dropped = drop_hunks(done.driver.session, old, picks, b"dropped")
    event(f"held: {bool(dropped.held_hunks)}")
    done.look()
    assert done.facts(old=old) == expected(files, all_but(files, picks), dropped.held_hunks, is_drop=True)
    if done.driver.session.timeline.present > present:
        done.driver.travel(dropped.before)
        assert done.look() == view


@given(programs, st.data())
@so_many(ci=4, nightly=2000)
def test_ids_of_what_has_changed_since_are_refused_and_nothing_is_done(
    program: list[Operation], data: st.DataObject
) -> None:
    about_content = (HunkKind.TEXT, HunkKind.ADDED, HunkKind.BINARY)
    with work([*program, ("edit", b"a", [(0, 1, [b"x\n"])])]) as done:
        found = [hunk for file in listed(done) for hunk in file.hunks if hunk.kind in about_content]
        regular = {path for path, what in done.driver.tree().items() if what[0] == "file"}
        found = [hunk for hunk in found if hunk.path in regular]
        if not found:  # something else has taken the place of the file
            return
        hunk = data.draw(st.sampled_from(found))
        done.driver.overwrite(hunk.path, done.driver.read(hunk.path) + b"!")
        view = done.look()
        with pytest.raises(StaleHunkError) as refused:
            drop_hunks(done.driver.session, Tree(), {hunk.id: None}, b"dropped")
        assert refused.value.ids == (hunk.id,)
        with pytest.raises(StaleHunkError), select_hunks(done.driver.session, {hunk.id: None}):
            pass
        assert done.look() == view


@given(programs)
@so_many(ci=5, nightly=2000)
def test_dropping_everything_gives_base(program: list[Operation]) -> None:
    check_all_dropped(program, ())


@given(with_links)
@so_many(ci=5, nightly=2000)
def test_dropping_everything_gives_base_with_hard_links_too(program: list[Operation]) -> None:
    check_all_dropped(program, ((b"a", b"d/d"), (b"d/e/a", b"e/d")))


def check_all_dropped(program: list[Operation], links: tuple[tuple[bytes, bytes], ...]) -> None:
    with work([], links) as done:
        base = done.look()
        for operation in program:
            done.perform(*operation)
        done.look()
        dropped = drop_hunks(done.driver.session, Tree(), {
            hunk.id: None for file in listed(done) for hunk in file.hunks
        }, b"dropped")  # fmt: skip
        assert not dropped.held_hunks
        assert done.look() == base
        assert not done.facts()


@given(programs, st.data())
@so_many(ci=5, nightly=3000)
def test_what_is_accepted_is_in_base_and_with_the_rest_it_is_what_was_staged(
    program: list[Operation], data: st.DataObject
) -> None:
    with work(program) as done:
        view, files = done.look(), listed(done)
        picks = drawn_picks(data, files)
        session = done.driver.session
        with select_hunks(session, picks) as selected:
            wanted = expected(files, dict(picks), selected.held_hunks, is_drop=False)
            accepted = done.facts(selected.tree)
            along = accepted - wanted
            assert all(map(is_new_directory, along)), along
            assert accepted - along == wanted
            selected.keep()
            assert done.look() == view
            session = done.driver.session
            result = commit_up_to(session, split=split_staged(session, None, tree=selected.tree))
        event(f"committed: {result.number is not None}")
        assert done.look() == view
        if result.number is not None:
            rest = [hunk.id for file in listed(done) for hunk in file.hunks]
            drop_hunks(done.driver.session, Tree(), dict.fromkeys(rest), b"dropped")
            assert not done.facts()


@given(with_links, st.data())
@example([("link", b"a", b"b"), ("edit", b"b", [(0, 1, [b"x\n"])])], None)
@example([("link", b"a", b"d/c")], frozenset({1}))
@so_many(ci=5, nightly=2000)
def test_with_hard_links_the_view_stays_and_what_cannot_go_is_refused(
    program: list[Operation], data: st.DataObject | LineNumbers | None
) -> None:
    """``data`` may be the lines that are picked of the first hunk: None for all."""
    with work(program, ((b"a", b"d/d"), (b"d/e/a", b"e/d"))) as done:
        view, files = done.look(), listed(done)
        picks = drawn_picks(data, files) if isinstance(data, st.DataObject) else {files[0].hunks[0].id: data}
        session = done.driver.session
        try:
            with select_hunks(session, picks) as selected:
                selected.keep()
                commit_up_to(session, split=split_staged(session, None, tree=selected.tree))
        except HardLinksError:
            event("refused for hard links")
        assert done.look() == view
