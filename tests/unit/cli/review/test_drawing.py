"""What a terminal of any size shows of a model: long lines, odd names, what is typed."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.cli.review.models import change, comparison, press, small_model, text, view_of
from yolofs.changes.changes import ChangeKind
from yolofs.changes.hunks import Hunk, HunkKind
from yolofs.cli.review.drawing import draw_review
from yolofs.cli.review.effects import EndReview, Page
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.review_state import ReviewMode
from yolofs.paths import RelPath


@pytest.mark.parametrize("size", [(20, 5), (60, 15), (300, 100)])
def test_no_line_is_wider_than_the_screen_whatever_names_there_are(size: tuple[int, int]) -> None:
    model = ReviewModel()
    names = [b"p/" + "漢字".encode() * 40, b"p/\x1b]0;x\x07", b"p/" + b"n" * 250, b"p/\xff\xfe"]
    model.compared(comparison(*map(change, names)))
    for name in names:
        one = change(name)
        long = tuple(part * 3000 + b"\n" for part in (b"x", "漢".encode(), b"\x1b[2J", b"\t"))
        model.loaded(one, view_of(one, text("2" * 16, 0, long, long[:2], name)))
        lines = ["".join(piece for _, piece in line) for line in draw_review(model, *size)]
        assert len(lines) == size[1]
        from prompt_toolkit.utils import get_cwidth

        assert max(map(get_cwidth, lines)) <= size[0]
        assert all(line.isprintable() for line in lines)
        model.key("j")


def test_the_note_that_is_typed_can_be_seen_whatever_is_dropped() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/" + b"long" * 20)))
    press(model, "jd")
    press(model, "keep it as it was, please")
    for width in (80, 60):
        below = ["".join(piece for _, piece in line) for line in draw_review(model, width, 15)][-2:]
        assert "keep it as it was, please█" in below[1]
        assert below[0].startswith("drop …")
        assert "? enter drops, escape does not" in below[0]
    press(model, "x" * 100 + " end")
    assert " end█" in "".join(piece for _, piece in draw_review(model, 60, 15)[-1])


@pytest.mark.parametrize(
    ("width", "end"), [(40, "leave? y/n"), (60, "leave all the same? y/n"), (100, "y leaves, any other key stays")]
)
def test_the_question_before_leaving_can_be_read_to_its_end(width: int, end: str) -> None:
    model = ReviewModel()
    model.compared(comparison(*(change(b"p/%d" % number) for number in range(1000))))
    press(model, "aq")
    last = "".join(piece for _, piece in draw_review(model, width, 15)[-1])
    assert last.startswith("1000 accepted")
    assert last.rstrip().endswith(end)


@pytest.mark.parametrize("size", [(39, 24), (20, 5), (100, 7), (3, 1)])
def test_a_terminal_that_is_too_small_says_so_and_takes_no_key_whose_page_could_not_be_read(
    size: tuple[int, int],
) -> None:
    model = small_model()
    lines = ["".join(piece for _, piece in line) for line in draw_review(model, *size)]
    assert len(lines) == size[1]
    assert {len(line) for line in lines} == {size[0]}
    if size != (3, 1):
        said = " ".join(" ".join(lines).split())
        assert said == f"this terminal has {size[0]}x{size[1]}, a review needs 40x8; Ctrl-C leaves"
    for key in (" ", "d", "enter", "q"):
        assert model.key(key) is None
    assert not len(model.accepted)
    assert model.mode is ReviewMode.LIST
    assert isinstance(model.key("c-c"), EndReview)
    draw_review(model, 40, 8)
    model.key("a")
    assert len(model.accepted) == 4


@pytest.mark.parametrize("size", [(40, 8), (60, 15), (100, 24)])
def test_a_long_message_can_be_read_to_its_end(size: tuple[int, int]) -> None:
    model = small_model()
    model.failed("the editor /usr/local/bin/editor ended with exit code 3 (set EDITOR to one that works)")
    lines = ["".join(piece for _, piece in line).rstrip() for line in draw_review(model, *size)]
    assert len(lines) == size[1]
    below = [line.strip() for line in lines if "│" not in line][1:-1]
    assert " ".join(below) == model.message


def test_a_page_with_a_long_title_has_just_the_lines_of_the_screen() -> None:
    model = small_model()
    model.prepared(Page("many words " * 40, ("D  a", "M  b"), question="enter commits"))
    lines = ["".join(piece for _, piece in line) for line in draw_review(model, 40, 8)]
    assert len(lines) == 8
    assert {len(line) for line in lines} == {40}
    assert "enter commits" in lines[-1]


def right_side(model: ReviewModel, width: int = 60) -> list[str]:
    return ["".join(piece for _, piece in line).partition("│")[2].rstrip() for line in draw_review(model, width, 12)][
        1:-2
    ]


def with_lines(old: bytes, new: bytes) -> ReviewModel:
    model = ReviewModel()
    one = change(b"p/a")
    model.compared(comparison(one))
    model.loaded(one, view_of(one, text("1" * 16, 0, (old,), (new,))))
    return model


@pytest.mark.parametrize("length", [60, 999, 1000, 10_000, 100_000])
def test_what_differs_far_behind_in_a_long_line_is_on_the_screen(length: int) -> None:
    head, tail = "é" * (length // 2) + "x" * (length // 2), "y" * 200
    model = with_lines(f"{head}good{tail}\n".encode(), f"{head}evil{tail}\n".encode())
    _, old, new, *_ = right_side(model)
    assert (old[:5], new[:5]) == ("  -…x", "  +…x")
    assert "xxgoodyy" in old
    assert "xxevilyy" in new


def test_lines_that_are_too_long_are_shown_in_parts() -> None:
    line = b" ".join(b"%03d" % number for number in range(300))
    model = with_lines(line + b"\n", b"other\n")
    model.key("l")
    assert "000 001" in right_side(model)[1]
    model.key("L")
    assert "000" not in right_side(model)[1]
    assert "005 006 007" in right_side(model)[1]
    for _ in range(100):
        model.key("L")
    assert "299" in right_side(model)[1]
    model.key("H")
    assert "299" not in right_side(model)[1]
    assert "292 293" in right_side(model)[1]
    for _ in range(100):
        model.key("H")
    assert "000 001" in right_side(model)[1]


def test_lines_that_have_room_are_not_moved() -> None:
    model = with_lines(b"short\n", b"other\n")
    model.key("L")
    assert right_side(model)[1:3] == ["  -short", "  +other"]


def test_another_change_is_shown_from_its_left() -> None:
    model = ReviewModel()
    changes = change(b"p/a"), change(b"p/b")
    model.compared(comparison(*changes))
    for one in changes:
        model.loaded(one, view_of(one, text("1" * 16, 0, (b"0123456789" * 9,), (b"other",))))
    model.key("L")
    model.key("j")
    model.loaded(changes[1], view_of(changes[1], text("1" * 16, 0, (b"begin" * 9,), (b"other",))))
    assert "-beginbegin" in right_side(model)[1]


def test_a_rename_and_a_symlink_say_from_where_and_to_where() -> None:
    one = msgspec.structs.replace(change(b"p/new"), kind=ChangeKind.RENAMED, old_path=RelPath(b"p/old"))
    model = ReviewModel()
    model.compared(comparison(one))
    renamed = Hunk("1" * 16, HunkKind.RENAMED, one.path, old_path=one.old_path)
    model.loaded(one, view_of(one, renamed))
    assert right_side(model, 100)[0] == "  renamed from old"
