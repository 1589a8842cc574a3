"""Names that an agent has chosen reach a terminal without a control character, whatever shows
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

EVIL = b"x\x1b]0;title\x07\x1b[2Jy"
NAMES = (EVIL, b"\xff\xfe\x9b31m", b"new\nline", b"two words", b"-dash", b"rtl\xe2\x80\xaename", b"colon:name")


@pytest.fixture
def hostile(yolofs: Program) -> Iterator[Program]:
    """Return the program in a project full of such names, all of them changed in the view."""
    top = os.fsencode(yolofs.project)
    os.mkdir(os.path.join(top, b"dir" + EVIL))
    for name in (*NAMES, b"dir" + EVIL + b"/inner" + EVIL):
        Path(os.fsdecode(os.path.join(top, name))).write_bytes(b"old\n")
    with yolofs.mounted() as view:
        for name in NAMES:
            Path(os.fsdecode(os.path.join(os.fsencode(view), name))).write_bytes(b"new " + EVIL + b"\n")
        (view / "link").symlink_to(os.fsdecode(EVIL))
        yield yolofs


def shown(yolofs: Program, *words: str | bytes, code: int = 0) -> str:
    """Return what a terminal gets."""
    with Terminal(
        yolofs.project, [*map(os.fsdecode, words)], size=(200, 60), NO_COLOR="1", YOLOFS_PAGER=""
    ) as terminal:
        assert terminal.wait() == code
        return terminal.seen


def check_harmless(text: str) -> None:
    assert {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e"} <= set("\r\n\t")


@pytest.mark.parametrize(
    "words",
    [
        "status", "diff", "diff --stat", "diff --name-only", "diff --list", "hunks", "hunks --list", "log -v",
        "ls :.", "ls -lR base:.", "ls -lR :.",
    ],
)  # fmt: skip
@pytest.mark.some(5)
def test_a_list_of_hostile_names_is_harmless_to_a_terminal(hostile: Program, words: str) -> None:
    text = shown(hostile, *words.split())
    check_harmless(text)
    assert "two words" in text


@pytest.mark.parametrize("name", points(NAMES, "names that are read", some=3))
def test_each_name_can_be_given_to_what_reads_versions(hostile: Program, name: bytes) -> None:
    assert shown(hostile, "cat", b"base:" + name) == "old\r\n"
    tries: list[list[str | bytes]] = [
        ["cat", b":" + name],
        ["ls", "-l", b":" + name],
        ["diff", b"base:" + name, b":" + name],
        ["diff", "--", name],
        ["log", "--", name],
        ["blame", "--", name],
    ]
    for words in tries:
        check_harmless(shown(hostile, *words))
    check_harmless(shown(hostile, "cat", b"base:nowhere" + name, code=2))
    check_harmless(shown(hostile, "diff", "--", b"nowhere" + name, code=2))
    check_harmless(shown(hostile, "travel", "base", b"--only=" + name))
    assert hostile("cat", b":" + name).out == "old\n"
