"""What the generation after a command is called."""

from __future__ import annotations

import os

import pytest

from yolofs.cli.run.around_a_run import snapshot_name
from yolofs.paths import check_snapshot_name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["make", "test"], "make test"),
        (["sh", "-c", "a && b;  c | d"], "a && b; c | d"),
        (["/bin/bash", "-lc", "ls", "x"], "ls"),
        (["cp", "../a", "b..c"], "cp ‥/a b‥c"),
        (["7"], "command 7"),
        (["-"], "command -"),
        (["sh", "-c", ""], "command"),
        (["base"], "command base"),
        (["run", "7"], "command run 7"),
        (["x" * 80], "x" * 59 + "…"),
        (["a", "\n", "b\t"], "a b"),
    ],
)
def test_the_snapshot_of_a_run_is_named_by_its_command(words: list[str], name: str) -> None:
    made = snapshot_name([os.fsencode(word) for word in words])
    assert made == name.encode()
    check_snapshot_name(made)


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert snapshot_name([b"\xff\xfe"]) == b"\xff\xfe"
