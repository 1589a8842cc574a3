"""What a review does to the session: drops, edits, commits, and what takes a drop or an edit back.

Each blocks, and runs in a thread beside the screen; a mount serves no request meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from yolofs.changes.changes import Change, Side, compare
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind, hunks_of
from yolofs.changes.picks import LineNumbers, Picks
from yolofs.cli.commit.commit_preview import CommitPreview, preview_commit
from yolofs.cli.commit.committing_hunks import Picked, commit_hunks
from yolofs.cli.commit.open_files import find_open_files, open_files_told
from yolofs.cli.commit.report import stays_text, timeline_end_text
from yolofs.cli.commit.tidying import remove_tidied, tidy
from yolofs.cli.options import start_directory
from yolofs.cli.project.project import changing
from yolofs.cli.review.accepted import AcceptedPart
from yolofs.cli.review.change_tree import Key, key_of
from yolofs.cli.review.comparison import Comparison
from yolofs.cli.review.conflicts import ConflictLines, conflict_lines, travel_back, view_shows
from yolofs.cli.review.effects import Carried, DoneInView, Drop, Page, PickedOrAll, Prepare, Stop
from yolofs.cli.review.reader import Reader
from yolofs.cli.show.folding import ChangeLine
from yolofs.cli.show.listing import PathDisplay, group_lines, has_mark, line_text, summary
from yolofs.cli.show.shortening import Shortener
from yolofs.commit.select.selection import Selection
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import StaleHunkError, UsageError, YolofsError, reason
from yolofs.hostcode.mark import is_marked
from yolofs.journal.timeline import BASE
from yolofs.paths import ROOT, Generation, RelPath, display, in_shell
from yolofs.session import feedback
from yolofs.session.commit import BaseLook, look_at_base
from yolofs.session.history.named_states import named_state
from yolofs.session.restore import restore
from yolofs.session.selecting import HeldHunk, Hunks, drop_hunks, select_hunks, stage_text
from yolofs.session.selecting.separate_changes import compare_at
from yolofs.session.session import Session
from yolofs.session.up_to import check_up_to
from yolofs.state.regions import Region
from yolofs.state.tree import Tree
from yolofs.text.git_binary import read_chunks

_FEW = 100
"""Up to this number of changes, their paths are passed on, so that only these are compared."""
_LISTED = 500
_DROPPED = b"dropped in a review"
_EDITED = b"edited in a review"
_BACK = b"taken back in a review"
_CHANGED = "something has changed meanwhile, here or in base, so nothing is committed: look again"


class PreparedCommit(NamedTuple):
    """A commit that was shown, and may be done."""

    picks: Picks
    paths: Sequence[RelPath]
    named: Sequence[RelPath]
    shown: CommitPreview
    conflicts: Sequence[RelPath]
    ours: frozenset[RelPath]
    """The conflicts at which the staged version replaces base's."""


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
        files, picks = _gather(session, effect.what, stop)
        old, _ = session.timeline.parse_range(reader.subject.range_text)
        paths = _paths(effect.what)
        with _stale_by_path(session, files):
            dropped = drop_hunks(
                session, session.state(old), picks, _DROPPED, paths=paths, known=files, check=stop.check
            )
        if not dropped.changes:
            return _held_text(session, old, dropped.held) or "it was as before already", None, []
        number, untold = None, ""
        if effect.is_told:
            held = {one.hunk.id for one in dropped.held}
            things = [_dropped(hunk, picks[hunk.id]) for hunk in _picked(files, picks) if hunk.id not in held]
            try:
                number = feedback.add(session.directory, things, effect.note)
            except OSError as error:  # it is dropped all the same
                untold = f"; the agent is not told: {reason(error)}"
        paths = tuple(dict.fromkeys(path for change in dropped.changes for path in change.paths))
        done = DoneInView(
            effect.title, session.journal.form.key, dropped.before, session.timeline.present, paths, number
        )
        carried = _carried(session, reader, files, picks) if len(files) <= _FEW else []
        where = _path_display(session).show_path
    left = "".join(f"; not set: {', '.join(what)} of {where(path)}" for path, what in dropped.left_out.items())
    held_text = _held_text(session, old, dropped.held)
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
    show = _path_display(session).show_path
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
        with _stale_by_path(session, [file]):
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


