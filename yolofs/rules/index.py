"""The rules of one version as a trie, in which each path has its verdict."""

from __future__ import annotations

import threading

from yolofs.rules.rule_states import RuleState
from yolofs.rules.spelling import NameRule, PathRule, Rule, RuleSet, SuffixRule, Waypoint
from yolofs.rules.verdict import EVERY_RANK, NamePatterns, RuleNode, Verdict, counts_everywhere


class RuleIndex:
    """The rules of one version, ready for questions; never changes.  Any thread may make one."""

    def __init__(self, *sources: RuleSet) -> None:
        """``sources``: nearest first.  Takes about a millisecond for five hundred rules."""
        self.sources = sources
        self.root = RuleNode()
        self._directories: dict[bytes, tuple[RuleNode, list[RuleNode]]] = {}
        """The nodes of directories and those above them, while rules are planted: hundreds lie in
        the same few.
        """
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
        self._finding_mostly = threading.Lock()
        """Held while it is found, which takes long: two threads find it once."""
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
        self._directories.clear()
        self._top = Verdict(None, self.root, (), 0, EVERY_RANK)
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
            node.patterns = NamePatterns()
        node.patterns.add((rank, rule))
        hides = rule.state is RuleState.HIDDEN
        if isinstance(rule, SuffixRule):
            self._special_endings.add(ending(rule.suffix))
            if hides:
                self.hidden_endings.add(ending(rule.suffix))
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

    def _reach(self, path: bytes) -> tuple[RuleNode, list[RuleNode]]:
        """Return the node of a path, made if need be, and those above it."""
        directory, _, name = path.rpartition(b"/")
        reached = self._directories.get(directory)
        if reached is None:
            node, passed = self.root, []
            for part in _names(directory):
                passed.append(node)
                node = _child(node, part)
            reached = self._directories[directory] = node, passed
        if not name:
            return reached
        above, passed = reached
        return _child(above, name), [*passed, above]

    def mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        """See :meth:`yolofs.rules.book.RuleBook.mostly`.  Found once, for whichever thread asks."""
        with self._finding_mostly:
            found = self._found_mostly.get(state)
            if found is None:
                found = self._found_mostly[state] = self._find_mostly(state)
        return found

    def _find_mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        steps = [(0, b"", self._top)]  # no recursion: a rule's path may be as deep as it likes
        for at, (_, path, verdict) in enumerate(steps):
            names = verdict.node.children if verdict.node is not None else ()
            steps.extend((at, path + b"/" + name, self.below(verdict, name)) for name in names)
        agree: dict[tuple[tuple[NamePatterns, ...], int, int], bool] = {}
        exceptions: list[list[bytes] | None] = [
            [] if _holds_throughout(step[2], state, agree) else None for step in steps
        ]
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
        """Return the verdict over a name in a directory, from that over the directory."""
        node = above.node.children.get(name) if above.node is not None else None
        if node is None:
            if above.patterns and (name in self._special_names or ending(name) in self._special_endings):
                return self._below_by_pattern(above, None, name)
            return above.rest
        named = above.named.get(name)
        if named is None:
            named = above.named[name] = self._below_by_path(above, node, name)
        return named

    def _below_by_path(self, above: Verdict, node: RuleNode, name: bytes) -> Verdict:
        if node.rule is None:
            return self._below_by_pattern(above, node, name)
        return self._verdict(above, node, node.rank, node.rule, self._exempt.get(name) if above.patterns else None)

    def _below_by_pattern(self, above: Verdict, node: RuleNode | None, name: bytes) -> Verdict:
        exempt = self._exempt.get(name) if above.patterns else None
        found = above.find_pattern(name) if above.patterns else None
        if found is not None:
            return self._verdict(above, node, *found, exempt)
        return above.rest if node is None and exempt is None else self._verdict(above, node, 0, None, exempt)

    def _verdict(
        self, above: Verdict, node: RuleNode | None, rank: int, rule: Rule | None, exempt: int | None = None
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
        elif counts_everywhere(rule):  # it lets no other patterns in again
            outside, limit = above.outside, above.limit
        else:
            outside, limit = 0, EVERY_RANK
        if exempt is not None:
            # Where a rule keeps patterns out as well, one limit stands for both: what either keeps
            # out is out.
            outside, limit = len(above.patterns), min(limit, exempt)
        return Verdict(rule, node, patterns, outside, limit)

    def at(self, path: bytes) -> Verdict:
        """Return the verdict over an absolute path."""
        verdict = self._top
        for name in _names(path):
            verdict = self.below(verdict, name)
        return verdict


def _holds_throughout(
    verdict: Verdict, state: RuleState, agree: dict[tuple[tuple[NamePatterns, ...], int, int], bool]
) -> bool:
    """Tell whether a path and all below it have a state, as far as rules for paths below say
    nothing else.

    ``agree`` keeps of which patterns all say so: most paths have the same ones.
    """
    if verdict.state is not state:
        return False
    key = verdict.patterns, verdict.outside, verdict.limit
    if key not in agree:
        agree[key] = _all_patterns_say(verdict, state)
    return agree[key]


def _all_patterns_say(verdict: Verdict, state: RuleState) -> bool:
    patterns = list(verdict.patterns_in_force().values())
    if not all(counts_everywhere(rule) and not rule.is_whole for rule in patterns):
        # below a name that one fits, those from outside may count again
        patterns = [rule for some in verdict.patterns for _, rule in some]
    return all(rule.state is state for rule in patterns)


def ending(name: bytes) -> bytes:
    """Return what stands from the last dot of a name or suffix on; of a name without one that is no
    suffix' ending.
    """
    return name[name.rfind(b".") :]


def _child(node: RuleNode, name: bytes) -> RuleNode:
    child = node.children.get(name)
    if child is None:
        child = node.children[name] = RuleNode()
    return child


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name]
