"""Comparing two states agrees with looking at all of both; the patch turns the files of one into
the other's.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.changes_model import check_pair
from tests.support.scribe import Scribe, Shot, develop
from yolofs.changes.changes import compare
from yolofs.changes.patch import write_patch
from yolofs.paths import is_below, join, split
from yolofs.state.tree import Tree

NAMES = (b"a", b"b", b"d", b"e f", b'n\nl%"', b"\xff\xfe")
CONTENTS = (
    b"",
    b"one\n",
    b"one\ntwo\r\nthree",
    b"\0bin\xff" * 9,
    b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    b"1\n2\n3\n4\nX\n6\n7\n8\n9\n",
)

GIT_ENV = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": "/"}

Place: TypeAlias = "bytes | tuple[int, bytes | None]"
"""A path; or the n-th one that there is, or a name in it (or beside it, if it is no directory)."""
Step: TypeAlias = tuple[Any, ...]
"""The name of an operation and its arguments."""

names = st.sampled_from(NAMES)
places = st.tuples(st.integers(0, 30), st.none() | names)
operations = st.one_of(
    st.tuples(st.just("write"), places, st.sampled_from(CONTENTS)),
    st.tuples(st.just("chmod"), places, st.sampled_from((0o644, 0o755))),
    st.tuples(st.just("utime"), places),
    st.tuples(st.just("mkdir"), places),
    st.tuples(st.just("symlink"), places, names),
    st.tuples(st.just("mkfifo"), places),
    st.tuples(st.just("remove"), places),
    st.tuples(st.sampled_from(("rename", "rename", "rename", "exchange", "link")), places, places),
    st.tuples(st.just("freeze")),
)
programs = st.lists(operations, max_size=20)


def fill_base(root: bytes) -> None:
    """Make a small base: files at each depth, a symlink, an empty directory."""
    for directory in (b"d", b"d/d", b"d/d/d", b"b", b"b/e f", b"b/d"):
        os.mkdir(os.path.join(root, directory))
    for number, path in enumerate((b"a", b"d/a", b"d/b", b"d/d/a", b"d/d/\xff\xfe", b"b/a", b"b/e f/a", b"d/d/d/a")):
        with open(os.path.join(root, path), "wb") as file:
            file.write(CONTENTS[number % len(CONTENTS)])
        os.chmod(os.path.join(root, path), 0o755 if number % 3 == 0 else 0o644)
    os.symlink(b"a", os.path.join(root, b"d/e f"))
    for path, other in ((b"a", b"b/b"), (b"d/a", b"d/d/d/b"), (b"d/a", b"b/e f/b"), (b"d/e f", b"b/d/d")):
        os.link(os.path.join(root, path), os.path.join(root, other), follow_symlinks=False)


def find(scribe: Scribe, place: Place) -> bytes:
    if isinstance(place, bytes):
        return place
    number, name = place
    paths = sorted(develop(scribe.tree, scribe.base, scribe.store))
    path = paths[number % len(paths)]
    if name is None:
        return path
    return join(path if scribe.kind(path) == stat.S_IFDIR else split(path)[0], name)


def perform(scribe: Scribe, name: str, place: Place, *arguments: Any) -> None:
    """Perform an operation if the view would permit it, else nothing."""
    path = find(scribe, place)
    if not path:
        return
    kind = scribe.kind(path)
    match name:
        case "write" if kind in (0, stat.S_IFREG):
            scribe.write(path, arguments[0])
        case "chmod" if kind in (stat.S_IFREG, stat.S_IFDIR):
            scribe.chmod(path, arguments[0])
        case "utime" if kind == stat.S_IFREG:
            scribe.utime(path, 10**18)
        case "mkdir" | "mkfifo" if not kind:
            getattr(scribe, name)(path)
        case "symlink" if not kind:
            scribe.symlink(path, arguments[0])
        case "remove" if kind:
            scribe.remove(path)
        case "rename" | "exchange" | "link" if kind:
            perform_on_two(scribe, name, path, find(scribe, arguments[0]))
        case _:
            pass


def perform_on_two(scribe: Scribe, name: str, src: bytes, dst: bytes) -> None:
    """Perform what has two paths if rename(2) or link(2) would."""
    kind, other = scribe.kind(src), scribe.kind(dst)
    is_directory, other_is = kind == stat.S_IFDIR, other == stat.S_IFDIR
    if src == dst or is_below(dst, src) or is_below(src, dst):
        return
    if name == "exchange":
        if other:
            scribe.exchange(src, dst)
    elif name == "link":
        if not other and not is_directory:
            scribe.link(src, dst)
    elif not other or (is_directory == other_is and not (other_is and scribe.names(dst))):
        scribe.rename(src, dst)


@contextmanager
def two_states(program: list[Step]) -> Iterator[tuple[Scribe, list[Tree]]]:
    """Run a program and give the states between: base, each frozen one, the last."""
    with tempfile.TemporaryDirectory() as directory:
        top = os.fsencode(directory)
        os.mkdir(top + b"/base")
        fill_base(top + b"/base")
        scribe = Scribe(top + b"/base", top + b"/store")
        states = [Tree()]
        for name, *arguments in program:
            if name == "freeze":
                states.append(scribe.freeze())
            else:
                perform(scribe, name, *arguments)
        states.append(scribe.tree)
        yield scribe, states


@given(programs)
@example([("rename", b"d", b"b/d"), ("write", b"b/d/a", b"one\n"), ("rename", b"b/d/d", b"e f")])
@example([("exchange", b"d", b"b"), ("freeze",), ("remove", b"d"), ("mkdir", b"d"), ("write", b"d/a", b"")])
def test_changes_lead_from_any_state_to_any_other(program: list[Step]) -> None:
    with two_states(program) as (scribe, states):
        for old in states:
            for new in states[-3:]:
                check_pair(old, new, scribe.base, scribe.store)
                check_pair(new, old, scribe.base, scribe.store)


def lay_out(shots: dict[bytes, Shot], directory: bytes) -> None:
    """Write what git knows of a state into an empty directory."""
    for path, shot in shots.items():
        if shot.kind not in (stat.S_IFREG, stat.S_IFLNK):
            continue
        place = os.path.join(directory, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if shot.kind == stat.S_IFLNK:
            os.symlink(shot.content, place)
        else:
            with open(place, "wb") as file:
                file.write(shot.content)
            os.chmod(place, 0o755 if shot.mode & 0o100 else 0o644)


def pick_up(directory: bytes) -> dict[bytes, tuple[bool, bool, bytes]]:
    """Return all files below a directory as (is symlink, is executable, content)."""
    found = {}
    for parent, directories, files in os.walk(directory):
        for name in (*files, *directories):
            place = os.path.join(parent, name)
            if os.path.islink(place):
                found[os.path.relpath(place, directory)] = (True, False, os.readlink(place))
            elif name in files:
                with open(place, "rb") as file:
                    is_executable = bool(os.lstat(place).st_mode & 0o100)
                    found[os.path.relpath(place, directory)] = (False, is_executable, file.read())
    return found


def as_git_has_it(shots: dict[bytes, Shot]) -> dict[bytes, tuple[bool, bool, bytes]]:
    return {
        path: (shot.kind == stat.S_IFLNK, shot.kind == stat.S_IFREG and bool(shot.mode & 0o100), shot.content)
        for path, shot in shots.items()
        if shot.kind in (stat.S_IFREG, stat.S_IFLNK)
    }


def git_apply(patch: bytes, directory: bytes, *options: str) -> None:
    command = ["git", "apply", "--whitespace=nowarn", *options, "-"]
    done = subprocess.run(command, input=patch, cwd=directory, env=GIT_ENV, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace") + patch.decode(errors="replace")


def check_patch(scribe: Scribe, old_tree: Tree, new_tree: Tree, directory: bytes) -> None:
    old, new = (develop(tree, scribe.base, scribe.store) for tree in (old_tree, new_tree))
    changes = compare(old_tree, new_tree, scribe.base, scribe.store, expand_renames=True)
    parts: list[bytes] = []
    write_patch(changes, parts.append, store=scribe.store)
    lay_out(old, directory)
    patch = b"".join(parts)
    if patch:
        git_apply(patch, directory, "--check")
        git_apply(patch, directory)
    assert pick_up(directory) == as_git_has_it(new)


@given(programs, st.integers(0, 9))
def test_the_patch_makes_the_files_of_one_state_those_of_the_other(program: list[Step], pick: int) -> None:
    with two_states(program) as (scribe, states), tempfile.TemporaryDirectory() as directory:
        check_patch(scribe, states[pick % len(states)], states[-1], os.fsencode(directory))
