"""What a review does to the view: drops and edits, and what takes one back.

Each blocks, and runs in a thread beside the screen; a mount serves no request meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from yolofs.changes.changes import Side, compare
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind, hunks_of
from yolofs.changes.picks import LineNumbers, Picks
from yolofs.cli.options import start_directory
from yolofs.cli.project.project import changing
from yolofs.cli.review.accepted import AcceptedPart
from yolofs.cli.review.change_tree import Key, key_of
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.conflicts import travel_back, view_shows
from yolofs.cli.review.effects import Carried, DoneInView, Drop, Stop
from yolofs.cli.review.picking import FEW, gather_picks, path_display_of, paths_of, stale_by_path
from yolofs.cli.review.reader import Reader
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import StaleHunkError, UsageError, reason
from yolofs.journal.timeline import BASE
from yolofs.paths import Generation, display, in_shell
from yolofs.session import feedback
from yolofs.session.history.named_states import named_state
from yolofs.session.restore import restore
from yolofs.session.selecting import HeldHunk, Hunks, drop_hunks, stage_text
from yolofs.session.selecting.separate_changes import compare_at
from yolofs.session.session import Session
from yolofs.state.tree import Tree
from yolofs.text.git_binary import read_chunks

_DROPPED = b"dropped in a review"
_EDITED = b"edited in a review"
_BACK = b"taken back in a review"


def what_changed(reader: Reader, parts: Mapping[Key, AcceptedPart], comparison: Comparison) -> list[Key]:
    """Return what of the accepted is something else in a newer comparison."""
    now = {key_of(change): change for change in comparison.changes}
    found: list[Key] = []
    for key, part in parts.items():
        change = now.get(key)
        if change is None or change == part.change:
            continue
        if part.picks is None:
            found.append(key)
            continue
        ids = {hunk.id for hunk in reader.hunks(change).hunks}
        if not (ids == part.picks.keys() if part.is_whole else ids >= part.picks.keys()):
            found.append(key)
    return found


# ---- dropping


def drop_picked_hunks(reader: Reader, effect: Drop, stop: Stop) -> tuple[str, DoneInView | None, list[Carried]]:
    """Drop what was picked, and keep what the agent is told of it.

    Returns a message, the record of what was done, and the new state of other hunks in the same
    files.

    Raises:
        LookStoppedError: it is not wanted any more; nothing is done.
        StaleHunkError: something of it has changed since; nothing is done.
        YolofsError, OSError: as :func:`yolofs.session.selecting.drop_hunks`; nothing is done.
    """
    with changing(reader.project, LoanKind.RESTORE) as (session, _):
        files, picks = gather_picks(session, effect.what, stop)
        old, _ = session.timeline.parse_range(reader.subject.range_text)
        paths = paths_of(effect.what)
        with stale_by_path(session, files):
            dropped = drop_hunks(
                session, session.state(old), picks, _DROPPED, paths=paths, known=files, check=stop.check
            )
        if not dropped.changes:
            return _held_text(session, old, dropped.held_hunks) or "it was as before already", None, []
        number, untold = None, ""
        if effect.is_told:
            held = {one.hunk.id for one in dropped.held_hunks}
            things = [_dropped(hunk, picks[hunk.id]) for hunk in _picked(files, picks) if hunk.id not in held]
            try:
                number = feedback.add(session.directory, things, effect.note)
            except OSError as error:  # it is dropped all the same
                untold = f"; the agent is not told: {reason(error)}"
        paths = tuple(dict.fromkeys(path for change in dropped.changes for path in change.paths))
        done = DoneInView(
            effect.title, session.journal.form.key, dropped.before, session.timeline.present, paths, number
        )
        carried = _carried(session, reader, files, picks) if len(files) <= FEW else []
        where = path_display_of(session).show_path
    left = "".join(f"; not set: {', '.join(what)} of {where(path)}" for path, what in dropped.left_out.items())
    held_text = _held_text(session, old, dropped.held_hunks)
    held_text = f"; {held_text}" if held_text else ""
    return f"dropped {effect.title}; u takes it back{untold}{left}{held_text}", done, carried


def _carried(session: Session, reader: Reader, files: Iterable[FileHunks], dropped: Picks) -> list[Carried]:
    """Return what has become of hunks of files of which others, or lines of these, were dropped
    just now: nobody else could write.
    """
    before = {key_of(file.change): file for file in files}
    paths = tuple(path for file in files for path in file.change.paths)
    trees = _old_tree(session, reader), session.state()
    found: list[Carried] = []
    for change in compare_at(*trees, session.base, session.store, paths):
        known = before.get(key_of(change))
        if known is None:
            continue
        hunks = hunks_of(change, session.store).hunks
        now = {_key_without_id(hunk): hunk.id for hunk in hunks}
        ids = {hunk.id: now[_key_without_id(hunk)] for hunk in known.hunks if _key_without_id(hunk) in now}
        others = [hunk for hunk in hunks if hunk.id not in ids.values()]
        lines = {hunk.id: _lines_now(hunk, gone, others) for hunk in known.hunks if (gone := dropped.get(hunk.id))}
        count = len(ids) + len({new for places in lines.values() for new, _ in places.values()})
        found.append(Carried(change, ids, lines, is_all=count == len(hunks)))
    return found


def _lines_now(hunk: Hunk, gone: LineNumbers, others: Iterable[Hunk]) -> dict[int, tuple[str, int]]:
    """Return the new places of a hunk's remaining lines, as :attr:`Carried.lines`; ``others`` are
    the new hunks.  Nothing, unless these have just its lines.
    """
    end = hunk.old_start + len(hunk.old_lines)
    within = [
        one
        for one in others
        if one.kind is hunk.kind and hunk.old_start <= one.old_start and one.old_start + len(one.old_lines) <= end
    ]
    stays = [line for line in _numbered(hunk) if line[0] not in gone]
    found = sorted(((one.id, line) for one in within for line in _numbered(one)), key=lambda found: found[1][1])
    if [line[1:] for line in stays] != [line[1:] for _, line in found]:
        return {}
    return {was[0]: (name, now[0]) for was, (name, now) in zip(stays, found, strict=True)}


def _numbered(hunk: Hunk) -> Iterator[tuple[int, bool, bytes]]:
    """Yield the lines of a hunk, each with its number, and whether it is one that comes."""
    for number, line in enumerate((*hunk.old_lines, *hunk.new_lines), 1):
        yield number, number > len(hunk.old_lines), line


def _key_without_id(hunk: Hunk) -> tuple[object, ...]:
    """Return the content of a hunk, without its place in the new text."""
    return hunk.kind, hunk.old_start, hunk.old_lines, hunk.new_lines, hunk.old, hunk.new


def _held_text(session: Session, old: Generation, held: Sequence[HeldHunk]) -> str:
    """Return the hunks that could not be dropped alone, and a command that drops the first with all
    it needs.
    """
    if not held:
        return ""
    full = session.base.path(held[0].hunk.path)
    path = in_shell(os.path.relpath(full, start_directory()))
    show = path_display_of(session).show_path
    command = f"yolofs restore {path}" if old == BASE else f"yolofs restore --from {old} {path}"
    more = f", and {len(held) - 1} more," if len(held) > 1 else ""
    return f"{path}{more} stay{'' if more else 's'} ({command} drops it): {held[0].reason(show)}"


def _picked(files: Iterable[FileHunks], picks: Picks) -> list[Hunk]:
    return [hunk for file in files for hunk in file.hunks if hunk.id in picks]


def _dropped(hunk: Hunk, lines: LineNumbers | None) -> feedback.Dropped:
    count = len(hunk.old_lines)
    marked = [
        *((number, b"-" + line) for number, line in enumerate(hunk.old_lines, 1)),
        *((number, b"+" + line) for number, line in enumerate(hunk.new_lines, count + 1)),
    ]
    if hunk.kind is HunkKind.DELETED:  # the path says it
        marked = []
    wanted = [
        line.rstrip(b"\r\n")[: feedback.MOST_LINE_BYTES] for number, line in marked if not lines or number in lines
    ]
    kept = tuple(wanted[: feedback.MOST_LINES])
    return feedback.Dropped(hunk.path, hunk.kind.value, kept, len(wanted) - len(kept), hunk.old_path)


# ---- editing, taking back


def stage_edit(
    reader: Reader, file: FileHunks, hunk: Hunk, was: bytes, text: bytes
) -> tuple[str, DoneInView, list[Carried]]:
    """Stage a user's edit of the staged text ``was``; return what :func:`drop_picked_hunks` does.

    Raises:
        StaleHunkError: the hunk, or what is staged, is another one meanwhile; nothing is done.
        YolofsError, OSError: as :func:`yolofs.session.selecting.stage_text`; nothing is done.
    """
    with changing(reader.project, LoanKind.RESTORE) as (session, _):
        with stale_by_path(session, [file]):
            found = Hunks(session, _old_tree(session, reader), paths=file.change.paths).find({hunk.id: None})
            if any(_content(now.change.new, session) != was for now in found.values()):  # not every id tells
                raise StaleHunkError("another text is staged", ids=(hunk.id,))
        before = stage_text(session, file.path, text, _EDITED)
        name = display(file.path.rpartition(b"/")[2])
        done = DoneInView(
            f"the edit of {name}", session.journal.form.key, before, session.timeline.present, (file.path,)
        )
        carried = _carried(session, reader, [file], {})
    return f"edited {name}; u takes it back", done, carried


def take_last_back(reader: Reader, done: DoneInView) -> str:
    """Show again what was there before a drop or an edit: by a travel if nothing was staged since,
    as that leaves a rename a rename; else by staging it at the same paths.

    Raises:
        UsageError: something has changed there since; nothing is done.
    """
    with changing(reader.project, LoanKind.COMMIT if done.travels else LoanKind.RESTORE) as (session, _):
        if session.journal.form.key != done.journal:
            raise UsageError("there was a commit or an abort since, so it cannot be taken back")
        if done.travels:
            travel_back(session, done)
            return f"taken back: {done.title}"
        if view_shows(session, done.after):
            session.travel(str(done.before))
        else:
            _restore(session, done)
        if done.feedback is not None:
            with contextlib.suppress(OSError):
                feedback.withdraw(session.directory, done.feedback)
    return f"taken back: {done.title}"


def _restore(session: Session, done: DoneInView) -> None:
    trees = session.states(done.after, None)
    if compare(*trees, session.base, session.store, paths=done.paths):
        raise UsageError(
            f"{done.title} has changed since, so it is not taken back",
            hint=f"what was there before is generation {done.before}: yolofs restore --from {done.before} PATH",
        )
    restore(session, named_state(session, str(done.before)), done.paths, _BACK)


def _content(side: Side | None, session: Session) -> bytes | None:
    """Return what is in a file, None if there is none."""
    if side is None:
        return None
    fd = side.open(session.store)
    try:
        return b"".join(read_chunks(fd, os.fstat(fd).st_size))
    finally:
        os.close(fd)


# ---- committing


def _old_tree(session: Session, reader: Reader) -> Tree:
    old, _ = session.timeline.parse_range(reader.subject.range_text)
    return session.state(old)
