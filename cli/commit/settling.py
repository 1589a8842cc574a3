"""What `yolofs commit` does where base has changed, too: merge, take one side, or leave it
staged.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import click

from yolofs.changes.changes import Change, ChangeKind, compare
from yolofs.changes.patch import write_patch
from yolofs.cli.output import can_ask, choose, emit_bytes, say
from yolofs.cli.show.drift_lines import drift_text
from yolofs.cli.show.first_lines import first_lines
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay, notes_text, summary
from yolofs.commit.merge.drift_descriptions import describe_drift
from yolofs.commit.merge.gone_from_base import missing_directories
from yolofs.commit.merge.merging import Merge, Unmergeable
from yolofs.commit.select.made_again import directories_of_others
from yolofs.commit.select.split import Split
from yolofs.errors import ConflictError, UsageError
from yolofs.journal.timeline import BASE
from yolofs.paths import ROOT, RelPath, StoreIno, absolute, in_shell
from yolofs.session.commit import BaseLook, conflict_error
from yolofs.session.merge import MODE_MADE_AGAIN, before_merge, merges_at, settle_conflicts
from yolofs.session.session import Session

_NAMED = 3
_UNMERGED = "what was staged before the merge"
_LOST = f"{_UNMERGED} is no longer kept, so its marks have to be taken out"
_WITHOUT_CONTENT = "its content was in base alone, and is gone from there"
_MADE_AGAIN = f"with mode {MODE_MADE_AGAIN:o}, as it is gone from base"
_QUESTION = "[m]erge, take [o]urs (staged) or [t]heirs (base), [s]kip, [c]ommit the others, see the [d]iff, or [q]uit?"
_OTHERS = "c"
"""The letter that leaves all undecided conflicts staged."""


class ConflictChoice(Enum):
    """What is to become of a conflict; the value is the letter by which it is chosen."""

    MERGE = "m"
    OURS = "o"
    THEIRS = "t"
    SKIP = "s"


class SettledConflicts(NamedTuple):
    """What has become of the conflicts of a commit."""

    merged: tuple[RelPath, ...] = ()
    """These have what both sides did."""
    marked: tuple[RelPath, ...] = ()
    """These have marks where both sides changed the same, and stay staged."""
    refused: tuple[Unmergeable, ...] = ()
    """These could not be merged, and stay staged."""
    skipped: tuple[RelPath, ...] = ()
    dropped: tuple[RelPath, ...] = ()
    """At these nothing is staged any more."""
    ours: frozenset[RelPath] = frozenset()
    """Paths with a conflict at which the staged version replaces base's."""
    unmerged: tuple[RelPath, ...] = ()
    """Those of them that had marks, and are what was staged before the merge."""
    lost: tuple[RelPath, ...] = ()
    """These have marks, and what was staged before the merge is no longer kept; they stay
    staged.
    """

    without_content: tuple[RelPath, ...] = ()
    """These stay staged: nobody can take them, as base alone had their content."""
    made_again: tuple[RelPath, ...] = ()
    """Directories that base lacks now; they are made again, as something is staged in them."""
    of_others: tuple[RelPath, ...] = ()
    """Further directories in them, in which all stays staged, so they do."""

    @property
    def left(self) -> frozenset[RelPath]:
        """The paths that stay staged."""
        refused = (path for one in self.refused for path in one.paths)
        return frozenset((*self.marked, *refused, *self.lost, *self.without_content, *self.skipped, *self.of_others))

    def fields(self, root: bytes) -> dict[str, Any]:
        """Return what was settled, for a JSON document."""
        reasons = {path: one.reason for one in self.refused for path in one.paths}
        reasons |= dict.fromkeys(self.marked, "it has the marks of a conflict")
        reasons |= dict.fromkeys(self.lost, _LOST)
        reasons |= dict.fromkeys(self.without_content, _WITHOUT_CONTENT)
        return {
            "merged": [text_fields("path", absolute(root, path)) for path in self.merged],
            "dropped": [text_fields("path", absolute(root, path)) for path in self.dropped],
            "left": [
                {**text_fields("path", absolute(root, path)), "reason": reason}
                for path, reason in sorted(reasons.items())
            ],
        }

    def say(self, session: Session) -> None:
        """Print what is no longer staged, and which files no longer have marks."""
        taken = "base's version is taken; what was staged there is a generation: yolofs log"
        _say_each(session, [(path, f"{_UNMERGED} is taken, without later edits") for path in self.unmerged])
        _say_each_directory(session, [(path, f"made again, {_MADE_AGAIN}") for path in self.made_again])
        _say_each(session, [(path, taken) for path in self.dropped])

    def check(self, session: Session) -> None:
        """Check that every conflict is settled.

        Raises:
            ConflictError: one is not; the hint is what to do next.
        """
        if not self._unsettled:
            return
        marked = "both sides changed the same lines; both stand between marks in the view"
        _say_each(session, [(path, marked) for path in self.marked])
        _say_each(session, [(one.paths[0], f"{one.reason}, so it is not merged") for one in self.refused])
        _say_each(session, [(path, _LOST) for path in self.lost])
        _say_each(session, [(path, _WITHOUT_CONTENT) for path in self.without_content])
        names = _named(session.base.root, sorted((*self.marked, *self.lost)))
        edit = f'take the marks out: yolofs run -- "$EDITOR" {names}; then: yolofs commit {names}' if names else ""
        s = "s" if len(self._unsettled) == 1 else ""
        raise self._error(session, f"stay{s} staged", edit)

    def foretell(self, session: Session) -> None:
        """Print what would become of the conflicts of a commit.  Nothing is done.

        Raises:
            ConflictError: of some nothing would; the hint is what to do about these.
        """
        lines = [(path, "it merges: what both sides changed would be applied") for path in self.merged]
        lines += [(path, "base's version would be taken") for path in self.dropped]
        lines += [(path, f"{_UNMERGED} would be taken") for path in self.unmerged]
        lines += [(path, f"{_LOST}, so it would stay staged") for path in self.lost]
        lines += [(path, f"{_WITHOUT_CONTENT}, so it would stay staged") for path in self.without_content]
        lines += [(path, "both sides changed the same lines, and it would get marks there") for path in self.marked]
        lines += [(one.paths[0], f"{one.reason}, so it would not be merged") for one in self.refused]
        _say_each_directory(session, [(path, f"it would be made again, {_MADE_AGAIN}") for path in self.made_again])
        _say_each(session, lines)
        if self._unsettled:
            raise self._error(session, "would stay staged", "")

    @property
    def _unsettled(self) -> list[RelPath]:
        refused = (path for one in self.refused for path in one.paths)
        return sorted((*self.marked, *refused, *self.lost, *self.without_content))

    def _error(self, session: Session, what: str, edit: str) -> ConflictError:
        root, paths = session.base.root, self._unsettled
        with_sides = sorted(set(paths).difference(self.lost, self.without_content))
        sides = f"yolofs commit --ours {_named(root, with_sides)}, or --theirs to take base's" if with_sides else ""
        drop = f"yolofs commit --theirs {_named(root, self.without_content)}" if self.without_content else ""
        error = ConflictError(
            f"{len(paths)} path{'' if len(paths) == 1 else 's'} {what}, as base has changed there, too",
            paths=paths,
            hint="; or drop what base alone had: ".join(
                text for text in ("; or take one side: ".join(text for text in (edit, sides) if text), drop) if text
            ),
        )
        error.root = root
        return error


