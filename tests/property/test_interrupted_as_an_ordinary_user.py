"""An ordinary user's commit or undo is interrupted in directories that forbid writing, and root
works there before the user goes on: nothing is lost, and no directory stays opened up.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from typing import Any

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.property.commands_drawn import interrupted_round, rounds_before
from tests.property.commands_world import World
from tests.property.test_commit_property import DIRECTORIES, hard_links, has_second_device
from tests.property.test_interrupted_commands_property import do_or_be_interrupted
from tests.support import core_driver
from tests.support.commit_model import scan
from tests.support.host_edits import Edit
from tests.support.model_steps import so_many
from tests.support.user_identity import NOBODY, ORDINARY, acting_as_root, room_of
from yolofs.overlay import Owner

Modes = list[tuple[bytes, int]]
CLOSED = (0o501, 0o1555, 0o2555)
OPENED = frozenset(mode | 0o200 for mode in CLOSED)
"""Modes that nobody gives to a directory, but the commit that works in it."""
_READABLE = {0o600: 0o500, 0o4755: 0o555}
closed = st.lists(st.tuples(st.sampled_from((b"", *DIRECTORIES)), st.sampled_from(CLOSED)), max_size=6)


class UsersWorld(World):
    """The project of an ordinary user, with closed directories, on a host that root works on."""

    def __init__(self, root: bytes, links: list[tuple[bytes, ...]], state: bytes | None, modes: Modes) -> None:
        self._modes = modes
        super().__init__(root, links, state)

    def fill(self, links: list[tuple[bytes, ...]]) -> None:
        super().fill(links)
        for path, mode in self._modes:
            if path:  # the session's link comes into the project's directory later
                os.chmod(os.path.join(self.root, path), mode)

    def act(self, some: list[Any]) -> None:
        """Work in the view, and leave the user what it takes to look into a directory."""
        super().act(
            [
                (name, rest[0], _READABLE.get(rest[1], rest[1])) if name == "chmod" else (name, *rest)
                for name, *rest in some
            ]
        )

    def work_as_the_user(self, some: list[Edit]) -> None:
        """Have the user work in base, as far as they may."""
        for edit in some:
            with contextlib.suppress(PermissionError):
                self.host.act([edit])

    def work_beside(self, some: list[Edit]) -> None:
        """Have root work, and the user in turns; the user alone closes files."""
        for at, edit in enumerate(some):
            is_roots = at % 2 == 0 and edit[0] != "chmod"
            note(f"{'root' if is_roots else 'the user'}:")
            with contextlib.suppress(PermissionError), acting_as_root() if is_roots else contextlib.nullcontext():
                self.host.act([edit])
            event("root was there" if is_roots else "the user was there")

    def check_directories(self) -> None:
        opened = {
            path: oct(node.mode)
            for path, node in scan(self.root).items()
            if node.kind == stat.S_IFDIR and node.mode in OPENED
        }
        assert not opened


def check(
    before: list[tuple[Any, ...]], last: tuple[Any, ...], links: list[tuple[bytes, ...]], modes: Modes, *, is_far: bool
) -> None:
    """Go through the rounds as an ordinary user; if ``is_far``, the session lies on another
    device.
    """
    with contextlib.ExitStack() as stack:
        far = tempfile.mkdtemp(dir="/dev/shm") if is_far else None
        if far is not None:
            stack.callback(shutil.rmtree, far)
            if os.geteuid() == 0:
                os.chown(far, NOBODY, NOBODY)
        room = stack.enter_context(room_of(ORDINARY))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("HOME", "XDG_STATE_HOME"):
            patch.setenv(name, os.path.join(os.fsdecode(room), name.lower()))
        patch.setenv("PATH", "/nowhere")
        patch.setattr(core_driver, "OWNER", Owner(os.geteuid(), os.getegid()))
        root = os.path.join(room, b"project")
        os.mkdir(root)
        world = UsersWorld(root, links, os.path.join(os.fsencode(far), b"state") if far is not None else None, modes)
        for acts, host_before, host_after, command, *over in [*before, last]:
            world.work_as_the_user(host_before)
            world.act(acts)
            world.work_as_the_user(host_after)
            do_or_be_interrupted(world, command, *over)


few = so_many(ci=4, nightly=3000)


@few
@given(rounds_before, interrupted_round, hard_links | st.just([]), closed)
def test_nothing_is_lost_by_what_is_interrupted_as_an_ordinary_user_beside_root(
    before: list[tuple[Any, ...]], last: tuple[Any, ...], links: list[tuple[bytes, ...]], modes: Modes
) -> None:
    check(before, last, links, modes, is_far=False)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@few
@given(rounds_before, interrupted_round, hard_links | st.just([]), closed)
def test_nothing_is_lost_by_what_is_interrupted_where_the_session_is_on_another_device(
    before: list[tuple[Any, ...]], last: tuple[Any, ...], links: list[tuple[bytes, ...]], modes: Modes
) -> None:
    check(before, last, links, modes, is_far=True)