def prepare_commit(reader: Reader, effect: Prepare, stop: Stop) -> Page:
    """Return the page that foretells a commit of the accepted changes; nothing is done.

    Raises:
        LookStoppedError: it is not wanted any more.
        StaleHunkError: something of it has changed since.
        YolofsError, OSError: it would be refused.
    """
    paths = _paths(effect.what)
    with contextlib.ExitStack() as stack:
        session, _ = stack.enter_context(changing(reader.project, LoanKind.COMMIT))
        files, picks = _gather(session, effect.what, stop)
        with _stale_by_path(session, files):
            selected = stack.enter_context(select_hunks(session, picks, paths=paths, known=files))
        stop.check()
        selection = Selection(session.regions, frozenset(Region), (ROOT, *effect.named))
        shown, parts = preview_commit(session, selection, tree=selected.tree, is_again=True)
        stop.check()
        looked = look_at_base(session, parts)
        stop.check()
        if shown.taken:
            check_up_to(session, parts)
        stop.check()
        path_display = _path_display(session)
        ours = effect.ours.intersection(looked.conflicts)
        prepared = PreparedCommit(picks, paths, effect.named, shown, looked.conflicts, ours)
        is_open = bool(looked.marked) or not (ours | looked.unchanged).issuperset(looked.conflicts)
        told = conflict_lines(session, parts.taken, looked, path_display, ours) if is_open else None
        taken = _taken_lines(Shortener(session, path_display, "the list has each", selected.tree), prepared, looked)
        written = open_files_told(find_open_files(session, shown.taken)) if told is None else []
        return _page(prepared, [*taken, *written], selected.held, told, path_display, timeline_end_text(session))


def _taken_lines(shortener: Shortener, prepared: PreparedCommit, looked: BaseLook) -> list[str]:
    """Return the lines of a commit: host code, then what lies outside the project, deletions and
    emptied files, the rest, and last the folded lines.
    """
    shown, path_display = prepared.shown, shortener.path_display
    conflicts, marked = frozenset(prepared.conflicts), frozenset(looked.marked)

    def is_kept(change: Change) -> bool:
        return not conflicts.isdisjoint(change.paths)

    def rank(line: ChangeLine) -> tuple[bool, bool, bool]:
        change = line.change
        return not has_mark(line, shown.marks), path_display.holds(change), not (line.deletes or change.is_emptied)

    folded = shortener.fold(shown.taken, is_kept, shown.marks)
    lines: list[str] = []
    for line in sorted(folded.lines, key=rank)[:_LISTED]:
        change = line.change
        inside = path_display.holds(change)
        text = line_text(line, path_display, shown.marks, shortener.unfold, inside=inside)
        if not conflicts.isdisjoint(change.paths):
            text += "  [marks of a merge]" if not marked.isdisjoint(change.paths) else "  [changed in base, too]"
        lines.append(text)
    if (more := len(folded.lines) - _LISTED) > 0:
        lines.append(f"… and {more} more")
    return lines + group_lines(folded.groups, shortener, path_display)


def _page(
    prepared: PreparedCommit,
    taken: Sequence[str],
    held: Sequence[HeldHunk],
    told: ConflictLines | None,
    path_display: PathDisplay,
    ends: str,
) -> Page:
    """Return the page; ``taken`` lists what the commit takes, ``told`` the conflicts to settle
    first.
    """
    shown = prepared.shown
    lines = [*told.lines, ""] if told is not None else []
    lines += [*taken, ""] if taken else []
    show = path_display.show_path
    lines += [f"stays as it is: {one.hunk.kind.value} {show(one.hunk.path)}: {one.reason(show)}" for one in held]
    for back in shown.held_back:
        lines.append(f"stays staged: {', '.join(map(show, back.paths[:4]))}: {back.reason(show)}")
    if told is None and prepared.ours:
        lines.append("what is staged replaces what base has there; base's version is kept with the commit")
    lines.append(stays_text(shown) if shown.stays_told else "nothing else is staged")
    lines += [ends.removeprefix(", and ").replace("end ", "it ends ", 1)] if ends and shown.taken else []
    count = sum(is_marked(change, shown.marks) for change in shown.taken)
    trusted = f", {count} of which the host would run or trust" if count else ""
    title = f"this commit would apply {summary(shown.taken)}{trusted}" if shown.taken else "there is nothing to commit"
    if told is not None:
        keys = " ".join(way.value for way in told.ways)
        question = f"{keys}: where the cursor is, {keys.upper()}: everywhere; any other key goes back"
        conflicts = tuple(prepared.conflicts)
        return Page(title, tuple(lines), "", prepared, conflicts, told.ways, told.choices, told.marked, question)
    return Page(title, tuple(lines), "enter commits; any other key goes back" if shown.taken else "", prepared)


