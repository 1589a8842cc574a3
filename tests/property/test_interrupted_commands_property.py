"""A commit or an undo is killed, or a call of it fails; then the host works, too, and the command
is finished or taken back: nothing is lost.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.property.commands_drawn import Committing, Interruption, Undoing, interrupted_round, rounds_before
from tests.property.commands_world import Round, World, apply_again, check, do, do_commit, do_undo
from tests.property.test_commit_property import hard_links, has_second_device
from tests.support.injected_faults import Faults
from tests.support.killed_command import is_in_switch
from tests.support.model_steps import so_many
from yolofs.errors import (
    CommitError,
    HardLinksError,
    TrustError,
    YolofsError,
)
from yolofs.session.archive import commit_numbers
from yolofs.session.commit import commit
from yolofs.session.ending_interrupted import discard_interrupted, finish_interrupted, roll_back_interrupted
from yolofs.session.session import Session
from yolofs.session.undo import choose_commit, undo


def do_interrupted(world: World, command: Committing | Undoing, over: Interruption) -> None:
    """Do a command that is interrupted, then settle that; undo the outcome, and redo it."""
    note(f"{command} {over}")
    one, last, staged = Round(world), last_commit(world), world.staged()
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
    world.work_beside(over.edits)
    if over.commits_first:
        half = world.base()
        with world.session() as session, pytest.raises((CommitError, TrustError)):
            commit(session)
        assert world.base() == half
    if over.gives_up:
        give_up(world, one, staged if not over.edits else set())
        return
    ways = [roll_back_interrupted, finish_interrupted][:: 1 if over.goes_back else -1]
    end = next((way for way in ways if may_end(world, way)), None)
    event(f"ended by: {end.__name__ if end is not None else 'nothing'}")
    there = world.there()
    world.check_directories()
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
            result = undo(session, choose_commit(session, max(commit_numbers(session.directory))))
        except HardLinksError:
            event("undo refused for hard links")
            return
    again.check(shows_the_same=True)
    if not result.stays:
        assert world.base() == one.before
        event("undone after an interruption")
        apply_again(world, after)


def do_or_be_interrupted(world: World, command: Committing | Undoing, *over: Interruption) -> None:
    """Do a command, which something may come over."""
    if over:
        do_interrupted(world, command, over[0])
    else:
        do(world, command)


def may_end(world: World, way: Callable[[Session], object]) -> bool:
    """Finish or take back what was interrupted, if that can be done."""
    with world.session() as session:
        try:
            way(session)
        except (CommitError, TrustError) as error:
            note(f"{way.__name__}: {error.message}")
            return False
    return True


def give_up(world: World, one: Round, staged: set[bytes]) -> None:
    """Give up what was interrupted: nothing is lost, the ``staged`` contents neither, the view is
    base, and the next commit goes through.
    """
    with world.session() as session:
        discard_interrupted(session)
    event("given up")
    there = world.there()
    assert one.had - world.host.thrown_away <= there
    assert world.host.written <= there
    assert staged <= there | world.staged()
    assert world.view().keys() | {b""} == world.base().keys()
    world.act([("create", b"made afterwards", b"after\n", 0o644)])
    with world.session() as session:
        commit(session)
    assert world.base()[b"made afterwards"].content == b"after\n"


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


@so_many(ci=8, nightly=5000)
@given(rounds_before, interrupted_round, hard_links | st.just([]))
def test_nothing_is_lost_by_what_is_interrupted_and_it_can_be_undone_and_redone(
    before: list[tuple[Any, ...]], last: tuple[Any, ...], links: list[tuple[bytes, ...]]
) -> None:
    check([*before, last], links, carry_out=do_or_be_interrupted)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@so_many(ci=4, nightly=3000)
@given(rounds_before, interrupted_round, hard_links | st.just([]))
def test_nothing_is_lost_by_what_is_interrupted_where_the_session_is_on_another_device(
    before: list[tuple[Any, ...]], last: tuple[Any, ...], links: list[tuple[bytes, ...]]
) -> None:
    check([*before, last], links, "/dev/shm", do_or_be_interrupted)
