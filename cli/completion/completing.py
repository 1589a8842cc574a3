"""What a shell completes: generations, names of snapshots, staged paths, and numbers of runs and
commits.

The shell asks while the user types: whatever goes wrong, nothing is offered and nothing is said.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

from yolofs.cli.options import GlobalOptions, set_options, start_directory
from yolofs.paths import RelPath, display, is_below

if TYPE_CHECKING:  # what it needs takes long, and only a completion needs it
    from yolofs.session.session import Session

COMPLETION_VARIABLE = "_YOLOFS_COMPLETE"
"""What a shell sets to have words completed."""
PATHS_KEY = "yolofs.paths"
"""Under this the context of a command has the paths after ``--``, where there may be any."""
is_after_dashes = ContextVar("is_after_dashes", default=False)
"""Whether ``--`` stands before what is completed, so that it is no option."""
_MOST = 500
_FILES = CompletionItem("", type="file")
"""Has the shell offer the names of files, if there is nothing else."""

Completing: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def offered(find: Callable[[Session, str], Iterator[CompletionItem]]) -> Completing:
    """Turn a function that finds words in a session into one that click can call.

    Before ``--`` it offers no word that would be an option.
    """

    @wraps(find)
    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: list[CompletionItem] = []
        with contextlib.suppress(Exception), _session(context) as session:
            for item in find(session, incomplete):
                if not is_after_dashes.get() and item.value.startswith("-") and item.value != "-":
                    continue
                found.append(item)
                if len(found) == _MOST:
                    break
        return found

    return complete


@contextlib.contextmanager
def _session(context: click.Context) -> Iterator[Session]:
    from yolofs.cli.project.which_project import find_project
    from yolofs.session.session import Session, SessionAccess

    set_options(GlobalOptions(context.find_root().params.get("start") or b"."))
    with Session.open(find_project(), SessionAccess.READ) as session:
        yield session


def generation_words(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the generations, by number and by name; of several with one name the one it means."""
    for number, marker in enumerate(session.journal.markers, 1):
        name = os.fsdecode(marker.marker.name)
        if _is_meant(name, incomplete) and session.timeline.resolve(name) == number:
            yield CompletionItem(name, help=f"generation {number}")
        if str(number).startswith(incomplete):
            yield CompletionItem(str(number), help=name if name.isprintable() else None)
    for word in ("base", "-"):
        if word.startswith(incomplete):
            yield CompletionItem(word)


def _is_meant(name: str, incomplete: str) -> bool:
    """Tell whether a generation's name begins as was typed, can be shown, and is no number."""
    return bool(name) and name.isprintable() and name.startswith(incomplete) and not name.isdigit()


