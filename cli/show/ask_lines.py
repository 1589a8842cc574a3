"""Asks in words.  Whatever a program may have chosen (paths, names, arguments) is shown so that it
can do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from yolofs.daemon.rpc.ask_messages import AskInfo
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


def _word(word: bytes) -> str:
    """Return an argument in quotes where its end would not be seen."""
    shown = display(word)
    return f'"{shown}"' if not shown.startswith('"') and (not shown or " " in shown) else shown
