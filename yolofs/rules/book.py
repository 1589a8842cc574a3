"""Which rule decides over a path: the nearest one, on the path itself or on its nearest ancestor
that has one.

On one path a rule for just that path comes before a pattern that its name fits.  Of patterns that
of the deepest directory comes first (``DIR/**/NAME``), then ``**/NAME`` before ``**/*.EXT``, then
the longest ending.  Where several sources have a rule for the same path or pattern, the first
source counts.  No rule at all means :attr:`RuleState.ASK`.  Where a rule written ``…/**`` decides,
and below a directory of a name that a source exempts (:attr:`RuleSet.exempt`), patterns of
directories above count only if their source comes before that one, except for those of
:data:`~yolofs.rules.verdict.COUNTING_EVERYWHERE`.

The rules for paths form a trie.  A :class:`Verdict` is a place in it with the rule in force there,
so that the verdict over a name follows from that over its directory (:meth:`RuleBook.below`)
without a look at the whole path: whoever keeps the verdicts of directories judges any file in O(1).
Each change of the rules makes a new trie and counts :attr:`RuleBook.version` up; verdicts of an
older version are worth nothing.
"""

from __future__ import annotations

from yolofs.rules.index import RuleIndex, ending
from yolofs.rules.rule_states import RuleState
from yolofs.rules.spelling import PathRule, Rule, RuleSet
from yolofs.rules.verdict import Verdict


class RuleBook:
    """The rules of a session from all their sources; paths are absolute paths of the view, as base
    has them.

    Only the thread that owns the view may put others in force; looking is for every thread.
    """

    def __init__(self, *sources: RuleSet) -> None:
        """``sources``: nearest first."""
        self.version = 0
        self.adopt(RuleIndex(*sources))

    @property
    def sources(self) -> tuple[RuleSet, ...]:
        """The rules in force, nearest level first."""
        return self._index.sources

    def replace(self, *sources: RuleSet) -> None:
        """Put other rules in force: every verdict given so far is void."""
        self.adopt(RuleIndex(*sources))

    def adopt(self, index: RuleIndex) -> None:
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
            and not (self._hidden_endings and ending(name) in self._hidden_endings)
        ):
            return True
        return not self.below(above, name).seems_absent

    def mostly(self, state: RuleState) -> dict[bytes, list[bytes]]:
        """Return the paths at and below which every path has this state, whatever its name, except
        for some told below.

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
                patterns = list(verdict.patterns_in_force().values()) if below.rule.is_whole else []
                if verdict.rule is not None and not isinstance(verdict.rule, PathRule):
                    patterns.append(verdict.rule)
                closing = (one for one in patterns if below.rule and one.state.is_stricter_than(below.rule.state))
                if (pattern := next(closing, None)) is not None:
                    return pattern
        return None
