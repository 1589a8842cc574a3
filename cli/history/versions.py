"""``GENERATION:PATH``, as cat and ls take it, and the generation that restore takes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from yolofs.cli.completion.completing import (
    PATHS_KEY,
    offered,
    range_words,
    staged_paths,
    state_words,
    without_needless_files,
)
from yolofs.cli.history.missing_paths import nothing_at
from yolofs.cli.options import options
from yolofs.cli.project.project import relative_paths
from yolofs.errors import GenerationError, UsageError
from yolofs.paths import RelPath, display, in_shell, split
from yolofs.session.session import Session
from yolofs.session.state_files import StateFile, StateFiles


class FileVersion(NamedTuple):
    """A path in a state."""

    files: StateFiles
    """Of the state."""
    named: str
    """What the state is called."""
    path: RelPath
    typed: bytes
    """The path as it was typed."""


def parse_version(session: Session, text: str) -> FileVersion:
    """Return what ``GENERATION:PATH`` means; without a generation the view as it is now.

    The first colon with a generation before it counts, as both a snapshot's name and a path may
    contain colons.

    Raises:
        UsageError: there is no colon.
        GenerationError: no generation is named before any colon.
    """
    colons = [at for at, letter in enumerate(text) if letter == ":"]
    from yolofs.session.history.named_states import named_state  # it takes all that commits need along

    if not colons:
        hint = f"GENERATION:PATH, or for the view as it is now: {in_shell(os.fsencode(f':{text}'))}"
        with contextlib.suppress(GenerationError):
            named_state(session, text)
            whole, inner = (in_shell(os.fsencode(f"{text}:{end}")) for end in ("", "PATH"))
            raise UsageError(
                f"{in_shell(os.fsencode(text))} is a generation, and names no path in it",
                hint=f"yolofs ls {whole} lists the project in it; a file or directory of it: {inner}",
            )
        raise UsageError(f"{in_shell(os.fsencode(text))} names no generation", hint=hint)
    for at in colons:
        path = os.fsencode(text[at + 1 :]) or b"."
        if not at:
            view = StateFiles(session, session.state())
            return FileVersion(view, "the view", relative_paths(session, [path], [view])[0], path)
        try:
            source = named_state(session, text[:at])
        except GenerationError as error:
            if at == colons[-1]:
                raise GenerationError(error.message, hint=error.hint) from None
            continue
        return FileVersion(source.files, source.named, relative_paths(session, [path], [source.files])[0], path)
    raise AssertionError("the last colon has returned or raised")


def file_of_version(session: Session, version: FileVersion, text: str) -> tuple[StateFiles, StateFile]:
    """Return what a state shows at a path.

    Raises:
        UsageError: nothing.
    """
    files = version.files
    guard = options().guard
    is_hidden = guard is not None and not guard.may_see(session.base.path(version.path))
    file = files.look(version.path) if not is_hidden else None
    if file is None:
        before, colon, typed = map(os.fsencode, text.rpartition(":"))
        raise nothing_at(session, version.path, typed, f" in {version.named}", before=before + colon, files=files)
    return files, file


def list_version(session: Session, text: str, *, is_recursive: bool) -> Iterator[tuple[bytes, StateFile]]:
    """Yield what ``GENERATION:PATH`` lists, each with its name as seen from there: the entries of a
    directory, with ``is_recursive`` also those below, or the file itself.

    Raises:
        GenerationError, UsageError: as :func:`parse_version`, :func:`file_of_version` and
            :func:`check_may_read`.
    """
    version = parse_version(session, text)
    files, file = file_of_version(session, version, text)
    if not file.is_directory:
        yield version.typed, file
        return
    check_may_read(session, file.path, text)
    yield from _inside(session, files, file, is_recursive=is_recursive)


def _inside(
    session: Session, files: StateFiles, directory: StateFile, *, is_recursive: bool, above: bytes = b""
) -> Iterator[tuple[bytes, StateFile]]:
    """Yield the entries of a directory.  Inside a sandbox, those that rules hide are left out."""
    guard = options().guard
    for name, file in files.inside(directory):
        full = session.base.path(file.path)
        if guard is not None and not guard.may_see(full):
            continue
        yield above + name, file
        if is_recursive and file.is_directory and (guard is None or guard.may_read(full)):
            yield from _inside(session, files, file, is_recursive=True, above=above + name + b"/")


def check_may_read(session: Session, path: RelPath, text: str) -> None:
    """Raise if the rules forbid whoever asks, inside a sandbox, to read a path.

    Raises:
        UsageError: they forbid it, or somebody would have to be asked.
    """
    guard = options().guard
    if guard is not None and not guard.may_read(session.base.path(path)):
        raise UsageError(
            f"{display(os.fsencode(text))} may not be read in the sandbox",
            hint="the rules forbid it, or ask: open it in the view",
        )


def joined_run(words: list[str]) -> list[str]:
    """Return a command line in which ``run N`` or ``commit N`` after ``--from`` is one word."""
    found: list[str] = []
    for word in words:
        is_apart = found[-1:] in (["run"], ["commit"]) and found[-2:-1] == ["--from"]
        if word.isascii() and word.isdigit() and (is_apart or found[-1:] in (["--from=run"], ["--from=commit"])):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


# ---- what a shell completes


def versions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer generations, each with the colon before a path; after the colon its paths."""
    return offered(_versions)(context, parameter, incomplete)


def ranges_and_versions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer generations, after a colon the paths that one has, and staged paths; these alone after
    ``--``.
    """
    if PATHS_KEY in context.meta:
        return staged_paths(context, parameter, incomplete)
    found = offered(_ranges_and_versions)(context, parameter, incomplete)
    return (
        found if ":" in incomplete else without_needless_files([*found, *staged_paths(context, parameter, incomplete)])
    )


def _versions(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    for item in state_words(session, incomplete):
        yield CompletionItem(f"{item.value}:", help=item.help)
    yield from _paths_of(session, incomplete)


def _ranges_and_versions(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    yield from range_words(session, incomplete)
    yield from _paths_of(session, incomplete)


def _paths_of(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the paths that a generation has, if one is named before a colon."""
    if ":" not in incomplete:
        return
    version = parse_version(session, f"{incomplete}_")  # with a letter it has a name at its end in any case
    above, name = split(version.path)
    begin = os.fsdecode(name)[:-1]
    files = version.files
    directory = files.look(above)
    if directory is None or not directory.is_directory:
        return
    typed, guard = incomplete.removesuffix(begin), options().guard
    for name, file in files.inside(directory):
        text = os.fsdecode(name)
        may_see = guard is None or guard.may_see(session.base.path(file.path))
        if text.startswith(begin) and text.isprintable() and may_see:
            yield CompletionItem(f"{typed}{text}{'/' if file.is_directory else ''}")
