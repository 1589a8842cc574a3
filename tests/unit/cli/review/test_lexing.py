"""Colours come from a process that the kernel ends if a file keeps it busy."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from yolofs.cli.review import lexing
from yolofs.cli.review.lexing import LENGTH_BYTES, LexAnswer, LexRequest, lex, packed


def test_python_has_colours_line_by_line() -> None:
    assert lex("a.py", ["def f():", "    return 1"]) == (
        (("ansiblue", 3), ("", 1), ("ansibrightblue", 1), ("", 3)),
        (("", 4), ("ansiblue", 6), ("", 1), ("ansicyan", 1)),
    )


def test_a_name_that_no_language_has_gets_no_colours() -> None:
    assert lex("data.unknown-suffix", ["x"]) == ()


def test_requests_are_answered_one_after_the_other() -> None:
    requests = b"".join(packed(LexRequest(number, "a.py", (("x = 1",), ()))) for number in (1, 2))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "yolofs.cli.review.lexing"], input=requests, capture_output=True, check=True
    )
    length = int.from_bytes(done.stdout[:LENGTH_BYTES])
    answer = msgspec.msgpack.decode(done.stdout[LENGTH_BYTES : LENGTH_BYTES + length], type=LexAnswer)
    assert (answer.number, len(answer.texts)) == (1, 2)
    assert len(done.stdout) == 2 * (LENGTH_BYTES + length)


def test_a_lexer_that_does_not_end_is_ended(tmp_path: Path) -> None:
    code = (
        "import re, sys\n"
        "from yolofs.cli.review import lexing\n"
        "lexing.LIMIT_S = 0.2\n"
        "lexing.lex = lambda name, lines: re.match(r'(a+)+$', 'a' * 64 + 'b')\n"
        "lexing.serve(sys.stdin.buffer, sys.stdout.buffer)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=packed(LexRequest(1, "a.py", (("x",),))),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b""
    assert done.returncode == -signal.SIGPROF


@pytest.mark.parametrize("chars", [lexing.MOST_CHARS + 10])
def test_only_the_beginning_of_a_long_text_is_coloured(chars: int) -> None:
    (line,) = lex("a.txt", ["x" * chars])
    assert sum(count for _, count in line) == lexing.MOST_CHARS