class DecidedConflicts(NamedTuple):
    """What is to become of the conflicts of a commit; nothing is done yet."""

    merges: list[Merge]
    settled: SettledConflicts
    """What comes of it; ``dropped`` are the paths that were asked about."""
    unmerged: dict[RelPath, StoreIno]
    """The store inodes that merged files get back, so that they are as before the merge."""
    made_again: dict[RelPath, StoreIno | None]
    """The directories that are made again, as :func:`missing_directories` told."""


class ConflictRequest:
    """What the user wants to become of conflicts, by options for all or by an answer for each."""

    def __init__(self, *, merge: bool, ours: bool, theirs: bool) -> None:
        """Take what the options say.

        Raises:
            UsageError: they contradict each other.
        """
        if ours and theirs:
            raise UsageError(
                "--ours and --theirs say different things", hint="commit some paths with one of them, then the others"
            )
        self._merges = merge
        self._side = ConflictChoice.OURS if ours else ConflictChoice.THEIRS if theirs else None
        self._chosen: dict[RelPath, ConflictChoice] = {}

    @property
    def is_given(self) -> bool:
        """Whether options or answers say anything."""
        return self._merges or self._side is not None or bool(self._chosen)

    @property
    def options(self) -> tuple[str, ...]:
        """The options that were given, as typed."""
        side = (
            {ConflictChoice.OURS: "--ours", ConflictChoice.THEIRS: "--theirs"}.get(self._side)
            if self._side is not None
            else None
        )
        return (*(("--merge",) if self._merges else ()), *((side,) if side is not None else ()))

    def take_base(self, paths: Iterable[RelPath]) -> None:
        """Take base's version at paths where the view has nothing of its own, unless options say to
        take that.
        """
        if self._side is not ConflictChoice.OURS:
            self._chosen.update(dict.fromkeys(paths, ConflictChoice.THEIRS))

    def ask(self, session: Session, split: Split, looked: BaseLook) -> None:
        """Ask about each conflict, unless options say what to do.

        Raises:
            Exit: the answer is to leave all as it is.
        """
        if self._merges or self._side is not None or not can_ask():
            return
        path_display, now_ns = _place(session), time.time_ns()
        tree, marked = split.taken, frozenset(looked.marked)
        drifts = describe_drift(tree, session.base, session.store, looked.conflicts, marked)
        texts = {drift.path: f"{path_display.show_path(drift.path)}: {drift_text(drift, now_ns)}" for drift in drifts}
        open_ones = [path for path in texts if path not in self._chosen]
        if len(open_ones) > 1:
            say(f"{len(open_ones)} paths have changed in base, too:")
            for line in first_lines(open_ones, texts.__getitem__, "paths"):
                say(f"  {line}")
        for path in open_ones:
            way = _ask_about(session, path, texts[path], may_be_ours=path not in looked.without_content)
            if way is None:
                self._chosen |= {one: ConflictChoice.SKIP for one in open_ones if one not in self._chosen}
                return
            self._chosen[path] = way

    def forget(self, before: Sequence[Change], now: Sequence[Change]) -> None:
        """Drop the answers about what is not as it was when they were given, so that it is asked
        about again.
        """
        was = {(change.kind, change.path): change for change in before}
        same = [change for change in now if was.get((change.kind, change.path)) == change]
        kept = {path for change in same for path in change.paths}
        self._chosen = {path: way for path, way in self._chosen.items() if path in kept}

    def question(self, taken: Sequence[Change], conflicts: Iterable[RelPath], trusted: str, ends: str = "") -> str:
        """Return the question before a commit of ``taken``; empty if nothing is to be done.

        ``trusted`` follows the counts, ``ends`` all of it.
        """
        by_way = {way: {path for path in conflicts if self._choice_at(path) is way} for way in ConflictChoice}
        not_applied = by_way[ConflictChoice.THEIRS] | by_way[ConflictChoice.SKIP]
        applied = [change for change in taken if not_applied.isdisjoint(change.paths)]
        clauses = [f"apply {summary(applied)}{trusted}"] if applied else []
        if count := len(by_way[ConflictChoice.THEIRS]):
            clauses.append(f"take base's version at {count} path{'' if count == 1 else 's'}")
        if by_way[ConflictChoice.MERGE]:
            clauses.append("what does not merge stays staged")
        return f"{'; '.join(clauses)}{ends}?" if clauses else ""

    def settle(self, session: Session, looked: BaseLook, *, makes_again: bool) -> SettledConflicts:
        """Do what is wished for the conflicts of a commit, in the view; programs in a mount wait
        meanwhile.

        ``makes_again``: whether directories that base has no more may be made again, which is about
        the present view.

        Raises:
            ConflictError: of some nothing is wished, or base is changing just now; nothing is done.
        """
        merges, settled, unmerged, made_again = self.decide(session, looked, makes_again=makes_again)
        if not (merges or settled.dropped or unmerged or made_again):
            return settled
        return settled._replace(dropped=settle_conflicts(session, merges, settled.dropped, unmerged, made_again))

    def decide(self, session: Session, looked: BaseLook, *, makes_again: bool) -> DecidedConflicts:
        """Find what the wishes for the conflicts of a commit would do; nothing is written.

        Raises:
            ConflictError: of some nothing is wished.
        """
        ways = {path: self._choice_at(path) for path in looked.conflicts}
        if any(way is None for way in ways.values()):
            raise conflict_error(looked)
        by_way = {way: [path for path in ways if ways[path] is way] for way in ConflictChoice}
        found = merges_at(session, by_way[ConflictChoice.MERGE])
        if self._side is not None:
            for one in [one for one in found if _is_unsettled(one)]:
                found.remove(one)
                by_way[self._side].extend(one.paths)
        merges = [one for one in found if isinstance(one, Merge)]
        refused = [one for one in found if isinstance(one, Unmergeable)]
        not_theirs = {*by_way[ConflictChoice.OURS], *(path for one in refused for path in one.paths)}
        without_content = looked.without_content & not_theirs
        ours = [path for path in by_way[ConflictChoice.OURS] if path not in without_content]
        marked = [path for path in ours if path in set(looked.marked)]
        unmerged = before_merge(session, marked)
        lost = frozenset(marked).difference(unmerged)
        made_again = missing_directories(session.state(), session.base, ours) if makes_again and ours else {}
        of_others = directories_of_others(session.state(), made_again, frozenset(by_way[ConflictChoice.THEIRS]))
        settled = SettledConflicts(
            merged=_paths(one for one in merges if not one.conflicts),
            marked=_paths(one for one in merges if one.conflicts),
            refused=tuple(one for one in refused if without_content.isdisjoint(one.paths)),
            skipped=tuple(by_way[ConflictChoice.SKIP]),
            dropped=tuple(by_way[ConflictChoice.THEIRS]),
            ours=frozenset(ours).difference(lost),
            unmerged=tuple(unmerged),
            lost=tuple(sorted(lost)),
            without_content=tuple(sorted(without_content)),
            made_again=tuple(path for path, ino in made_again.items() if ino is None),
            of_others=of_others,
        )
        return DecidedConflicts(merges, settled, unmerged, made_again | dict.fromkeys(of_others))

    def _choice_at(self, path: RelPath) -> ConflictChoice | None:
        if path in self._chosen:
            return self._chosen[path]
        return ConflictChoice.MERGE if self._merges else self._side


