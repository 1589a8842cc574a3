"""The states that a user names to read from them, or to bring something back: a generation,
``run N``, ``commit N`` and ``base``.

What a run left, and what has a name, can be read after commits, too, as long as their journals are
kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from yolofs.audit.runs import Run, find_run, run_of
from yolofs.errors import GenerationError, JournalError, UsageError, YolofsError
from yolofs.journal.timeline import BACK, BASE
from yolofs.paths import Generation, display, in_shell, numbered_state
from yolofs.session.archive import commit_numbers
from yolofs.session.history.chapters import Chapter, chapter_of, chapters
from yolofs.session.history.past_base import past_ground, states_of
from yolofs.session.session import Session
from yolofs.session.state_files import Ground, StateFile, StateFiles
from yolofs.state.tree import Tree

_CHANGED_SINCE = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})
"""How a file fails to open in whose place base has something else by now, or nothing."""


class NamedState(msgspec.Struct, frozen=True):
    """A state that a user has named."""

    named: str
    """What it is called."""
    files: StateFiles
    tree: Tree | None
    """None of one that stands on another base than the view."""


class _PastFiles(StateFiles):
    """The files of a state that stands on base as it was."""

    def __init__(self, ground: Ground, tree: Tree, named: str) -> None:
        super().__init__(ground, tree)
        self._named = named
        self._place = ground.base.root

    def descriptor(self, file: StateFile) -> int:
        """Open a regular file.

        Raises:
            YolofsError: its content is not kept: base had it, and has changed it since.
            OSError: it cannot be read.
        """
        try:
            return super().descriptor(file)
        except OSError as error:
            if error.errno not in _CHANGED_SINCE:
                raise
            path = os.path.join(self._place, file.path)
            raise YolofsError(
                f"{display(path)}: what {self._named} has there is not kept, as base has changed since",
                hint=f"which other versions there were: yolofs log -- {in_shell(path)}",
            ) from error


def named_state(session: Session, text: str) -> NamedState:
    """Return the state that a user means by a generation, ``run N``, ``commit N`` (what base had
    right after it) or ``base``.  A name may also be of a snapshot that a commit has ended.

    Blocks while journals and plans are read, for what was before a commit.

    Raises:
        GenerationError: there is none.
        UsageError: commit N is not kept, or what run N left is not known any more.
        YolofsError, OSError: a plan or a journal is damaged, or cannot be read.
    """
    numbered = numbered_state(text)
    if numbered is not None:
        word, number = numbered
        return (_of_run if word == "run" else _of_commit)(session, number)
    try:
        generation = session.timeline.resolve(text)
    except GenerationError:
        earlier = _before_a_commit(session, text)
        if earlier is None and text in ("run", "commit"):
            hint = f"yolofs {text}s lists them; then {text} N, with the number"
            raise GenerationError(f"there is no snapshot named {text}, and no number is given", hint=hint) from None
        if earlier is None:
            raise
        return earlier
    return _present(session, "base" if generation == BASE else f"generation {generation}", session.state(generation))


def spelled_state(text: str) -> str:
    """Return a state's name as a shell takes it; ``run N`` and ``commit N`` are two words."""
    return text if numbered_state(text) is not None else in_shell(os.fsencode(text))


def tree_of_named_state(session: Session, text: str) -> tuple[Tree, str]:
    """Return the same state as an override tree over present base, and how it is called.

    Raises:
        UsageError: it stands on another base, or as for :func:`named_state`.
    """
    source = named_state(session, text)
    if source.tree is None:
        raise UsageError(
            f"{source.named} stands on base as it was before a later commit, so no single hunk can be taken from it",
            hint=f"whole paths can: yolofs restore --from {spelled_state(text)} PATH",
        )
    return source.tree, source.named


def _present(session: Session, named: str, tree: Tree) -> NamedState:
    return NamedState(named, StateFiles(session, tree), tree)


def _before_a_commit(session: Session, name: str) -> NamedState | None:
    """Return the newest generation of a name that commits have ended, None if there is none.

    Numbers begin anew after each commit, so they mean none of these.
    """
    if name == BACK or name.isdigit():
        return None
    with _kept_chapters(session) as (found, _):
        for chapter in reversed(found):
            if chapter.commit is None:
                continue
            with contextlib.suppress(GenerationError):
                generation = chapter.timeline.resolve(name)
                states, named = (
                    states_of(session, chapter),
                    f"{display(os.fsencode(name))} before commit {chapter.commit}",
                )
                return NamedState(named, _PastFiles(states, states.state(generation), named), None)
    return None


def _of_commit(session: Session, number: int) -> NamedState:
    kept = commit_numbers(session.directory)
    if number not in kept:
        raise UsageError(f"commit {number} is not kept, or there never was one", hint="yolofs commits")
    named = f"commit {number}"
    if number == max(kept):
        return _present(session, named, session.state(BASE))
    return NamedState(named, _PastFiles(past_ground(session, number + 1), Tree(), named), None)


def _of_run(session: Session, number: int) -> NamedState:
    run, named = find_run(session.directory, number), f"run {number}"
    with _kept_chapters(session) as (found, damaged):
        chapter = _ended_in(run, found)
        if chapter is None:
            broken = f": the journal of {', '.join(damaged)} is damaged or missing" if damaged else ""
            raise UsageError(
                f"what run {number} left was dropped, or its commit is no longer kept{broken}",
                hint="yolofs doctor" if damaged else "yolofs runs lists the runs whose commits are kept",
            )
        generation = _left(run, chapter)
        if chapter.commit is None:
            return _present(session, named, session.state(generation))
        states = states_of(session, chapter)
        return NamedState(named, _PastFiles(states, states.state(generation), named), None)


@contextmanager
def _kept_chapters(session: Session) -> Iterator[tuple[list[Chapter], list[str]]]:
    """Give the chapters for the time of the block, and the commits whose journal cannot be read."""
    damaged: list[str] = []

    def note(number: int, _: YolofsError | OSError) -> None:
        damaged.append(f"commit {number}")

    with chapters(session, note) as found:
        yield found, damaged


def _ended_in(run: Run, found: list[Chapter]) -> Chapter | None:
    """Return the chapter in which a run ended; without a known end, the one in which it began.
    None if that is not kept.
    """
    if run.end is not None:
        for chapter in found:
            if any(note == run.end for note in chapter.notes):
                return chapter
    return chapter_of(run, found)


def _left(run: Run, chapter: Chapter) -> Generation | None:
    """Return the generation that a run left in the chapter in which it ended; None if it goes on.

    Raises:
        UsageError: it has made none, though it has changed something.
    """
    if run.end is None:
        return None
    after = chapter.generation(run.end.after)
    if after is not None:
        return after
    if run.end.after is None and not _has_changed_something(run, chapter):
        before = chapter.generation(run.start.before)
        if before is not None:
            return before
    raise UsageError(
        f"run {run.number} made no generation when it ended, so what it left is not known",
        hint=f"yolofs timeline has the generations; what it changed: yolofs log --run {run.number}",
    )


def _has_changed_something(run: Run, chapter: Chapter) -> bool:
    journal = chapter.journal
    try:
        return any(
            run_of(record) == run.number
            for segment in range(1, len(journal.markers) + 2)
            for record in journal.read_segment(segment)
        )
    except JournalError:
        return True
