"""Messages about a path with nothing at it: what was done there, or a path that may have been
meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from yolofs.cli.history.visible_records import is_about, may_show
from yolofs.cli.options import options, start_directory
from yolofs.errors import UsageError
from yolofs.journal.records import Record
from yolofs.paths import RelPath, display, in_shell, split
from yolofs.session.history.chapters import Chapter, chapters
from yolofs.session.session import Session
from yolofs.session.state_files import StateFile, StateFiles

_MOST_NAMES = 5_000
"""How many names of a directory, and how many staged paths, are compared with what was typed."""


def check_somewhere(session: Session, paths: Sequence[RelPath], typed: Sequence[bytes]) -> None:
    """Check that each of some paths is in the view or in base, or has been, as far as is kept.

    Raises:
        UsageError: one never was, so it is misspelt.
    """
    for path, word in zip(paths, typed, strict=True):
        if not is_somewhere(session, path):
            raise nothing_at(session, path, word, ", in the view or in base, and nothing is known to have been")


def is_somewhere(session: Session, path: RelPath) -> bool:
    """Tell whether a path is in the view or in base, or has been, as far as is kept."""
    return _is_there(session, path) or has_history(session, path)


def nothing_at(
    session: Session,
    path: RelPath,
    typed: bytes,
    where: str,
    *,
    before: bytes = b"",
    files: StateFiles | None = None,
) -> UsageError:
    """Return the error that says that there is nothing at a path, with the next command.

    ``where`` ends the sentence and says in which states; ``before`` is what stands before the path
    on the command line.  Another path is one of the state ``files``, else of the view.
    """
    if has_history(session, path):
        hint = f"what was done there: yolofs log -- {in_shell(typed)}"
    else:
        hint = hint_of_meant(session, path, typed, before=before, files=files)
    return UsageError(f"there is nothing at {display(session.base.path(path))}{where}", hint=hint)


def hint_of_meant(
    session: Session,
    path: RelPath,
    typed: bytes = b"",
    *,
    before: bytes = b"",
    files: StateFiles | None = None,
) -> str:
    """Return a question whether another path was meant; if none is near, what lists the directory
    in the state ``files``, or what is staged.
    """
    found = path_meant(session, path, typed, before=before, files=files)
    if found or files is None:
        return found or "yolofs status --scratch lists what is staged"
    above = path
    while above and _visible(session, files, above) is None:
        above = split(above)[0]
    return f"yolofs ls {in_shell(before + _shown(session, above, typed))} lists what is there"


def path_meant(
    session: Session, path: RelPath, typed: bytes = b"", *, before: bytes = b"", files: StateFiles | None = None
) -> str:
    """Return a question whether another path was meant, as :func:`meant`; "" if none is near."""
    near = _most_alike(session, files if files is not None else StateFiles(session, session.state()), path)
    if near is None:
        return ""
    return f"did you mean {in_shell(before + _shown(session, near, typed))}?"


def _shown(session: Session, path: RelPath, typed: bytes) -> bytes:
    """Return a path as the user types paths: whole, or from where they are."""
    full = session.base.path(path)
    return full if os.path.isabs(typed) else os.path.relpath(full, start_directory())


def has_history(session: Session, path: RelPath) -> bool:
    """Tell whether anything was done at a path or below it, or with a directory that it lay in,
    which may be shown.

    Where a journal is damaged that cannot be told, so it may have been.
    """
    damaged: list[int] = []
    with chapters(session, lambda number, _: damaged.append(number)) as found:
        records = (record for record in _records(found) if may_show(record, session.base.root))
        return bool(damaged) or any(is_about(record, path) for record in records)


def _records(found: Iterable[Chapter]) -> Iterator[Record]:
    for chapter in found:
        for segment in range(1, len(chapter.journal.segment_counts()) + 1):
            yield from chapter.journal.read_segment(segment)


def _is_there(session: Session, path: RelPath) -> bool:
    return _may_see(session, path) and (
        session.base.has(path) or StateFiles(session, session.state()).look(path) is not None
    )


def _most_alike(session: Session, files: StateFiles, path: RelPath) -> RelPath | None:
    """Return the path whose name is most like the one that is missing, None if none is."""
    from difflib import get_close_matches  # most commands name what there is

    above, name = split(path) if path else (path, b"")
    rest: list[bytes] = []
    while (directory := _visible(session, files, above)) is None and above:
        rest.insert(0, name)
        above, name = split(above)
    elsewhere = _staged_elsewhere(session, files, split(path)[1]) if path else None
    if elsewhere is not None or directory is None or not directory.is_directory:
        return elsewhere
    seen = {
        os.fsdecode(one): file.path
        for one, file in islice(files.inside(directory), _MOST_NAMES)
        if _may_see(session, file.path)
    }
    found = [seen[one] for one in get_close_matches(os.fsdecode(name), seen, 1)]
    whole = [RelPath(b"/".join((one, *rest))) for one in found]
    return next((one for one in whole if _visible(session, files, one) is not None), found[0] if found else None)


def _staged_elsewhere(session: Session, files: StateFiles, name: bytes) -> RelPath | None:
    """Return the first staged path with a name in another directory."""
    for path, _ in islice(session.state().walk(), _MOST_NAMES):
        if path and split(path)[1] == name and _visible(session, files, path) is not None:
            return path
    return None


def _visible(session: Session, files: StateFiles, path: RelPath) -> StateFile | None:
    """Return the thing at a path of a state; None if there is none, or none that may be seen."""
    return files.look(path) if _may_see(session, path) else None


def _may_see(session: Session, path: RelPath) -> bool:
    guard = options().guard
    return guard is None or guard.may_see(session.base.path(path))
