"""What keys do at a board, and how it is drawn; no terminal."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from tests.support.hand_clock import HandClock
from yolofs.access.answers import Lifetime
from yolofs.cli.watch.board import GUARD_S, SEQUENCE_S, Board, BoardMode, EndWatch, LookAtPath
from yolofs.cli.watch.board_lines import draw_board, wrap
from yolofs.daemon.rpc.ask_messages import AnswerParams, AskInfo, EndedInfo, ProcessInfo, RuleInfo, WarningsInfo
from yolofs.daemon.rpc.protocol import quote
from yolofs.rules import RuleState


def ask(number: int, path: bytes, *, group: int | None = None, operation: str = "read") -> AskInfo:
    process = ProcessInfo(7, "cat", ("cat", quote(path)))
    rule = RuleInfo("/d", RuleState.ASK, ".yolofs.toml:3")
    return AskInfo(
        number, group or number, quote(path), operation, RuleState.ASK, rule, None, process, process, 1, 0, 60_000, "/d"
    )


def ended(number: int, by: str = "yolofs watch, process 1") -> EndedInfo:
    return EndedInfo(number, "allowed", by, 5)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def board(clock: HandClock) -> Board:
    return Board(clock)


def show(board: Board, clock: HandClock) -> None:
    """Draw the board and let it stand for long enough."""
    assert draw_board(board, 80, 24).is_whole
    board.painted()
    clock.now += GUARD_S


def answer(number: int, decision: str, **more: Any) -> AnswerParams:
    rest: dict[str, Any] = {"seen": number, "by": "yolofs watch", **more}
    return AnswerParams(number, decision, **rest)


def test_a_key_answers_what_has_been_shown_for_a_moment(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    assert board.key("y") is None
    board.painted()
    clock.now += GUARD_S / 2
    assert not board.is_armed
    assert board.key("y") is None
    assert board.message == "too quick: this has only just come up"
    clock.now += GUARD_S
    assert board.is_armed
    assert board.key("y") == answer(1, "allow")
    assert board.is_answering
    assert board.key("y") is None


def test_the_card_that_takes_the_place_of_another_has_to_be_looked_at_first(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    board.take(ask(2, b"/e/a"))
    show(board, clock)
    board.take(ended(1, "nobody"))
    assert board.key("y") is None
    show(board, clock)
    assert board.key("n") == answer(2, "deny")


def test_an_ask_that_joined_a_group_just_now_is_not_answered_with_it(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    board.take(ask(2, b"/d/b", group=1))
    show(board, clock)
    board.take(ask(3, b"/d/c", group=1))
    assert board.key("y") == answer(1, "allow", seen=2)
    board.take(ended(1))
    board.take(ended(2))
    show(board, clock)
    assert board.key("y") == answer(3, "allow")


def test_an_answer_that_came_to_nothing_can_be_given_again(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    show(board, clock)
    params = board.key("y")
    assert isinstance(params, AnswerParams)
    board.failed(params, "rules.toml cannot be written")
    assert "rules.toml cannot be written" in text(board)
    assert board.key("y") == params


@pytest.mark.parametrize("sequence", ["Oy", "On", "[1;2y", "[?2026;2$y", "[a"])
def test_a_sequence_that_nobody_knows_answers_nothing(board: Board, clock: HandClock, sequence: str) -> None:
    """Keypads, and terminals that are asked what they can do, send such; they come as Escape and
    characters.
    """
    board.take(ask(1, b"/d/a"))
    show(board, clock)
    assert [board.key(key) for key in ("escape", *sequence)] == [None] * (1 + len(sequence))
    assert board.mode is BoardMode.CARD
    clock.now += 2 * SEQUENCE_S
    assert board.key("y") == answer(1, "allow")


def test_the_pieces_of_a_sequence_may_come_slowly(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    show(board, clock)
    for key in ("escape", *"[?2026;2$y", "\x9b", *"1;2y"):
        assert board.key(key) is None
        clock.now += SEQUENCE_S / 2
    clock.now += SEQUENCE_S
    assert board.key("n") == answer(1, "deny")


def test_scope_and_state_are_picked(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/e/a"))
    show(board, clock)
    assert board.key("a") is None
    assert [choice.value for choice in board.choices] == [b"/d/e/a", b"/d/e", b"/d"]
    board.key("down")
    board.key("enter")
    assert [choice.value for choice in board.choices] == [
        RuleState.WRITE_ASK,
        RuleState.READ_ONLY,
        RuleState.ALLOW,
        RuleState.DENY,
        RuleState.HIDDEN,
    ]
    assert "Which state does it get? all below: /d/e" in text(board).splitlines()
    assert board.key("2") == answer(1, "allow", lifetime=Lifetime.ALWAYS, scope="/d/e", state=RuleState.READ_ONLY)


@pytest.mark.parametrize(
    ("widest", "scopes"),
    [
        ("/", [b"/d/e/a", b"/d/e", b"/d", b"/"]),
        ("/d", [b"/d/e/a", b"/d/e", b"/d"]),
        ("/d/e", [b"/d/e/a", b"/d/e"]),
        ("/d/e/a", [b"/d/e/a"]),
    ],
)
def test_no_directory_is_offered_above_the_one_whose_rule_decides(
    board: Board, clock: HandClock, widest: str, scopes: list[bytes]
) -> None:
    """A rule there would leave what was asked as it is, and change what was not asked about."""
    board.take(msgspec.structs.replace(ask(1, b"/d/e/a"), widest=widest))
    show(board, clock)
    board.key("a")
    assert [choice.value for choice in board.choices] == scopes


@pytest.mark.parametrize(
    ("key", "decision", "state"),
    [
        ("1", "allow", RuleState.ALLOW),
        ("2", "deny", RuleState.READ_ONLY),
        ("3", "deny", RuleState.DENY),
        ("4", "deny", RuleState.HIDDEN),
    ],
)
def test_a_state_says_by_itself_whether_a_change_is_allowed(
    board: Board, clock: HandClock, key: str, decision: str, state: RuleState
) -> None:
    board.take(ask(1, b"/d/a", operation="write"))
    show(board, clock)
    board.key("s")
    board.key("enter")
    assert board.key(key) == answer(1, decision, lifetime=Lifetime.SESSION, scope="/d/a", state=state)


def test_of_a_group_it_is_told_how_many_a_directorys_rule_leaves_open(board: Board, clock: HandClock) -> None:
    board.take(msgspec.structs.replace(ask(1, b"/d/e/a"), widest="/d"))
    board.take(msgspec.structs.replace(ask(2, b"/d/e/.env", group=1), widest="/d/e/.env"))
    board.take(msgspec.structs.replace(ask(3, b"/d/e/f/b", group=1), widest="/d/e"))
    show(board, clock)
    board.key("s")
    assert board.choices == [
        ("each of the 3", None),
        ("all below, but for 1 of these", b"/d/e"),
        ("all below, but for 2 of these", b"/d"),
    ]
    assert "2  all below, but for 1 of these: /d/e" in text(board)


def test_how_long_is_left_is_told_anew_when_another_process_joins(board: Board, clock: HandClock) -> None:
    board.take(msgspec.structs.replace(ask(1, b"/d/e/a"), left_ms=30_000))
    clock.now += 10
    board.take(msgspec.structs.replace(ask(1, b"/d/e/a"), left_ms=20_000, requesters=2))
    clock.now += 1
    assert board.left_s(board.asks[1]) == 19


def test_a_path_that_the_card_has_cut_is_shown_whole_by_a_look(board: Board, clock: HandClock) -> None:
    path = b"/d/" + b"/".join(b"%030d" % number for number in range(40))
    board.take(ask(1, path))
    show(board, clock)
    assert path.decode() not in "".join(text(board).split())
    board.key("v")
    board.show_look(path, ["what it holds"])
    lines = ["".join(part for _, part in line) for line in draw_board(board, 80, 60).lines]
    assert path.decode() in "".join("".join(lines).split())
    assert "what it holds" in "".join(lines)


def test_warnings_about_the_rules_are_shown_where_there_is_room(board: Board, clock: HandClock) -> None:
    board.take(WarningsInfo((".yolofs.toml:2: not TOML; the rules that it had before stay in force",)))
    assert "warning: .yolofs.toml:2: not TOML" in text(board)
    board.take(ask(1, b"/d/e/a"))
    show(board, clock)
    assert "warning: .yolofs.toml:2: not TOML" in text(board)
    assert draw_board(board, 80, 12).is_whole
    board.take(WarningsInfo(()))
    assert "warning" not in text(board)


def test_asks_that_were_answered_only_once_are_told(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/e/a"))
    show(board, clock)
    board.key("s")
    board.key("down")
    board.key("enter")
    assert board.key("1") is not None
    board.take(ended(1, "yolofs watch, process 1, just once"))
    assert "by you, just once: the rule leaves it open: read /d/e/a" in text(board)


def test_the_rule_for_a_group_is_for_each_or_for_what_holds_them_all(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/e/a"))
    board.take(ask(2, b"/d/f/b", group=1))
    show(board, clock)
    board.key("s")
    assert [choice.value for choice in board.choices] == [None, b"/d"]


def test_an_ask_that_ends_while_its_rule_is_picked_takes_the_picking_with_it(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a"))
    board.take(ask(2, b"/e/a"))
    show(board, clock)
    board.key("s")
    board.key("enter")
    board.take(ended(1, "somebody else"))
    assert (board.mode, board.group) == (BoardMode.CARD, 2)
    assert board.key("3") is None


@pytest.mark.parametrize("mode_key", ["", "s", "?", "l", "v"])
def test_ctrl_c_and_ctrl_d_leave_from_everywhere(board: Board, clock: HandClock, mode_key: str) -> None:
    board.take(ask(1, b"/d/a"))
    board.take(ask(2, b"/d/b", group=1))
    show(board, clock)
    if mode_key:
        board.key(mode_key)
    assert board.key("c-c") == EndWatch(is_interrupt=True)
    assert board.key("c-d") == EndWatch()


def test_v_looks_at_the_file_and_keys_do_nothing_without_a_card(board: Board, clock: HandClock) -> None:
    for key in ("y", "n", "s", "a", "v", "l", "tab", "x", "enter"):
        assert board.key(key) is None
    assert board.mode is BoardMode.CARD
    board.take(ask(1, b"/d/\xff"))
    assert board.key("v") == LookAtPath(b"/d/\xff")


def test_a_look_at_a_file_is_not_shown_with_another_card(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/harmless", group=1))
    board.take(ask(2, b"/d/secret", group=2))
    show(board, clock)
    assert board.key("v") == LookAtPath(b"/d/harmless")
    board.take(ended(1))
    board.show_look(b"/d/harmless", ["first lines of what is harmless"])
    assert (board.mode, board.looked_at) == (BoardMode.CARD, ())
    assert board.key("v") == LookAtPath(b"/d/secret")
    board.show_look(b"/d/secret", ["first lines"])
    assert list(board.looked_at) == ["/d/secret", "", "first lines"]


def text(board: Board, width: int = 80, height: int = 24) -> str:
    return "\n".join("".join(part for _, part in line) for line in draw_board(board, width, height).lines)


def test_a_card_fits_80_columns(board: Board, clock: HandClock) -> None:
    board.take(ask(1, b"/d/a file", operation="write"))
    show(board, clock)
    shown = text(board)
    for line in (
        "yolofs watch: 1 waiting",
        "write to    /d/a file",
        "who         cat, process 7",
        'command     cat "/d/a file"',
        'why         asked, as /d is "ask" (.yolofs.toml:3)',
        "y allow once   n deny once   s for this session   a always",
    ):
        assert line in shown.splitlines()


def test_on_a_small_screen_a_long_path_and_long_commands_leave_room_for_how_long_it_waits(board: Board) -> None:
    path = b"/d/" + b"x" * 107
    process = ProcessInfo(7, "python3", ("python3", "-c", "y" * 300))
    board.take(msgspec.structs.replace(ask(1, path), process=process, parent=process, size=5))
    assert draw_board(board, 60, 15).is_whole
    lines = text(board, 60, 15).splitlines()
    assert [line.split()[0] for line in lines if line and not line.startswith(" ")] == [
        "yolofs", "read", "at", "who", "command", "started", "why", "waiting", "…", "?",
    ]  # fmt: skip
    assert "".join(line.removeprefix("read").strip() for line in lines[2:5]) == path.decode()


def test_too_small_a_screen_is_said_and_a_card_is_not_whole(board: Board) -> None:
    board.take(ask(1, b"/d/" + b"x" * 200))
    drawing = draw_board(board, 20, 8)
    assert not drawing.is_whole
    assert "make" in "".join(part for line in drawing.lines for _, part in line)
    assert draw_board(board, 80, 24).is_whole


def test_a_path_of_any_length_leaves_room_for_the_next_card_and_for_the_picking(board: Board, clock: HandClock) -> None:
    path = b"/d/" + b"x" * 4000
    board.take(ask(1, path))
    board.take(ask(2, b"/d/next"))
    assert draw_board(board, 40, 24).is_whole
    show(board, clock)
    board.key("a")
    assert board.mode is BoardMode.SCOPE
    assert draw_board(board, 40, 24).is_whole
    board.key("escape")
    board.take(EndedInfo(1, "timeout", "nobody", 5))
    assert board.message.startswith("not answered in time: read /d/xxx")
    drawing = draw_board(board, 40, 24)
    assert drawing.is_whole
    shown = ["".join(part for _, part in line) for line in drawing.lines]
    assert "read        /d/next" in shown
    assert "not answered in time: read" in shown


@pytest.mark.parametrize(("width", "height", "shown"), [(80, 24, 2), (80, 14, 1), (80, 60, 8), (40, 24, 1)])
def test_of_long_names_a_card_shows_as_many_as_there_is_room_for(
    board: Board, width: int, height: int, shown: int
) -> None:
    for number in range(1, 11):
        board.take(ask(number, b"/d/%d/%s" % (number - 1, b"x" * 196), group=1))
    assert draw_board(board, width, height).is_whole
    lines = text(board, width, height).splitlines()
    assert any(line.startswith("why") for line in lines) or height < 24 or width < 80
    assert [name for name in range(10) if any(line.lstrip().startswith(f"{name}/x") for line in lines)] == [
        *range(shown)
    ]
    assert any(line.endswith(f"and {10 - shown} more; v lists them") for line in lines)


def test_a_card_says_of_each_rule_that_it_is_one_of_why(board: Board) -> None:
    asks = [ask(number, b"/d/%d" % number, group=1) for number in (1, 2, 3)]
    other = RuleInfo("/d/3", RuleState.ASK, "rules.toml:1")
    for one in (*asks[:2], msgspec.structs.replace(asks[2], rule=other)):
        board.take(one)
    lines = text(board).splitlines()
    at = lines.index('why         asked, as /d is "ask" (.yolofs.toml:3)')
    assert lines[at + 1] == '            asked, as /d/3 is "ask" (rules.toml:1)'


def test_a_card_tells_the_size_of_the_file_at_each_of_its_paths(board: Board, clock: HandClock) -> None:
    for number, size in ((1, 12), (2, None), (3, 20_000)):
        one = ask(number, b"/d/%d" % number, group=1, operation="write")
        board.take(msgspec.structs.replace(one, size=size))
    shown = [line.strip() for line in text(board).splitlines()]
    assert {"1  (12 B there now)", "2", "3  (19.5 KiB there now)"} <= set(shown)
    show(board, clock)
    board.key("v")
    assert "write to /d/3  (19.5 KiB there now)" in text(board).splitlines()


names = st.binary(min_size=1, max_size=80).filter(lambda name: b"\0" not in name)
texts = st.text(min_size=1, max_size=80).map(lambda name: name.encode(errors="surrogatepass"))


@example(name=b"\x01" * 4, width=24, height=21, keys="")
@given(name=names | texts, width=st.integers(10, 130), height=st.integers(4, 40), keys=st.text("yns?l1\r", max_size=4))
def test_whatever_a_name_holds_the_screen_shows_printable_text_that_fits(
    name: bytes, width: int, height: int, keys: str
) -> None:
    clock = HandClock()
    board = Board(clock)
    process = ProcessInfo(7, quote(name), (quote(name), quote(name)))
    board.take(
        AskInfo(
            1,
            1,
            quote(b"/d/" + name),
            "read",
            RuleState.ASK,
            RuleInfo(quote(name), RuleState.ASK, "source"),
            3,
            process,
            process,
            2,
            0,
            1000,
            "/",
        )
    )
    show(board, clock)
    for key in keys:
        board.key("enter" if key == "\r" else key)
    lines = draw_board(board, width, height).lines
    assert len(lines) <= height
    for line in lines:
        shown = "".join(part for _, part in line)
        assert shown.isprintable()
        assert get_cwidth(shown) <= width


@given(line=st.text(st.characters(min_codepoint=32, max_codepoint=0xFFFF), max_size=200), width=st.integers(2, 60))
def test_wrapping_loses_nothing_but_spaces(line: str, width: int) -> None:
    parts = wrap(line, width)
    assert all(get_cwidth(part) <= width for part in parts)
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize("height", range(9, 25))
def test_each_choice_of_a_list_can_be_reached_and_a_digit_is_for_one_that_is_drawn(
    board: Board, clock: HandClock, height: int
) -> None:
    for number in range(1, 12):
        board.take(ask(number, b"/d/%d/f" % number))
    show(board, clock)
    board.key("l")
    assert board.mode is BoardMode.QUEUE
    for number in range(1, 12):
        drawing = draw_board(board, 80, height)
        assert drawing.is_whole
        shown = [at for at in range(11) if f"/d/{at + 1}/f" in text(board, 80, height)]
        assert number - 1 in shown
        assert list(drawing.choices) == shown
        board.key("down")
