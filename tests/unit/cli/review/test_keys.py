"""What keys do to a model, without a terminal or a session."""

from __future__ import annotations

import sys

import msgspec

from tests.unit.cli.review.models import change, comparison, press, shown, text, view_of
from yolofs.changes.changes import ChangeKind
from yolofs.cli.review.conflicts import rows_of
from yolofs.cli.review.drawing import draw_review
from yolofs.cli.review.effects import Compare, Drop, EndReview, Load, Prepare
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.review.review_state import Focus, ReviewMode, arrange_changes
from yolofs.hostcode.mark import Mark
from yolofs.paths import Generation, RelPath


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


def test_a_hunk_stays_split_when_its_file_changes_and_when_the_cursor_comes_back(model: ReviewModel) -> None:
    one, newer = change(b"p/a"), change(b"p/a", size=2)
    before, after = (text(name * 16, 1, (b"b\n", b"c\n"), ()) for name in "12")
    press(model, "jj")
    model.loaded(one, view_of(one, before))
    press(model, "s")
    model.compared(comparison(newer, change(b"p/x", ChangeKind.DELETED)))
    model.loaded(newer, view_of(newer, after))
    press(model, " ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), after) == frozenset({1})
    press(model, " hs ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), after) == frozenset({1})
    press(model, " s ")
    assert model.accepted.lines_of((RelPath(b"p/a"), False), after) is None


def test_a_drop_is_asked_about_and_has_a_note(model: ReviewModel) -> None:
    press(model, "d")
    assert model.mode is ReviewMode.NOTE
    press(model, "why")
    wish = model.key("enter")
    assert isinstance(wish, Drop)
    assert (list(wish.what), wish.title, wish.note, wish.is_told) == ([(b"p/x", True)], "x", "why", True)


def test_a_file_that_the_host_would_run_is_not_accepted_with_its_directory() -> None:
    model = ReviewModel()
    marks = {RelPath(b"p/d/hook"): (Mark.GIT,)}
    model.compared(comparison(change(b"p/d/b"), change(b"p/d/hook"), marks=marks))
    assert shown(model)[:2] == ["  what the host would run o… (1)", "    d/"]
    press(model, "ka")
    assert {path for path, _ in model.accepted} == {b"p/d/b"}
    press(model, "g ")
    assert model.message == "what the host would run or trust is accepted one by one"


def test_a_file_that_turns_out_to_be_run_by_the_host_is_accepted_no_longer() -> None:
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
    model.compared(comparison(change(b"p/a", size=2), change(b"p/x", ChangeKind.DELETED)), [(RelPath(b"p/a"), False)])
    assert len(model.accepted) == 0
    assert "! M a" in shown(model)
    assert model.message == "1 of what you had accepted has changed since (!): look at it again"
    press(model, " ")
    assert "x M a" in shown(model)


def test_what_is_accepted_while_all_is_compared_is_stale_if_it_is_something_else_by_then(model: ReviewModel) -> None:
    begun = model.parts()
    press(model, "j ")  # all in the project
    newer = comparison(change(b"p/a"), change(b"p/d/b", size=2), change(b"p/d/c", ChangeKind.ADDED))
    late = model.accepted_since(begun, newer)
    assert late == [(b"p/d/b", False)]
    model.compared(newer, late)
    assert shown(model)[:5] == ["~ in the project (3)", "x M a", "~   d/", "!   M b", "x   A c"]
    assert model.accepted_since(model.parts(), comparison()) == []


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
    assert model.key("q") == EndReview()
    press(model, " ")
    assert model.key("q") is None
    assert model.mode is ReviewMode.LEAVE
    assert model.key("x") is None
    assert model.key("enter") == Prepare(
        {(RelPath(b"p/x"), True): (change(b"p/x", ChangeKind.DELETED), None)}, (RelPath(b"p/x"),)
    )


def test_keys_wait_for_the_lines_that_they_are_about(model: ReviewModel) -> None:
    press(model, "jjl")
    assert model.focus is Focus.DIFF
    assert model.has_to_wait(" ")
    one = change(b"p/a")
    model.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",))))
    assert not model.has_to_wait(" ")


def test_the_cursor_goes_back_to_the_list_if_the_file_of_its_lines_is_gone(model: ReviewModel) -> None:
    one = change(b"p/a")
    press(model, "jj")
    model.loaded(one, view_of(one, text("1" * 16, 1, (b"b\n",), (b"B\n",))))
    press(model, "l")
    assert model.focus is Focus.DIFF
    model.compared(comparison(change(b"p/b"), change(b"p/x", ChangeKind.DELETED)))
    assert (model.focus, model.change) == (Focus.LIST, change(b"p/b"))


def test_keys_of_the_list_that_are_about_lines_wait_for_them_too(model: ReviewModel) -> None:
    press(model, "jj")
    assert model.focus is Focus.LIST
    assert [key for key in "des jq" if model.has_to_wait(key)] == ["d", "e", "s"]
    one = change(b"p/a")
    model.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",))))
    assert not any(map(model.has_to_wait, "des jq"))


def test_a_drop_from_the_list_is_of_just_what_was_shown(model: ReviewModel) -> None:
    press(model, "jj")
    one = change(b"p/a")
    model.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), (b"A\n",))))
    press(model, "d")
    effect = model.key("enter")
    assert isinstance(effect, Drop)
    assert list(effect.what.values()) == [(one, {"1" * 16: None})]


