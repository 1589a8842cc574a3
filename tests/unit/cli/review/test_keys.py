"""What keys do to a desk, without a terminal or a session."""

from __future__ import annotations

import stat
import time

import msgspec
import pytest

from yolofs.changes.changes import Change, Kind, Side
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.cli.review.comparison import Comparison, Step
from yolofs.cli.review.desk import Desk
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.drawing import draw
from yolofs.cli.review.table import Focus, Mode
from yolofs.cli.review.wishes import Compare, Drop, Load, Prepare, Quit
from yolofs.cli.show.listing import Place
from yolofs.hostcode.mark import Mark, Marks
from yolofs.paths import Generation, RelPath
from yolofs.state.regions import Regions

PROJECT = RelPath(b"p")


def side(mode: int = 0o644, size: int = 1) -> Side:
    return Side(stat.S_IFREG, mode, 0, 0, 0, size, 0, b"/meta", b"/data", None)


def change(path: bytes, kind: Kind = Kind.MODIFIED, *, size: int = 1) -> Change:
    old = None if kind is Kind.ADDED else side()
    new = None if kind is Kind.DELETED else side(size=size)
    return Change(kind, RelPath(path), old=old, new=new, content=True)


def comparison(*changes: Change, marks: Marks | None = None, at: int = 0) -> Comparison:
    steps = (Step(None, b""),) if at == 0 else (Step(Generation(1), b"one"), Step(None, b""))
    return Comparison(
        sorted(changes, key=lambda one: one.path),
        marks or {},
        Regions(PROJECT),
        Place(b"/", PROJECT),
        Generation(0),
        steps,
        len(steps) - 1,
    )


def view_of(one: Change, *hunks: Hunk) -> DiffView:
    return DiffView(FileHunks(one, hunks), (b"a\nb\nc\nd\n", b""))


