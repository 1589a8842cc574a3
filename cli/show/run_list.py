"""The runs of a session as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yolofs.audit.runs import Run
from yolofs.cli.options import options
from yolofs.cli.output import emit, local_time, paint, say
from yolofs.cli.show.json_forms import command_fields, text_fields
from yolofs.cli.show.run_lines import command_line, fitting_command, run_result
from yolofs.paths import display
from yolofs.session.history.chapters import Chapter, chapter_of


def emit_runs(runs: Sequence[Run], found: Sequence[Chapter], *, is_mounted: bool) -> None:
    """Write a line for each run, dimmed if a commit has come after it; ``found`` are all chapters
    of the session.
    """
    if not runs:
        say("nothing has been run yet")
    made = [_made(run, chapter_of(run, found)) for run in runs]
    width = max(map(len, made), default=0)
    for run, text in zip(runs, made, strict=True):
        chapter = chapter_of(run, found)
        line = _line(run, f"{text:<{width}}", _command(run, chapter), is_mounted=is_mounted)
        emit(line if chapter is not None and chapter.commit is None else paint(line, "dim"))


def _made(run: Run, chapter: Chapter | None) -> str:
    """Return which generation a run made, or which commit came after it: nobody can travel to the
    generation then.
    """
    if chapter is None:
        return ""
    if chapter.commit is not None:
        return f"commit {chapter.commit}"
    after = chapter.generation(run.end.after) if run.end is not None else None
    return f"generation {after}" if after is not None else ""


def _command(run: Run, chapter: Chapter | None) -> tuple[bytes, ...]:
    """Return the command line of a run.  Inside a sandbox it may be another agent's, so only the
    name of the generation that it made is returned.
    """
    if options().guard is None:
        return run.command
    after = chapter.generation(run.end.after) if chapter is not None and run.end is not None else None
    return (chapter.journal.markers[after - 1].marker.name,) if chapter is not None and after else ()


def _line(run: Run, made: str, words: Sequence[bytes], *, is_mounted: bool) -> str:
    code, took = run_result(run, goes_on=is_mounted)  # no run outlives its mount
    if code == "goes on":
        code, took = "", code
    command = command_line(words) if options().guard is None else " ".join(map(display, words))  # there a name
    head = f"{run.number:>4}  {local_time(run.start.time_ns)}  {took:>9}  {code:<8}  {made}  "
    return (head + fitting_command(command, len(head))).rstrip()


def run_fields(run: Run, found: Sequence[Chapter]) -> dict[str, Any]:
    """Return a run for ``--json``."""
    end = run.end
    chapter = chapter_of(run, found)
    return {
        "run": run.number,
        **command_fields("command", _command(run, chapter)),
        **text_fields("directory", run.directory if options().guard is None else b""),
        "start_ns": run.start.time_ns,
        "end_ns": end.time_ns if end is not None else None,
        "code": end.code if end is not None else None,
        "before": chapter.generation(run.start.before) if chapter is not None else None,
        "after": chapter.generation(end.after) if chapter is not None and end is not None else None,
        "commit": chapter.commit if chapter is not None else None,
    }