def state_words(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the generations, and the names of those that commits have ended, the newest first."""
    from yolofs.session.history.chapters import chapters

    known: set[str] = set()
    for item in generation_words(session, incomplete):
        known.add(item.value)
        yield item
    with chapters(session) as found:
        for chapter in reversed(found[:-1]):
            for marker in reversed(chapter.journal.markers[: chapter.count_seen]):
                name = os.fsdecode(marker.marker.name)
                if name not in known and _is_meant(name, incomplete):
                    known.add(name)
                    yield CompletionItem(name, help=f"before commit {chapter.commit}")


def range_words(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the generations; after two dots those that a range may end with."""
    begin, dots, end = incomplete.rpartition("..")
    if not dots:
        yield from generation_words(session, incomplete)
        return
    for item in generation_words(session, end):
        if item.value != "-":
            yield CompletionItem(f"{begin}..{item.value}", help=item.help)


def _staged_paths(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the staged paths, as one types them; else files."""
    from yolofs.state.tree import natural_path

    passed = (
        path
        for path, entry in session.state().walk()
        if not (entry.staged is None and entry.base is not None and entry.base == natural_path(entry))
    )  # the others are only passed on the way
    yield from _typed(session, passed, incomplete)


def _typed(session: Session, paths: Iterable[RelPath], incomplete: str) -> Iterator[CompletionItem]:
    """Yield paths of base as one types them; if there are none, files."""
    start, wanted = start_directory(), os.fsencode(incomplete)
    way = wanted[: wanted.rfind(b"/") + 1]  # as it was typed, be it ./ or ../here/
    directory = os.path.normpath(os.path.join(start, way))
    is_none = True
    for path in paths:
        typed = session.base.path(path)
        if way and typed != directory and is_below(typed, directory):
            typed = way + os.path.relpath(typed, directory)
        elif not os.path.isabs(wanted):
            typed = os.path.relpath(typed, start)
        text = os.fsdecode(typed)
        if typed.startswith(wanted) and text.isprintable():
            is_none = False
            yield CompletionItem(text)
    if is_none:
        yield _FILES


def _runs(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the numbers of runs, the newest first, with their commands."""
    from yolofs.audit.runs import read_runs

    for run in reversed(read_runs(session.directory)):
        if str(run.number).startswith(incomplete):
            yield CompletionItem(str(run.number), help=" ".join(display(word) for word in run.command))


def _commits(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the numbers of commits that are kept, the newest first, with when they were done."""
    from yolofs.cli.output import local_time
    from yolofs.session.archive import CommitEnd, commit_directory, commit_numbers

    for number in sorted(commit_numbers(session.directory), reverse=True):
        done = os.path.join(commit_directory(session.directory, number), CommitEnd.DONE.value)
        if str(number).startswith(incomplete) and os.path.lexists(done):
            yield CompletionItem(str(number), help=local_time(os.lstat(done).st_mtime_ns))


def _of_commit(session: Session, number: str, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the paths that a commit has changed, as one types them."""
    from yolofs.commit.undo.commits_around import LaterCommit
    from yolofs.session.archive import commit_directory

    later = LaterCommit.read(int(number), commit_directory(session.directory, int(number)))
    yield from _typed(session, sorted(later.paths), incomplete)


def _asks(session: Session, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the numbers of the asks that wait, with what is wanted."""
    from yolofs.daemon.rpc.client import Client
    from yolofs.daemon.rpc.protocol import unquote

    client = Client.connect(session.directory)
    if client is None:
        return
    with client:
        for ask in client.asks():
            if str(ask.id).startswith(incomplete):
                yield CompletionItem(str(ask.id), help=f"{ask.operation} {display(unquote(ask.path))}")


def session_ids(_context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of the user's sessions, with the paths of their projects."""
    found: list[CompletionItem] = []
    with contextlib.suppress(Exception):
        from yolofs.registry.registry import Registry

        with Registry.open() as registry:
            entries = sorted(registry, key=lambda entry: entry.project_path)
        found = [CompletionItem(entry.id, help=display(entry.project_path)) for entry in entries]
    return [item for item in found if item.value.startswith(incomplete)]


def files(_context: click.Context, _: click.Parameter, _incomplete: str) -> list[CompletionItem]:
    """Offer files."""
    return [_FILES]


def generations(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer generations; after ``--`` staged paths."""
    return (staged_paths if PATHS_KEY in context.meta else _any_generation)(context, parameter, incomplete)


def restorable_paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer staged paths; after ``--from run`` and ``--from commit`` a number."""
    kinds = {"run": runs, "commit": commits}
    return kinds.get(context.params.get("text") or "", staged_paths)(context, parameter, incomplete)


def sources(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what ``--from`` takes."""
    found = [CompletionItem(word, help="and its number") for word in ("run", "commit") if word.startswith(incomplete)]
    return [*_any_state(context, parameter, incomplete), *found]


def undone_paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer paths that the commit has changed whose number is given."""
    number = context.params.get("number") or ""
    return offered(lambda session, text: _of_commit(session, number, text))(context, parameter, incomplete)


def without_needless_files(found: Iterable[CompletionItem]) -> list[CompletionItem]:
    """Return what is offered by several, each once; files only if there is nothing else."""
    items = list({(item.type, item.value): item for item in found}.values())
    return [item for item in items if item.type != _FILES.type] or items


ranges = offered(range_words)
_any_generation = offered(generation_words)
_any_state = offered(state_words)
staged_paths = offered(_staged_paths)
runs = offered(_runs)
commits = offered(_commits)
asks = offered(_asks)
