"""A path that is nowhere is said to be, with the one that may have been meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_wrong_input import assert_one_line_and_a_hint
from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "--"),
        ("diff", "--list", "--"),
        ("diff", "--json", "1", "--"),
        ("hunks", "--"),
        ("log", "--"),
        ("log", "--json", "--"),
        ("blame",),
        ("restore",),
        ("commit", "--yes"),
    ],
)
@pytest.mark.some(5)
def test_a_name_that_never_was_is_refused_with_the_nearest_one(yolofs: Program, words: tuple[str, ...]) -> None:
    with yolofs.mounted() as view:
        (view / "staged.py").write_text("s\n")
        yolofs("snapshot")
        for name, meant in (("a.tx", "a.txt"), ("stagd.py", "staged.py"), ("dir/c.txt", "dir/b.txt")):
            said = yolofs.refused(*words, name, code=2)
            assert_one_line_and_a_hint(said)
            assert f"there is nothing at {yolofs.project / name}" in said
            assert f"did you mean {meant}?" in said
        said = yolofs.refused(*words, "zzzz", code=2)
        assert f"there is nothing at {yolofs.project}/zzzz" in said


@pytest.mark.parametrize("words", [("cat",), ("ls",)])
def test_a_generation_that_lacks_a_name_offers_its_nearest_one(yolofs: Program, words: tuple[str, ...]) -> None:
    said = yolofs.refused(*words, ":a.tx", code=2)
    assert "did you mean :a.txt?" in said


def test_a_name_in_another_directory_is_offered_if_it_is_staged(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "dir/deep").mkdir()
        (view / "dir/deep/module.py").write_text("m\n")
        assert "did you mean dir/deep/module.py?" in yolofs.refused("diff", "--", "module.py", code=2)
        said = yolofs.refused("diff", "--", "module.py", code=2, cwd=yolofs.project / "dir")
        assert "did you mean deep/module.py?" in said
        said = yolofs.refused("diff", "--", yolofs.project / "module.py", code=2)
        assert f"did you mean {yolofs.project}/dir/deep/module.py?" in said


def test_a_path_that_was_there_once_is_not_refused(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "once").mkdir()
        (view / "once/file").write_text("o\n")
        yolofs("snapshot")
        (view / "once/file").unlink()
        (view / "once").rmdir()
        yolofs("diff", "--", "once/file")
        assert "once/file" in yolofs("diff", "1", "--", "once/file").out
        assert "once/file" in yolofs("log", "--", "once/file").out
        yolofs("hunks", "--", "once")
        (view / "dir/b.txt").unlink()
        (view / "dir").rmdir()
        yolofs("commit", "--yes")
        yolofs("log", "--", "once/file")
        yolofs("log", "--", "dir/b.txt")
        yolofs("diff", "--", "dir/b.txt")
        said = yolofs.refused("cat", ":dir/b.txt", code=2)
        assert "what was done there: yolofs log -- dir/b.txt" in said


def test_one_of_several_paths_that_is_nowhere_is_named(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("x\n")
        said = yolofs.refused("diff", "--", "a.txt", "nope", code=2)
        assert f"there is nothing at {yolofs.project}/nope" in said
        assert yolofs("diff", "--name-only", "--", "a.txt", "dir").out == "a.txt\n"


def test_names_that_are_offered_can_do_a_terminal_no_harm(yolofs: Program) -> None:
    (yolofs.project / os.fsdecode(b"bad\x1b[31m\xffname")).write_text("b\n")
    said = yolofs.refused("diff", "--", os.fsdecode(b"bad\x1b[31m\xffnam"), code=2)
    assert "\x1b" not in said
    assert "did you mean $'bad\\033[31m\\377name'?" in said
    (yolofs.project / "two words").write_text("b\n")
    assert "did you mean 'two words'?" in yolofs.refused("diff", "--", "two word", code=2)
    assert Path(yolofs.project / "two words").exists()


def test_the_name_that_is_offered_for_a_generation_is_in_that_generation(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "later.txt").write_text("l\n")
        said = yolofs.refused("cat", "base:later.tx", code=2)
        assert "later.txt" not in said
        assert "did you mean :later.txt?" in yolofs.refused("cat", ":later.tx", code=2)
