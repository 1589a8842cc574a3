"""What the host has given to base since a commit outlives all undos without force: attributes,
owners, and files of its own.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import NamedTuple, TypeAlias

from hypothesis import event, example, given, note
from hypothesis import strategies as st

from tests.property.commands_drawn import Act
from tests.property.commands_world import places
from tests.property.undone_in_parts import FOLDERS, Command, LinkedWorld, acts, commands, slots
from tests.support.clocks import let_clocks_pass
from tests.support.commit_model import Node, scan
from tests.support.model_steps import by_night
from tests.support.session_cleaning import remove_sessions_below
from yolofs.commit.select.selection import Selection
from yolofs.errors import YolofsError
from yolofs.paths import RelPath
from yolofs.session.archive import commit_numbers
from yolofs.session.commit import commit
from yolofs.session.undo import choose_commit, undo

Gift: TypeAlias = tuple[str, int]
"""What the host gives, and a number that chooses to what."""
OWN = b"own"
"""The folder of the host's own files, which no commit is about."""
_FIRST_OWNER = 50_000
gifts = st.lists(st.tuples(st.sampled_from(("attribute", "owner", "file")), st.integers(0, 40)), max_size=3)


class Program(NamedTuple):
    """What is done."""

    names: list[tuple[bytes, int | None]]
    """As in :class:`tests.property.undone_in_parts.Program`."""
    rounds: list[list[Act]]
    commands: list[tuple[list[Gift], Command]]
    """Undos, and what the host gives before each."""


undos = st.builds(Command, st.sampled_from((-1, -1, -2, 0, 1, 2)), st.just(()))
"""Mostly of the last commit, which may be an undo."""
trees = st.one_of(
    st.tuples(st.just("rmtree"), st.sampled_from(FOLDERS)),
    st.tuples(st.sampled_from(("to_folder", "to_link")), slots),
    st.tuples(st.just("chmod"), st.sampled_from(FOLDERS), st.sampled_from((0o700, 0o711))),
)
programs = st.builds(
    Program,
    st.lists(st.tuples(slots, st.none() | st.integers(0, 7)), min_size=1, max_size=8, unique_by=lambda name: name[0]),
    st.lists(st.lists(acts | trees, min_size=1, max_size=4), min_size=1, max_size=2),
    st.lists(st.tuples(gifts, undos | undos | commands), min_size=1, max_size=4),
)


class Giver:
    """Somebody who gives things in base what tells them from all others."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._count = 0

    def give(self, some: list[Gift]) -> None:
        """Give some."""
        for kind, number in some:
            self._count += 1
            self._give(kind, number)

    def _give(self, kind: str, number: int) -> None:
        nodes = {path: node for path, node in scan(self._root).items() if path.split(b"/")[0] not in (b".yolofs", OWN)}
        some = sorted(path for path, node in nodes.items() if path and node.kind in (stat.S_IFREG, stat.S_IFDIR))
        directories = [path for path in some if nodes[path].kind == stat.S_IFDIR]
        own = sorted(os.listdir(os.path.join(self._root, OWN)))
        if not (directories if kind == "file" else some) or (kind == "file" and not own):
            return
        path = directories[number % len(directories)] if kind == "file" else some[number % len(some)]
        place = os.path.join(self._root, path)
        match kind:
            case "attribute":
                os.setxattr(place, b"user.host%d" % self._count, b"1")
            case "owner" if not os.geteuid():
                os.chown(place, _FIRST_OWNER + self._count, -1)
            case "file":
                os.rename(os.path.join(self._root, OWN, own[0]), os.path.join(place, own[0]))
        event(f"the host gave {kind}")
        note(f"the host gave {kind} to {path!r}")


def given_by_host(base: dict[bytes, Node]) -> set[object]:
    """Return all that the host has given."""
    found: set[object] = set()
    for node in base.values():
        found.update(name for name, _ in node.xattrs if name.startswith("user.host"))
        found.update(uid for uid in node.owner if uid > _FIRST_OWNER)
        if node.content.startswith(b"the host's"):
            found.add(node.content)
    return found


class WorldWithHost(LinkedWorld):
    """Such a project in which some files are the host's own."""

    def fill(self, links: list[tuple[bytes, ...]]) -> None:
        os.mkdir(os.path.join(self.root, OWN))
        for number in range(6):
            with open(os.path.join(self.root, OWN, b"%d" % number), "xb") as file:
                file.write(b"the host's %d\n" % number)
        super().fill(links)


def do(world: WorldWithHost, command: Command) -> None:
    with world.session() as session:
        wanted = Selection(session.regions, paths=tuple(map(RelPath, command.paths))) if command.paths else None
        numbers = sorted(commit_numbers(session.directory))
        if not numbers:
            return
        try:
            one = choose_commit(session, numbers[(command.number or 0) % len(numbers)])
            done = undo(session, one, selection=wanted)
        except YolofsError as error:
            event(f"refused: {type(error).__name__}")
            note(f"{command} -> {error.message}")
            return
    event("undone")
    note(f"{command} -> {done}")


def check(program: Program) -> None:
    with contextlib.ExitStack() as stack:
        root, own = stack.enter_context(places(None))
        for folder in (b"", *FOLDERS):
            os.mkdir(os.path.join(root, folder))
        stack.callback(remove_sessions_below, root)
        world, host = WorldWithHost(root, program.names, own), Giver(root)
        for some in program.rounds:
            world.act(some)
            with world.session() as session:
                commit(session)
        for some_gifts, command in program.commands:
            if some_gifts:
                let_clocks_pass()
            host.give(some_gifts)
            had = given_by_host(world.base())
            do(world, command)
            assert had <= given_by_host(world.base())


@by_night(nightly=3000)
@given(programs)
@example(  # in a tree that an undo has brought back
    Program([(b"h0", None)], [[("rmtree", b"q")]], [([], Command(-1)), ([("attribute", 3)], Command(-1))])
)
@example(  # to a directory whose mode comes back, below one that a later commit has changed
    Program(
        [(b"h0", None)],
        [[("unlink", b"h0"), ("chmod", b"q/s", 0o700)], [("chmod", b"q", 0o700)]],
        [([("attribute", 2)], Command(-2))],
    )
)
def test_what_the_host_has_given_stays_in_base(program: Program) -> None:
    check(program)
