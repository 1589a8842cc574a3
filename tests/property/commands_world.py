"""A project with commits and undos as the commands do them, on sessions that are opened and closed,
without a mount; and checks for before and after each.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import event, note

from tests.property.commands_drawn import LINES, Act, Committing, Undoing
from tests.property.test_commit_property import fill_base
from tests.support.commit_model import Node, contents, scan
from tests.support.core_driver import CoreDriver
from tests.support.host_edits import Edit, Host
from tests.support.session_cleaning import remove_sessions_below
from yolofs.cli.commit.commit_preview import preview_commit
from yolofs.cli.commit.settling import ConflictRequest, SettledConflicts, check_settled
from yolofs.commit.select.selection import Selection
from yolofs.errors import (
    ConflictError,
    HardLinksError,
    SessionBusyError,
    UsageError,
    YolofsError,
)
from yolofs.paths import RelPath, is_below, split
from yolofs.session.archive import commit_numbers
from yolofs.session.commit import commit, look_at_base
from yolofs.session.session import Session, SessionAccess
from yolofs.session.undo import UndoResult, choose_commit, undo
from yolofs.session.up_to import commit_up_to
from yolofs.state.regions import Region
from yolofs.text.path_patterns import Patterns, parse_pattern


class Driver(CoreDriver):
    """A view over a base that the host changes, too."""

    may_leave = True


class World:
    """A project whose base is all of it, with a session."""

    def __init__(self, root: bytes, links: list[tuple[bytes, ...]], state: bytes | None) -> None:
        self.root = root
        Session.create(root, state)
        self.fill(links)
        self.host = Host(root)
        self.has_links = bool(links)
        driver = Driver(root)
        self.commits = os.path.join(driver.session.directory, b"commits")
        driver.close()

    def fill(self, links: list[tuple[bytes, ...]]) -> None:
        """Make what base has at first."""
        fill_base(self.root, links)
        for path in (b"e f", b"d/c"):
            with open(os.path.join(self.root, path), "wb") as file:
                file.write(LINES)
            os.utime(os.path.join(self.root, path), ns=(0, 1_400_000_000_000_000_000))

    def act(self, some: list[Act]) -> None:
        """Work in the view."""
        driver = Driver(self.root)
        try:
            for name, *arguments in some:
                with contextlib.suppress(OSError):
                    if name == "rmtree":
                        self._remove(driver, arguments[0])
                    else:
                        getattr(driver, name)(*arguments)
                    note(f"{name} {arguments!r}")
        finally:
            driver.close()

    def _remove(self, driver: Driver, top: bytes) -> None:
        for path, what in sorted(driver.tree().items(), reverse=True):
            if path == top or path.startswith(top + b"/"):
                (driver.rmdir if what[0] == "dir" else driver.unlink)(path)

    def view(self) -> dict[bytes, tuple[Any, ...]]:
        """Return all that the view shows, times included."""
        driver = Driver(self.root)
        found: dict[bytes, tuple[Any, ...]] = {}
        try:
            for path, what in driver.tree().items():
                with driver._held(path) as (_, attr):
                    found[path] = (*(self._without_names(what)), attr.mtime_ns)
        finally:
            driver.close()
        return found

    def _without_names(self, what: tuple[Any, ...]) -> tuple[Any, ...]:
        """Leave out which names are one file, and how many, where the host has parted or moved some
        of them.
        """
        is_sure = what[0] == "dir" or not (self.has_links and self.host.touched)
        return what if is_sure else what[:-2]

    def base(self) -> dict[bytes, Node]:
        """Return all that base is, but for the link that leads to the session."""
        return {path: node for path, node in scan(self.root).items() if path != b".yolofs"}

    def staged(self) -> set[bytes]:
        """Return what the store has."""
        return contents(os.path.join(os.path.dirname(self.commits), b"files"))

    def kept(self) -> set[bytes]:
        """Return what commits keep."""
        found: set[bytes] = set()
        for number in os.listdir(self.commits) if os.path.lexists(self.commits) else ():
            for name in (b"replaced", b"found"):
                folder = os.path.join(self.commits, number, name)
                found |= contents(folder) if os.path.lexists(folder) else set()
        return found

    def there(self) -> set[bytes]:
        """Return what base and all commits have, wherever in their directories."""
        return contents(self.root) | (contents(self.commits) if os.path.lexists(self.commits) else set())

    def work_beside(self, some: list[Edit]) -> None:
        """Have the host work where a command was interrupted."""
        self.host.act(some)

    def check_directories(self) -> None:
        """Check that no directory has stayed opened up, where some were closed."""

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        with Session.open(self.root, SessionAccess.WRITE) as session:
            yield session


def selection_of(session: Session, asked: Committing) -> Selection:
    excluded = Patterns([(parse_pattern(_absolute(asked.exclude), b"", b""), asked.exclude)]) if asked.exclude else None
    if asked.paths:
        return Selection(session.regions, frozenset(), tuple(map(RelPath, asked.paths)), excluded, asked.trusted)
    where, wanted = asked.regions or (session.regions, frozenset((Region.PROJECT,)))
    return Selection(where, wanted, (), excluded, asked.trusted)


def _absolute(pattern: str) -> str:
    return pattern if pattern.startswith("**") else f"/{pattern}"


def do_commit(
    session: Session, asked: Committing, *, is_disturbed: bool = False
) -> tuple[int | None, SettledConflicts]:
    """Do as the command does.  Where calls fail (``is_disturbed``), a commit that is done may leave
    it to the next command to put its journal away.
    """
    up_to = None
    if asked.up_to is not None:
        up_to = session.timeline.resolve(str(asked.up_to % (session.timeline.present + 1)))
    wish = ConflictRequest(
        merge=asked.merge and up_to is None, ours=asked.side == "ours", theirs=asked.side == "theirs" and up_to is None
    )
    selection = selection_of(session, asked)
    _, split = preview_commit(session, selection, up_to)
    looked, settled = look_at_base(session, split), SettledConflicts()
    if asked.ways and not wish.is_given:  # as who answers a question for each
        wish._chosen.update(zip(looked.conflicts, itertools.cycle(asked.ways), strict=False))
    if looked.conflicts and wish.is_given:
        settled = wish.settle(session, looked, makes_again=up_to is None)
        selection = msgspec.structs.replace(selection, left_staged=settled.left)
        _, split = (
            preview_commit(session, selection, is_again=True)
            if up_to is None
            else preview_commit(session, selection, up_to, is_again=True)
        )
        looked = look_at_base(session, split)
    check_settled(settled, looked)
    apply = commit if up_to is None else commit_up_to
    result = apply(session, split=split, looked=looked, force=bool(settled.ours))
    assert is_disturbed or not result.unfinished
    return result.number, settled


def do_undo(session: Session, asked: Undoing) -> int | None:
    numbers = sorted(commit_numbers(session.directory))
    number = numbers[asked.number % len(numbers)] if asked.number is not None and numbers else None
    wanted = Selection(session.regions, paths=tuple(map(RelPath, asked.paths))) if asked.paths else None
    return undo(session, choose_commit(session, number), selection=wanted, force=asked.force).number


class Round:
    """One command, and what has to hold before and after."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before = world.base()
        self.view = world.view()
        self.had = contents(world.root) | world.kept()

    def check(self, *, shows_the_same: bool, made_again: Sequence[RelPath] = ()) -> None:
        """Look at base and the view; in directories ``made_again`` shows what the host had taken
        away.
        """
        world = self.world
        assert self.had <= contents(world.root) | world.kept()
        if not shows_the_same:
            return
        now = world.view()
        differences = {
            path: (self.view.get(path), now.get(path))
            for path in {*now, *self.view}
            if not any(is_below(path, top) or path == split(top)[0] for top in made_again)
        }
        assert not (differing := [(path, *both) for path, both in differences.items() if both[0] != both[1]]), (
            differing[:4]
        )

    def check_nothing_done(self) -> None:
        self.check(shows_the_same=True)
        assert self.world.base() == self.before


