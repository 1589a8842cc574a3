"""Asks in words.  Whatever a program may have chosen (paths, names, arguments) is shown so that it
can do no harm.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from yolofs.cli.output import paint
from yolofs.daemon.rpc.ask_messages import AnswerResult, AskInfo
from yolofs.daemon.rpc.protocol import unquote
from yolofs.paths import display
from yolofs.system.disk_usage import size_text

_VERBS = {
    "read": "read",
    "write": "write to",
    "create": "create",
    "delete": "delete",
    "rename": "rename (from or to)",
    "link": "link",
    "metadata": "change the metadata of",
    "execute": "execute",
    "list": "list",
}

UNKNOWN_NAMES = "other names (hard links) that were not found, and rules may be about these"


def question_text(ask: AskInfo) -> str:
    """Return what is wanted."""
    return f"{verb(ask)} {path_text(ask)}{stake_text(ask)}"


def stake_text(ask: AskInfo) -> str:
    """Return what stands behind a path that is to be changed: how much there is now, if there is a
    file.
    """
    return f"  ({size_text(ask.size)} there now)" if ask.size is not None else ""


def verb(ask: AskInfo) -> str:
    """Return what is to be done to the path."""
    return _VERBS.get(ask.operation, ask.operation)


def path_text(ask: AskInfo) -> str:
    """Return the path."""
    return display(unquote(ask.path))


def process_text(ask: AskInfo) -> str:
    """Return who asks."""
    if not ask.process.pid:
        return "a process that cannot be seen"
    others = f" and {ask.requesters - 1} more" if ask.requesters > 1 else ""
    return f"{display(unquote(ask.process.name)) or '?'}, process {ask.process.pid}{others}"


def command_text(command: Sequence[str]) -> str:
    """Return a command line."""
    return " ".join(_word(unquote(word)) for word in command) or "(its command line cannot be read)"


def rule_text(ask: AskInfo) -> str:
    """Return why it is asked."""
    if ask.rule is None:
        return "asked, as no rule is about it"
    if ask.rule.state.may_write and ask.state is not ask.rule.state:
        return f"asked, as the file has {UNKNOWN_NAMES}"
    return f'asked, as {display(unquote(ask.rule.key))} is "{ask.rule.state.value}" ({ask.rule.source})'


def group_lines(asks: Iterable[AskInfo]) -> Iterator[str]:
    """Yield the asks group by group: what each wants, then which process asks, and why."""
    for _, members in groupby(sorted(asks, key=lambda ask: (ask.group, ask.id)), key=lambda ask: ask.group):
        group = list(members)
        first = group[0]
        for ask in group:
            yield f"{ask.id:>4}  {paint(question_text(ask), 'bold')}"
        waited_s = max(time.time_ns() - first.since_ns, 0) // 1_000_000_000
        yield f"      {process_text(first)}, waits for {waited_s} s, {first.left_ms // 1000} s left"
        yield f"      {command_text(first.process.command)}"
        for why in dict.fromkeys(map(rule_text, group)):
            yield f"      {why}"


def answer_lines(decision: str, result: AnswerResult) -> Iterator[str]:
    """Yield the effect of an answer: the asks that it ended, and those still open.

    ``decision`` is ``allow`` or ``deny``.
    """
    yield f"{'allowed' if decision == 'allow' else 'denied'} {ids_text(result.answered)}"
    if result.left:
        yield f"of these, {ids_text(result.left)} only once: nearer rules, or other names of the file, still ask"
    if result.unseen:
        yield f"of its group {ids_text(result.unseen)} came up since, and still wait: yolofs asks"


def ids_text(ids: Sequence[int]) -> str:
    """Return ascending ids as text; a run without a gap by its first and last id."""
    runs: list[list[int]] = []
    for ask_id in ids:
        if runs and runs[-1][-1] == ask_id - 1:
            runs[-1].append(ask_id)
        else:
            runs.append([ask_id])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _word(word: bytes) -> str:
    """Return an argument in quotes where its end would not be seen."""
    shown = display(word)
    return f'"{shown}"' if not shown.startswith('"') and (not shown or " " in shown) else shown