def _what_it_applies(shown: CommitPreview, conflicts: Iterable[RelPath]) -> tuple[object, ...]:
    """Return what the page has shown of a commit.  The ids of hunks stand for the contents of the
    files.

    What stays may change as the agent goes on.
    """

    def told(changes: Iterable[Change]) -> list[object]:
        return [
            (
                change.kind,
                change.path,
                change.old_path,
                change.metadata,
                change.new and (change.new.type, change.new.mode),
            )
            for change in changes
        ]

    marks = {change.path: shown.marks.get(change.path) for change in shown.taken}
    return told(shown.taken), shown.held_back, marks, list(conflicts)


def commit_prepared(reader: Reader, prepared: PreparedCommit) -> str:
    """Commit what was shown; return what to say.

    Raises:
        StaleHunkError: something of it has changed since it was shown; nothing is done.
        YolofsError, OSError: as :func:`yolofs.cli.commit.committing_hunks.commit_hunks`.
    """

    def check(shown: CommitPreview, conflicts: Sequence[RelPath]) -> None:
        if _what_it_applies(shown, conflicts) != _what_it_applies(prepared.shown, prepared.conflicts):
            raise StaleHunkError(_CHANGED)

    with changing(reader.project, LoanKind.COMMIT) as (session, _):
        picked = Picked(prepared.picks, prepared.paths, prepared.named, force=bool(prepared.ours))
        try:
            done = commit_hunks(session, picked, tell=check)
        except StaleHunkError as error:
            raise StaleHunkError(_CHANGED, ids=error.ids) from error
        tidy(session)
        directory, where = session.directory, _path_display(session).show_path
    remove_tidied(directory)
    number = done.result.number
    if number is None:
        return "nothing to commit"
    left = "".join(
        f"; {where(path)}: {', '.join(what)} could not be carried over" for path, what in done.result.left_out.items()
    )
    more = f"; its journal could not be put away: {done.result.unfinished}" if done.result.unfinished else ""
    return f"commit {number} done; to take it back: yolofs undo {number}{left}{more}"


# ---- what is picked


def _old_tree(session: Session, reader: Reader) -> Tree:
    old, _ = session.timeline.parse_range(reader.subject.range_text)
    return session.state(old)


def _gather(
    session: Session, what: Mapping[Key, tuple[Change, PickedOrAll]], stop: Stop | None = None
) -> tuple[list[FileHunks], dict[str, LineNumbers | None]]:
    """Return the hunks of what is wanted, and the picks of them.

    The session is open for writing, so that nobody else writes to what was read.

    Raises:
        LookStoppedError: it is not wanted any more.
        StaleHunkError: one does not exist any more.
    """
    files: list[FileHunks] = []
    picks: dict[str, LineNumbers | None] = {}
    for change, wanted in what.values():
        if stop is not None:
            stop.check()
        file = hunks_of(change, session.store)
        files.append(file)
        known = {hunk.id for hunk in file.hunks}
        if wanted is not None and not known.issuperset(wanted):
            gone = tuple(name for name in wanted if name not in known)
            raise _stale(session, [change.path], gone)
        picks.update(wanted if wanted is not None else dict.fromkeys(known))
    if not picks:
        raise YolofsError("there is nothing to pick")
    return files, picks


@contextlib.contextmanager
def _stale_by_path(session: Session, files: Iterable[FileHunks]) -> Iterator[None]:
    """Have hunks that do not exist any more be told by their paths: a review shows no ids."""
    try:
        yield
    except StaleHunkError as error:
        paths = [file.path for file in files if any(hunk.id in error.ids for hunk in file.hunks)]
        if not paths:
            raise
        raise _stale(session, paths, error.ids) from error


def _stale(session: Session, paths: Sequence[RelPath], ids: Sequence[str]) -> StaleHunkError:
    first = _path_display(session).show_path(paths[0])
    said = f"{first} has changed since it was" if len(paths) == 1 else f"{len(paths)} have changed since they were"
    return StaleHunkError(f"{said} looked at" + (f": {first} …" if len(paths) > 1 else ""), ids=ids)


def _path_display(session: Session) -> PathDisplay:
    return PathDisplay(session.base.root, session.base.relative(session.project))


def _paths(what: Mapping[Key, tuple[Change, PickedOrAll]]) -> tuple[RelPath, ...]:
    """Return where the hunks are to be looked for; nothing for everywhere."""
    if len(what) > _FEW:
        return ()
    return tuple(dict.fromkeys(path for change, _ in what.values() for path in change.paths))
