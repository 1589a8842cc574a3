"""``yolofs log``."""

from __future__ import annotations

import click

from yolofs.audit.runs import find_run
from yolofs.cli.completion.completing import runs
from yolofs.cli.history.chapter_span import ChapterSpan
from yolofs.cli.history.earlier_history import chapters_told
from yolofs.cli.history.earlier_names import EarlierNames
from yolofs.cli.history.history_items import LeftOut, WantedHistory
from yolofs.cli.history.history_lines import documents, emit_all, emit_short
from yolofs.cli.history.missing_paths import check_somewhere
from yolofs.cli.history.ranges import ALL, PathsCommand, paths_given, range_and_paths, ranges_and_paths
from yolofs.cli.output import emit_json_list
from yolofs.cli.project.project import find_project, reading, relative_paths
from yolofs.cli.show.listing import say_left_out


@click.command(cls=PathsCommand)
@click.argument("words", metavar="[RANGE]", nargs=-1, shell_complete=ranges_and_paths)
@click.option(
    "--run", "run", type=int, metavar="N", shell_complete=runs, help="Print only run N, with asks and refusals."
)
@click.option("--scratch", is_flag=True, help="Include what was done in scratch directories.")
@click.option(
    "-v", "--verbose", "is_verbose", is_flag=True, help="Print each record, ask, refusal and change of a rule, too."
)
@click.option("--json", "as_json", is_flag=True, help="Print all of it as a JSON document.")
def command(words: tuple[str, ...], run: int | None, scratch: bool, is_verbose: bool, as_json: bool) -> None:
    """Print what happened: runs, snapshots, travels, commits, aborts.

    It prints a line for each, oldest first; on a terminal it cuts long commands. With -v,
    --scratch, --run or PATH it also prints each record, ask, refusal and change of a rule; it
    counts equal refusals. A PATH also stands for what it was called before renames. RANGE is as for
    `yolofs diff`, but means the time between two generations. A branch that a travel has left is
    marked as dead. Without --scratch, log leaves out records about scratch directories unless PATH
    names them.

    Without RANGE it begins with what happened before the commits that are kept (see the setting
    keep_commits), dimmed. Generations from before a commit have numbers of their own. You can look
    at them, but not travel to them; `yolofs undo` takes a commit back.
    """
    with reading(find_project()) as session, chapters_told(session) as found:
        if run is not None:
            find_run(session.directory, run)
        range_text, typed = range_and_paths(session, words, paths_given())
        start, end = session.timeline.parse_range(range_text)
        spans = [ChapterSpan(found[-1], start, end)]
        if range_text == ALL:
            spans = [ChapterSpan(chapter, start, None, chapter.dropped) for chapter in found]
        paths = relative_paths(session, typed)
        check_somewhere(session, paths, typed)
        wanted = WantedHistory(session, paths, EarlierNames(spans, paths, session.base.root), run)
        left_out = LeftOut(session.regions if not (scratch or wanted.paths) else None)
        if as_json:
            emit_json_list("records", documents(spans, wanted, left_out))
        elif is_verbose or scratch or wanted.paths or run is not None:
            emit_all(spans, wanted, left_out)
            say_left_out(left_out.count, "record")
        else:
            emit_short(spans, session)