_REFUSALS = (
    "there is no commit to undo",
    "is undone already",
    "so nothing was done",  # the last check: the host has taken away a directory that more is staged in
)


def do(world: World, command: Committing | Undoing) -> None:
    one = Round(world)
    note(f"{command}")
    settled, number = SettledConflicts(), None
    try:
        with world.session() as session:
            if isinstance(command, Committing):
                number, settled = do_commit(session, command)
            else:
                number = do_undo(session, command)
    except (ConflictError, UsageError, HardLinksError) as error:
        event(f"refused: {type(error).__name__}")
        note(error.message)
        one.check_nothing_done()
        return
    except YolofsError as error:
        if not any(text in error.message for text in _REFUSALS):
            raise
        one.check_nothing_done()
        return
    event(f"done: {type(command).__name__}" if number is not None else "nothing to do")
    one.check(shows_the_same=not (settled.merged or settled.marked or settled.dropped), made_again=settled.made_again)
    if number is None or not isinstance(command, Committing) or not command.is_undone:
        return
    again = Round(world)
    after = again.before
    with world.session() as session:
        try:
            result = undo(session, choose_commit(session, None))
        except HardLinksError:
            event("undo refused for hard links")
            return
    assert result.undone == number
    if leaves_links(result):
        event("a file stays as hard links of it are staged")
        again.check(shows_the_same=True)
        return
    assert not result.stays
    note(f"undone: {result}")
    again.check(shows_the_same=True)
    assert world.base() == one.before
    event("undone at once")
    apply_again(world, after)


