"""What is drawn for rounds of commits and undos: work in the view, the host's edits, commands with
their options, and what interrupts them.
"""

from __future__ import annotations

import errno
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st

from tests.property.test_commit_property import DIRECTORIES, FILES
from tests.support.host_edits import Edit
from tests.support.host_edits import edits_without_renaming as edits
from yolofs.cli.commit.settling import ConflictChoice
from yolofs.paths import RelPath
from yolofs.state.regions import Region, Regions

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
    ways: tuple[ConflictChoice, ...] = ()
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
    st.just(()) | st.lists(st.sampled_from(ConflictChoice), min_size=1, max_size=3).map(tuple),
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
    gives_up: bool = False
    """Whether it is given up, neither finished nor taken back."""


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
    st.sampled_from((False, False, False, False, True)),
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
    st.just(()) | st.lists(st.sampled_from(ConflictChoice), min_size=1, max_size=3).map(tuple),
)
"""Those that hardly anything is in the way of."""
sure_undos = st.builds(Undoing, st.none(), st.just(()) | st.lists(paths, max_size=2).map(tuple), st.just(True))
plain_round = st.tuples(st.lists(acts, min_size=1, max_size=8), st.just([]), edits | st.just([]), sure_commits)
undoing_round = st.tuples(st.lists(acts, max_size=3), st.just([]), st.just([]), sure_undos)
rounds_before = st.lists(plain_round | undoing_round, max_size=1) | st.lists(plain_round | undoing_round, max_size=3)
"""The rounds before an interrupted command: it may undo an undo."""
interrupted_round = st.tuples(
    st.lists(acts, min_size=1, max_size=8),
    edits | st.just([]),
    edits | st.just([]),
    sure_commits | sure_commits | sure_undos,
    interruptions,
)
