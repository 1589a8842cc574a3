"""Asks as JSON."""

from __future__ import annotations

from typing import Any

from yolofs.daemon.rpc.ask_messages import AskInfo, ProcessInfo
from yolofs.daemon.rpc.protocol import unquote
from yolofs.text.json_text import command_fields, text_fields


def ask_fields(ask: AskInfo) -> dict[str, Any]:
    """Return an ask in the form in which documents and scripts see it."""
    rule = ask.rule
    return {
        "id": ask.id,
        "group": ask.group,
        **text_fields("path", unquote(ask.path)),
        "operation": ask.operation,
        "state": ask.state.value,
        "rule": {**text_fields("key", unquote(rule.key)), "source": rule.source} if rule is not None else None,
        "size": ask.size,
        "process": _process_fields(ask.process),
        "parent": _process_fields(ask.parent),
        "run": ask.run or None,
        "is_started_by_run": ask.is_started_by_run,
        "requesters": ask.requesters,
        "since_ns": ask.since_ns,
        "left_ms": ask.left_ms,
        **text_fields("widest", unquote(ask.widest)),
    }


def _process_fields(process: ProcessInfo) -> dict[str, Any]:
    return {
        "pid": process.pid,
        **text_fields("name", unquote(process.name)),
        **command_fields("command", map(unquote, process.command)),
    }
