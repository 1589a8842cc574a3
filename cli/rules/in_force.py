"""The rules as commands need them: those of the mount, or, if there is none, those that a mount
would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from yolofs.cli.guard import RuleGuard
from yolofs.cli.options import options
from yolofs.cli.output import warn
from yolofs.cli.project.connection import connected
from yolofs.cli.project.project import session_directory
from yolofs.rules import RuleBook, RuleSet, Sources

if TYPE_CHECKING:  # takes long, and with a mount nobody reads the files
    from yolofs.rules.rule_files import RuleFiles


def sources_in_force(project: bytes) -> Sources:
    """Return the rules in force.

    Raises:
        ConfigError: there is no mount, and one of the files that rules come from is not in order.
    """
    return _mounted(project) or read_rule_files(project).sources()


def read_rule_files(project: bytes) -> RuleFiles:
    """Return the files that rules come from, as they are now.

    Raises:
        ConfigError: one of them is not in order.
    """
    files = _files(project)
    files.load()
    return files


def hiding(project: bytes, *, shows_all: bool = False) -> RuleGuard | None:
    """Return what tells which paths the user has had hidden; None if ``shows_all``, or if
    somebody's guard tells.

    Without a mount, a file that is not in order has no rules, and a warning says so.
    """
    if shows_all or options().guard is not None:
        return None
    return guard_by((_mounted(project) or files_in_order(project).sources()).sets())


def files_in_order(project: bytes) -> RuleFiles:
    """Return the files that rules come from; one that is not in order has no rules, and a warning
    says so.
    """
    files = _files(project)
    files.reload()
    for problem in files.problems.values():
        warn(f"{problem}; what its rules would hide is shown")
    return files


def guard_by(rules: Iterable[RuleSet]) -> RuleGuard:
    """Return what judges by some rules, nearest first."""
    return RuleGuard(RuleBook(*rules))


def _files(project: bytes) -> RuleFiles:
    from yolofs.rules.rule_files import RuleFiles

    return RuleFiles(project, session_directory(project))


def _mounted(project: bytes) -> Sources | None:
    with connected(project) as client:
        return client.rules() if client is not None else None
