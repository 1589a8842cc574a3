"""Colours of source code, made by a process of their own: ``python -m yolofs.cli.review.lexing``.

A lexer consists of regular expressions, and a hostile file can make one of them run for ever.
Nothing in the same process could stop it.  Here the kernel ends it: each request has
:data:`LIMIT_S`.  Requests and answers are MessagePack, each behind its length in four bytes.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Sequence
from typing import BinaryIO

import msgspec

LIMIT_S = 1.0
"""How much CPU time one request may take: an idle lexer on a busy machine does no harm."""
MOST_CHARS = 32 << 10
"""Of a longer text only the beginning is coloured."""
LENGTH_BYTES = 4
_MOST_MEMORY = 1 << 30
_STYLES = {
    "Comment": "ansibrightblack",
    "Keyword": "ansiblue",
    "Literal.String": "ansiyellow",
    "Literal.Number": "ansicyan",
    "Name.Function": "ansibrightblue",
    "Name.Class": "ansibrightblue",
    "Name.Tag": "ansiblue",
    "Name.Attribute": "ansicyan",
    "Name.Decorator": "ansimagenta",
    "Name.Builtin": "ansicyan",
    "Operator.Word": "ansiblue",
}


class LexRequest(msgspec.Struct, frozen=True):
    """Texts to be coloured, each of some lines, by the name of their file."""

    number: int
    name: str
    texts: tuple[tuple[str, ...], ...]


StyledRuns = tuple[tuple[str, int], ...]
"""Of one line: styles (of prompt_toolkit, "" for none), each with how many characters it is for."""


class LexAnswer(msgspec.Struct, frozen=True):
    """The colours of the texts of a request."""

    number: int
    texts: tuple[tuple[StyledRuns, ...], ...]


def lex(name: str, lines: Sequence[str]) -> tuple[StyledRuns, ...]:
    """Return the colours of a text, for as many of its lines as there is time and room for; none if
    its language is not known.
    """
    from pygments.lexers import get_lexer_for_filename
    from pygments.token import Token
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ()
    text = "\n".join(lines)[:MOST_CHARS]
    found: list[list[tuple[str, int]]] = [[]]
    for kind, value in lexer.get_tokens(text):
        style = _style(str(kind).removeprefix(f"{Token}."))
        for at, part in enumerate(value.split("\n")):
            if at:
                found.append([])
            if part and found[-1] and found[-1][-1][0] == style:
                found[-1][-1] = style, found[-1][-1][1] + len(part)
            elif part:
                found[-1].append((style, len(part)))
    return tuple(map(tuple, found[: len(lines)]))


def _style(name: str) -> str:
    while name:
        if name in _STYLES:
            return _STYLES[name]
        name = name.rpartition(".")[0]
    return ""


def packed(message: LexRequest | LexAnswer) -> bytes:
    """Return a message as it is sent."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(LENGTH_BYTES) + data


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more; the kernel ends this process if one takes too
    long.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    import pygments.lexers  # noqa: F401 - not on the time of the first request

    while head := requests.read(LENGTH_BYTES):
        request = msgspec.msgpack.decode(requests.read(int.from_bytes(head)), type=LexRequest)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        texts: tuple[tuple[StyledRuns, ...], ...] = ()
        with contextlib.suppress(Exception):  # some lexers fail at some texts: then there are no colours
            texts = tuple(lex(request.name, text) for text in request.texts)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(packed(LexAnswer(request.number, texts)))
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
