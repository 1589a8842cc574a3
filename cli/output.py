"""The one way out: data to stdout, talk to stderr; colours, questions and progress where a person
is watching.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from yolofs.errors import UsageError, YolofsError
from yolofs.progress import Progress
from yolofs.text.characters import replace_harmful
from yolofs.text.json_text import encode_json

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_COLUMNS = 80
"""Of a terminal that does not say."""


def prepare() -> None:
    """Make stdout and stderr take any text: what the terminal cannot show is escaped, not an
    error.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


# ---- data


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Have it said of stdout if the system does not write there."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = "make room where the output goes; what was done: yolofs log, yolofs commits"
        raise YolofsError(f"the output cannot be written: {error.strerror}", hint=hint) from error


def emit(text: str = "") -> None:
    """Write a line of data.  What could harm a terminal is spelled out, as in all that is said."""
    with _writing():
        sys.stdout.write(replace_harmful(text) + "\n")


def emit_number(number: int, sentence: str) -> None:
    """Write a number for programs to stdout, and a sentence for people to stderr; on a terminal the
    sentence alone.
    """
    if not sys.stdout.isatty():
        emit(str(number))
    say(sentence)


def emit_bytes(data: bytes) -> None:
    """Write data as it is."""
    with _writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def flush() -> None:
    """Have all data written that was emitted.

    Raises:
        YolofsError: it cannot be.
        BrokenPipeError: nobody reads it.
    """
    with _writing():
        sys.stdout.flush()


def emit_json(document: Any) -> None:
    """Write one JSON document, indented."""
    emit_bytes(encode_json(document, indent=2) + b"\n")


def emit_json_list(key: str, items: Iterable[Any]) -> None:
    """Write one JSON document, an object whose only ``key`` is a list, item by item: it may be
    long.
    """
    emit_bytes(b"{\n  %b: [" % encode_json(key))
    before = b"\n    "
    for item in items:
        emit_bytes(before + encode_json(item))
        before = b",\n    "
    emit_bytes(b"\n  ]\n}\n")


def emit_json_line(document: Any) -> None:
    """Write one JSON document on one line."""
    emit_bytes(encode_json(document) + b"\n")


# ---- talk


def say(text: str) -> None:
    """Tell the user something that is not data."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        pass  # the end of the command tells it: this may be in the middle of work
    sys.stderr.write(replace_harmful(text) + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """Tell the user something that should be looked into."""
    say(paint("warning: ", "yellow", stream=sys.stderr) + text)


def fail(message: str, hint: str, details: Sequence[str] = ()) -> None:
    """Tell the user why a command failed, with a line for each detail, and a hint."""
    say(paint("yolofs: ", "red", stream=sys.stderr) + message)
    for line in details:
        say(f"  {line}")
    if hint:
        say(paint("hint: ", "cyan", stream=sys.stderr) + hint)


def can_ask() -> bool:
    """Tell whether somebody is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def check_can_ask(*, instead: str) -> None:
    """Raise unless somebody is there to answer a question.

    Raises:
        UsageError: there is no terminal; the hint says what to do ``instead``.
    """
    if not can_ask():
        raise UsageError("this needs an answer, and there is no terminal to ask at", hint=instead)


def ask(question: str) -> bool:
    """Ask a question at the terminal; only a ``y`` says yes to it."""
    return _read_line(f"{question} [y/N]").strip().lower() in ("y", "yes")


def read_answer(question: str) -> str | None:
    """Ask something at the terminal; return the answer without the space around it, None at the end
    of the input.
    """
    answer = _read_line(question)
    return answer.strip() if answer else None


def choose(question: str, letters: str) -> str:
    """Ask at the terminal for one of some letters until one is given; at the end of the input it is
    the last one.
    """
    while (answer := _read_line(question)).endswith("\n"):
        word = answer.strip().lower()
        if word and word[0] in letters:
            return word[0]
        say(f"one of these letters: {', '.join(letters)}")
    return letters[-1]


def _read_line(question: str) -> str:
    """Ask at the terminal and return what is typed, with its newline if there is one."""
    sys.stdout.flush()
    sys.stderr.write(f"{replace_harmful(question)} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    return answer


@contextlib.contextmanager
def progress(label: str) -> Iterator[Progress | None]:
    """Show how far long work has come, once it takes a moment; None where nobody is watching."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from yolofs.cli.progress import bar

    with bar(label) as update:
        yield update


@contextlib.contextmanager
def phases() -> Iterator[Callable[[str], Progress | None]]:
    """Give what begins to show, as :func:`progress` does, how far another part of the work has
    come.
    """
    with contextlib.ExitStack() as shown:

        def begin(label: str) -> Progress | None:
            shown.close()
            return shown.enter_context(progress(label))

        yield begin


# ---- looks


def has_colour(stream: TextIO) -> bool:
    """Tell whether to colour what goes to ``stream``: on a terminal, unless NO_COLOR or TERM=dumb
    say otherwise.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return how many columns the terminal has that ``stream`` (stdout) is, None if it is none."""
    shows: TextIO = sys.stdout if stream is None else stream
    if not shows.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(shows.fileno()).columns or _COLUMNS
    return _COLUMNS


def has_unicode() -> bool:
    """Tell whether stdout can show line drawing characters."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def paint(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """Return ``text`` in the given styles (see the table above), if ``stream`` (stdout) shows
    colours.
    """
    if not styles or not text or not has_colour(stream or sys.stdout):
        return text
    codes = ";".join(_STYLES[style] for style in styles)
    return f"\x1b[{codes}m{text}\x1b[0m"


def local_time(time_ns: int) -> str:
    """Return a time to the second, in the user's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ns // 1_000_000_000))
