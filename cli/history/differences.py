"""Which two states a user compares, and what differs between them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yolofs.changes.changes import Change, compare
from yolofs.cli.output import progress, say
from yolofs.errors import GenerationError, UsageError
from yolofs.paths import Generation, RelPath, display, in_shell
from yolofs.session.generations import States
from yolofs.session.looking_again import LaterState
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.store.base import Base
from yolofs.store.interfaces import StoreFiles
from yolofs.system.work_directories import work_directory

if TYPE_CHECKING:
    from yolofs.changes.state_reader import Again
    from yolofs.session.history.base_as_taken_over import UnknownBefore
    from yolofs.session.history.chapters import Chapter

_ALL = "all"
"""The range of everything that a commit would apply."""


class Differences(msgspec.Struct, frozen=True):
    """What differs between two states, and what they are states of."""

    states: States
    old: Generation | None
    new: Generation | None
    changes: list[Change]
    commit: int | None = None
    """The commit that they are from before, None if they are of now."""
    unknown: Sequence[UnknownBefore] = ()
    """Those of which it is not known what was there before."""


def chapters_of_runs(session: Session, stack: contextlib.ExitStack) -> list[Chapter]:
    """Return the chapters of a session's history, to be read until the stack is closed."""
    from yolofs.cli.history.earlier_history import chapters_told  # only what runs did may have been before commits

    return stack.enter_context(chapters_told(session))


def differences(
    session: Session,
    found: Sequence[Chapter],
    words: Sequence[str],
    run: int | None,
    paths: Sequence[RelPath],
    *,
    expand: bool,
    place: Callable[[], bytes],
) -> list[Differences]:
    """Return what differs between the states that a command line means.  A run that went on during
    a commit has two differences: before the commit and after it.

    ``place`` gives a directory for what has to be read meanwhile.

    Raises:
        UsageError: they mean none, or several things at once.
        GenerationError: there is no such generation.
    """
    if len(words) > 1:
        return [Differences(session, None, None, _compare_two(session, words, run, paths))]
    range_text = words[0] if words else _ALL
    if run is not None:
        return _of_run(session, found, run, range_text, paths, expand=expand, place=place)
    old, new = session.timeline.parse_range(range_text)
    again = LaterState(session).look if new is None else None
    changes = _compare(session.states(old, new), session.base, session.store, paths, expand=expand, again=again)
    return [Differences(session, old, new, changes)]


def range_and_paths_of(session: Session, words: Sequence[str], typed: Sequence[bytes]) -> tuple[str, Sequence[bytes]]:
    """Return the range that a command line begins with, and the paths after it.

    Raises:
        GenerationError: there is no such generation, and no such path.
        UsageError: the first word is one version of a file.
    """
    from yolofs.cli.history.ranges import range_and_paths  # it takes click along

    try:
        return range_and_paths(session, words, typed)
    except GenerationError:
        _check_is_no_version(words[0])
        raise


def _check_is_no_version(text: str) -> None:
    """Check that the range is not a single GENERATION:PATH: a comparison takes two of them.

    Raises:
        UsageError: it is.
    """
    generation, colon, path = text.rpartition(":")
    if not colon:
        return
    whole = in_shell(os.fsencode(text))
    at = in_shell(os.fsencode(path))
    since = ""
    if generation:
        named = display(os.fsencode(generation)), in_shell(os.fsencode(generation))
        since = f"; or what generation {named[0]} changed there: yolofs diff {named[1]} -- {at}"
    raise UsageError(
        f"{display(os.fsencode(text))} is one version of a file, and a comparison takes two",
        hint=f"with the view as it is now: yolofs diff {whole} {in_shell(os.fsencode(f':{path}'))}{since}",
    )


