"""Three commits over hard links, which are undone in parts and as wholes in any order; what has to
hold after each undo, and in the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import event, note
from hypothesis import strategies as st

from tests.property.commands_drawn import Act
from tests.property.commands_world import World, leaves_links, places
from tests.support import core_driver
from tests.support.commit_model import Node, scan
from tests.support.second_disk import mounted_disk
from tests.support.session_cleaning import remove_sessions_below
from tests.support.user_identity import acting_as
from yolofs.changes.changes import compare
from yolofs.commit.select.selection import Selection
from yolofs.errors import HardLinksError, YolofsError
from yolofs.overlay import Owner
from yolofs.paths import RelPath, split
from yolofs.session.archive import commit_numbers
from yolofs.session.commit import commit
from yolofs.session.history.ended_commits import ended_commits
from yolofs.session.undo import choose_commit, undo
from yolofs.state.tree import Tree

FOLDERS = (b"p", b"q", b"q/s")
SLOTS = tuple(os.path.join(folder, name) for folder in (b"", *FOLDERS) for name in (b"h0", b"h1", b"h2"))
_MOST_COMMANDS = 40
"""How many undos may be needed to undo all; it is never a quarter of that."""


class Command(NamedTuple):
    """An undo, or a commit of what is staged."""

    number: int | None
    """Stands for one of the commits that there are; None: it is a commit."""
    paths: tuple[bytes, ...] = ()


class Program(NamedTuple):
    """What is done."""

    names: list[tuple[bytes, int | None]]
    """What base has: a file at a place, or a hard link of a file before it."""
    rounds: list[list[Act]]
    """What is done in the view before each commit."""
    commands: list[Command]
    order: list[int]
    """In which all that is left is undone."""


slots = st.sampled_from(SLOTS)
contents = st.sampled_from((b"one\n", b"two\n", b"three\n"))
acts = st.one_of(
    st.tuples(st.sampled_from(("overwrite", "append", "save")), slots, contents),
    st.tuples(st.just("create"), slots, contents, st.just(0o644)),
    st.tuples(st.sampled_from(("unlink", "to_folder", "to_link")), slots),
    st.tuples(st.sampled_from(("rename", "link", "link")), slots, slots),
    st.tuples(st.just("rename"), slots, slots, st.just(2)),
    st.tuples(st.just("rename"), st.sampled_from(FOLDERS), st.sampled_from((b"n", b"p/n", b"q/n", *FOLDERS))),
    st.tuples(st.just("rmtree"), st.sampled_from(FOLDERS)),
    st.tuples(st.just("chmod"), st.sampled_from((*SLOTS, *FOLDERS)), st.sampled_from((0o500, 0o700, 0o755))),
    st.tuples(
        st.just("setxattr"), st.sampled_from((*SLOTS, *FOLDERS)), st.just(b"user.one"), st.sampled_from((b"1", b"2"))
    ),
    st.tuples(st.just("utimes"), slots, st.sampled_from((1_450_000_000_000_000_000, 1_460_000_000_000_000_000))),
)
paths = st.lists(st.sampled_from((*SLOTS, *FOLDERS)), min_size=1, max_size=2).map(tuple)
commands = st.one_of(
    st.builds(Command, st.none(), st.just(())),
    st.builds(Command, st.none(), paths),
    st.builds(Command, st.integers(0, 7), st.just(())),
    st.builds(Command, st.integers(0, 7), paths),
    st.builds(Command, st.integers(0, 7), paths),
)
programs = st.builds(
    Program,
    st.lists(st.tuples(slots, st.none() | st.integers(0, 7)), min_size=1, max_size=8, unique_by=lambda name: name[0]),
    st.lists(st.lists(acts, min_size=1, max_size=6), min_size=1, max_size=3),
    st.lists(commands, max_size=5),
    st.lists(st.integers(0, 5), max_size=6),
)


class LinkedWorld(World):
    """A project of which base has files with hard links in some folders."""

    def __init__(self, root: bytes, names: list[tuple[bytes, int | None]], state: bytes | None) -> None:
        self._names = names
        super().__init__(root, [(b"",)], state)

    def fill(self, links: list[tuple[bytes, ...]]) -> None:
        files: list[bytes] = []
        for number, (name, link) in enumerate(self._names):
            path = os.path.join(self.root, name)
            if link is None or not files:
                with open(path, "xb") as file:
                    file.write(b"base %d\n" % number)
                files.append(path)
            else:
                with contextlib.suppress(OSError):  # it is on another disk
                    os.link(files[link % len(files)], path)
        for number, path in enumerate(sorted(self.base(), reverse=True)):
            time_ns = 1_400_000_000_000_000_007 + number
            os.utime(os.path.join(self.root, path), ns=(0, time_ns), follow_symlinks=False)

    def act(self, some: list[Act]) -> None:
        super().act([act for one in some for act in _plainly(one)])

    def numbers(self) -> dict[bytes, tuple[int, int]]:
        """Return device and inode number of all that base has."""
        found = {path: os.lstat(os.path.join(self.root, path)) for path in self.base()}
        return {path: (one.st_dev, one.st_ino) for path, one in found.items()}


def _plainly(act: Act) -> list[Act]:
    name, path, *rest = act
    match name:
        case "save":  # as editors do
            return [("create", path + b"~", *rest, 0o644), ("rename", path + b"~", path)]
        case "to_folder":
            return [("unlink", path), ("mkdir", path, 0o755), ("create", path + b"/in", b"in\n", 0o644)]
        case "to_link":
            return [("unlink", path), ("symlink", b"h0", path)]
    return [act]


class _Undoing:
    """Goes through a program; to be used once."""

    def __init__(self, world: LinkedWorld, *, is_far: bool) -> None:
        self._world = world
        self._is_far = is_far
        self._numbers = [world.numbers()]
        """What was where, at each moment."""
        self._after: dict[bytes, Node] = {}
        self._moves: list[tuple[bytes, bytes]] = []
        """The old and the new path of what may have been copied to another disk."""
        self._undos = 0
        self._view: dict[bytes, tuple[Any, ...]] | None = None
        """None once what was staged has been dropped."""

    def go(self, program: Program) -> None:
        before = self._world.base()
        if self._is_far:
            self._moves = [(act[1], act[2]) for some in program.rounds for act in some if act[0] == "rename"]
        for some in program.rounds:
            self._world.act(some)
            with self._world.session() as session:
                commit(session)
            self._numbers.append(self._world.numbers())
        self._after, self._view = self._world.base(), self._shown()
        for command in program.commands:
            self._do(command)
        self._undo_all(list(program.order))
        assert self._world.base() == before
        if self._view is None:
            return
        with self._world.session() as session:
            commit(session)
        assert self._world.base() == self._after
        self._check_nothing_staged()

    def _shown(self) -> dict[bytes, tuple[Any, ...]]:
        """Return the view's tree, over two disks without its hard links."""
        found = self._world.view()
        if not self._is_far:
            return found
        return {path: what if what[0] == "dir" else (*what[:-3], what[-1]) for path, what in found.items()}

    def _do(self, command: Command) -> None:
        before = self._world.base()
        with self._world.session() as session:
            wanted = Selection(session.regions, paths=tuple(map(RelPath, command.paths))) if command.paths else None
            numbers = sorted(commit_numbers(session.directory))
            if command.number is None:
                note(f"{command} -> {commit(session, selection=wanted)}")
            elif numbers:
                try:
                    one = choose_commit(session, numbers[command.number % len(numbers)])
                    note(f"{command} -> {undo(session, one, selection=wanted)}")
                except HardLinksError:
                    event("refused for hard links")
                except YolofsError as error:
                    _check_refusal(error)
        if command.number is not None and command.paths:
            self._check_others_untouched(before, command.paths)
        self._check()

    def _undo_all(self, order: list[int]) -> None:
        done: set[int] = set()
        """There is nothing left of these, though parts of them were undone otherwise."""
        left: list[int] = []
        for _ in range(_MOST_COMMANDS):
            with self._world.session() as session:
                left = [one.number for one in ended_commits(session) if not (one.is_undone or one.takes_back)]
            left = [number for number in left if number not in done]
            if not left:
                return
            number = left[order.pop(0) % len(left)] if order else left[-1]
            done = done | {number} if self._undo(number) else set()
        raise AssertionError(f"undone all but {left}")

    def _undo(self, number: int, depth: int = 0) -> bool:
        """Undo a commit, and those first that it says; return whether there was nothing to undo."""
        self._undos += 1
        is_lost = depth >= _MOST_COMMANDS / 4 or self._undos > 5 * _MOST_COMMANDS
        assert not is_lost, "the commands that are named lead nowhere"
        for _ in range(_MOST_COMMANDS // 4):
            with self._world.session() as session:
                try:
                    result = undo(session, choose_commit(session, number))
                except HardLinksError:
                    event("refused for hard links, and what is staged is dropped")
                    session.put_away(None)
                    self._view = None
                    continue
                except YolofsError as error:
                    _check_refusal(error)
                    return False
            note(f"undo {number} -> {result}")
            self._check()
            if result.is_whole:
                return result.number is None
            if leaves_links(result):
                event("a file with staged hard links stays, and what is staged is dropped")
                with self._world.session() as session:
                    session.put_away(None)
                self._view = None
                continue
            firsts = {int(first) for why in result.stays.values() for first in re.findall(r"yolofs undo (\d+)", why)}
            if not firsts - {number}:
                assert result.number is not None, result.stays
                return False
            for first in sorted(firsts - {number}):
                self._undo(first, depth + 1)
        raise AssertionError(f"commit {number} is never undone")

    def _check(self) -> None:
        if self._view is None:
            return
        assert self._shown() == self._view
        if self._world.base() == self._after:
            self._check_nothing_staged()

    def _check_nothing_staged(self) -> None:
        with self._world.session() as session:
            assert not compare(Tree(), session.state(), session.base, session.store)

    def _check_others_untouched(self, before: dict[bytes, Node], paths: tuple[bytes, ...]) -> None:
        """Check that only chosen files have changed, and files that shared a name with one at any
        moment.
        """
        now = self._world.base()
        changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
        self._numbers.append(self._world.numbers())
        bound = _bound_to(paths, self._numbers, self._moves)
        for path in changed - bound:
            was, node = before.get(path), now.get(path)
            is_above = any(_is_at_or_below(one, path) for one in bound)
            if is_above and (was is None or node is None):
                continue
            assert was is not None, path
            assert node is not None, path
            assert stat.S_ISDIR(node.kind), path
            assert any(split(RelPath(one))[0] == path for one in changed if one), path
            assert was._replace(mtime_ns=0) == node._replace(mtime_ns=0), path


def _check_refusal(error: YolofsError) -> None:
    assert "is undone already" in error.message, error


def _is_at_or_below(path: bytes, top: bytes) -> bool:
    return path == top or path.startswith(top + b"/")


def _bound_to(
    paths: tuple[bytes, ...], moments: list[dict[bytes, tuple[int, int]]], moves: list[tuple[bytes, bytes]]
) -> set[bytes]:
    """Return the paths that were, at any moment, what lay at or below some others at any moment; or
    would have lain there, as a directory above had that path.

    A copy on another disk has another number: what ``moves`` names, old and new path, is taken for
    the same.
    """
    files: dict[tuple[int, int], set[bytes]] = {}
    for moment in moments:
        for path, file in moment.items():
            files.setdefault(file, set()).add(path)
    every = {path for moment in moments for path in moment}
    tops = [*paths]
    for top in tops:
        same = [one for one in (*files.values(), *map(set, moves)) if any(_is_at_or_below(top, path) for path in one)]
        others = (
            other + top[len(path) :] for one in same for path in one if _is_at_or_below(top, path) for other in one
        )
        tops += {other for other in others if other not in tops and len(other) < 40}
    found = {path for path in every if any(_is_at_or_below(path, top) for top in tops)}
    todo = list(found)
    while todo:
        top = todo.pop()
        ends = {end for move in moves if any(_is_at_or_below(top, end) for end in move) for end in move}
        more = {path for path in every if any(_is_at_or_below(path, one) for one in (top, *ends))}.union(
            *(one for one in files.values() if top in one)
        )
        todo += more - found
        found |= more
    return found


@contextlib.contextmanager
def _acting(user: int, root: bytes, own: bytes | None) -> Iterator[None]:
    """Give a user all that they need for a project, and act as them."""
    home = os.path.join(os.path.dirname(root), b"home")
    os.mkdir(home)
    for top in (os.path.dirname(root), *((os.path.dirname(own),) if own is not None else ())):
        os.chmod(top, 0o755)
        for path in (top, *(os.path.join(where, name) for where, names, _ in os.walk(top) for name in names)):
            os.chown(path, user, user)
    with pytest.MonkeyPatch.context() as patch, acting_as(user, user):
        for name in ("HOME", "XDG_STATE_HOME"):
            patch.setenv(name, os.fsdecode(home))
        patch.setattr(core_driver, "OWNER", Owner(user, user))
        yield


def check(program: Program, *, state: str | None = None, is_far: bool = False, user: int | None = None) -> None:
    """Go through a program.

    ``state`` is a directory on another device, for that of the session.  ``is_far``: one of the
    folders is another disk.  ``user``: who does it, and owns all of it; None is this process's.
    """
    with contextlib.ExitStack() as stack:
        root, own = stack.enter_context(places(state))
        for folder in (b"", *FOLDERS):
            os.mkdir(os.path.join(root, folder))
        if is_far:
            stack.enter_context(mounted_disk(Path(os.fsdecode(root), "p")))
        if user is not None:
            stack.enter_context(_acting(user, root, own))
        stack.callback(remove_sessions_below, root)
        world = LinkedWorld(root, program.names, own)
        assert scan(root)
        _Undoing(world, is_far=is_far).go(program)
