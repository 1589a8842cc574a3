"""What keys do to a model, without a terminal or a session."""

from __future__ import annotations

import stat
import sys

import msgspec
import pytest

from yolofs.changes.changes import Change, Kind, Side
from yolofs.changes.hunks import FileHunks, Hunk, HunkKind
from yolofs.cli.review.comparison import Comparison, Step
from yolofs.cli.review.conflicts import rows_of
from yolofs.cli.review.diff_view import DiffView
from yolofs.cli.review.drawing import draw
from yolofs.cli.review.effects import Compare, Drop, Load, Prepare, Quit
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.review_state import Focus, Mode, arranged
from yolofs.cli.show.folding import Sort
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
def model() -> ReviewModel:
    made = ReviewModel()
    made.compared(
        comparison(change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", Kind.ADDED), change(b"p/x", Kind.DELETED))
    )
    return made


def shown(model: ReviewModel) -> list[str]:
    return ["".join(piece for _, piece in line).partition("│")[0].rstrip() for line in draw(model, 80, 12)][1:-2]


def press(model: ReviewModel, keys: str) -> None:
    for key in keys:
        model.key(key)


def test_deletions_come_first_and_the_cursor_is_on_the_first_change(model: ReviewModel) -> None:
    assert shown(model)[:7] == [
        "  deleted (1)",
        "  D x",
        "  in the project (3)",
        "  M a",
        "    d/",
        "    M b",
        "    A c",
    ]
    assert model.change is not None
    assert model.change.path == b"p/x"


def test_coming_to_a_change_wants_its_lines(model: ReviewModel) -> None:
    model.key("j")
    assert model.key("j") == Load(change(b"p/a"))


def test_a_directory_stands_for_all_in_it(model: ReviewModel) -> None:
    press(model, "jjj ")
    assert shown(model)[2:7] == ["~ in the project (3)", "  M a", "x   d/", "x   M b", "x   A c"]
    model.key(" ")
    assert len(model.accepted) == 0


def test_closed_directories_stay_closed_in_the_next_comparison(model: ReviewModel) -> None:
    press(model, "jjjh")
    assert shown(model)[4:6] == ["    +d/ (2)", ""]
    model.compared(comparison(change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", Kind.ADDED)))
    assert shown(model)[:4] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]


def test_what_git_and_python_keep_for_themselves_is_closed_at_first_and_stays_as_the_user_has_it() -> None:
    made = ReviewModel()
    changes = [
        change(b"p/.git/index"),
        change(b"p/.git/objects/a", Kind.ADDED),
        change(b"p/.git/hooks/x", Kind.ADDED),
        change(b"p/.git/config", Kind.DELETED),
        change(b"p/s/__pycache__/a", Kind.ADDED),
        change(b"p/s/b"),
    ]
    known = comparison(*changes, marks={RelPath(b"p/.git/hooks/x"): (Mark.GIT,)})
    made.compared(known)
    rows = [
        "  deleted (1)",
        "    .git/",
        "    D config",
        "  what the host would run o… (1)",
        "    .git/hooks/",
        "    A x [run by git]",
        "  in the project (4)",
        "    +.git/ (2)",
        "    s/",
    ]
    assert shown(made) == rows
    made.key("=")
    assert shown(made) != rows
    opened = [(node.path, node.is_open) for node in made.tree.all()]
    made.compared(known)
    assert [(node.path, node.is_open) for node in made.tree.all()] == opened


def test_what_lists_fold_is_a_closed_section_of_its_own_at_the_end() -> None:
    git, ignored = [change(b"p/.git/index"), change(b"p/.git/x.lock", Kind.DELETED)], change(b"p/out/a", Kind.ADDED)
    folded = {(one.path, one.kind is Kind.DELETED): Sort.GIT for one in git}
    folded[ignored.path, False] = Sort.IGNORED
    known = comparison(*git, ignored, change(b"p/s"), change(b"p/scratch/a"))
    known = msgspec.structs.replace(known, folded=folded, told={Sort.GIT: "git: 1 commit on main"})
    made = ReviewModel()
    made.compared(known)
    assert shown(made)[:5] == [
        "  in the project (2)",
        "  M s",
        "    scratch/",
        "    M a",
        "  +git: 1 commit on main (2)",
    ]
    assert shown(made)[5] == "  +ignored by git (1)"
    made.key("=")
    assert shown(made)[4:7] == ["  git: 1 commit on main (2)", "    .git/", "    M index"]
    made.key("-")
    assert shown(made)[3:5] == ["  +git: 1 commit on main (2)", "  +ignored by git (1)"]
    made.key("a")
    assert len(made.accepted) == 5


def test_u_takes_back_one_after_the_other(model: ReviewModel) -> None:
    press(model, " jj a")
    assert len(model.accepted) == 4
    press(model, "u")
    assert {path for path, _ in model.accepted} == {b"p/x", b"p/a"}
    press(model, "uu")
    assert len(model.accepted) == 0
    press(model, "u")
    assert model.message == "there is nothing to take back"


def test_lines_of_a_split_hunk_are_accepted_one_by_one(model: ReviewModel) -> None:
    one = change(b"p/a")
    hunk = text("1" * 16, 1, (b"b\n",), (b"B\n", b"BB\n"))
    press(model, "jj")
    model.loaded(one, view_of(one, hunk))
    press(model, "lsj ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), hunk) == frozenset({2})
    press(model, "j k k ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), hunk) == frozenset({1, 3})
    press(model, "j ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), hunk) is None


def test_a_drop_is_asked_about_and_has_a_note(model: ReviewModel) -> None:
    press(model, "d")
    assert model.mode is Mode.NOTE
    press(model, "why")
    wish = model.key("enter")
    assert isinstance(wish, Drop)
    assert (list(wish.what), wish.title, wish.note, wish.is_told) == ([(b"p/x", True)], "x", "why", True)


def test_what_the_host_would_run_is_not_accepted_with_its_directory() -> None:
    model = ReviewModel()
    marks = {RelPath(b"p/d/hook"): (Mark.GIT,)}
    model.compared(comparison(change(b"p/d/b"), change(b"p/d/hook"), marks=marks))
    assert shown(model)[:2] == ["  what the host would run o… (1)", "    d/"]
    press(model, "ka")
    assert {path for path, _ in model.accepted} == {b"p/d/b"}
    press(model, "g ")
    assert model.message == "what the host would run or trust is accepted one by one"


def test_what_turns_out_to_be_run_by_the_host_is_accepted_no_longer() -> None:
    model = ReviewModel()
    early = comparison(change(b"p/hook"))
    model.compared(msgspec.structs.replace(early, has_marks=False))
    press(model, " ")
    assert len(model.accepted) == 1
    model.compared(comparison(change(b"p/hook"), marks={RelPath(b"p/hook"): (Mark.GIT,)}))
    assert len(model.accepted) == 0
    assert model.message == "1 that the host would run or trust: accept these one by one"


def test_a_stale_change_is_marked_until_it_is_accepted_again(model: ReviewModel) -> None:
    press(model, "jj ")
    model.compared(comparison(change(b"p/a", size=2), change(b"p/x", Kind.DELETED)), [(RelPath(b"p/a"), False)])
    assert len(model.accepted) == 0
    assert "! M a" in shown(model)
    assert model.message == "1 of what you had accepted has changed since (!): look at it again"
    press(model, " ")
    assert "x M a" in shown(model)


def test_what_is_accepted_while_all_is_compared_is_stale_if_it_is_something_else_by_then(model: ReviewModel) -> None:
    begun = model.parts()
    press(model, "j ")  # all in the project
    newer = comparison(change(b"p/a"), change(b"p/d/b", size=2), change(b"p/d/c", Kind.ADDED))
    late = model.accepted_since(begun, newer)
    assert late == [(b"p/d/b", False)]
    model.compared(newer, late)
    assert shown(model)[:5] == ["~ in the project (3)", "x M a", "~   d/", "!   M b", "x   A c"]
    assert model.accepted_since(model.parts(), comparison()) == []


def new_directory(path: bytes) -> Change:
    made = side()
    return Change(Kind.ADDED, RelPath(path), new=msgspec.structs.replace(made, type=stat.S_IFDIR, data=None))


def test_opening_a_directory_opens_those_that_are_alone_in_it() -> None:
    model = ReviewModel()
    tops = (b"p/new", b"p/new/one", b"p/new/one/two", b"p/new/one/two/left", b"p/new/one/two/right")
    files = (change(b"p/new/one/two/left/f", Kind.ADDED), change(b"p/new/one/two/right/g", Kind.ADDED))
    model.compared(comparison(*map(new_directory, tops), *files))
    press(model, "-gj")
    assert shown(model)[:2] == ["  in the project (7)", "  A +new/ (7)"]
    press(model, "l")
    rows = ["  A new/", "    A one/", "      A two/", "        A +left/ (2)", "        A +right/ (2)"]
    assert shown(model)[1:6] == rows
    press(model, "h")
    assert shown(model)[1:3] == ["  A +new/ (7)", ""]


def test_a_large_new_directory_is_closed_at_first_and_a_changed_one_is_not() -> None:
    model = ReviewModel()
    files = [change(b"p/%b/f%03d" % (top, number), Kind.ADDED) for top in (b"new", b"old") for number in range(45)]
    model.compared(comparison(new_directory(b"p/new"), change(b"p/z"), *files))
    assert shown(model)[:4] == ["  in the project (92)", "  A +new/ (46)", "    old/", "    A f000"]
    press(model, "l")
    assert shown(model)[2:3] == ["    A f000"]


def test_searching_opens_what_is_closed_and_goes_round(model: ReviewModel) -> None:
    press(model, "jjjhg")
    press(model, "/c")
    model.key("enter")
    assert model.change is not None
    assert model.change.path == b"p/d/c"
    press(model, "/nowhere")
    model.key("enter")
    assert model.message == "not found: nowhere"


def test_an_earlier_generation_is_only_looked_at() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/a"), at=1))
    assert model.key("[") == Compare(Generation(1), is_last=False)


def test_q_leaves_at_once_only_if_nothing_is_accepted(model: ReviewModel) -> None:
    assert model.key("q") == Quit()
    press(model, " ")
    assert model.key("q") is None
    assert model.mode is Mode.LEAVE
    assert model.key("x") is None
    assert model.key("enter") == Prepare(
        {(RelPath(b"p/x"), True): (change(b"p/x", Kind.DELETED), None)}, (RelPath(b"p/x"),)
    )


def test_keys_wait_for_the_lines_that_they_are_about(model: ReviewModel) -> None:
    press(model, "jjl")
    assert model.focus is Focus.DIFF
    assert model.has_to_wait(" ")
    one = change(b"p/a")
    model.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",))))
    assert not model.has_to_wait(" ")


def test_after_a_drop_all_keys_but_moves_wait_for_what_differs_now(model: ReviewModel) -> None:
    known = model.comparison
    assert known is not None
    model.done("dropped it")
    assert model.has_to_wait(" ")
    assert not model.has_to_wait("j")
    model.compared(known)
    assert not model.has_to_wait(" ")


@pytest.mark.parametrize("size", [(20, 5), (60, 15), (300, 100)])
def test_no_line_is_wider_than_the_screen_whatever_names_there_are(size: tuple[int, int]) -> None:
    model = ReviewModel()
    names = [b"p/" + "漢字".encode() * 40, b"p/\x1b]0;x\x07", b"p/" + b"n" * 250, b"p/\xff\xfe"]
    model.compared(comparison(*map(change, names)))
    for name in names:
        one = change(name)
        long = tuple(part * 3000 + b"\n" for part in (b"x", "漢".encode(), b"\x1b[2J", b"\t"))
        model.loaded(one, view_of(one, text("2" * 16, 0, long, long[:2], name)))
        lines = ["".join(piece for _, piece in line) for line in draw(model, *size)]
        assert len(lines) == size[1]
        from prompt_toolkit.utils import get_cwidth

        assert max(map(get_cwidth, lines)) <= size[0]
        assert all(line.isprintable() for line in lines)
        model.key("j")


def calls_of_moving(count: int) -> int:
    """Return how many functions are called by keys that move, and by drawing, with so many
    changes.
    """
    model = ReviewModel()
    known = comparison(*(change(b"p/m%03d/f%05d" % (number // 100, number)) for number in range(count)))
    tree = arranged(known)
    model.compared(known, (), tree)
    assert model.tree is tree  # it is made in a thread, and not again
    assert len(model.rows) == count + count // 100 + 1
    calls = 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(called)
    try:
        for key in ("pagedown", "j", "end", "k", " ", "l", "h", "pageup", "home"):
            model.key(key)
            draw(model, 80, 24)
    finally:
        sys.setprofile(None)
    return calls


def test_moving_over_20_000_changes_takes_no_more_calls_than_over_1000() -> None:
    few, many = calls_of_moving(1000), calls_of_moving(20_000)
    assert few > 500
    assert many <= few * 1.05


def test_y_accepts_and_goes_on_hunk_by_hunk(model: ReviewModel) -> None:
    one = change(b"p/a")
    first, second = text("1" * 16, 0, (b"a\n",), (b"A\n",)), text("2" * 16, 3, (b"d\n",), (b"D\n",))
    press(model, "jj")
    model.loaded(one, view_of(one, first, second))
    press(model, "ly")
    key = (RelPath(b"p/a"), False)
    assert (model.accepted.lines_of(key, first), model.accepted.lines_of(key, second)) == (None, frozenset())
    assert model.hunk == second
    press(model, "y")
    assert model.accepted.lines_of(key, second) is None
    press(model, "K")
    assert model.hunk == first
    press(model, "J")
    assert model.hunk == second
    press(model, "<")
    assert model.hunk == first
    press(model, ">")
    assert model.hunk == second


def test_y_in_the_list_accepts_and_goes_to_the_next_row(model: ReviewModel) -> None:
    press(model, "y")
    assert {path for path, _ in model.accepted} == {b"p/x"}
    assert model.row == 2


def test_minus_closes_all_directories_and_equals_opens_them(model: ReviewModel) -> None:
    press(model, "-")
    assert shown(model)[2:6] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]
    press(model, "=")
    assert shown(model)[4:7] == ["    d/", "    M b", "    A c"]


def test_n_finds_the_next_path_and_capital_n_the_one_before(model: ReviewModel) -> None:
    press(model, "/d/")
    model.key("enter")
    assert model.change == change(b"p/d/b")
    press(model, "n")
    assert model.change == change(b"p/d/c", Kind.ADDED)
    press(model, "N")
    assert model.change == change(b"p/d/b")


def test_a_search_on_the_right_side_is_in_the_lines(model: ReviewModel) -> None:
    one = change(b"p/a")
    press(model, "jj")
    model.loaded(
        one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",)), text("2" * 16, 3, (b"d\n",), (b"Needle\n",)))
    )
    model.key("tab")
    press(model, "/needle")
    model.key("enter")
    assert model.view is not None
    assert model.view.line(model.line).text == b"Needle\n"
    model.key("left")
    assert model.focus is Focus.LIST


def test_a_note_is_typed_corrected_and_given_up(model: ReviewModel) -> None:
    press(model, "dab")
    model.key("backspace")
    assert model.typed == "a"
    model.key("tab")
    assert not model.tells
    model.key("escape")
    assert (model.mode, model.message) == (Mode.LIST, "nothing dropped")


def test_the_inside_of_a_git_directory_is_closed_until_it_is_opened() -> None:
    model = ReviewModel()
    changes = [change(b"p/.git/index"), change(b"p/.git/logs/HEAD"), change(b"p/a")]
    model.compared(comparison(*changes))
    assert shown(model)[:4] == ["  in the project (3)", "    +.git/ (2)", "  M a", ""]
    press(model, "=")
    assert "    M index" in shown(model)
    model.compared(comparison(*changes))
    assert "    M index" in shown(model)


def test_a_git_directory_that_comes_later_is_closed_too() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/a")))
    model.compared(comparison(change(b"p/.git/index"), change(b"p/a")))
    assert shown(model)[:3] == ["  in the project (2)", "    +.git/ (1)", "  M a"]


def test_a_deletion_in_a_git_directory_is_never_closed_away() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/.git/refs/heads/work", Kind.DELETED), change(b"p/a")))
    assert "    D work" in shown(model)


def test_the_note_that_is_typed_can_be_seen_whatever_is_dropped() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/" + b"long" * 20)))
    press(model, "jd")
    press(model, "keep it as it was, please")
    for width in (80, 60):
        below = ["".join(piece for _, piece in line) for line in draw(model, width, 15)][-2:]
        assert "keep it as it was, please█" in below[1]
        assert below[0].startswith("drop …")
        assert "? enter drops, escape does not" in below[0]
    press(model, "x" * 100 + " end")
    assert " end█" in "".join(piece for _, piece in draw(model, 60, 15)[-1])


def test_searching_lines_in_vain_says_where_it_was_looked(model: ReviewModel) -> None:
    (one,) = [node.change for node in model.tree.all() if node.path == b"a"]
    assert one is not None
    press(model, "jj")
    model.loaded(one, view_of(one, text("1", 1, (b"a\n",), (b"A\n",))))
    press(model, "l/nowhere")
    model.key("enter")
    assert model.message == "not in these lines: nowhere; h, then /, searches the paths"


def test_conflicts_are_listed_with_the_directories_that_have_several() -> None:
    found = rows_of([RelPath(path) for path in (b"p/a", b"p/d/e/x", b"p/d/e/y", b"q/r")])
    assert [(path, len(inside)) for path, inside in found] == [
        (b"", 4), (b"p", 3), (b"p/a", 1), (b"p/d/e", 2), (b"p/d/e/x", 1), (b"p/d/e/y", 1), (b"q/r", 1)
    ]  # fmt: skip
    assert rows_of([RelPath(b"p/a")]) == [(b"p/a", (b"p/a",))]


# ---- long lines


def right_side(model: ReviewModel, width: int = 60) -> list[str]:
    return ["".join(piece for _, piece in line).partition("│")[2].rstrip() for line in draw(model, width, 12)][1:-2]


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
    one = msgspec.structs.replace(change(b"p/new"), kind=Kind.RENAMED, old_path=RelPath(b"p/old"))
    model = ReviewModel()
    model.compared(comparison(one))
    renamed = Hunk("1" * 16, HunkKind.RENAMED, one.path, old_path=one.old_path)
    model.loaded(one, view_of(one, renamed))
    assert right_side(model, 100)[0] == "  renamed from old"
