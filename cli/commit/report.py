"""What a commit takes and what it leaves staged, for people and programs."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from yolofs.changes.changes import Change
from yolofs.cli.commit.commit_preview import CommitPreview
from yolofs.cli.commit.exclude import divide_by_patterns, unused_text
from yolofs.cli.commit.named_paths import say_nothing_staged
from yolofs.cli.guard import hidden_by
from yolofs.cli.output import emit_json, say, warn
from yolofs.cli.rules.hidden_changes import hiding_of
from yolofs.cli.show.first_lines import MOST_LINES, first_lines
from yolofs.cli.show.json_forms import change_fields, host_code_fields, text_fields
from yolofs.cli.show.listing import PathDisplay, emit_changes
from yolofs.cli.show.shortening import Shortener
from yolofs.commit import plan_commit
from yolofs.commit.plan.cut_links import CutLink, find_cut_links, find_links_to_copy, moves_between_disks
from yolofs.commit.plan.plan import Link, Plan
from yolofs.commit.select.choice import HeldBack
from yolofs.commit.select.split import Split
from yolofs.errors import UnnamedError, YolofsError
from yolofs.hostcode.mark import is_marked
from yolofs.paths import RelPath, absolute, display, in_shell, is_below
from yolofs.paths import split as split_path
from yolofs.session.commit import BaseLook, CommitResult
from yolofs.session.session import Session
from yolofs.state.regions import Region
from yolofs.store.base import Base
from yolofs.text.enumeration import some_of

_PATHS_IN_HINT = 4
_MOST_HELD_BACK = 3
"""So many changes that cannot go alone are named, each with a long command: the question comes
below them.
"""
_COMMIT_ALL = "yolofs commit --outside --scratch"
_WHERE = {
    Region.PROJECT: ("in the project", "yolofs commit"),
    Region.OUTSIDE: ("outside the project", "yolofs commit --outside"),
    Region.SCRATCH: ("in scratch directories", "yolofs commit --scratch"),
}


def check_named(shown: CommitPreview, options: Sequence[str] = (), *, is_later: bool = False) -> None:
    """Check that nothing stays because it was not named.

    ``options`` are those that the next command needs to take what this one would have taken.  With
    ``is_later`` there are none, as what was asked for was an earlier state that is no longer a
    generation.

    Raises:
        UnnamedError: something does; the hint is the command that takes it.
    """
    unnamed = [one for one in shown.held_back if one.unnamed]
    if not unnamed:
        _check_whole(shown, options, is_later=is_later)
        return
    count = len({path for one in unnamed for path in one.unnamed})
    paths = sorted({path for one in unnamed for path in one.paths})
    what = "1 file stays staged, as it has" if count == 1 else f"{count} files stay staged, as they have"
    hint = _next_command(
        shown.root, paths, options, is_later=is_later, if_many="yolofs status shows them, --trusted takes them"
    )
    raise UnnamedError(f"{what} to be named (or --trusted): the host would run or trust {_pronoun(count)}", hint=hint)


def _pronoun(count: int) -> str:
    return "it" if count == 1 else "them"


def _check_whole(shown: CommitPreview, options: Sequence[str], *, is_later: bool) -> None:
    """Check that each named path is taken; one may need others to be named with it.

    Raises:
        UnnamedError: one does; the hint is the command that takes it.
    """
    held_back = [one for one in shown.held_back if one.needs and set(one.paths).intersection(shown.named)]
    if not held_back:
        return
    paths = sorted({path for one in held_back for path in (*one.paths, *one.needs)})
    named = [path for one in held_back for path in one.paths if path in shown.named]
    what = (
        "1 path that was named stays staged, as it goes"
        if len(named) == 1
        else f"{len(named)} paths that were named stay staged, as they go"
    )
    hint = _next_command(shown.root, paths, options, is_later=is_later, if_many="yolofs commit --outside --scratch")
    raise UnnamedError(f"{what} only together with others", hint=hint)


def emit_taken(
    session: Session,
    shown: CommitPreview,
    conflicts: Sequence[RelPath],
    merged: Sequence[RelPath] = (),
    *,
    unfolds: bool = False,
) -> None:
    """Write the changes that the commit takes, those on hidden paths too: what is applied is to be
    seen before.

    At ``conflicts`` base has changed, too; ``merged`` have base's change in them.  With ``unfolds``
    each change has a line of its own.
    """
    root = session.base.root
    path_display = PathDisplay(root, session.base.relative(session.project))
    hidden = hidden_by(hiding_of(session.project, shown.taken, root), shown.taken, root)
    short = None if unfolds else Shortener(session, path_display, "--unfold")
    emit_changes(shown.taken, path_display, session.regions, shown.marks, hidden, conflicts, merged, short)


def warn_of_cut_links(session: Session, split: Split, looked: BaseLook) -> None:
    """Say which names become files of their own, as they move to another disk, or are to be hard
    links of names there, and which keep the old content.
    """
    with contextlib.suppress(YolofsError, OSError):  # the commit itself says why there is no plan
        if not moves_between_disks(looked.names, session.base):
            return
        plan = plan_commit(split.taken, session.base, session.store, names=looked.names)
        warn_of_links_in(plan, session.base)


def warn_of_links_in(plan: Plan, base: Base) -> None:
    """Say which names become files of their own by a plan, as :func:`warn_of_cut_links`; no step of
    it may be done yet.

    Raises:
        OSError: base cannot be read.
    """
    cut = find_cut_links(plan, base)
    more = "files with hard links move to another disk or mount"
    for line in first_lines(cut, lambda one: _cut_text(one, base.root), more):
        warn(line)
    copies = find_links_to_copy(plan, base)
    more = "files become copies, as no hard link leads there"
    for line in first_lines(copies, lambda one: _copy_text(one, base.root), more):
        warn(line)


def _copy_text(link: Link, root: bytes) -> str:
    existing, path = (display(absolute(root, one)) for one in (link.existing, link.path))
    return f"{path} becomes a copy of {existing}: no hard link leads to another disk or mount"


def _cut_text(link: CutLink, root: bytes) -> str:
    others = [display(path) for path in link.others[:_PATHS_IN_HINT]]
    more = len(link.others) - len(others)
    others += [f"{more} more"] if more else []
    if link.missing:
        others.append(f"{link.missing} name{'s that were' if link.missing > 1 else ' that was'} not found")
    names = " and ".join((", ".join(others[:-1]), others[-1])) if others[1:] else others[0]
    place = display(absolute(root, link.path))
    text = f"{place} moves to another disk or mount, and is no longer a hard link of {names}"
    if not link.keeps_old:
        return text
    return f"{text}; {'these keep' if len(link.others) + link.missing > 1 else 'that keeps'} the old content"


def say_unchanged(session: Session, shown: CommitPreview) -> None:
    """Say at which of the paths that were asked for nothing is staged; why something stays is said
    elsewhere.
    """
    held_back = [path for one in shown.held_back for path in one.paths]
    unchanged = [path for path in shown.unchanged if not any(is_below(path, top) for top in held_back)]
    say_nothing_staged(session, unchanged)
    for text in shown.excluded.unused:
        say(unused_text(text))


def trusted_text(shown: CommitPreview) -> str:
    """Return how many of the changes that are taken the host would run or trust, to follow a
    summary of them.
    """
    count = sum(is_marked(change, shown.marks) for change in shown.taken)
    return f", {count} of which the host would run or trust" if count else ""


def stays_text(shown: CommitPreview) -> str:
    """Return how much stays staged, such as ``2 changes stay staged``."""
    count = len(shown.stays_told)
    return f"{count} change{'s' if count != 1 else ''} stay{'s' if count == 1 else ''} staged"


def say_stays(session: Session, shown: CommitPreview) -> None:
    """Say what stays staged and how to commit that, too."""
    stays = shown.stays_told
    if not (stays or shown.held_back):
        return
    held_back = {path for one in shown.held_back for path in one.paths}
    left = [change for change in stays if not held_back.intersection(change.paths)]
    left, excluded = divide_by_patterns(left, shown.excluded)
    going_along = sum(_goes_along(change, held_back) for change in left)
    left = [change for change in left if not _goes_along(change, held_back)]
    with_marks = sorted({path for change in left for path in change.paths if path in shown.waiting})
    left = [change for change in left if not shown.waiting.intersection(change.paths)]
    regions = session.regions
    others = Counter(regions.of_all(change.paths) for change in left if change.path not in shown.marks)
    marked = [change.path for change in left if change.path in shown.marks]
    say(f"{stays_text(shown)}:")
    for region, (where, command) in _WHERE.items():
        if others[region]:
            say(f"  {others[region]} {where}: {command}")
    if with_marks:
        names = " ".join(in_shell(absolute(session.base.root, path)) for path in with_marks[:_PATHS_IN_HINT])
        names = names if len(with_marks) <= _PATHS_IN_HINT else "PATH…"
        out = f"take them out, then: yolofs commit {names}; or yolofs commit --ours {names}"
        say(f"  {len(with_marks)} with the marks of a merge: {out}")
    if marked:
        command = _command(session.base.root, marked) if len(marked) <= _PATHS_IN_HINT else "yolofs status"
        say(f"  {len(marked)} that {'have' if len(marked) > 1 else 'has'} to be named: {command}")
    if excluded:
        say(f"  {len(excluded)} left out by --exclude")
    if going_along:
        say(f"  {going_along} that {'go' if going_along > 1 else 'goes'} with what is named below")
    alike: dict[str, set[RelPath]] = {}
    for one in shown.held_back:
        if one.unnamed:
            alike.setdefault(one.why, set()).update(one.paths)
    if alike:
        say("what the host would run or trust, which stays unless it is named (or --trusted):")
    for reason, paths in alike.items():  # how to name them is said at the end
        why = reason if len(paths) == 1 else reason.replace("it has", "they have", 1)
        say(f"  {named_paths(sorted(paths), session.base.root)}: {why}")

    def show(path: RelPath) -> str:
        return display(session.base.path(path))

    def has_mark(one: HeldBack) -> bool:
        return any(path in shown.marks for path in one.paths)

    others_held_back = [one for one in shown.held_back if not one.unnamed]
    others_held_back.sort(key=has_mark, reverse=True)  # what the host would run or trust is named in any case
    trusted = " --trusted" if any(map(has_mark, others_held_back)) else ""
    for line in first_lines(
        others_held_back,
        lambda one: f"{named_paths(one.paths, session.base.root)}: {one.reason(show)}{_hint(session, one)}",
        f"that cannot go alone: yolofs status --scratch lists them, {_COMMIT_ALL}{trusted} takes them",
        most=_MOST_HELD_BACK,
    ):
        say(f"  {line}")


def _goes_along(change: Change, held_back: Collection[RelPath]) -> bool:
    """Tell whether a file is deleted with a directory that is held back, as it goes or something
    else takes its place.
    """
    above = split_path(change.path)[0] if change.new is None else b""
    while above and above not in held_back:
        above = split_path(above)[0]
    return bool(above)


def named_paths(paths: Sequence[RelPath], root: bytes) -> str:
    """Return the first of some paths, and how many more there are."""
    return some_of([display(absolute(root, path)) for path in paths], _PATHS_IN_HINT)


def _hint(session: Session, held_back: HeldBack) -> str:
    """Return the command that takes it, too."""
    paths: list[RelPath] = sorted({*held_back.paths, *held_back.needs})
    if not held_back.needs or len(paths) > MOST_LINES:
        return f"; {_COMMIT_ALL}"
    return f"; {_command(session.base.root, paths)}"


def _command(root: bytes, paths: Iterable[RelPath], options: Sequence[str] = ()) -> str:
    return " ".join(("yolofs commit", *options, *(in_shell(absolute(root, path)) for path in paths)))


def _next_command(
    root: bytes, paths: Sequence[RelPath], options: Sequence[str], *, is_later: bool, if_many: str
) -> str:
    """Return the command that takes the rest; with too many paths it is ``if_many``."""
    command = _command(root, paths, options) if len(paths) <= MOST_LINES else if_many
    return f"as it is now: {command}" if is_later else command


def emit_refusal(
    session: Session, shown: CommitPreview, conflicts: Sequence[RelPath], settled: Mapping[str, Any]
) -> None:
    """Write as a JSON document that nothing is done, as base has changed at ``conflicts``, too."""
    nothing = msgspec.structs.replace(shown, taken=[], stays=[*shown.taken, *shown.stays])
    emit_document(session, CommitResult(None, 0, {}, shown.held_back), nothing, conflicts, settled)


def emit_document(
    session: Session,
    result: CommitResult,
    shown: CommitPreview,
    conflicts: Sequence[RelPath],
    settled: Mapping[str, Any],
) -> None:
    """Write what a commit did as a JSON document; ``conflicts`` are the paths at which base had
    changed, too.

    ``settled`` are fields that tell what has become of such paths before.
    """
    root, regions = session.base.root, session.regions
    emit_json(
        {
            "commit": result.number,
            "steps": result.steps,
            "changes": [change_fields(change, root, regions, shown.marks) for change in shown.taken],
            "stays": [change_fields(change, root, regions, shown.marks) for change in shown.stays],
            "held": [
                {
                    "paths": [text_fields("path", absolute(root, path)) for path in one.paths],
                    "reason": one.reason(lambda path: display(absolute(root, path))),
                    "has_to_be_named": bool(one.unnamed),
                }
                for one in shown.held_back
            ],
            "host_code": host_code_fields([*shown.taken, *shown.stays], root, shown.marks),
            "excluded": [text_fields("path", absolute(root, path)) for path in sorted(shown.excluded.paths)],
            "conflicts": [text_fields("path", absolute(root, path)) for path in conflicts],
            "left_out": [
                {**text_fields("path", absolute(root, path)), "aspects": list(aspects)}
                for path, aspects in sorted(result.left_out.items())
            ],
            "held_hunks": [],
            "open_files": [],
            **settled,
        }
    )


def warn_of_left_out(left_out: Mapping[RelPath, tuple[str, ...]], root: bytes) -> None:
    """Say which metadata base has not got."""
    for path, aspects in sorted(left_out.items()):
        warn(f"{display(absolute(root, path))}: {', '.join(aspects)} could not be carried over")


def warn_of_unfinished(number: int | None, why: str) -> None:
    """Say so if a commit is done and only its journal could not be put away."""
    if why:
        warn(
            f"commit {number} is done, but its journal could not be put away: {why}; "
            "the next command does that first, so fix that (make room, for example), and then: yolofs status"
        )


def say_done(session: Session, result: CommitResult, shown: CommitPreview, *, was_told: bool) -> None:
    """Say what a commit did; what stays staged, and why, only in short if it ``was_told`` before
    the question.
    """
    if not was_told:
        say_unchanged(session, shown)
    warn_of_left_out(result.left_out, session.base.root)
    if result.number is None:
        say("nothing to commit")
    else:
        say(f"commit {result.number} done; to take it back: yolofs undo {result.number}")
        warn_of_unfinished(result.number, result.unfinished)
    if not was_told:
        say_stays(session, shown)
    elif shown.stays_told:
        say(f"{stays_text(shown)}: yolofs status")


def end_without_success_if(is_none: bool) -> None:
    """End without success if nothing is taken: whoever names paths expects that one of them is
    committed.
    """
    if is_none:
        raise click.exceptions.Exit(1)


def timeline_end_text(session: Session) -> str:
    """Return what ends with a commit, for the end of the question; empty if nothing does."""
    count = session.timeline.present
    if not count:
        return ""
    return f", and end the timeline ({count} generation{'s' if count > 1 else ''}, read only from then on)"
