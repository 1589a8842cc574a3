"""One line about what in `.yolofs.toml` is not in force until the user agrees to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from yolofs.cli.output import warn
from yolofs.cli.project.which_project import session_directory
from yolofs.errors import ConfigError

if TYPE_CHECKING:  # takes long, and hardly a command comes here
    from yolofs.config.trust import WaitingLine
    from yolofs.rules.rule_files import RuleFiles


def say_what_waits(count: int) -> None:
    """Tell how many lines wait, if any do."""
    if count:
        from yolofs.config.trust import NEXT, count_text

        warn(f"{count_text(count)}: {NEXT}")


def say_what_waits_about(setting: str, project: bytes) -> Sequence[WaitingLine]:
    """Tell how many lines about a setting wait, if any do, and return them.  Of a file that is not
    in order there are none, and nothing is said.
    """
    try:
        waiting = [line for line in waiting_lines(project) if line.key[0] == setting]
    except ConfigError:  # opening the session tells it
        return ()
    if waiting:
        from yolofs.config.trust import NEXT, count_text

        warn(f"{count_text(len(waiting), about=f' about {setting}')}: {NEXT}")
    return waiting


def waiting_or_warned(project: bytes, *, warned: Iterable[str] = ()) -> tuple[WaitingLine, ...]:
    """Return the lines that wait; of a file that is not in order there are none, and a warning says
    so.

    ``warned``: what has been said already, or is about to be.
    """
    try:
        return waiting_lines(project)
    except ConfigError as error:
        if not any(text.startswith(error.message) for text in warned):
            warn(error.message)
        return ()


def waiting_lines(project: bytes) -> tuple[WaitingLine, ...]:
    """Return the lines that wait, as the file is now.

    Raises:
        ConfigError: one of the files that rules come from is not in order.
    """
    from yolofs.registry.trust import load_in_force

    loaded = load_in_force(project, session_directory(project))
    if not loaded.written.rules and not loaded.waiting:
        return ()
    return lines_to_agree_to(project)[1]


def lines_to_agree_to(project: bytes) -> tuple[RuleFiles, tuple[WaitingLine, ...]]:
    """Return the files of a project, and the lines of its own that have to be agreed to.

    Raises:
        ConfigError: one of the files is not in order.
    """
    from yolofs.cli.project.connection import connected
    from yolofs.rules import Level, RuleSet
    from yolofs.rules.rule_files import RuleFiles

    files = RuleFiles(project, session_directory(project))
    files.load()
    with connected(project) as client:
        sources = client.rules() if client is not None else None
    answers = RuleSet(sources.rules_of(Level.SESSION)) if sources is not None else RuleSet()
    return files, files.lines_to_agree_to(answers)


def waiting_fields(waiting: Sequence[WaitingLine]) -> list[dict[str, Any]]:
    """Return what waits for ``--json``."""
    return [{"line": one.line, "key": list(one.key), "text": one.shown, "opens": one.opens} for one in waiting]
