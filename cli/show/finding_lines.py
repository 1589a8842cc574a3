"""What ``yolofs doctor`` has found: as lines for people, and as JSON for programs."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from yolofs.cli.output import emit, paint


class Health(enum.Enum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class CheckFinding(NamedTuple):
    """What a check found, and what to do about it."""

    check: str
    level: Health
    message: str
    advice: str = ""


_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "red"}


def has_failed(findings: Iterable[CheckFinding]) -> bool:
    """Tell whether anything fails."""
    return any(finding.level is Health.FAIL for finding in findings)


def emit_findings(findings: Iterable[CheckFinding], *, only_problems: bool) -> None:
    """Write each finding in a line, and what to do about it in a second one; with
    ``only_problems`` only those that are not in order.
    """
    for finding in findings:
        if only_problems and finding.level is Health.OK:
            continue
        emit(f"{paint(f'{finding.level.value:<4}', _COLOURS[finding.level])}  {finding.check}: {finding.message}")
        if finding.advice:
            emit(f"      {finding.advice}")


def findings_document(findings: Sequence[CheckFinding]) -> dict[str, Any]:
    """Return all findings for ``--json``."""
    return {"findings": [_fields(finding) for finding in findings], "ok": not has_failed(findings)}


def _fields(finding: CheckFinding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level.value,
        "message": finding.message,
        "advice": finding.advice,
    }
