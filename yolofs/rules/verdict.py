"""Which rule decides over a path: the nearest one, on the path itself or on its nearest ancestor
that has one.

On one path a rule for just that path comes before a pattern that its name fits.  Of patterns that
of the deepest directory comes first (``DIR/**/NAME``), then ``**/NAME`` before ``**/*.EXT``, then
the longest ending.  Where several sources have a rule for the same path or pattern, the first
source counts.  No rule at all means :attr:`RuleState.ASK`.  Where a rule written ``…/**`` decides,
and below a directory of a name that a source exempts (:attr:`RuleSet.exempt`), patterns of
directories above count only if their source comes before that one, but for those of
:data:`COUNTING_EVERYWHERE`.

The rules for paths form a trie.  A :class:`Verdict` is a place in it with the rule in force there,
so that the verdict over a name follows from that over its directory (:meth:`RuleBook.below`)
without a look at the whole path: whoever keeps the verdicts of directories judges any file in O(1).
Each change of the rules makes a new trie and counts :attr:`RuleBook.version` up; verdicts of an
older version are worth nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TypeAlias

from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import PRESET_SOURCE
from yolofs.rules.spelling import NameRule, PathRule, Rule, RuleSet, Subject, SuffixRule, Waypoint, subject

_EVERY_RANK = sys.maxsize
COUNTING_EVERYWHERE = frozenset({b".yolofs"})
"""Nothing keeps patterns for these names out, no ``…/**`` and no exempt directory: a session that a
program makes anywhere would be the one that the next command there finds after a commit, with rules
and plans of its own."""

Ranked: TypeAlias = tuple[int, Rule]
"""A rule with the number of its source, 0 for the nearest."""


class Patterns:
    """The patterns of one directory, for names anywhere below it."""

    __slots__ = ("names", "suffixes")

    def __init__(self) -> None:
        self.names: dict[bytes, Ranked] = {}
        self.suffixes: dict[bytes, Ranked] = {}

    def add(self, ranked: Ranked) -> None:
        """Add a pattern, unless a nearer source has it already."""
        match ranked[1]:
            case NameRule(name=name):
                self.names.setdefault(name, ranked)
            case SuffixRule(suffix=suffix):
                self.suffixes.setdefault(suffix, ranked)
            case PathRule():
                raise AssertionError("not a pattern")

    def find(self, name: bytes, below_rank: int) -> Ranked | None:
        """Return the pattern that ``name`` fits, among those of sources before ``below_rank``."""
        found = self.names.get(name)
        if found is not None and (found[0] < below_rank or name in COUNTING_EVERYWHERE):
            return found
        if self.suffixes:
            dot = name.find(b".")
            while dot >= 0:
                found = self.suffixes.get(name[dot:])
                if found is not None and found[0] < below_rank:
                    return found
                dot = name.find(b".", dot + 1)
        return None

    def __iter__(self) -> Iterator[Ranked]:
        yield from self.names.values()
        yield from self.suffixes.values()


class Node:
    """A path on which, or below which, there are rules."""

    __slots__ = (
        "children",
        "leads_by_link",
        "leads_by_link_below",
        "leads_through",
        "leads_through_below",
        "leads_to_open",
        "patterns",
        "rank",
        "readmits_below",
        "rule",
        "states_below",
    )

    def __init__(self) -> None:
        self.rule: PathRule | None = None
        self.rank = 0
        """The number of the rule's source."""
        self.patterns: Patterns | None = None
        self.children: dict[bytes, Node] = {}
        self.states_below: dict[RuleState, Rule] = {}
        """The states that rules strictly below have, each with one such rule."""
        self.readmits_below: PathRule | None = None
        """A rule for a path strictly below that is not written ``…/**``: in there all patterns
        count.
        """
        self.leads_to_open = False
        """Whether a rule for a path strictly below is not hidden: then the way to it has to be
        passable.
        """
        self.leads_through: Rule | None = None
        """A rule whose path leads here or through here (:attr:`RuleSet.waypoints`)."""
        self.leads_through_below: Rule | None = None
        """The same of a path strictly below."""
        self.leads_by_link: Rule | None = None
        """A rule whose path leads on by a link at just this path."""
        self.leads_by_link_below: Rule | None = None
        """The same of a path strictly below."""

    @property
    def is_hidden(self) -> bool:
        """Whether a rule for just this path hides it, and no rule below leads through it."""
        return self.rule is not None and self.rule.state is RuleState.HIDDEN and not self.leads_to_open


class Verdict:
    """What is in force at one path.  Compare by identity; holds for one version of the rules."""

    __slots__ = (
        "asks_to_read",
        "asks_to_write",
        "hides_inside",
        "is_way",
        "limit",
        "may_list",
        "may_read",
        "may_stat",
        "may_write",
        "named",
        "node",
        "outside",
        "patterns",
        "rest",
        "rule",
        "seems_absent",
        "state",
    )

    def __init__(
        self,
        rule: Rule | None,
        node: Node | None,
        patterns: tuple[Patterns, ...] = (),
        outside: int = 0,
        limit: int = _EVERY_RANK,
    ) -> None:
        self.rule = rule
        """The rule that decides, None where there is none."""
        state = self.state = rule.state if rule is not None else RuleState.ASK
        self.may_stat = state.may_stat
        self.may_list = state.may_list
        self.may_read = state.may_read
        self.may_write = state.may_write
        self.asks_to_read = state.asks_to_read
        self.asks_to_write = state.asks_to_write
        self.node = node
        self.patterns = patterns
        """The patterns that may decide over names in here, the deepest directory's last."""
        self.outside = outside
        """How many of :attr:`patterns` are of directories above one for whose whole a rule
        decides.
        """
        self.limit = limit
        """Of these only patterns count whose source has a lower number."""
        self.is_way = self.state is RuleState.HIDDEN and node is not None and node.leads_to_open
        """Whether this is a hidden directory that one has to pass to reach what a rule below
        opens.
        """
        self.seems_absent = not (self.may_stat or self.is_way)
        """Whether nothing may be known of the path, not even that it is a way."""
        hides_one = node is not None and any(child.is_hidden for child in node.children.values())
        self.hides_inside = self.is_way or hides_one
        """Whether a rule for a path hides a name in here, be there anything of that name or not."""
        self.rest = self if node is None else Verdict(rule, None, patterns, outside, limit)
        """The verdict over names in here that no rule is about."""
        self.named: dict[bytes, Verdict] = {}
        """The verdicts found so far over names in here at which, or below which, there is a rule
        for a path.
        """

    def stricter_below(self) -> Rule | None:
        """Return a rule strictly below that lets less through than this verdict, None if there is
        none.

        A rule of any state whose path leads on by a link strictly below counts, too: that link
        would go along.

        Where patterns from outside do not count, that may be any rule below which they count again.
        Patterns that hold here and below are not looked at: they go along with the names (but see
        :meth:`pattern_lost`).
        """
        if self.node is None:
            return None
        if self.outside and self.node.readmits_below is not None:
            return self.node.readmits_below
        stricter = (rule for state, rule in self.node.states_below.items() if state.is_stricter_than(self.state))
        return next(stricter, self.node.leads_by_link_below)

    @property
    def leads_to_built_in(self) -> bool:
        """Whether a built-in rule asks before changes here, and another one is about a path
        strictly below.

        Rules of a tree and of the user's own open nothing by this.
        """
        if not self.asks_to_write or self.node is None or self.rule is None or not _is_built_in(self.rule):
            return False
        return any(map(_is_built_in, self.node.states_below.values()))

    def astray_by_link(self) -> Rule | None:
        """Return a rule whose path or directory would lead elsewhere if this were a symbolic link,
        None if none would.

        Besides those of :meth:`stricter_below` that is a rule of any state whose path leads on by
        the link that is here, and a pattern of just this directory that lets less through.
        """
        rule = self.stricter_below()
        if rule is not None or self.node is None:
            return rule
        if self.node.leads_by_link is not None or self.node.patterns is None:
            return self.node.leads_by_link
        return next((one for _, one in self.node.patterns if one.state.is_stricter_than(self.state)), None)

    def led_by_new_link(self) -> Rule | None:
        """Return a rule of any state that a new link here would take elsewhere, None if there is
        none.
        """
        return (self.node.leads_through or self.node.leads_through_below) if self.node is not None else None

    def led_by_link_inside(self) -> Rule | None:
        """Return a rule of any state that a link in a directory that is put here could take
        elsewhere, None if none.
        """
        return self.node.leads_through_below if self.node is not None else None

    def pattern_lost(self, new: Verdict) -> Rule | None:
        """Return a pattern that guards names in here and would not if this directory became the one
        of ``new``.

        None if there is none: then what lies below is guarded at the new place at least as well by
        patterns.
        """
        ruled_below = new.node is not None and new.node.states_below
        if self.has_patterns_of(new) and not ruled_below:
            return None
        here, there = self._patterns_in_force(), new._patterns_in_force()
        added = [rule.state for key, rule in there.items() if key not in here]
        added += new.node.states_below if new.node is not None else ()
        instead = [new.state, *(rule.state for rule in there.values())]
        for key, rule in here.items():
            others = added if key in there else added + instead
            if any(rule.state.is_stricter_than(state) for state in others):
                return rule
        return None

    def pattern_gained(self, new: Verdict) -> Rule | None:
        """Return a pattern that would guard names in here, not guarded by it so far, at the place
        of ``new``.

        None if there is none: then nothing can be brought to a place where it could not have been
        made.
        """
        if self.has_patterns_of(new):
            return None
        here, there = self._patterns_in_force(), new._patterns_in_force()
        so_far = [self.state, *(rule.state for rule in here.values())]
        gained = (rule for key, rule in there.items() if key not in here)
        return next((rule for rule in gained if any(rule.state.is_stricter_than(state) for state in so_far)), None)

    def has_patterns_of(self, other: Verdict) -> bool:
        """Tell whether the same patterns may decide over names in here and there."""
        return self.patterns == other.patterns and (self.outside, self.limit) == (other.outside, other.limit)

    def find_pattern(self, name: bytes) -> Ranked | None:
        """Return the pattern that decides over ``name`` in here, unless there is a rule for just
        that path.
        """
        patterns = self.patterns
        for index in range(len(patterns) - 1, -1, -1):
            found = patterns[index].find(name, self.limit if index < self.outside else _EVERY_RANK)
            if found is not None:
                return found
        return None

    def _patterns_in_force(self) -> dict[Subject, Rule]:
        return {
            subject(rule): rule
            for index, patterns in enumerate(self.patterns)
            for rank, rule in patterns
            if index >= self.outside or rank < self.limit or _counts_everywhere(rule)
        }


class Index:
    """The rules of one version, ready for questions; never changes.  Any thread may make one."""

    def __init__(self, *sources: RuleSet) -> None:
        """``sources``: nearest first.  Takes about a millisecond for five hundred rules."""
        self.sources = sources
        self.root = Node()
        self.hides = False
        self.guards_writing = False
        self.hidden_names: set[bytes] = set()
        self._special_names: set[bytes] = set()
        """Names about which a pattern or an exemption says something, in one directory or
        another.
        """
        self.hidden_endings: set[bytes] = set()
        self._special_endings: set[bytes] = set()
        """The same of what stands from the last dot of a name on."""
        self._found_mostly: dict[RuleState, dict[bytes, list[bytes]]] = {}
        self._exempt: dict[bytes, int] = {}
        """Names of directories that keep patterns out, each with the number of the first source to
        say so.
        """
        for rank, source in enumerate(sources):
            for name in source.exempt:
                self._exempt.setdefault(name, rank)
                self._special_names.add(name)
            for rule in source.rules:
                self.hides |= rule.state is RuleState.HIDDEN
                if isinstance(rule, PathRule):
                    self._plant(rank, rule)
                else:
                    self._plant_pattern(rank, rule)
            for waypoint in source.waypoints:
                self._plant_waypoint(waypoint)
        self._top = Verdict(None, self.root, (), 0, _EVERY_RANK)
        self._top = self._verdict(self._top, self.root, self.root.rank, self.root.rule)
        states = {rule.state for source in sources for rule in source.rules}
        self.guards_writing = not self._top.may_write or states != {RuleState.ALLOW}

    def _plant(self, rank: int, rule: PathRule) -> None:
        node, passed = self._reach(rule.path)
        if node.rule is not None:
            return
        node.rule, node.rank = rule, rank
        for above in passed:
            above.states_below.setdefault(rule.state, rule)
            above.leads_to_open |= rule.state is not RuleState.HIDDEN
            if above.readmits_below is None and not rule.is_whole:
                above.readmits_below = rule

    def _plant_pattern(self, rank: int, rule: NameRule | SuffixRule) -> None:
        node, passed = self._reach(rule.scope)
        if node.patterns is None:
            node.patterns = Patterns()
        node.patterns.add((rank, rule))
        hides = rule.state is RuleState.HIDDEN
        if isinstance(rule, SuffixRule):
            self._special_endings.add(_ending(rule.suffix))
            if hides:
                self.hidden_endings.add(_ending(rule.suffix))
        else:
            self._special_names.add(rule.name)
            if hides:
                self.hidden_names.add(rule.name)
        for above in passed:
            above.states_below.setdefault(rule.state, rule)

    def _plant_waypoint(self, waypoint: Waypoint) -> None:
        node, passed = self._reach(waypoint.path)
        node.leads_through = node.leads_through or waypoint.rule
        for above in passed:
            above.leads_through_below = above.leads_through_below or waypoint.rule
        if waypoint.is_link:
            node.leads_by_link = node.leads_by_link or waypoint.rule
            for above in passed:
                above.leads_by_link_below = above.leads_by_link_below or waypoint.rule

    def _reach(self, path: bytes) -> tuple[Node, list[Node]]:
        """Return the node of a path, made if need be, and those above it."""
        node, passed = self.root, []
        for name in _names(path):
            passed.append(node)
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = Node()
            node = child
        return node, passed

    def mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        found = self._found_mostly.get(state)
        if found is None:
            found = self._found_mostly[state] = self._find_mostly(state)
        return found

    def _find_mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        steps = [(0, b"", self._top)]  # no recursion: a rule's path may be as deep as it likes
        for at, (_, path, verdict) in enumerate(steps):
            names = verdict.node.children if verdict.node is not None else ()
            steps.extend((at, path + b"/" + name, self.below(verdict, name)) for name in names)
        exceptions: list[list[bytes] | None] = [[] if _holds_throughout(step[2], state) else None for step in steps]
        for at in range(len(steps) - 1, 0, -1):  # what lies below comes before what it lies in
            above, path, _ = steps[at]
            into, found = exceptions[above], exceptions[at]
            if into is not None:
                into += found if found is not None else [path]
        return {
            path or b"/": found
            for at, (above, path, _) in enumerate(steps)
            if (found := exceptions[at]) is not None and not (at and exceptions[above] == [])
        }

    def below(self, above: Verdict, name: bytes) -> Verdict:
        node = above.node.children.get(name) if above.node is not None else None
        if node is None:
            if above.patterns and (name in self._special_names or _ending(name) in self._special_endings):
                return self._below_by_pattern(above, None, name)
            return above.rest
        named = above.named.get(name)
        if named is None:
            named = above.named[name] = self._below_by_path(above, node, name)
        return named

    def _below_by_path(self, above: Verdict, node: Node, name: bytes) -> Verdict:
        if node.rule is None:
            return self._below_by_pattern(above, node, name)
        return self._verdict(above, node, node.rank, node.rule, self._exempt.get(name) if above.patterns else None)

    def _below_by_pattern(self, above: Verdict, node: Node | None, name: bytes) -> Verdict:
        exempt = self._exempt.get(name) if above.patterns else None
        found = above.find_pattern(name) if above.patterns else None
        if found is not None:
            return self._verdict(above, node, *found, exempt)
        return above.rest if node is None and exempt is None else self._verdict(above, node, 0, None, exempt)

    def _verdict(
        self, above: Verdict, node: Node | None, rank: int, rule: Rule | None, exempt: int | None = None
    ) -> Verdict:
        """Return the verdict over a name in ``above``, for which ``rule`` decides; None: the same
        as above.

        ``exempt``: the first source whose patterns from above do not count in there, if any.
        """
        patterns = above.patterns
        if node is not None and node.patterns is not None:
            patterns += (node.patterns,)
        if rule is None:
            rule, outside, limit = above.rule, above.outside, above.limit
        elif rule.is_whole:
            outside, limit = len(above.patterns), rank
        elif _counts_everywhere(rule):  # it lets no other patterns in again
            outside, limit = above.outside, above.limit
        else:
            outside, limit = 0, _EVERY_RANK
        if exempt is not None:
            # Where a rule keeps patterns out as well, one limit stands for both: what either keeps
            # out is out.
            outside, limit = len(above.patterns), min(limit, exempt)
        return Verdict(rule, node, patterns, outside, limit)

    def at(self, path: bytes) -> Verdict:
        verdict = self._top
        for name in _names(path):
            verdict = self.below(verdict, name)
        return verdict


class RuleBook:
    """The rules of a session from all their sources; paths are absolute paths of the view, as base
    has them.

    Only the thread that owns the view may put others in force; looking is for every thread.
    """

    def __init__(self, *sources: RuleSet) -> None:
        """``sources``: nearest first."""
        self.version = 0
        self.adopt(Index(*sources))

    @property
    def sources(self) -> tuple[RuleSet, ...]:
        """The rules in force, nearest source first."""
        return self._index.sources

    def replace(self, *sources: RuleSet) -> None:
        """Put other rules in force: every verdict given so far is void."""
        self.adopt(Index(*sources))

    def adopt(self, index: Index) -> None:
        """Put rules in force that have been made ready: every verdict given so far is void."""
        self._index = index
        self._hidden_names, self._hidden_endings = index.hidden_names, index.hidden_endings
        self.version += 1

    def touch(self) -> None:
        """Void every verdict given so far: paths have changed."""
        self.version += 1

    def at(self, path: bytes) -> Verdict:
        """Return the verdict over an absolute path."""
        return self._index.at(path)

    @property
    def hides(self) -> bool:
        """Whether any rule hides anything."""
        return self._index.hides

    @property
    def guards_writing(self) -> bool:
        """Whether there is anything at all that may not be changed freely."""
        return self._index.guards_writing

    def shows(self, above: Verdict, name: bytes) -> bool:
        """Tell whether ``name`` in the directory that ``above`` is about may be looked up.

        Each look-up comes here.  To find the pattern that decides over an ordinary name would take
        four times as long.
        """
        node = above.node
        if node is not None and name in node.children:
            known = above.named.get(name)
            return not (known if known is not None else self.below(above, name)).seems_absent
        if (
            above.rest.may_stat
            and name not in self._hidden_names
            and not (self._hidden_endings and _ending(name) in self._hidden_endings)
        ):
            return True
        return not self.below(above, name).seems_absent

    def mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        """Return the paths at and below which every path has this state, whatever its name, but for
        some told below.

        These are told for each: there, and further below, there may be another state.  One without
        any has none of the paths below it; of the others there may be several below each other.  A
        rule stands at each of them or somewhere below; whether anything is there is another
        question.
        """
        return self._index.mostly(state)

    def below(self, above: Verdict, name: bytes) -> Verdict:
        """Return the verdict over ``name`` in the directory that ``above`` is the verdict over."""
        return self._index.below(above, name)

    def pattern_closing(self, old: Verdict, new: Verdict) -> Rule | None:
        """Return a pattern that would guard what a rule opens in the directory of ``old``, at the
        place of ``new``.

        None if there is none.  The rule for the path stays behind when the directory is renamed.
        """
        todo = [(old.node, new)]
        while todo:
            node, there = todo.pop()
            for name, below in node.children.items() if node is not None else ():
                verdict = self.below(there, name)
                todo.append((below, verdict))
                if below.rule is None:
                    continue
                patterns = list(verdict._patterns_in_force().values()) if below.rule.is_whole else []
                if verdict.rule is not None and not isinstance(verdict.rule, PathRule):
                    patterns.append(verdict.rule)
                closing = (one for one in patterns if below.rule and one.state.is_stricter_than(below.rule.state))
                if (pattern := next(closing, None)) is not None:
                    return pattern
        return None


def _holds_throughout(verdict: Verdict, state: RuleState) -> bool:
    """Tell whether a path and all below it have a state, as far as rules for paths below say
    nothing else.
    """
    patterns = list(verdict._patterns_in_force().values())
    if not all(map(_counts_everywhere, patterns)):  # below a name that one fits, those from outside may count again
        patterns = [rule for some in verdict.patterns for _, rule in some]
    return verdict.state is state and all(rule.state is state for rule in patterns)


def _counts_everywhere(rule: Rule) -> bool:
    return isinstance(rule, NameRule) and rule.name in COUNTING_EVERYWHERE


def _is_built_in(rule: Rule) -> bool:
    return rule.source.startswith(PRESET_SOURCE)


def _ending(name: bytes) -> bytes:
    """Return what stands from the last dot of a name or suffix on; of a name without one that is no
    suffix' ending.
    """
    return name[name.rfind(b".") :]


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]
