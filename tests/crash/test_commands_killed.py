"""Commands that change base or end generations are killed at one line of their code after another.

Base is as before or as it is to be, nobody's writes are lost, and the next command ends well.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate, work
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import Ran, as_user, end_it, is_in_switch, is_settled, kill_points, run, users
from tests.support.looks import exactly
from tests.support.model_steps import how_many
from tests.support.plain_directory import by_first_name, walk_tree
from tests.support.seed import dice
from tests.support.user_identity import USERS

pytestmark = pytest.mark.timeout(300)
SHARES = how_many(ci=1, nightly=24)
"""The kill points are dealt out to so many tests for each user."""
POINTS = 6
"""For each share."""
TRIES = 40
"""To kill a command where it is to be killed: another run of it may be longer by some lines."""
TEN = "".join(f"{number}\n" for number in range(1, 11)).encode()
OURS, THEIRS = TEN.replace(b"2\n", b"two\n"), TEN.replace(b"9\n", b"nine\n")

Look = dict[bytes, tuple[Any, ...]]


class Scene(NamedTuple):
    """A command, and what it is about."""

    words: tuple[str, ...]
    prepare: Callable[[bytes], None]
    """Makes what is staged over base, and what the host does."""
    texts: tuple[bytes, ...] = ()
    """These contents are somewhere at any time."""
    code: int = 0
    of: Scene | None = None
    """The interrupted command, if this scene follows one: ``prepare`` interrupts it."""


class Driver(CoreDriver):
    """The view of a session that a command was killed over."""

    may_leave = True


def base_of(project: bytes) -> Look:
    return by_first_name(dict(walk_tree(project)))


def view_of(project: bytes) -> Look:
    view = Driver(project)
    try:
        return view.tree()
    finally:
        view.close()


def fresh(scene: Scene, place: Path) -> bytes:
    """Make the project of a scene anew, and forget the ones before: each that is known costs a
    command lines of its code, and a kill is to meet the line that was counted.
    """
    project = place / "project"
    if scene.of is not None:
        fresh(scene.of, place)
    else:
        for directory in (project, place / "state" / "yolofs"):
            shutil.rmtree(directory, ignore_errors=True)
        project.mkdir()
    scene.prepare(os.fsencode(project))
    return os.fsencode(project)


def contents(project: bytes) -> set[bytes]:
    """Return what files in base and in the session hold."""
    session = Path(os.path.realpath(os.path.join(os.fsdecode(project), ".yolofs")))
    files = [path for top in (Path(os.fsdecode(project)), session) for path in top.rglob("*")]
    return {path.read_bytes() for path in files if path.is_file() and not path.is_symlink()}


# ---- what is prepared


def before_snapshot(view: CoreDriver) -> None:
    """Leave something for most kinds of step, but for files with hard links: those may not differ
    in both states.
    """
    view.rename(b"a", b"t")
    view.rename(b"b", b"a")
    view.rename(b"t", b"b")
    view.overwrite(b"c", b"new c")
    view.chmod(b"e/x", 0o600)
    view.mkdir(b"new", 0o750)
    view.create(b"new/file", b"made", 0o640)
    view.symlink(b"somewhere", b"new/soft")
    view.rename(b"f", b"new/f")
    view.unlink(b"new/f/1")
    view.unlink(b"d/sub/y")
    view.rmdir(b"d/sub")


def up_to(project: bytes) -> None:
    """Something of every kind is changed, and of that again something after a snapshot."""
    populate(project)
    view = CoreDriver(project)
    before_snapshot(view)
    view.snapshot()
    view.overwrite(b"a", b"later a")
    view.rename(b"new/file", b"e/file")
    view.rename(b"new", b"newer")
    view.unlink(b"c")
    view.create(b"c", b"another c", 0o644)
    view.create(b"late", b"late", 0o644)
    view.close()


def drifted(project: bytes) -> None:
    """Both sides have changed files: some merge, some do not, and one is changed here alone."""
    here = Path(os.fsdecode(project))
    for text in ("clean", "clash", "moved", "mode", "hard", "alone", "gone"):
        (here / text).write_bytes(TEN)
    (here / "hard2").hardlink_to(here / "hard")
    view = CoreDriver(project)
    for name in (b"clean", b"moved", b"hard", b"alone"):
        view.overwrite(name, OURS)
    view.rename(b"moved", b"moved-here")
    view.chmod(b"mode", 0o600)
    view.overwrite(b"clash", TEN.replace(b"5", b"five"))
    view.append(b"gone", b"more\n")
    view.create(b"made", b"made\n", 0o644)
    view.close()
    for text in ("clean", "moved", "mode", "hard"):
        (here / text).write_bytes(THEIRS)
    (here / "clash").write_bytes(TEN.replace(b"5", b"FIVE"))
    (here / "gone").unlink()


def committed(project: bytes) -> None:
    """Two commits, of which the first one is to be taken back in part, and something is staged."""
    populate(project)
    view = CoreDriver(project)
    work(view)
    view.commit()
    view.overwrite(b"b", b"another b")
    view.create(b"second", b"second", 0o644)
    view.commit()
    view.append(b"c", b" and staged")
    view.create(b"third", b"third", 0o644)
    view.close()


def everything(project: bytes) -> None:
    """Something for every kind of step is staged."""
    populate(project)
    view = CoreDriver(project)
    work(view)
    view.close()


def interrupted(scene: Scene, *words: str, where: Callable[[Ran], Sequence[int]]) -> Scene:
    """Return the scene of a command after another was killed at one of its lines, drawn of those
    that ``where`` gives.
    """
    known: list[int] = []

    def interrupt(project: bytes) -> None:
        if not known:
            whole = run(project, *scene.words, faults=Faults(0, range(0)))
            assert whole.code == scene.code, whole
            known.extend(where(whole))
            fresh(scene, Path(os.fsdecode(project)).parent)
        drawing = dice("interrupted", scene.words, words)
        for _ in range(TRIES):
            line = drawing.choice(known)
            assert run(project, *scene.words, line=line + 1).is_killed
            is_there = is_in_switch(project) == (where in (in_switch, early_in_switch))
            if is_there and ("--roll-back" not in words or not is_settled(project)):  # else no way leads back
                known[:] = [line]
                return
            if len(known) > 1:  # the one that was drawn first is tried again: some lines more or less are by chance
                known.remove(line)
            fresh(scene, Path(os.fsdecode(project)).parent)
        raise AssertionError(known)

    return Scene(words, interrupt, scene.texts, of=scene)


def in_switch(whole: Ran) -> Sequence[int]:
    """Where base is being changed."""
    return whole.switch[1:-1]


def early_in_switch(whole: Ran) -> Sequence[int]:
    """Where base is being changed, and directories do not have their times yet."""
    return whole.switch[1 : len(whole.switch) // 2]


def in_making(whole: Ran) -> Sequence[int]:
    """Before all is made."""
    return [line for line in whole.calls if line < whole.switch[0]][-20:]


def at_the_end(whole: Ran) -> Sequence[int]:
    """After all is done."""
    return [line for line in whole.calls if line > whole.switch[-1]][:10]


CLASH = (TEN.replace(b"5", b"five"), TEN.replace(b"5", b"FIVE"))
SCENES = {
    "up to": Scene(("commit", "--yes", "--up-to", "1"), up_to),
    "merge": Scene(("commit", "--yes", "--merge"), drifted, (OURS, THEIRS, *CLASH), 9),
    "ours": Scene(("commit", "--yes", "--ours"), drifted, (OURS, THEIRS, *CLASH)),
    "theirs": Scene(("commit", "--yes", "--theirs"), drifted, (OURS, THEIRS, *CLASH)),
    "undo": Scene(("undo", "1", "--yes", "a", "c", "d", "e", "f", "new"), committed, (b"new c", b"base c"), 16),
}
COMMIT, UNDO = Scene(("commit", "--yes"), everything), SCENES["undo"]
RECOVERIES = {
    "continue": interrupted(COMMIT, "commit", "--continue", where=in_switch),
    "roll back": interrupted(COMMIT, "commit", "--roll-back", where=in_switch),
    "continue an undo": interrupted(UNDO, "commit", "--continue", where=in_switch),
    "roll back an undo": interrupted(UNDO, "commit", "--roll-back", where=in_switch),
    "after making": interrupted(COMMIT, "status", where=in_making),
    "after the end": interrupted(COMMIT, "status", where=at_the_end),
    "after an undo's end": interrupted(UNDO, "status", where=at_the_end),
}
"""What becomes of a command that was killed."""


ALL = SCENES | RECOVERIES
SOME = 100
DRAWN = points(list(ALL), "commands killed", some=2)
"""The commands that this run kills; by night all."""


def _difference(one: Look, other: Look) -> dict[bytes, object]:
    return {path: (one.get(path), other.get(path)) for path in one.keys() | other if one.get(path) != other.get(path)}


class Ends(NamedTuple):
    """What base and the view are before a command, and after it."""

    before: Look
    after: Look
    view_before: Look
    view_after: Look

    def check(self, scene: Scene, project: bytes, where: str) -> None:
        """See that a command over which something has come, and been mended, leaves either, and can
        be done.
        """
        command = scene.of or scene
        now = base_of(project)
        assert now in (self.before, self.after), (where, _difference(now, self.before), _difference(now, self.after))
        assert view_of(project) in (self.view_before, self.view_after), where
        assert contents(project) >= set(scene.texts), where
        if now == self.before:
            again = run(project, *command.words)
            assert again.code == command.code, (where, again)
        assert base_of(project) == self.after, where
        assert view_of(project) == self.view_after, where
        assert contents(project) >= set(scene.texts), where

    def has_come_but_for_links(self, project: bytes) -> bool:
        """Tell whether base is as it is after the command, but for how many names files have: what
        is kept and cannot be copied stays a link.
        """
        now = base_of(project)
        return now != self.after and _without_counts(now) == _without_counts(self.after)


def _without_counts(look: Look) -> Look:
    return {path: what[:8] + what[9:] if what[0] == "file" else what for path, what in look.items()}


def ends_of(scene: Scene, place: Path, faults: Faults | None = None) -> tuple[Ends, Ran]:
    """Return what a command leads from and to, and one run of the scene's that came to its end.

    Its calls are counted as ``faults`` do.
    """
    faults = faults if faults is not None else Faults(0, range(0))
    command = scene.of or scene
    project = fresh(command, place)
    before, view_before = base_of(project), view_of(project)
    whole = run(project, *command.words, faults=faults)
    assert whole.code == command.code, whole
    ends = Ends(before, base_of(project), view_before, view_of(project))
    if scene.of is not None:
        project = fresh(scene, place)
        whole = run(project, *scene.words, faults=faults)
        assert whole.code == scene.code, whole
    return ends, whole


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(
    ("name", "is_root"), [(name, is_root) for name in DRAWN for is_root in users("commands killed", name)]
)
def test_a_killed_command_leaves_base_as_before_or_as_after_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, is_root: bool, share: int
) -> None:
    at = share + (SHARES if is_root else 0)
    as_user(partial(check, ALL[name], at), monkeypatch, is_root=is_root)


def check(scene: Scene, share: int, place: Path) -> None:
    ends, whole = ends_of(scene, place)
    assert ends.after != ends.before
    assert whole.lines > 1000
    seen: Counter[object] = Counter()
    shares = SHARES * len(USERS)
    for point, line in enumerate(kill_points(whole, share, shares, POINTS)):
        where = f"killed at line {line} of {whole.lines}"
        project = fresh(scene.of or scene, place)
        exact = exactly(Path(os.fsdecode(project)))
        if scene.of is not None:
            scene.prepare(project)
        ran = run(project, *scene.words, line=line)
        assert ran.is_killed, where
        end = end_it(project, goes_back=bool(point // 3 % 2))
        seen[end] += 1
        if end == "taken back":
            assert exactly(Path(os.fsdecode(project))) == exact, where
        ends.check(scene, project, where)
    assert scene.of is not None or len(seen) > 1, seen


def test_the_count_of_lines_tells_where_a_command_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for some lines: they follow from inode numbers, and from clocks."""

    def last(place: Path) -> None:
        whole = run(fresh(SCENES["up to"], place), *SCENES["up to"].words, faults=Faults(0, range(0)))
        for line, is_killed in ((whole.lines - SOME, True), (whole.lines + SOME, False)):
            assert run(fresh(SCENES["up to"], place), *SCENES["up to"].words, line=line).is_killed == is_killed

    as_user(last, monkeypatch, is_root=True)
