"""The generations of a session as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from yolofs.cli.history.chapter_span import told_ns
from yolofs.cli.history.visible_records import count_since, segment_counts
from yolofs.cli.options import options
from yolofs.cli.output import emit, has_unicode, local_time, paint
from yolofs.cli.show import graph
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.run_lines import fitting_command
from yolofs.journal.timeline import GenerationInfo, GenerationKind
from yolofs.paths import display
from yolofs.session.history.chapters import Chapter
from yolofs.session.session import Session


def emit_timeline(session: Session, earlier: Sequence[Chapter]) -> None:
    """Write the generations that earlier commits have ended, then those of the present journal."""
    nodes = session.timeline.nodes(segment_counts(session))
    signs = graph.UNICODE if has_unicode() else graph.ASCII
    commit_ns: int | None = None
    for chapter in earlier:
        _emit_chapter(chapter, signs, commit_ns)
        commit_ns = chapter.ended_ns
    number_width = len(str(nodes[-1].number))
    for node, row in zip(nodes, graph.draw_graph(nodes, signs), strict=True):
        emit(_painted(_line(f"{row.beside}  {node.number:>{number_width}}  ", node, commit_ns), node))
        if row.below:
            emit(row.below)
    _emit_rest(session)


def _emit_chapter(chapter: Chapter, signs: graph.Signs, commit_ns: int | None) -> None:
    """Write what led to a commit, without the steps of one of hunks; ``commit_ns``: when the commit
    before it was done.
    """
    nodes = _nodes(chapter)[: chapter.count_seen + 1]
    width = len(str(nodes[-1].number))
    for node, row in zip(nodes, graph.draw_graph(nodes, signs), strict=True):
        emit(paint(_line(f"{row.beside}  {node.number:>{width}}  ", node, commit_ns), "dim"))
        if row.below:
            emit(paint(row.below, "dim"))
    when = f"{local_time(chapter.ended_ns)}  " if chapter.ended_ns is not None else ""
    emit(paint(f"{when}commit {chapter.commit}", "dim"))


def _nodes(chapter: Chapter) -> list[GenerationInfo]:
    """Return the generations of a chapter, none of which is the present any more."""
    counts = chapter.journal.segment_counts() if options().guard is None else None
    return [structs.replace(node, is_present=False) for node in chapter.timeline.nodes(counts)]


def _line(head: str, node: GenerationInfo, commit_ns: int | None) -> str:
    """Return the line of a generation.  On a terminal its name is cut where the line would be too
    wide.
    """
    when = local_time(told_ns(node.time_ns, node.number, commit_ns)) if node.kind is not GenerationKind.BASE else ""
    name, end = display(node.name) if node.name else "", ""
    if node.kind is GenerationKind.BASE:
        head, name = f"{head}base", ""
    elif node.is_anew:
        head, name = f"{head}{when}  all written anew", ""
    elif node.kind is GenerationKind.TRAVEL:
        head += f"{when}  travel to {node.target}"
        head, end = (f"{head} (", ")") if name else (head, "")
    else:
        head, name = f"{head}{when}  ", name or "snapshot"
        end = f", {_count(node.record_count)}" if node.record_count is not None else ""
    marks = ([] if node.is_live else ["dead"]) + (["present"] if node.is_present else [])
    end += f"  [{', '.join(marks)}]" if marks else ""
    return head + (fitting_command(name, len(head + end)) if name else "") + end


def _painted(text: str, node: GenerationInfo) -> str:
    if node.is_present:
        return paint(text, "bold")
    return text if node.is_live else paint(text, "dim")


def _emit_rest(session: Session) -> None:
    """Say how much has happened since the last generation."""
    count = count_since(session)
    if count:
        emit(f"and {_count(count)} since, not snapshotted yet")


def _count(records: int) -> str:
    return f"{records} record{'' if records == 1 else 's'}"


def timeline_document(session: Session, earlier: Sequence[Chapter]) -> dict[str, Any]:
    """Return the JSON document of a timeline."""
    nodes = session.timeline.nodes(segment_counts(session))
    return {
        "present": session.timeline.present,
        "records_since": count_since(session),
        "generations": [_fields(node) for node in nodes],
        "earlier": [
            {
                "commit": chapter.commit,
                "time_ns": chapter.ended_ns,
                "generations": [_fields(node) for node in _nodes(chapter)],
            }
            for chapter in earlier
        ],
    }


def _fields(node: GenerationInfo) -> dict[str, Any]:
    return {
        "number": node.number,
        "kind": node.kind.value,
        **text_fields("name", node.name),
        "time_ns": node.time_ns,
        "parent": node.parent,
        "base": node.base,
        "target": node.target,
        "anew": node.is_anew,
        "live": node.is_live,
        "present": node.is_present,
        "records": node.record_count,
    }
