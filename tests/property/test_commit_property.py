"""After a commit base is as the view was, and all that it replaced can be had back."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.support.commit_model import CommitScribe, contents, lacks_renameat2, scan, untouched
from tests.support.required import is_required
from tests.support.view_machine import names_listed
from yolofs.changes.changes import compare
from yolofs.commit import Plan
from yolofs.paths import is_below, join, split
from yolofs.state.tree import Tree

NAMES = (b"a", b"b", b"c", b"d", b"e f", b"\xff\xfe")
CONTENTS = (b"", b"one\n", b"two\n" * 3, b"\0three" * 5000)
DIRECTORIES = (b"a", b"d", b"d/a", b"d/d", b"d/d/d", b"c", b"c/a", b"c/b")
FILES = (b"b", b"d/b", b"d/c", b"d/a/a", b"d/d/a", b"d/d/\xff\xfe", b"d/d/d/a", b"c/a/b", b"c/c", b"e f")

Operation: TypeAlias = tuple[Any, ...]
"""A name and its arguments; a path is given as a place: a number to choose among those there are,
and a name in it.
"""

names = st.sampled_from(NAMES)
places = st.tuples(st.integers(0, 40), st.none() | names)
operations = st.one_of(
    st.tuples(st.just("write"), places, st.sampled_from(CONTENTS)),
    st.tuples(st.just("chmod"), places, st.sampled_from((0o600, 0o4755, 0o500))),
    st.tuples(st.just("utime_any"), places, st.integers(10**17, 10**18)),
    st.tuples(st.just("chown"), places, st.just(7), st.just(8)),
    st.tuples(st.just("mkdir"), places),
    st.tuples(st.just("symlink"), places, names),
    st.tuples(st.just("mkfifo"), places),
    st.tuples(st.sampled_from(("remove", "recreate")), places),
    st.tuples(st.sampled_from(("rename", "exchange")), places, places),
    st.tuples(st.sampled_from(("rename", "exchange")), places, places),
    st.tuples(st.sampled_from(("link", "link_metadata")), places, places),
    st.tuples(st.just("freeze")),
)
programs = st.lists(operations, max_size=25)
hard_links = st.lists(
    st.tuples(st.sampled_from(FILES), st.sampled_from(DIRECTORIES), st.sampled_from((b"link", b"b"))), max_size=6
)
"""A third of the files has two names, or three."""


def has_second_device() -> bool:
    """Tell whether /dev/shm is another device than that of temporary files, and can be used.

    It has to be where mounts are required.
    """
    shm = "/dev/shm"
    is_there = os.access(shm, os.W_OK) and os.stat(shm).st_dev != os.stat(tempfile.gettempdir()).st_dev
    assert is_there or not is_required(), "/dev/shm is no second device to write to, and mounts are required"
    return is_there


def fill_base(root: bytes, links: list[tuple[bytes, ...]]) -> None:
    """Make a small base; every file has content of its own, and everything a time of its own."""
    for path in DIRECTORIES:
        os.mkdir(os.path.join(root, path))
    for number, path in enumerate(FILES):
        with open(os.path.join(root, path), "wb") as file:
            file.write(b"base %d" % number)
        os.chmod(os.path.join(root, path), 0o755 if number % 3 == 0 else 0o644)
    os.symlink(b"../b", os.path.join(root, b"d/e f"))
    os.mkfifo(os.path.join(root, b"c/d"))
    for source, directory, name in links:
        target = os.path.join(root, directory, name)
        if not os.path.lexists(target):
            os.link(os.path.join(root, source), target)
    for number, path in enumerate(sorted(scan(root), reverse=True)):
        os.utime(os.path.join(root, path), ns=(0, 1_400_000_000_000_000_007 + number), follow_symlinks=False)


def find(scribe: CommitScribe, place: bytes | tuple[int, bytes | None]) -> bytes:
    if isinstance(place, bytes):
        return place
    number, name = place
    paths = sorted(scribe.expected())
    path = paths[number % len(paths)]
    if name is None:
        return path
    return join(path if scribe.kind(path) == stat.S_IFDIR else split(path)[0], name)


def has_directory(scribe: CommitScribe, path: bytes) -> bool:
    return scribe.kind(split(path)[0]) == stat.S_IFDIR


def perform(scribe: CommitScribe, name: str, place: tuple[int, bytes | None], *arguments: Any) -> None:
    """Perform an operation if the view would permit it, else nothing."""
    path = find(scribe, place)
    if not all(has_directory(scribe, find(scribe, one)) for one in (place, *arguments[:1]) if isinstance(one, bytes)):
        return
    kind = scribe.kind(path)
    match name:
        case "write" if kind in (0, stat.S_IFREG):
            scribe.write(path, *arguments)
        case "chmod" if kind and kind != stat.S_IFLNK:
            scribe.chmod(path, *arguments)
        case "utime_any" if kind:
            scribe.utime_any(path, *arguments)
        case "chown" if kind and os.geteuid() == 0:
            scribe.chown(path, *arguments)
        case "mkdir" | "mkfifo" | "symlink" if path and not kind:
            getattr(scribe, name)(path, *arguments)
        case "remove" | "recreate" if path and kind:
            scribe.remove(path)
            if name == "recreate":
                scribe.mkdir(path)
        case "rename" | "exchange" | "link" | "link_metadata" if path and kind:
            perform_on_two(scribe, name, path, find(scribe, arguments[0]))
        case _:
            return
    event(f"did {name}")
    note(f"{name} {path!r} {arguments!r}")


def perform_all(scribe: CommitScribe, program: list[Operation]) -> None:
    """Perform a program; ``freeze`` in it makes a generation."""
    for name, *arguments in program:
        if name == "freeze":
            scribe.freeze()
        else:
            perform(scribe, name, *arguments)


def perform_on_two(scribe: CommitScribe, name: str, src: bytes, dst: bytes) -> None:
    """Perform what has two paths if rename(2) or link(2) would."""
    kind, other = scribe.kind(src), scribe.kind(dst)
    is_directory, other_is = kind == stat.S_IFDIR, other == stat.S_IFDIR
    if is_below(dst, src) or is_below(src, dst):
        return
    if name == "exchange":
        if other:
            scribe.exchange(src, dst)
    elif name in ("link", "link_metadata"):
        if not other and not is_directory:
            getattr(scribe, name)(src, dst)
    elif not other or (is_directory == other_is and not (other_is and scribe.names(dst))):
        scribe.rename(src, dst)
    note(f"  to {dst!r}")


@contextmanager
def after(
    program: list[Operation], links: list[tuple[bytes, ...]], session: str | None = None
) -> Iterator[tuple[CommitScribe, bytes]]:
    """Run a program on a view and give it, with a directory for the commit (in ``session``, if
    given).
    """
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory(dir=session) as own:
        root = os.fsencode(base) + b"/base"
        os.mkdir(root)
        fill_base(root, links)
        scribe = CommitScribe(root, os.fsencode(own) + b"/store")
        perform_all(scribe, program)
        yield scribe, os.fsencode(own) + b"/commit"


def check(program: list[Operation], links: list[tuple[bytes, ...]], session: str | None = None) -> None:
    with after(program, links, session) as (scribe, parking):
        root = scribe.base.root
        expected, had, alone = scribe.expected(), contents(root), untouched(scribe)
        went, came = names_listed(compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True))
        assert scan(root).keys() - went | came == expected.keys()
        plan = scribe.plan()
        for line in plan.lines():
            note(line)
        assert Plan.decode(plan.encode()) == plan
        scribe.commit(parking)
        assert scan(root) == expected
        now = {path: os.lstat(os.path.join(root, path)) for path in alone}
        assert {path: (st.st_ino, st.st_ctime_ns, st.st_mtime_ns) for path, st in now.items()} == alone
        assert had <= contents(root) | contents(parking + b"/replaced")
        assert os.listdir(parking + b"/parked") == os.listdir(parking + b"/new") == []


@given(programs)
@example([])
@example([("rename", b"b", b"x"), ("rename", b"e f", b"b"), ("rename", b"x", b"e f")])  # a swap
@example([("exchange", b"d/d", b"c"), ("exchange", b"c/d", b"d/d/a"), ("rename", b"d/d", b"a/x")])
@example([("rename", b"d/d/d", b"x"), ("remove", b"d"), ("mkdir", b"d"), ("rename", b"x", b"d/d")])
@example([("link_metadata", b"b", b"a/x"), ("rename", b"b", b"d/x"), ("chmod", b"a/x", 0o600)])
@example([("recreate", b"b"), ("rename", b"d", b"b/d"), ("write", b"b/d/d/a", b"new"), ("remove", b"b/d/a")])
@example([("rename", b"d", b"x"), ("rename", b"x/d", b"d"), ("rename", b"x", b"d/x")])  # inside out
def test_base_becomes_the_view(program: list[Operation]) -> None:
    check(program, [])


@given(programs, hard_links)
@example([("write", b"b", b"new")], [(b"b", b"d", b"link")])
@example([("write", b"b", b"new"), ("write", b"d/link", b"other")], [(b"b", b"d", b"link")])
@example([("chmod", b"b", 0o600), ("chmod", b"d/link", 0o500)], [(b"b", b"d", b"link")])
@example([("chmod", b"b", 0o600), ("link_metadata", b"d/link", b"a/x")], [(b"b", b"d", b"link")])
@example([("rename", b"b", b"d/link")], [(b"b", b"d", b"link")])
@example([("write", b"b", b"new"), ("rename", b"b", b"d/link")], [(b"b", b"d", b"link")])
def test_base_becomes_the_view_where_base_has_hard_links(
    program: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, links)


@given(programs, hard_links)
def test_base_becomes_the_view_without_renameat2(program: list[Operation], links: list[tuple[bytes, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lacks_renameat2(patch)
        check(program, links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@given(programs, hard_links)
def test_base_becomes_the_view_where_the_session_is_on_another_device(
    program: list[Operation], links: list[tuple[bytes, ...]]
) -> None:
    check(program, links, session="/dev/shm")
