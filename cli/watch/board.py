"""What the screen of asks shows, and what keys do there.  No terminal, no socket:
events and keys in, commands out; :mod:`yolofs.cli.watch.board_lines` draws it.

A *card* is a group of asks.  Keys answer only what has been on the screen for a moment: if
something comes up just as a key is pressed, the key was not meant for it.
"""

from __future__ import annotations

import enum
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from yolofs.access.answers import JUST_ONCE, Lifetime
from yolofs.access.asks import how_it_ended
from yolofs.access.scopes import common_directory
from yolofs.cli.show.ask_lines import path_text, question_text, verb
from yolofs.daemon.rpc.ask_messages import AnswerParams, AskInfo, EndedInfo, WarningsInfo
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.paths import display
from yolofs.rules import RuleState

GUARD_S = 0.4
"""How long an ask has to have been shown before a key can answer it."""
SEQUENCE_S = 0.3
"""How soon after an Escape, or after the character before, one is the rest of a sequence that
nobody knows.
"""
_REMEMBERED = 100
BY = "yolofs watch"


class BoardMode(enum.Enum):
    """What the screen shows."""

    CARD = "card"
    SCOPE = "scope"
    STATE = "state"
    HELP = "help"
    QUEUE = "queue"
    LOOK = "look"


class LookAtPath(NamedTuple):
    """Wanted: what is at a path now; see :meth:`Board.show_look`."""

    path: bytes


class EndWatch(NamedTuple):
    """Wanted: the end."""

    is_interrupt: bool = False


BoardEffect: TypeAlias = AnswerParams | LookAtPath | EndWatch


class CardChoice(NamedTuple):
    """One line to choose."""

    text: str
    value: bytes | RuleState | int | None


