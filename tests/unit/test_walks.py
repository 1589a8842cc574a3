"""Every file and every function that ``docs/design/walks.md`` names is there, and each walk is
numbered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.walks import PAGE, ROOT, walks

STEPS = sorted({step for steps in walks().values() for step in steps})


def functions(nodes: list[ast.stmt], holder: str = "") -> Iterator[str]:
    """Yield the qualified names of the functions and methods in some code."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield holder + node.name
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{holder}{node.name}.")


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_each_step_of_a_walk_names_a_function_of_its_file(file: str, name: str) -> None:
    assert name in set(functions(ast.parse((ROOT / file).read_text()).body))


def test_each_file_that_the_page_names_is_there() -> None:
    assert [name for name in re.findall(r"`(\w[\w/]*/\w+\.py)`", PAGE.read_text()) if not (ROOT / name).is_file()] == []


def test_each_walk_is_numbered_without_a_gap() -> None:
    for section in PAGE.read_text().split("\n## ")[1:]:
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert {title: len(steps) > 10 for title, steps in walks().items()} == dict.fromkeys(
        ("A write", "An ask", "A commit", "An undo"), True
    )