def test_no_key_waits_for_lines_that_cannot_be_read(model: ReviewModel) -> None:
    press(model, "jjl")
    model.unreadable(change(b"p/a"), "it is gone")
    assert (model.focus, model.message) == (Focus.LIST, "it is gone")
    assert not any(map(model.has_to_wait, "des jq"))
    for key in ("l", "tab", "s"):
        model.key(key)
        assert (model.focus, model.message) == (Focus.LIST, "its lines cannot be read")
    assert model.comparison is not None
    assert model.compared(model.comparison) is None
    assert not model.has_to_wait("d")
    press(model, "k")
    assert model.key("j") == Load(change(b"p/a"))
    assert model.has_to_wait("d")


def test_after_a_drop_all_keys_but_moves_wait_for_what_differs_now(model: ReviewModel) -> None:
    known = model.comparison
    assert known is not None
    model.done("dropped it")
    assert model.has_to_wait(" ")
    assert not model.has_to_wait("j")
    model.compared(known)
    assert not model.has_to_wait(" ")


def calls_of_moving(count: int) -> int:
    """Return how many functions are called by keys that move, and by drawing, with so many
    changes.
    """
    model = ReviewModel()
    known = comparison(*(change(b"p/m%03d/f%05d" % (number // 100, number)) for number in range(count)))
    tree = arrange_changes(known)
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
            draw_review(model, 80, 24)
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


def test_n_finds_the_next_path_and_capital_n_the_one_before(model: ReviewModel) -> None:
    press(model, "/d/")
    model.key("enter")
    assert model.change == change(b"p/d/b")
    press(model, "n")
    assert model.change == change(b"p/d/c", ChangeKind.ADDED)
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


def test_searching_ignores_the_case_of_all_letters() -> None:
    model = ReviewModel()
    names = ("ÄPFEL", "straße", "\udcff-Ж")
    model.compared(comparison(*(change(b"p/" + name.encode(errors="surrogateescape")) for name in names)))
    for typed, name in (("äpf", "ÄPFEL"), ("STRASSE", "straße"), ("-ж", "\udcff-Ж"), ("\udcff", "\udcff-Ж")):
        model.key("g")
        press(model, f"/{typed}")
        model.key("enter")
        assert model.change is not None
        assert model.change.path == b"p/" + name.encode(errors="surrogateescape"), typed
    one = change("p/ÄPFEL".encode())
    press(model, "/äpf")
    model.key("enter")
    model.loaded(one, view_of(one, text("1" * 16, 0, (b"a\n",), ("Größe\n".encode(),), path=one.path)))
    model.key("tab")
    press(model, "/GRÖSSE")
    model.key("enter")
    assert model.view is not None
    assert model.view.line(model.line).text == "Größe\n".encode()


def test_a_note_is_typed_corrected_and_given_up(model: ReviewModel) -> None:
    press(model, "dab")
    model.key("backspace")
    assert model.typed == "a"
    model.key("tab")
    assert not model.tells
    model.key("escape")
    assert (model.mode, model.message) == (ReviewMode.LIST, "nothing dropped")


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
