"""What a review commits: the page that foretells it, and the commit.

Each blocks, and runs in a thread beside the screen; a mount serves no request meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yolofs.changes.changes import Change
from yolofs.changes.picks import Picks
from yolofs.cli.commit.commit_preview import CommitPreview, preview_commit
from yolofs.cli.commit.committing_hunks import Picked, commit_hunks
from yolofs.cli.commit.open_files import find_open_files, open_files_told
from yolofs.cli.commit.report import stays_text, timeline_end_text
from yolofs.cli.commit.tidying import remove_tidied, tidy_after_commit
from yolofs.cli.project.project import changing
from yolofs.cli.review.conflicts import ConflictLines, conflict_lines
from yolofs.cli.review.effects import Page, Prepare, Stop
from yolofs.cli.review.picking import gather_picks, path_display_of, paths_of, stale_by_path
from yolofs.cli.review.reader import Reader
from yolofs.cli.show.folding import ChangeLine
from yolofs.cli.show.listing import PathDisplay, group_lines, has_mark, line_text, summary
from yolofs.cli.show.shortening import Shortener
from yolofs.commit.select.selection import Selection
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import StaleHunkError
from yolofs.hostcode.mark import is_marked
from yolofs.paths import ROOT, RelPath
from yolofs.session.commit import BaseLook, conflict_error, look_at_base
from yolofs.session.selecting import HeldHunk, select_hunks
from yolofs.session.up_to import check_up_to
from yolofs.state.regions import Region

_LISTED = 500
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


def prepare_commit(reader: Reader, effect: Prepare, stop: Stop) -> Page:
    """Return the page that foretells a commit of the accepted changes; nothing is done.

    Raises:
        LookStoppedError: it is not wanted any more.
        StaleHunkError: something of it has changed since.
        ConflictError: base has changed, too, and there is no screen on which to settle that.
        YolofsError, OSError: it would be refused.
    """
    paths = paths_of(effect.what)
    with contextlib.ExitStack() as stack:
        session, _ = stack.enter_context(changing(reader.project, LoanKind.COMMIT))
        files, picks = gather_picks(session, effect.what, stop)
        with stale_by_path(session, files):
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
        path_display = path_display_of(session)
        ours = effect.ours.intersection(looked.conflicts)
        prepared = PreparedCommit(picks, paths, effect.named, shown, looked.conflicts, ours)
        is_open = bool(looked.marked) or not (ours | looked.unchanged).issuperset(looked.conflicts)
        if is_open and not effect.is_on_screen:
            error = conflict_error(looked)
            error.root = session.base.root
            raise error
        told = conflict_lines(session, parts.taken, looked, path_display, ours) if is_open else None
        unfold = "the list has each" if effect.is_on_screen else "yolofs status --unfold"
        taken = _taken_lines(Shortener(session, path_display, unfold, selected.tree), prepared, looked)
        written = open_files_told(find_open_files(session, shown.taken)) if told is None else []
        return _page(prepared, [*taken, *written], selected.held_hunks, told, path_display, timeline_end_text(session))


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
        tidy_after_commit(session)
        directory, where = session.directory, path_display_of(session).show_path
    remove_tidied(directory)
    number = done.result.number
    if number is None:
        return "nothing to commit"
    left = "".join(
        f"; {where(path)}: {', '.join(what)} could not be carried over" for path, what in done.result.left_out.items()
    )
    more = f"; its journal could not be put away: {done.result.unfinished}" if done.result.unfinished else ""
    return f"commit {number} done; to take it back: yolofs undo {number}{left}{more}"