def _of_run(
    session: Session,
    found: Sequence[Chapter],
    number: int,
    range_text: str,
    paths: Sequence[RelPath],
    *,
    expand: bool,
    place: Callable[[], bytes],
) -> list[Differences]:
    """Return what a run did, over base as the run found it; where commits were done meanwhile, in
    parts.

    Raises:
        UsageError: there is a range, too, or its generations have been dropped, or their commit is
            not kept.
    """
    if range_text != _ALL:
        raise UsageError("--run already says which range is compared", hint=f"yolofs diff --run {number}")
    from yolofs.audit.runs import find_run
    from yolofs.session.history.chapters import chapter_of, chapters_after

    run = find_run(session.directory, number)
    chapter = chapter_of(run, found)
    before = chapter.generation(run.start.before) if chapter is not None else None
    if chapter is None or before is None:
        raise UsageError(f"what run {number} did has been dropped, or its commit is no longer kept", hint="yolofs runs")
    of_run = [chapter, *chapters_after(chapter, run, found)]
    parts = []
    for part in of_run:
        start = before if part is chapter else part.first_generation
        end = part.generation(run.end.after) if run.end is not None and part is of_run[-1] else None
        parts.append(_part_of_run(session, part, number, (start, end), paths, expand=expand, place=place))
    return [part for part in parts if part.changes] or parts[:1]


def _part_of_run(
    session: Session,
    chapter: Chapter,
    number: int,
    span: tuple[Generation, Generation | None],
    paths: Sequence[RelPath],
    *,
    expand: bool,
    place: Callable[[], bytes],
) -> Differences:
    """Return what a run did in one chapter between two generations."""
    before, after = span
    states: States = session
    if chapter.commit is not None:
        from yolofs.session.history.past_base import states_of  # it takes all that commits need along

        states = states_of(session, chapter)
    from yolofs.session.history.base_as_taken_over import TakenOver

    old, new = states.states(before, after)
    taken_over = TakenOver(session, chapter, states.base, states.store, place)
    changes = _compare((old, new), taken_over.base(old, new), states.store, paths, expand=expand)
    changes, unknown = taken_over.check(_made_by(states, number, before, after, changes), old, new)
    return Differences(states, before, after, changes, chapter.commit, unknown)


def _compare_two(session: Session, words: Sequence[str], run: int | None, paths: Sequence[RelPath]) -> list[Change]:
    """Return what differs between two paths, each as it was in some generation.

    Raises:
        UsageError: there are more words than two, or something else, too; or one of the two is a
            directory.
    """
    if len(words) > 2 or run is not None or paths:
        raise UsageError(
            "GENERATION:PATH GENERATION:PATH takes no further argument", hint="yolofs diff GENERATION:PATH :PATH"
        )
    from yolofs.changes.changes import compare_two
    from yolofs.cli.history.versions import file_of_version, parse_version

    found = [file_of_version(session, parse_version(session, word), word) for word in words]
    for (_, file), word in zip(found, words, strict=True):
        if file.is_directory:
            raise UsageError(f"{display(os.fsencode(word))} is a directory", hint=_hint_of_directories(words))
    (old_files, old), (new_files, new) = found
    change = compare_two(old.node, new.node, old_files.reader, new_files.reader)
    return [change] if change is not None else []


def _hint_of_directories(words: Sequence[str]) -> str:
    """Return how to compare what lies in a directory, as it was in two generations."""
    (old, _, path), (new, _, other) = (word.rpartition(":") for word in words)
    if path != other or not old or " " in old + new:  # "run N" is in no range
        return "yolofs diff GENERATION..GENERATION -- PATH"
    return f"yolofs diff {in_shell(os.fsencode(f'{old}..{new}'))} -- {in_shell(os.fsencode(path or '.'))}"


def _made_by(session: States, run: int, old: Generation, new: Generation | None, changes: list[Change]) -> list[Change]:
    from yolofs.session.attribution import attribute

    attribution = attribute(session.timeline, session.journal, old, new)
    if attribution is None:
        say("note: there was a travel meanwhile, so this is all that differs, not only what the run changed")
        return changes
    return [change for change in changes if run in attribution.runs_of(change)]


def directory_beside(session: Session, stack: contextlib.ExitStack) -> bytes:
    """Return a new directory in the session's, which goes with the stack."""
    return stack.enter_context(work_directory(session.directory, "diff"))


def _compare(
    trees: tuple[Tree, Tree],
    base: Base,
    store: StoreFiles,
    paths: Sequence[RelPath],
    *,
    expand: bool,
    again: Again | None = None,
) -> list[Change]:
    with progress("comparing") as update:
        return compare(
            *trees,
            base,
            store,
            paths=paths,
            progress=update,
            expand_renames=expand,
            again=again,
        )
