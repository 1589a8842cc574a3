"""``GENERATION:PATH``, as cat and ls take it, and the generation that restore takes."""

from __future__ import annotations

import os
from typing import NamedTuple

from yolofs.cli.options import options
from yolofs.cli.project import relative_paths
from yolofs.errors import GenerationError, UsageError
from yolofs.paths import RelPath, display
from yolofs.session.restore import source_of
from yolofs.session.session import Session
from yolofs.session.state_files import File, StateFiles
from yolofs.state.tree import Tree


class Version(NamedTuple):
    """A path in a state."""

    tree: Tree
    named: str
    """What the state is called."""
    path: RelPath


def parse_version(session: Session, text: str) -> Version:
    """Return what ``GENERATION:PATH`` means; without a generation the view as it is now.

    The first colon counts before which there is a generation, as both a snapshot's name and a path
    may have one in it.

    Raises:
        UsageError: there is no colon.
        GenerationError: no generation is named before any colon.
    """
    colons = [at for at, letter in enumerate(text) if letter == ":"]
    if not colons:
        raise UsageError(f"{text} names no generation", hint=f"GENERATION:PATH, or for the view as it is now: :{text}")
    for at in colons:
        path = os.fsencode(text[at + 1 :]) or b"."
        if not at:
            return Version(session.state(), "the view", relative_paths(session, [path])[0])
        try:
            tree, named = source_of(session, text[:at])
        except GenerationError as error:
            if at == colons[-1]:
                raise GenerationError(error.message, hint=error.hint) from None
            continue
        return Version(tree, named, relative_paths(session, [path])[0])
    raise AssertionError("one of the colons is the last")


def look_at(session: Session, version: Version, text: str) -> tuple[StateFiles, File]:
    """Return what a state shows at a path.

    Raises:
        UsageError: nothing.
    """
    files = StateFiles(session, version.tree)
    guard = options().guard
    is_hidden = guard is not None and not guard.may_see(session.base.path(version.path))
    file = files.look(version.path) if not is_hidden else None
    if file is None:
        where = display(session.base.path(version.path))
        raise UsageError(
            f"there is nothing at {where} in {version.named}",
            hint=f"what was done there: yolofs log -- {text.rpartition(':')[2]}",
        )
    return files, file


def joined_run(words: list[str]) -> list[str]:
    """Return a command line in which ``run N`` or ``commit N`` after ``--from`` is one word."""
    found: list[str] = []
    for word in words:
        if found[-1:] in (["run"], ["commit"]) and found[-2:-1] == ["--from"] and word.isdigit():
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