def text(name: str, start: int, old: tuple[bytes, ...], new: tuple[bytes, ...], path: bytes = b"p/a") -> Hunk:
    return Hunk(name, HunkKind.TEXT, RelPath(path), old_start=start, new_start=start, old_lines=old, new_lines=new)


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.compared(
        comparison(change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", Kind.ADDED), change(b"p/x", Kind.DELETED))
    )
    return made


def shown(desk: Desk) -> list[str]:
    return ["".join(piece for _, piece in line).partition("│")[0].rstrip() for line in draw(desk, 80, 12)][1:-2]


def press(desk: Desk, keys: str) -> None:
    for key in keys:
        desk.key(key)


def test_deletions_come_first_and_the_cursor_is_on_the_first_change(desk: Desk) -> None:
    assert shown(desk)[:7] == [
        "  deleted (1)",
        "  D x",
        "  in the project (3)",
        "  M a",
        "    d/",
        "    M b",
        "    A c",
    ]
    assert desk.change is not None
    assert desk.change.path == b"p/x"


def test_coming_to_a_change_wants_its_lines(desk: Desk) -> None:
    desk.key("j")
    assert desk.key("j") == Load(change(b"p/a"))


def test_a_directory_stands_for_all_in_it(desk: Desk) -> None:
    press(desk, "jjj ")
    assert shown(desk)[2:7] == ["~ in the project (3)", "  M a", "x   d/", "x   M b", "x   A c"]
    desk.key(" ")
    assert len(desk.accepted) == 0


def test_closed_directories_stay_closed_in_the_next_comparison(desk: Desk) -> None:
    press(desk, "jjjh")
    assert shown(desk)[4:6] == ["    +d/ (2)", ""]
    desk.compared(comparison(change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", Kind.ADDED)))
    assert shown(desk)[:4] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]


def test_u_takes_back_one_after_the_other(desk: Desk) -> None:
    press(desk, " jj a")
    assert len(desk.accepted) == 4
    press(desk, "u")
    assert {path for path, _ in desk.accepted} == {b"p/x", b"p/a"}
    press(desk, "uu")
    assert len(desk.accepted) == 0
    press(desk, "u")
    assert desk.message == "there is nothing to take back"


def test_lines_of_a_split_hunk_are_accepted_one_by_one(desk: Desk) -> None:
    one = change(b"p/a")
    hunk = text("1" * 16, 1, (b"b\n",), (b"B\n", b"BB\n"))
    press(desk, "jj")
    desk.loaded(one, view_of(one, hunk))
    press(desk, "lsj ")
    assert desk.accepted.lines_of((RelPath(b"p/a"), False), hunk) == frozenset({2})
    press(desk, "j k k ")
    assert desk.accepted.lines_of((RelPath(b"p/a"), False), hunk) == frozenset({1, 3})
    press(desk, "j ")
    assert desk.accepted.lines_of((RelPath(b"p/a"), False), hunk) is None


def test_a_drop_is_asked_about_and_has_a_note(desk: Desk) -> None:
    press(desk, "d")
    assert desk.mode is Mode.NOTE
    press(desk, "why")
    wish = desk.key("enter")
    assert isinstance(wish, Drop)
    assert (list(wish.what), wish.title, wish.note, wish.is_told) == ([(b"p/x", True)], "x", "why", True)


def test_what_the_host_would_run_is_not_accepted_with_its_directory() -> None:
    desk = Desk()
    marks = {RelPath(b"p/d/hook"): (Mark.GIT,)}
    desk.compared(comparison(change(b"p/d/b"), change(b"p/d/hook"), marks=marks))
    assert shown(desk)[:2] == ["  what the host would run o… (1)", "    d/"]
    press(desk, "ka")
    assert {path for path, _ in desk.accepted} == {b"p/d/b"}
    press(desk, "g ")
    assert desk.message == "what the host would run or trust is accepted one by one"


def test_what_turns_out_to_be_run_by_the_host_is_accepted_no_longer() -> None:
    desk = Desk()
    early = comparison(change(b"p/hook"))
    desk.compared(msgspec.structs.replace(early, has_marks=False))
    press(desk, " ")
    assert len(desk.accepted) == 1
    desk.compared(comparison(change(b"p/hook"), marks={RelPath(b"p/hook"): (Mark.GIT,)}))
    assert len(desk.accepted) == 0
    assert desk.message == "1 that the host would run or trust: accept these one by one"


def test_a_stale_change_is_marked_until_it_is_accepted_again(desk: Desk) -> None:
    press(desk, "jj ")
    desk.compared(comparison(change(b"p/a", size=2), change(b"p/x", Kind.DELETED)), [(RelPath(b"p/a"), False)])
    assert len(desk.accepted) == 0
    assert "! M a" in shown(desk)
    assert desk.message == "1 of what you had accepted has changed since (!): look at it again"
    press(desk, " ")
    assert "x M a" in shown(desk)


def test_searching_opens_what_is_closed_and_goes_round(desk: Desk) -> None:
    press(desk, "jjjhg")
    press(desk, "/c")
    desk.key("enter")
    assert desk.change is not None
    assert desk.change.path == b"p/d/c"
    press(desk, "/nowhere")
    desk.key("enter")
    assert desk.message == "not found: nowhere"


def test_an_earlier_generation_is_only_looked_at() -> None:
    desk = Desk()
    desk.compared(comparison(change(b"p/a"), at=1))
    assert desk.key("[") == Compare(Generation(1), is_last=False)


def test_q_leaves_at_once_only_if_nothing_is_accepted(desk: Desk) -> None:
    assert desk.key("q") == Quit()
    press(desk, " ")
    assert desk.key("q") is None
    assert desk.mode is Mode.LEAVE
    assert desk.key("x") is None
    assert desk.key("enter") == Prepare(
        {(RelPath(b"p/x"), True): (change(b"p/x", Kind.DELETED), None)}, (RelPath(b"p/x"),)
    )


def test_keys_wait_for_the_lines_that_they_are_about(desk: Desk) -> None:
    press(desk, "jjl")
    assert desk.focus is Focus.DIFF
    assert desk.is_waiting
    one = change(b"p/a")
    desk.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",))))
    assert not desk.is_waiting


@pytest.mark.parametrize("size", [(20, 5), (60, 15), (300, 100)])
def test_no_line_is_wider_than_the_screen_whatever_names_there_are(size: tuple[int, int]) -> None:
    desk = Desk()
    names = [b"p/" + "漢字".encode() * 40, b"p/\x1b]0;x\x07", b"p/" + b"n" * 250, b"p/\xff\xfe"]
    desk.compared(comparison(*map(change, names)))
    for name in names:
        one = change(name)
        long = tuple(part * 3000 + b"\n" for part in (b"x", "漢".encode(), b"\x1b[2J", b"\t"))
        desk.loaded(one, view_of(one, text("2" * 16, 0, long, long[:2], name)))
        lines = ["".join(piece for _, piece in line) for line in draw(desk, *size)]
        assert len(lines) == size[1]
        from prompt_toolkit.utils import get_cwidth

        assert max(map(get_cwidth, lines)) <= size[0]
        assert all(line.isprintable() for line in lines)
        desk.key("j")


def test_moving_over_20_000_changes_draws_only_what_is_on_the_screen() -> None:
    desk = Desk()
    desk.compared(comparison(*(change(b"p/m%03d/f%05d" % (number // 100, number)) for number in range(20_000))))
    drawn = draw(desk, 80, 24)
    assert len(drawn) == 24
    begun = time.process_time()
    for key in ("pagedown", "j", "end", "k", "home"):
        desk.key(key)
        draw(desk, 80, 24)
    assert len(desk.rows) == 20_201
    assert time.process_time() >= begun


def test_y_accepts_and_goes_on_hunk_by_hunk(desk: Desk) -> None:
    one = change(b"p/a")
    first, second = text("1" * 16, 0, (b"a\n",), (b"A\n",)), text("2" * 16, 3, (b"d\n",), (b"D\n",))
    press(desk, "jj")
    desk.loaded(one, view_of(one, first, second))
    press(desk, "ly")
    key = (RelPath(b"p/a"), False)
    assert (desk.accepted.lines_of(key, first), desk.accepted.lines_of(key, second)) == (None, frozenset())
    assert desk.hunk == second
    press(desk, "y")
    assert desk.accepted.lines_of(key, second) is None
    press(desk, "K")
    assert desk.hunk == first
    press(desk, "J")
    assert desk.hunk == second
    press(desk, "<")
    assert desk.hunk == first
    press(desk, ">")
    assert desk.hunk == second


def test_y_in_the_list_accepts_and_goes_to_the_next_row(desk: Desk) -> None:
    press(desk, "y")
    assert {path for path, _ in desk.accepted} == {b"p/x"}
    assert desk.row == 2


def test_minus_closes_all_directories_and_equals_opens_them(desk: Desk) -> None:
    press(desk, "-")
    assert shown(desk)[2:6] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]
    press(desk, "=")
    assert shown(desk)[4:7] == ["    d/", "    M b", "    A c"]


def test_n_finds_the_next_path_and_capital_n_the_one_before(desk: Desk) -> None:
    press(desk, "/d/")
    desk.key("enter")
    assert desk.change == change(b"p/d/b")
    press(desk, "n")
    assert desk.change == change(b"p/d/c", Kind.ADDED)
    press(desk, "N")
    assert desk.change == change(b"p/d/b")


def test_a_search_on_the_right_side_is_in_the_lines(desk: Desk) -> None:
    one = change(b"p/a")
    press(desk, "jj")
    desk.loaded(
        one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",)), text("2" * 16, 3, (b"d\n",), (b"Needle\n",)))
    )
    desk.key("tab")
    press(desk, "/needle")
    desk.key("enter")
    assert desk.view is not None
    assert desk.view.line(desk.line).text == b"Needle\n"
    desk.key("left")
    assert desk.focus is Focus.LIST


def test_a_note_is_typed_corrected_and_given_up(desk: Desk) -> None:
    press(desk, "dab")
    desk.key("backspace")
    assert desk.typed == "a"
    desk.key("tab")
    assert not desk.tells
    desk.key("escape")
    assert (desk.mode, desk.message) == (Mode.LIST, "nothing dropped")