class Board:
    """The asks that wait, the card that is up, and how far its answer has come."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.asks: dict[int, AskInfo] = {}
        self._cards: dict[int, dict[int, AskInfo]] = {}
        """The same by their groups: thousands may end at a time."""
        self._arrived: dict[int, float] = {}
        """When it was last told how long each will wait."""
        self._shown: dict[int, float] = {}
        self._sent: set[int] = set()
        self.group: int | None = None
        """The card that is up."""
        self.mode = BoardMode.CARD
        self.message = ""
        """What to tell about the last key."""
        self.warnings: tuple[str, ...] = ()
        """What to know of the rules."""
        self.done: deque[str] = deque(maxlen=_REMEMBERED)
        """What has become of the last of the earlier asks, newest last."""
        self.done_count = 0
        """How many have ended in all."""
        self.choices: Sequence[CardChoice] = ()
        self.chosen = 0
        self.looked_at: Sequence[str] = ()
        self.scroll = 0
        self._escaped = -math.inf
        """When Escape came last."""
        self._lifetime = Lifetime.ONCE
        self.scope = CardChoice("", None)
        """What the rule is to be about, of the paths that can be chosen."""
        self._members: tuple[int, ...] = ()

    # ---- events

    def is_new(self, event: AskInfo | EndedInfo | WarningsInfo) -> bool:
        """Tell whether something begins a card: what a person has to be called for."""
        return isinstance(event, AskInfo) and event.group not in self._cards

    def take(self, event: AskInfo | EndedInfo | WarningsInfo) -> None:
        """Take what the daemon tells."""
        match event:
            case AskInfo():
                self._arrived[event.id] = self._clock()
                self.asks[event.id] = event
                self._cards.setdefault(event.group, {})[event.id] = event
                if self.group is None:
                    self._put_up(event.group)
            case EndedInfo():
                self._end(event)
            case WarningsInfo():
                self.warnings = event.warnings

    def _end(self, event: EndedInfo) -> None:
        ask = self.asks.pop(event.id, None)
        if ask is None:
            return
        card = self._cards[ask.group]
        del card[event.id]
        if not card:
            del self._cards[ask.group]
        by = event.by
        if event.id in self._sent and by.startswith(BY):
            by = "you, just once: the rule leaves it open" if by.endswith(JUST_ONCE) else "you"
        line = f"{how_it_ended(event.outcome, by)}: {verb(ask)} {path_text(ask)}"
        self.done.append(line)
        self.done_count += 1
        for known in (self._arrived, self._shown):
            known.pop(event.id, None)
        self._sent.discard(event.id)
        if ask.group != self.group:
            return
        if not card:
            if self.mode is not BoardMode.QUEUE:
                self.message = "" if by == "you" else line
                self.mode = BoardMode.CARD
            self._put_up(self.asks[min(self.asks)].group if self.asks else None)
        elif event.id in self._members and self.mode in (BoardMode.SCOPE, BoardMode.STATE):
            self.mode, self.message = BoardMode.CARD, line

    def failed(self, params: AnswerParams, message: str) -> None:
        """Take note that an answer failed."""
        self._sent -= {ask.id for ask in self.asks.values() if ask.group == self._group_of(params.id)}
        self._sent.discard(params.id)
        self.message = message

    def show_look(self, path: bytes, lines: Sequence[str]) -> None:
        """Show what is at the path that was to be looked at, unless another card is up by now."""
        members = self.members()
        if self.mode is BoardMode.CARD and len(members) == 1 and unquote(members[0].path) == path:
            self._show_lines([display(path), "", *lines])  # the card may have cut the path

    def _show_lines(self, lines: Sequence[str]) -> None:
        self.mode, self.looked_at, self.scroll = BoardMode.LOOK, lines, 0

    def painted(self) -> None:
        """Take note that the card, whole, is on the screen now."""
        if self.mode is BoardMode.CARD:
            now = self._clock()
            for ask in self.members():
                self._shown.setdefault(ask.id, now)

    # ---- what there is

    def groups(self) -> dict[int, list[AskInfo]]:
        """Return all cards, oldest first."""
        return {group: self._sorted(group) for group in sorted(self._cards, key=lambda group: min(self._cards[group]))}

    def members(self) -> list[AskInfo]:
        """Return the asks of the card that is up, oldest first."""
        return self._sorted(self.group) if self.group is not None else []

    def _sorted(self, group: int) -> list[AskInfo]:
        return [ask for _, ask in sorted(self._cards.get(group, {}).items())]

    def waited_s(self, ask: AskInfo) -> float:
        """Return how long an ask has waited."""
        return max(time.time_ns() - ask.since_ns, 0) / 1e9

    def left_s(self, ask: AskInfo) -> float:
        """Return how long an ask will still wait."""
        return max(ask.left_ms / 1000 - (self._clock() - self._arrived.get(ask.id, 0.0)), 0.0)

    @property
    def is_answering(self) -> bool:
        """Whether an answer to the card is on its way."""
        members = self.members()
        return bool(members) and all(ask.id in self._sent for ask in members)

    @property
    def is_armed(self) -> bool:
        """Whether keys answer the card: it has been up for long enough."""
        return bool(self._answerable())

    def _answerable(self) -> list[AskInfo]:
        now = self._clock()
        return [
            ask for ask in self.members() if now - self._shown.get(ask.id, now) >= GUARD_S and ask.id not in self._sent
        ]

    def _group_of(self, ask_id: int) -> int | None:
        ask = self.asks.get(ask_id)
        return ask.group if ask is not None else None

    def _put_up(self, group: int | None) -> None:
        self.group = group
        for ask in self.members():  # it has to be looked at anew
            self._shown.pop(ask.id, None)

    # ---- keys

    def key(self, key: str) -> BoardEffect | None:
        """Carry out a key: a character, or the name of one (``enter``, ``escape``, ``up``, ``c-c``,
        ``pagedown``…).
        """
        if key == "c-c":
            return EndWatch(is_interrupt=True)
        if key == "c-d":
            return EndWatch()
        is_rest = len(key) == 1 and self._clock() - self._escaped < SEQUENCE_S
        if key == "escape" or is_rest or _is_control(key):
            self._escaped = self._clock()
        if is_rest or _is_control(key):
            return None
        match self.mode:
            case BoardMode.CARD:
                return self._card_key(key)
            case BoardMode.SCOPE | BoardMode.STATE | BoardMode.QUEUE:
                return self._choice_key(key)
            case BoardMode.HELP | BoardMode.LOOK:
                self._text_key(key)
                return None

    def _card_key(self, key: str) -> BoardEffect | None:
        self.message = ""
        match key:
            case "q":
                return EndWatch()
            case "?":
                self.mode, self.scroll = BoardMode.HELP, 0
            case "l":
                self._choose(BoardMode.QUEUE, [CardChoice("", group) for group in self.groups()])
            case "tab":
                groups = list(self.groups())
                if len(groups) > 1 and self.group in groups:
                    self._put_up(groups[(groups.index(self.group) + 1) % len(groups)])
            case "v":
                return self._look()
            case "y" | "n" | "s" | "a":
                return self._answer_key(key)
        return None

    def _look(self) -> BoardEffect | None:
        members = self.members()
        if len(members) > 1:
            self._show_lines([question_text(ask) for ask in members])
            return None
        return LookAtPath(unquote(members[0].path)) if members else None

    def _answer_key(self, key: str) -> BoardEffect | None:
        asks = self._answerable()
        if not asks:
            if self.members() and not self.is_answering:
                self.message = "too quick: this has only just come up"
            return None
        self._members = tuple(ask.id for ask in asks)
        if key in "yn":
            return self._answer("allow" if key == "y" else "deny", Lifetime.ONCE, None, None)
        self._lifetime = Lifetime.SESSION if key == "s" else Lifetime.ALWAYS
        self._choose(BoardMode.SCOPE, _scopes(asks))
        return None

    def _choose(self, mode: BoardMode, choices: Sequence[CardChoice]) -> None:
        if choices:
            self.mode, self.choices, self.chosen = mode, choices, 0

    def _choice_key(self, key: str) -> BoardEffect | None:
        last = len(self.choices) - 1
        match key:
            case "escape" | "backspace" | "q":
                self.mode = BoardMode.CARD
            case "up" | "k":
                self.chosen = max(self.chosen - 1, 0)
            case "down" | "j":
                self.chosen = min(self.chosen + 1, last)
            case "enter":
                return self._pick(self.choices[self.chosen])
            case digit if digit.isdecimal() and len(digit) == 1 and 1 <= int(digit) <= len(self.choices):
                return self._pick(self.choices[int(digit) - 1])
        return None

    def _pick(self, choice: CardChoice) -> BoardEffect | None:
        match self.mode, choice.value:
            case BoardMode.QUEUE, int(group):
                self.mode = BoardMode.CARD
                if group in self.groups():
                    self._put_up(group)
                else:
                    self.message = "that one has ended"
            case BoardMode.SCOPE, _:
                self.scope = choice
                self._choose(BoardMode.STATE, _states(self.members()[0]))
            case BoardMode.STATE, RuleState() as state:
                self.mode = BoardMode.CARD
                scope = self.scope.value if isinstance(self.scope.value, bytes) else None
                return self._answer(_decision(state, self.members()[0]), self._lifetime, scope, state)
        return None

    def _answer(
        self, decision: str, lifetime: Lifetime, scope: bytes | None, state: RuleState | None
    ) -> AnswerParams | None:
        still = [ask_id for ask_id in self._members if ask_id in self.asks]
        if not still:
            return None
        self._sent.update(still)
        quoted = quote(scope) if scope is not None else None
        return AnswerParams(still[0], decision, lifetime, quoted, state, seen=still[-1], by=BY)

    def _text_key(self, key: str) -> None:
        match key:
            case "up" | "k":
                self.scroll = max(self.scroll - 1, 0)
            case "down" | "j":
                self.scroll += 1
            case "pageup":
                self.scroll = max(self.scroll - 10, 0)
            case "pagedown" | " ":
                self.scroll += 10
            case _:
                self.mode = BoardMode.CARD


def _is_control(key: str) -> bool:
    """Tell whether a character begins a sequence as Escape does, in eight bits (U+009B is
    ``Escape [``).
    """
    return len(key) == 1 and "\x80" <= key <= "\x9f"


def _scopes(asks: Sequence[AskInfo]) -> list[CardChoice]:
    """Return what a rule can be about: the paths themselves, or a directory above them, as far as
    it settles any.
    """
    paths = [unquote(ask.path) for ask in asks]
    choices = (
        [CardChoice("just this", paths[0])] if len(paths) == 1 else [CardChoice(f"each of the {len(paths)}", None)]
    )
    directory = common_directory(paths)
    limits = [len(unquote(ask.widest)) for ask in asks]
    while len(directory) >= min(limits):
        left = sum(len(directory) < limit for limit in limits)
        choices.append(CardChoice(f"all below, but for {left} of these" if left else "all below", directory))
        if directory == b"/":
            break
        directory = directory.rpartition(b"/")[0] or b"/"
    return choices


def _states(ask: AskInfo) -> list[CardChoice]:
    """Return the states that settle an ask, from what settles least."""
    states = [RuleState.READ_ONLY, RuleState.DENY, RuleState.HIDDEN]
    if _is_change(ask):
        return [CardChoice(_STATES[state], state) for state in (RuleState.ALLOW, *states)]
    return [
        CardChoice(_STATES[state], state) for state in (RuleState.WRITE_ASK, states[0], RuleState.ALLOW, *states[1:])
    ]


_STATES = {
    RuleState.WRITE_ASK: "read freely; changes are asked",
    RuleState.READ_ONLY: "read freely; changes are refused",
    RuleState.ALLOW: "read and change freely",
    RuleState.DENY: "refuse to read and to change",
    RuleState.HIDDEN: "as if it did not exist",
}


def _decision(state: RuleState, ask: AskInfo) -> str:
    return "allow" if (state.may_write if _is_change(ask) else state.may_read) else "deny"


def _is_change(ask: AskInfo) -> bool:
    return ask.operation not in ("read", "execute", "list")
