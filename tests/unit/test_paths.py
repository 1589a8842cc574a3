"""Paths as a terminal shows them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.required import do_without
from yolofs.paths import absolute, display, in_shell


@pytest.mark.parametrize("name", ["/a/b", "a b", "/a b/c d", "é", "日本語", "❤️.txt", "", "/", "cafe\u0301"])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert display(name.encode()) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\n\x1b[31m", '"a\\n\\033[31m"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("/t/ ", '"/t/ "'),
        (" /t", '" /t"'),
        ("/t/ x/y", '"/t/ x/y"'),
        ("/t/x /y", '"/t/x /y"'),
        ("/t/\u1160", '"/t/\\341\\205\\240"'),
        ("/t/\u3164", '"/t/\\343\\205\\244"'),
        ("/t/\u2800x", '"/t/\\342\\240\\200x"'),
        ("/t/\ufe0f", '"/t/\\357\\270\\217"'),
        ("a\ufe0f", '"a\\357\\270\\217"'),
        ("é\ufe00\ufe0f", '"\\303\\251\\357\\270\\200\\357\\270\\217"'),
    ],
)
def test_a_path_that_could_be_taken_for_something_else_is_quoted(name: str, shown: str) -> None:
    assert display(name.encode()) == shown


def test_bytes_that_are_no_text_are_escaped() -> None:
    assert display(b"caf\xe9 \xff") == '"caf\\351 \\377"'


@pytest.mark.parametrize(
    "path",
    [
        b"/p/a b",
        b"/p/it's",
        b"/p/a\nb",
        b"/p/\xff\xfe'",
        b"/p/$HOME",
        b"/p/\xc3\xbc",
        b'/p/"\\',
        b"/p/a ",
        b"/p/\x1b1",
        b"-",
    ],
)
def test_a_path_for_a_command_line_is_the_same_to_a_shell(path: bytes) -> None:
    printed = in_shell(path)
    assert printed.isprintable()
    assert subprocess.run(["bash", "-c", f"printf %s {printed}"], stdout=subprocess.PIPE, check=True).stdout == path


@pytest.mark.parametrize("shell", ["sh", "bash", "fish"])
@pytest.mark.parametrize("path", [b"/p/it's", b'/p/it\'s a "file"', b"/p/a ", b"/p/a\\b", b"/p/$HOME `x` !y"])
def test_a_path_that_shows_is_the_same_to_every_shell(path: bytes, shell: str) -> None:
    if shutil.which(shell) is None:
        do_without(f"there is no {shell}")
    printed = subprocess.run([shell, "-c", f"printf %s {in_shell(path)}"], stdout=subprocess.PIPE, check=True).stdout
    assert printed == path


def test_a_plain_path_for_a_command_line_stays_as_it_is() -> None:
    assert in_shell(b"/p/a.c") == "/p/a.c"


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [(b"/", b"", b"/"), (b"/", b"a/b", b"/a/b"), (b"/r", b"", b"/r"), (b"/r", b"a", b"/r/a")],
)
def test_a_path_of_base_becomes_absolute(root: bytes, path: bytes, expected: bytes) -> None:
    assert absolute(root, path) == expected