def check_settled(settled: SettledConflicts, looked: BaseLook) -> None:
    """Check that a commit would not replace a change of base that nobody has decided about.

    Raises:
        ConflictError: it would.
    """
    if not settled.ours.issuperset(looked.conflicts):
        raise conflict_error(looked)


def _is_unsettled(one: Merge | Unmergeable) -> bool:
    return isinstance(one, Unmergeable) or one.conflicts > 0


def _paths(merges: Iterable[Merge]) -> tuple[RelPath, ...]:
    return tuple(path for one in merges for path in one.paths)


def _named(root: bytes, paths: Sequence[RelPath]) -> str:
    """Return paths as words of a command, if they are few."""
    return " ".join(in_shell(absolute(root, path)) for path in paths) if len(paths) <= _NAMED else "PATH…"


def _place(session: Session) -> PathDisplay:
    return PathDisplay(session.base.root, session.base.relative(session.project))


def _say_each(session: Session, lines: Sequence[tuple[RelPath, str]]) -> None:
    """Print what is to say of each path, for as many as a list may have."""
    path_display = _place(session)
    for line in first_lines(lines, lambda one: f"{path_display.show_path(one[0])}: {one[1]}", "paths"):
        say(line)


def _say_each_directory(session: Session, lines: Sequence[tuple[RelPath, str]]) -> None:
    path_display = _place(session)
    for line in first_lines(lines, lambda one: f"{path_display.show_path(one[0])}/: {one[1]}", "directories"):
        say(line)


