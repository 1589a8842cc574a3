"""What a terminal must not get, and what is shown instead."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolofs.paths import display
from yolofs.text.characters import escape_json, harmless, is_harmless, replace_harmful, toml_string
from yolofs.text.json_text import encode_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é日\U0001f600", "plain é日\U0001f600"),
        ("\x1b[2J", "^[[2J"),
        ("\x7f\x00", "^?^@"),
        ("\x9b31m", "<9b>31m"),
        ("a\u202eb", "a<202e>b"),
        ("a\u2066b\u2069", "a<2066>b<2069>"),
        ("\u200b\ufeff\u2028", "<200b><feff><2028>"),
        ("\U000e0041", "<e0041>"),
        ("\udc9b\udcff", "<9b><ff>"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("a\ufe0f", "a<fe0f>"),
    ],
)
def test_harmful_characters_are_shown_by_their_numbers(text: str, shown: str) -> None:
    assert harmless(text) == shown
    assert replace_harmful(text) == shown
    assert is_harmless(text) is (text == shown)


def test_lines_tabs_and_our_own_colours_stay_and_others_colours_do_not() -> None:
    text = "\x1b[1;31ma\tb\x1b[0m\nc\x1b[8m\x1b[1;31;8m\x1b[38;5;1m\r"
    assert replace_harmful(text) == "\x1b[1;31ma\tb\x1b[0m\nc^[[8m^[[1;31;8m^[[38;5;1m^M"


@pytest.mark.parametrize(
    "text", ["\x7f", "\x9b", "\u202e", "\u2028", "\U000e0041", "\u3164", "\ud7ff\U0001f600", "\n\t"]
)
def test_escaped_json_reads_back_as_the_same_text(text: str) -> None:
    plain = json.dumps([text, {text: text}], ensure_ascii=False)
    assert json.loads(escape_json(plain)) == [text, {text: text}]
    for indent in (0, 2):
        data = encode_json([text, {text: text}], indent=indent).decode()
        assert json.loads(data) == [text, {text: text}]
        assert all(is_harmless(line) for line in data.split("\n"))


def test_what_stands_for_bytes_that_are_no_text_does_not_stop_a_document() -> None:
    assert encode_json({"a\udcff": ["\udc9b", 1, None]}) == '{"a\ufffd":["\ufffd",1,null]}'.encode()


def test_a_name_with_a_filler_beside_a_control_character_hides_neither() -> None:
    assert display("a\x01\u3164".encode()) == r'"a\001\343\205\244"'


@given(st.text())
def test_toml_says_the_same_of_any_text(text: str) -> None:
    shown = toml_string(text)
    assert tomllib.loads(f"{shown} = {shown}") == {text: text}
    assert is_harmless(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a/b c", '"a/b c"'),
        ("é\U0001f600", '"é\U0001f600"'),
        ("\U0001f600\n", '"\U0001f600\\n"'),
        ("\U000e0041\x7f\x00", '"\\U000e0041\\u007f\\u0000"'),
        ('"\\', '"\\"\\\\"'),
        ("\udcff", '"\\udcff"'),
    ],
)
def test_toml_spells_out_only_what_it_has_to(text: str, shown: str) -> None:
    assert toml_string(text) == shown
