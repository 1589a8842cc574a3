"""The line of every key, however TOML lets one write it."""

from __future__ import annotations

import pytest

from yolofs.config.lines import key_lines

EVERY_FORM = """\
plain = 1 # comment with [brackets]
# [commented]
"quoted key" = 2
a.b . "c d" = 3

[table]
plain = '''
[not.a.table]
plain = 1
'''
array = [
  1, # ]
  { x = 1 },
]
inline = { x = { y = 1 } }
  [ table . sub ]
  plain = 5
[[many]]
x = 1
[[many]]
x = 2
[table.other."q.r"]
"""


def test_every_form_of_key_is_found_on_the_line_where_it_starts() -> None:
    assert key_lines(EVERY_FORM) == {
        ("plain",): 1,
        ("quoted key",): 3,
        ("a",): 4,
        ("a", "b"): 4,
        ("a", "b", "c d"): 4,
        ("table",): 6,
        ("table", "plain"): 7,
        ("table", "array"): 11,
        ("table", "inline"): 15,
        ("table", "inline", "x"): 15,
        ("table", "inline", "x", "y"): 15,
        ("table", "sub"): 16,
        ("table", "sub", "plain"): 17,
        ("many",): 18,
        ("many", "x"): 19,
        ("table", "other"): 22,
        ("table", "other", "q.r"): 22,
    }


def test_an_empty_file_has_no_keys() -> None:
    assert key_lines("") == {}


@pytest.mark.timeout(60)
def test_ten_thousand_rules_take_linear_time() -> None:
    lines = key_lines("[rules]\n" + "".join(f'"dir/{n}" = "allow"\n' for n in range(10_000)))
    assert lines["rules", "dir/9999"] == 10_001
