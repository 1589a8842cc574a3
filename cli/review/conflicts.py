"""Where base has changed, too: what the page before a commit says of it, and settling it in the
view.

What is merged is staged, so that it is looked at as any other change before it is accepted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from yolofs.cli.commit.settling import ConflictRequest, SettledConflicts
from yolofs.cli.project.project import changing
from yolofs.cli.review.effects import ConflictKey, DoneInView, PageChoice, Settle
from yolofs.cli.review.reader import Reader
from yolofs.cli.show.drift_lines import drift_text
from yolofs.cli.show.listing import PathDisplay
from yolofs.commit.merge.drift_descriptions import describe_drift
from yolofs.commit.merge.merging import Merge, Unmergeable
from yolofs.commit.select.selection import Selection
from yolofs.daemon.rpc.protocol import LoanKind
from yolofs.errors import UsageError
from yolofs.paths import ROOT, Generation, RelPath, display
from yolofs.session.commit import BaseLook, look_at_base, split_staged
from yolofs.session.merge import merges_at
from yolofs.session.session import Session
from yolofs.state.regions import Region
from yolofs.state.tree import Tree
from yolofs.text.enumeration import some_of

_LISTED = 20
"""How many conflicts are merged in order to preview the result."""
_MOST_LINES = 200
_TITLES = {
    ConflictKey.MERGE: "the merge",
    ConflictKey.OURS: "what was staged before the merge",
    ConflictKey.THEIRS: "taking base's version",
}


class ConflictLines(NamedTuple):
    """What a page says of conflicts."""

    lines: list[str]
    ways: tuple[ConflictKey, ...]
    """What can be done about them there."""
    choices: tuple[PageChoice, ...]
    """The lines that stand for them."""
    marked: frozenset[RelPath]
    """Those with the marks of a merge."""


def conflict_lines(
    session: Session, tree: Tree, looked: BaseLook, path_display: PathDisplay, ours: Collection[RelPath]
) -> ConflictLines:
    """Return lines about the conflicts of a state before its commit; those at ``ours`` take the
    staged version.  Blocks while texts are merged, and writes nothing.
    """
    marked = frozenset(looked.marked)
    found = {path: one for one in merges_at(session, looked.conflicts[:_LISTED]) for path in one.paths}
    drifts = describe_drift(tree, session.base, session.store, looked.conflicts, marked, session.state())
    now_ns = time.time_ns()
    texts = {
        drift.path: f"{drift_text(drift, now_ns)}{_merging(found.get(drift.path))}"
        + ("; what is staged is taken" if drift.path in ours else "")
        for drift in drifts[:_MOST_LINES]
    }
    lines, choices = ["base has changed, too:"], []
    for path, inside in rows_of(texts):
        choices.append(PageChoice(len(lines), inside))
        about = f": {texts[path]}" if inside == (path,) else f"/  ({len(inside)})"
        lines.append(f"  {path_display.show_path(path)}{about}")
    if len(drifts) > _MOST_LINES:
        lines.append(f"  … and {len(drifts) - _MOST_LINES} more")
    can_merge = len(drifts) > _LISTED or any(isinstance(one, Merge) for one in found.values())
    if can_merge:
        lines.append("m merges: what comes of it is shown, and accepted as anything else")
    side = "what was staged before the merge" if marked else "what is staged, and keeps base's version with the commit"
    lines += [f"o takes {side}", "t takes base's version, and drops what is staged there", "or leave it out here"]
    if marked:
        lines.append("or take the marks out (e), and accept it then")
    return ConflictLines(
        lines,
        (*((ConflictKey.MERGE,) if can_merge else ()), ConflictKey.OURS, ConflictKey.THEIRS),
        tuple(choices),
        marked,
    )


def rows_of(conflicts: Iterable[RelPath]) -> list[tuple[RelPath, tuple[RelPath, ...]]]:
    """Return the lines to show, each with its conflicts: every path, and above these each directory
    that holds several, unless a directory in it holds the same.
    """
    below: dict[RelPath, list[RelPath]] = {}
    rows: list[tuple[RelPath, tuple[RelPath, ...]]] = []
    for path in conflicts:
        rows.append((path, (path,)))
        above = path
        while above:
            above = RelPath(above.rpartition(b"/")[0])
            below.setdefault(above, []).append(path)
    deepest: dict[tuple[RelPath, ...], RelPath] = {}
    for directory in sorted(below, key=len):
        deepest[tuple(below[directory])] = directory
    rows += [(directory, inside) for inside, directory in deepest.items() if len(inside) > 1]
    return sorted(rows, key=lambda row: (row[0].split(b"/") if row[0] else [], -len(row[1])))


def _merging(found: Merge | Unmergeable | None) -> str:
    match found:
        case Merge(conflicts=0):
            return "; it merges"
        case Merge(conflicts=count):
            return f"; merged, it has marks in {count} place{'' if count == 1 else 's'}"
        case Unmergeable(reason=reason):
            return f"; it cannot be merged: {reason}"
        case None:
            return ""


def settle_in_view(reader: Reader, effect: Settle) -> tuple[str, DoneInView | None]:
    """Settle conflicts in the view; return what to say, and what was done.

    Raises:
        UsageError: nothing could be done.
        YolofsError, OSError: base changes just now, or it cannot be written; nothing is done.
    """
    way = effect.way
    with changing(reader.project, LoanKind.COMMIT) as (session, _):
        everything = Selection(session.regions, frozenset(Region), (ROOT,), takes_marked=True)
        looked = look_at_base(session, split_staged(session, everything))
        looked = looked._replace(conflicts=[path for path in looked.conflicts if path in set(effect.paths)])
        before = Generation(session.timeline.present + session.has_unsnapshotted())
        choice = ConflictRequest(
            merge=way is ConflictKey.MERGE, ours=way is ConflictKey.OURS, theirs=way is ConflictKey.THEIRS
        )
        settled = choice.settle(session, looked, makes_again=True)
        paths = (*settled.merged, *settled.marked, *settled.dropped, *settled.unmerged)
        if not paths:
            raise UsageError(_refusal(settled) or "there is no conflict any more: look again")
        title = _TITLES[way]
        done = DoneInView(title, session.journal.form.key, before, session.timeline.present, paths, travels=True)
    return f"{_said(settled, way)}; u takes it back", done


def _said(settled: SettledConflicts, way: ConflictKey) -> str:
    parts = []
    if settled.merged:
        parts.append(f"merged with base: {_names(settled.merged)}; look, and accept it")
    if settled.marked:
        parts.append(f"both sides changed the same in {_names(settled.marked)}: take the marks out (e)")
    if settled.unmerged:
        parts.append(f"as before the merge: {_names(settled.unmerged)}")
    if settled.dropped and way is ConflictKey.THEIRS:
        parts.append(f"base's version is taken: {_names(settled.dropped)}")
    refusal = _refusal(settled)
    return "; ".join([*parts, refusal] if refusal else parts)


def _refusal(settled: SettledConflicts) -> str:
    reasons = [f"{_names(one.paths)} cannot be merged: {one.reason}" for one in settled.refused]
    if settled.lost:
        reasons.append(f"what was staged before the merge is no longer kept: {_names(settled.lost)}")
    return "; ".join(reasons)


def _names(paths: Sequence[RelPath]) -> str:
    return some_of([display(path.rpartition(b"/")[2]) for path in paths], 3)


def view_shows(session: Session, generation: Generation) -> bool:
    """Tell whether the view shows just what a generation was: nothing was staged since, or it was
    taken back.
    """
    timeline = session.timeline
    return not session.has_unsnapshotted() and timeline.shown_by(timeline.present) == timeline.shown_by(generation)


def travel_back(session: Session, done: DoneInView) -> None:
    """Show again what the view showed before conflicts were settled, with what is known of base.

    Raises:
        UsageError: something has changed since; nothing is done.
    """
    if not view_shows(session, done.after):
        raise UsageError(
            f"something was staged since, so {done.title} is not taken back",
            hint=f"yolofs travel {done.before} shows all as it was before",
        )
    session.travel(str(done.before))
