"""Commits and undos, one after the other, by any options, while both sides work: nothing is lost,
and the view stays.

All of it is done as the commands do it, with sessions that are opened and closed, but without a
mount.  A command may be killed, or a call of it fail; then the host works, too, and it is finished
or taken back.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest
from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.core_driver import CoreDriver
from tests.property.test_commit_property import DIRECTORIES, FILES, fill_base, hard_links, has_second_device
from tests.support.commit_model import Node, contents, scan
from tests.support.host_edits import Edit, Host
from tests.support.host_edits import edits_without_renaming as edits
from tests.support.injected_faults import Faults
from tests.support.killed_command import is_in_switch
from tests.support.model_steps import so_many
from tests.support.session_cleaning import remove_sessions_below
from yolofs.cli.commit.drift import Settled, Way, Wish, check_settled
from yolofs.cli.commit.report import look
from yolofs.commit.select.selection import Selection
from yolofs.errors import (
    CommitError,
    ConflictError,
    HardLinksError,
    SessionBusyError,
    TrustError,
    UsageError,
    YolofsError,
)
from yolofs.paths import RelPath, is_below, split
from yolofs.session.archive import commit_numbers
from yolofs.session.commit import commit, finish_interrupted, look_at_base, roll_back_interrupted
from yolofs.session.session import Access, Session
from yolofs.session.undo import choose, undo
from yolofs.session.up_to import commit_up_to
from yolofs.state.regions import Region, Regions
from yolofs.text.path_patterns import Patterns, parse

NEW = (b"x", b"d/x", b"x/y", b"c/new", b"d/d/new", b".envrc", b"d/.envrc", b".vscode", b".vscode/tasks.json")
LINES = b"".join(b"%d\n" % number for number in range(1, 12))

Act: TypeAlias = tuple[Any, ...]

old_paths = st.sampled_from(FILES + DIRECTORIES)
paths = st.sampled_from(FILES + DIRECTORIES + NEW + NEW)
acts = st.one_of(
    st.tuples(
        st.just("create"), paths, st.sampled_from((b"one\n", b"two\n" * 9, LINES)), st.sampled_from((0o644, 0o755))
    ),
    st.tuples(st.sampled_from(("overwrite", "append")), paths, st.sampled_from((b"", b"view\n", LINES))),
    st.tuples(st.just("overwrite"), paths, st.sampled_from((b"", b"view\n", LINES))),
    st.tuples(st.just("truncate"), paths, st.sampled_from((0, 3, 1 << 18))),
    st.tuples(st.just("mkfifo"), paths, st.just(0o600)),
    st.tuples(st.just("mkdir"), paths, st.just(0o750)),
    st.tuples(st.sampled_from(("rmdir", "unlink", "unlink")), paths),
    st.tuples(st.just("rmtree"), old_paths),
    st.tuples(st.just("symlink"), st.just(b"b"), paths),
    st.tuples(st.sampled_from(("rename", "rename", "link")), old_paths, paths),
    st.tuples(st.just("rename"), paths, paths, st.just(2)),
    st.tuples(st.just("chmod"), paths, st.sampled_from((0o600, 0o755, 0o4755))),
    st.tuples(st.just("utimes"), paths, st.just(1_450_000_000_000_000_000)),
    st.tuples(st.just("setxattr"), paths, st.just(b"user.one"), st.just(b"v")),
    st.tuples(st.just("snapshot")),
)


class Committing(NamedTuple):
    """A commit, with its options."""

    paths: tuple[bytes, ...]
    regions: tuple[Regions, frozenset[Region]] | None
    exclude: str
    up_to: int | None
    """A number that stands for one of the generations that there are."""
    merge: bool
    side: str
    trusted: bool
    is_undone: bool
    """Whether it is undone at once, and then applied again."""
    ways: tuple[Way, ...] = ()
    """What is to become of conflicts, one after the other, if no option is given."""


class Undoing(NamedTuple):
    """An undo, with its options."""

    number: int | None
    """A number that stands for one of the commits that there are; None for the last one."""
    paths: tuple[bytes, ...]
    force: bool


regions = st.tuples(
    st.builds(
        Regions,
        st.sampled_from((RelPath(b""), RelPath(b"d"), RelPath(b"c"))),
        st.sampled_from(((), (RelPath(b"d/a"),), (RelPath(b"c"), RelPath(b"d/d/d")))),
    ),
    st.sets(st.sampled_from(Region), min_size=1).map(frozenset),
)
nearly_always = st.sampled_from((True, True, False))
commits = st.builds(
    Committing,
    st.lists(paths, max_size=3).map(tuple) | st.just(()),
    st.none() | regions,
    st.sampled_from(("", "", "", "d", "**/b", "**/*n*")),
    st.none() | st.none() | st.integers(0, 5),
    st.booleans(),
    st.sampled_from(("", "ours", "theirs")),
    nearly_always,
    st.booleans(),
    st.just(()) | st.lists(st.sampled_from(Way), min_size=1, max_size=3).map(tuple),
)
undos = st.builds(
    Undoing, st.none() | st.integers(0, 5), st.just(()) | st.lists(paths, max_size=2).map(tuple), st.booleans()
)
rounds = st.lists(
    st.one_of(
        st.tuples(st.lists(acts, min_size=1, max_size=8), edits | st.just([]), edits | st.just([]), commits),
        st.tuples(st.lists(acts, min_size=1, max_size=8), st.just([]), edits | st.just([]), commits),
        st.tuples(st.lists(acts, max_size=3), st.just([]), st.just([]), undos),
    ),
    min_size=1,
    max_size=5,
)
"""What the view does, what the host does before and after it, and a command."""


class Interruption(NamedTuple):
    """What comes over a command, and what becomes of it."""

    call: int
    """Which of its calls, counted from the first one while base is being changed, or of all."""
    is_in_switch: bool
    error: int
    """With what that fails; 0: the process is killed."""
    lasts: bool
    """Whether all calls after it fail, too."""
    is_reading: bool
    """Whether it is one of the calls that read."""
    edits: list[Edit]
    """What the host does before anything is done about it."""
    goes_back: bool
    commits_first: bool
    """Whether somebody tries another commit first."""


calls_of_switch = st.tuples(st.integers(0, 8), st.just(True))
interruptions = st.builds(
    lambda call, *others: Interruption(*call, *others),
    st.one_of(calls_of_switch, calls_of_switch, calls_of_switch, st.tuples(st.integers(0, 200), st.just(False))),
    st.sampled_from((0, 0, errno.EIO, errno.ENOSPC)),
    nearly_always,
    st.booleans(),
    st.just([]) | edits,
    st.booleans(),
    st.booleans(),
)
sure_commits = st.builds(
    Committing,
    st.just(()) | st.just(()) | st.just(()) | st.lists(paths, min_size=1, max_size=3).map(tuple),
    st.none(),
    st.sampled_from(("", "", "", "d/d", "**/*n*")),
    st.none() | st.none() | st.none() | st.integers(0, 5),
    st.booleans(),
    st.sampled_from(("ours", "theirs", "ours", "")),
    st.just(True),
    st.just(False),
    st.just(()) | st.lists(st.sampled_from(Way), min_size=1, max_size=3).map(tuple),
)
"""Those that hardly anything is in the way of."""
sure_undos = st.builds(Undoing, st.none(), st.just(()) | st.lists(paths, max_size=2).map(tuple), st.just(True))
plain_round = st.tuples(st.lists(acts, min_size=1, max_size=8), st.just([]), edits | st.just([]), sure_commits)
interrupted_round = st.tuples(
    st.lists(acts, min_size=1, max_size=8),
    edits | st.just([]),
    edits | st.just([]),
    sure_commits | sure_commits | sure_undos,
    interruptions,
)


class Driver(CoreDriver):
    """A view over a base that the host changes, too."""

    may_leave = True


class World:
    """A project whose base is all of it, with a session."""

    def __init__(self, root: bytes, links: list[tuple[bytes, ...]], state: bytes | None) -> None:
        self.root = root
        Session.create(root, state)
        fill_base(root, links)
        for path in (b"e f", b"d/c"):
            with open(os.path.join(root, path), "wb") as file:
                file.write(LINES)
            os.utime(os.path.join(root, path), ns=(0, 1_400_000_000_000_000_000))
        self.host = Host(root)
        self.has_links = bool(links)
        driver = Driver(root)
        self.commits = os.path.join(driver.session.directory, b"commits")
        driver.close()

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

    def kept(self) -> set[bytes]:
        """Return what commits keep."""
        found: set[bytes] = set()
        for number in os.listdir(self.commits) if os.path.lexists(self.commits) else ():
            for name in (b"replaced", b"found"):
                folder = os.path.join(self.commits, number, name)
                found |= contents(folder) if os.path.lexists(folder) else set()
        return found

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        with Session.open(self.root, Access.WRITE) as session:
            yield session


def selection_of(session: Session, asked: Committing) -> Selection:
    excluded = Patterns([(parse(_absolute(asked.exclude), b"", b""), asked.exclude)]) if asked.exclude else None
    if asked.paths:
        return Selection(session.regions, frozenset(), tuple(map(RelPath, asked.paths)), excluded, asked.trusted)
    where, wanted = asked.regions or (session.regions, frozenset((Region.PROJECT,)))
    return Selection(where, wanted, (), excluded, asked.trusted)


def _absolute(pattern: str) -> str:
    return pattern if pattern.startswith("**") else f"/{pattern}"


def do_commit(session: Session, asked: Committing, *, is_disturbed: bool = False) -> tuple[int | None, Settled]:
    """Do as the command does.  Where calls fail (``is_disturbed``), a commit that is done may leave
    it to the next command to put its journal away.
    """
    up_to = None
    if asked.up_to is not None:
        up_to = session.timeline.resolve(str(asked.up_to % (session.timeline.present + 1)))
    wish = Wish(
        merge=asked.merge and up_to is None, ours=asked.side == "ours", theirs=asked.side == "theirs" and up_to is None
    )
    selection = selection_of(session, asked)
    _, split = look(session, selection, up_to)
    looked, settled = look_at_base(session, split), Settled()
    if asked.ways and not wish.is_given:  # as who answers a question for each
        wish._chosen.update(zip(looked.conflicts, itertools.cycle(asked.ways), strict=False))
    if looked.conflicts and wish.is_given:
        settled = wish.settle(session, looked, makes_again=up_to is None)
        selection = msgspec.structs.replace(selection, left=settled.left)
        _, split = (
            look(session, selection, is_again=True) if up_to is None else look(session, selection, up_to, is_again=True)
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
    return undo(session, choose(session, number), selection=wanted, force=asked.force).number


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
    settled, number = Settled(), None
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
            result = undo(session, choose(session, None))
        except HardLinksError:
            event("undo refused for hard links")
            return
    assert result.undone == number
    assert not result.stays
    note(f"undone: {result}")
    again.check(shows_the_same=True)
    assert world.base() == one.before
    event("undone at once")
    apply_again(world, after)


def apply_again(world: World, after: dict[bytes, Node]) -> None:
    """Undo the last undo: base is what it was before that."""
    again = Round(world)
    with world.session() as session:
        try:
            result = undo(session, choose(session, max(commit_numbers(session.directory))))
        except HardLinksError:
            event("redo refused for hard links")
            return
    assert not result.stays
    again.check(shows_the_same=True)
    assert world.base() == after
    event("applied again")


def do_interrupted(world: World, command: Committing | Undoing, over: Interruption) -> None:
    """Do a command over which something comes, then what is to be done about that; undo and redo
    what is done then.
    """
    note(f"{command} {over}")
    one, last = Round(world), last_commit(world)
    in_child(world, command, over)
    shows_the_same = isinstance(command, Undoing) or not (command.merge or command.side or command.ways)
    with world.session() as session:
        found = session.interrupted()
    if found is None:
        event("it was not interrupted half way")
        one.check(shows_the_same=shows_the_same)
        if last_commit(world) == last:
            assert world.base() == one.before
        return
    event(f"interrupted: {type(command).__name__}")
    world.host.act(over.edits)
    if over.commits_first:
        half = world.base()
        with world.session() as session, pytest.raises((CommitError, TrustError)):
            commit(session)
        assert world.base() == half
    ways = [roll_back_interrupted, finish_interrupted][:: 1 if over.goes_back else -1]
    end = next((way for way in ways if may_end(world, way)), None)
    event(f"ended by: {end.__name__ if end is not None else 'nothing'}")
    there = contents(world.root) | (contents(world.commits) if os.path.lexists(world.commits) else set())
    assert one.had - world.host.thrown_away <= there
    assert world.host.written <= there
    if over.edits:
        return
    assert end is ways[0] or end is finish_interrupted  # which is all that can be done once it is settled
    one.check(shows_the_same=shows_the_same)
    if end is roll_back_interrupted:
        assert world.base() == one.before
        return
    after = world.base()
    again = Round(world)
    with world.session() as session:
        try:
            result = undo(session, choose(session, max(commit_numbers(session.directory))))
        except HardLinksError:
            event("undo refused for hard links")
            return
    again.check(shows_the_same=True)
    if not result.stays:
        assert world.base() == one.before
        event("undone after an interruption")
        apply_again(world, after)


def may_end(world: World, way: Callable[[Session], object]) -> bool:
    """Finish or take back what was interrupted, if that can be done."""
    with world.session() as session:
        try:
            way(session)
        except (CommitError, TrustError) as error:
            note(f"{way.__name__}: {error.message}")
            return False
    return True


def last_commit(world: World) -> int:
    return max(commit_numbers(os.path.dirname(world.commits)), default=0)


def in_child(world: World, command: Committing | Undoing, over: Interruption) -> None:
    """Do a command in another process, in which one of the calls fails, or that is killed at it."""
    faults = Faults(over.error, range(0), within=os.path.dirname(world.root) if over.is_reading else None)
    left = over.call

    def come_over() -> None:
        nonlocal left
        if over.is_in_switch and not is_in_switch(world.root):
            return
        if left == 0 and not over.error:
            os.kill(os.getpid(), signal.SIGKILL)
        if left == 0:
            faults.bad = range(faults.count, 1 << 30 if over.lasts else faults.count + 1)
        left -= 1

    faults.before_each = come_over
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (*_ENDS, -signal.SIGKILL), status
        event(f"it ended by: {_ENDS.get(status, 'being killed')}")
        return
    try:
        with world.session() as session, faults.at_work():
            if isinstance(command, Committing):
                do_commit(session, command, is_disturbed=True)
            else:
                do_undo(session, command)
        os._exit(0)
    except OSError:
        os._exit(OF_SYSTEM)
    except YolofsError as error:
        os._exit(next((code for code in _ENDS if code == error.exit_code), 1))
    except BaseException:  # noqa: BLE001 - the parent has to know
        traceback.print_exc()
        os._exit(99)


OF_SYSTEM = 90
_ENDS = {
    0: "its end",
    1: "another refusal",
    2: "a word that makes no sense",
    9: "a conflict",
    12: "a failure half way",
    17: "a failure before it",
    18: "going back",
    19: "hard links",
    OF_SYSTEM: "the system",
}


def check(
    some: Sequence[tuple[Any, ...]],
    links: list[tuple[bytes, ...]],
    state: str | None = None,
) -> None:
    """``state``: a directory on another device, for that of the session."""
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(tempfile.TemporaryDirectory())
        own = stack.enter_context(tempfile.TemporaryDirectory(dir=state)) if state is not None else None
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PATH", os.path.join(base, "commands"))  # to look through those of this machine takes long
        root = os.path.join(os.fsencode(os.path.realpath(base)), b"project")
        os.mkdir(root)
        try:
            world = World(root, links, os.path.join(os.fsencode(own), b"state") if own is not None else None)
            for acts, before, after, command, *over in some:
                world.host.act(before)
                world.act(acts)
                world.host.act(after)
                if over:
                    do_interrupted(world, command, over[0])
                else:
                    do(world, command)
        finally:
            with contextlib.suppress(SessionBusyError):  # which something else has led to, that is worth to be told
                remove_sessions_below(root)


@so_many(ci=7, nightly=3000)
@given(rounds, hard_links | st.just([]))
@example(  # how many names a file has is a part of the view
    [
        (
            [("chmod", b"d/b", 0o600)],
            [],
            [],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=True),
        )
    ],
    [(b"d/b", b"c/b", b"b")],
)
@example(  # the host takes the name by which a file with several was changed
    [
        (
            [("utimes", b"c/a/b", 1_450_000_000_000_000_000)],
            [],
            [("move", 1, 0)],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        )
    ],
    [(b"c/a/b", b"a", b"link")],
)
@example(  # a file of which something is staged is gone from base while another path is committed
    [
        (
            [("setxattr", b"e f", b"user.one", b"v"), ("rmtree", b"d/a/a")],
            [],
            [("remove", 19, 15)],
            Committing((b"d/a/a",), None, "", None, merge=False, side="theirs", trusted=False, is_undone=True),
        )
    ],
    [],
)
@example(  # the host takes a directory away in which something is staged, and it is made again
    [
        (
            [("mkfifo", b"d/d/d/a", 0o600)],
            [("write", 0, 0)],
            [],
            Committing((b"b",), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        ),
        ([], [], [("move", 15, 0)], Committing((), None, "", None, False, "ours", trusted=True, is_undone=False)),
    ],
    [],
)
@example(  # an undo of an undo takes out of base what the view lacks already: names of a file that has others
    [
        (
            [("rmtree", b"c")],
            [],
            [],
            Committing((), None, "", None, merge=False, side="", trusted=True, is_undone=False),
        ),
        ([], [], [], Undoing(None, (), force=True)),
        ([], [], [], Undoing(1, (), force=True)),
    ],
    [(b"e f", b"a", b"b"), (b"e f", b"c/a", b"b"), (b"e f", b"c", b"link")],
)
def test_nothing_is_lost_and_the_view_stays(some: list[Any], links: list[tuple[bytes, ...]]) -> None:
    check(some, links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=5, nightly=3000)
@given(rounds, hard_links | st.just([]))
def test_nothing_is_lost_and_the_view_stays_where_the_session_is_on_another_device(
    some: list[Any], links: list[tuple[bytes, ...]]
) -> None:
    check(some, links, "/dev/shm")


@so_many(ci=18, nightly=5000)
@given(st.none() | plain_round | plain_round, interrupted_round, hard_links | st.just([]))
def test_nothing_is_lost_by_what_is_interrupted_and_it_can_be_undone_and_redone(
    first: tuple[Any, ...] | None, second: tuple[Any, ...], links: list[tuple[bytes, ...]]
) -> None:
    check([second] if first is None else [first, second], links)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=5, nightly=3000)
@given(interrupted_round, hard_links | st.just([]))
def test_the_same_where_the_session_is_on_another_device(one: tuple[Any, ...], links: list[tuple[bytes, ...]]) -> None:
    check([one], links, "/dev/shm")
