"""A run in words: its command, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable

from yolofs.audit.runs import Run
from yolofs.cli.output import terminal_width
from yolofs.paths import in_shell
from yolofs.text.characters import is_harmless

_LEAST_OF_COMMAND = 8
"""So many cells a command gets on a narrow terminal, too."""


def command_line(words: Iterable[bytes]) -> str:
    """Return a command as a shell would take it, on one line: where a word ends can be seen."""
    return " ".join(map(_word, words))


def _word(word: bytes) -> str:
    import shlex  # takes a while, and most commands do without

    text = word.decode(errors="replace")
    is_plain = text.isprintable() and is_harmless(text) and text.encode() == word
    return shlex.quote(text) if is_plain else in_shell(word)


def fitting_command(text: str, beside: int) -> str:
    """Return a command, or a name, cut if stdout is a terminal and a line of it and ``beside``
    other cells would be too wide.
    """
    if (columns := terminal_width()) is None:
        return text
    from yolofs.cli.show.text_width import cut_end  # for terminals alone

    return cut_end(text, max(columns - beside, _LEAST_OF_COMMAND))


def run_result(run: Run, *, goes_on: bool = True) -> tuple[str, str]:
    """Return how a run ended and how long it took; of one without an end whether it ``goes_on``."""
    if run.end is None:
        return ("goes on", "") if goes_on else ("killed", "")
    took = f"{(run.end.time_ns - run.start.time_ns) / 1e9:.1f} s"
    return (f"exit {run.end.code}" if run.end.code is not None else "killed"), took