def leaves_links(result: UndoResult) -> bool:
    """Tell whether an undo has left a file as hard links of it are staged."""
    return any("hard links of it are staged" in why for why in result.stays.values())


def apply_again(world: World, after: dict[bytes, Node]) -> None:
    """Undo the last undo: base is what it was before that."""
    again = Round(world)
    with world.session() as session:
        try:
            result = undo(session, choose_commit(session, max(commit_numbers(session.directory))))
        except HardLinksError:
            event("redo refused for hard links")
            return
    if leaves_links(result):
        event("a file stays as hard links of it are staged")
        again.check(shows_the_same=True)
        return
    assert not result.stays
    again.check(shows_the_same=True)
    assert world.base() == after
    event("applied again")


@contextlib.contextmanager
def places(state: str | None) -> Iterator[tuple[bytes, bytes | None]]:
    """Give a path for a project, and one for its session; None for that if it lies where sessions
    do.

    ``state`` is a directory on another device, for that of the session.
    """
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(tempfile.TemporaryDirectory())
        own = stack.enter_context(tempfile.TemporaryDirectory(dir=state)) if state is not None else None
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PATH", os.path.join(base, "commands"))  # to look through those of this machine takes long
        root = os.path.join(os.fsencode(os.path.realpath(base)), b"project")
        yield root, os.path.join(os.fsencode(own), b"state") if own is not None else None


def check(
    some: Sequence[tuple[Any, ...]],
    links: list[tuple[bytes, ...]],
    state: str | None = None,
    carry_out: Callable[..., None] = do,
) -> None:
    """Go through the rounds; ``carry_out`` does the command of each.

    ``state`` is a directory on another device, for that of the session.
    """
    with places(state) as (root, own):
        os.mkdir(root)
        try:
            world = World(root, links, own)
            for acts, before, after, command, *over in some:
                world.host.act(before)
                world.act(acts)
                world.host.act(after)
                carry_out(world, command, *over)
        finally:
            with contextlib.suppress(SessionBusyError):  # which something else has led to, that is worth to be told
                remove_sessions_below(root)