def _ask_about(session: Session, path: RelPath, text: str, *, may_be_ours: bool) -> ConflictChoice | None:
    """Return what is to become of a conflict; None: it stays staged, and so do all that are not
    decided yet.
    """
    say(text)
    while True:
        letter = choose(_QUESTION, "motscdq")
        if letter == "q":
            say("nothing committed")
            raise click.exceptions.Exit(1)
        if letter == _OTHERS:
            return None
        if letter == "d":
            _emit_diff(session, path)
        elif letter == ConflictChoice.OURS.value and not may_be_ours:
            say(f"that cannot be taken: {_WITHOUT_CONTENT}")
        elif letter != "m" or _may_merge(session, path):
            return ConflictChoice(letter)


def _may_merge(session: Session, path: RelPath) -> bool:
    """Print what a merge would give; return whether it would give anything."""
    (found,) = merges_at(session, [path])
    if isinstance(found, Unmergeable):
        say(f"it cannot be merged: {found.reason}")
        return False
    if found.conflicts:
        places = "1 place" if found.conflicts == 1 else f"{found.conflicts} places"
        say(f"both sides changed the same in {places}: both are put between marks in the view, and it stays staged")
    else:
        say("it merges")
    return True


def _has_patch(change: Change) -> bool:
    """Tell whether a patch says all that there is to a change of the type, if it is one."""
    sides = [side for side in (change.old, change.new) if side is not None]
    return change.kind is not ChangeKind.TYPE or all(side.type in (stat.S_IFREG, stat.S_IFLNK) for side in sides)


def _emit_diff(session: Session, path: RelPath) -> None:
    """Write the difference between base and the staged version; in words, if it does not fit into a
    patch.
    """
    changes = compare(*session.states(BASE, None), session.base, session.store, paths=[path])
    settings, path_display = session.settings.diff, _place(session)
    for change in changes:
        if change.kind is ChangeKind.TYPE or change.metadata:
            say(f"{path_display.show_path(change.path)}: what base has and what is staged differ: {notes_text(change)}")
    changes = [change for change in changes if change.kind is not ChangeKind.METADATA and _has_patch(change)]
    is_inside = path_display.project is not None and all(map(path_display.holds, changes))
    for note in write_patch(
        changes,
        emit_bytes,
        prefix=path_display.project if path_display.project is not None and is_inside else ROOT,
        context=settings.context,
        max_text_bytes=settings.max_text_bytes,
        store=session.store,
    ):
        say(f"note: {note}")
