"""The rules of a mount: what its files say, and the answers that hold for this session.

All calls block, and none is for the device loop, which puts the rules in force.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from yolofs.config.trust import NEXT, count_text
from yolofs.rules import Level, Rule, RuleSet, RuleSubject, Sources, subject
from yolofs.rules.rule_files import AskSettings, RuleFiles

log = logging.getLogger("yolofs.daemon")

SESSION_SOURCE = "an answer in this session"
"""Where rules are written that are kept in memory, for messages."""


class RuleKeeper:
    """Keeps the rules of one mount, for any thread; ``put_in_force`` is called with them when they
    have changed.
    """

    def __init__(
        self,
        files: RuleFiles,
        put_in_force: Callable[[Sources], None],
        take_up: Callable[[AskSettings], None],
    ) -> None:
        """``files`` have been read, and what they say is in force; ``take_up`` is called with what
        they say of asks.
        """
        self.files = files
        self._take_up = take_up
        self._asks = files.asks
        self._put_in_force = put_in_force
        self._answers: dict[RuleSubject, Rule] = {}
        self._lock = threading.Lock()
        """Guards all of it, so that the rules that were made last stay in force."""
        self.sources = files.sources()
        """What is in force."""
        self.warnings = self._warnings()
        """Warnings for the user: files with mistakes, and rules that are not in force everywhere.
        """

    def reload(self) -> None:
        """Take up what has changed in the files."""
        with self._lock:
            before = self.files.problems
            self.files.reload()
            for level, problem in self.files.problems.items():
                if before.get(level) != problem:
                    log.warning("%s; the rules that it had before stay in force", problem)
            if self.files.asks != self._asks:
                self._asks = self.files.asks
                self._take_up(self._asks)
            self._renew()

    def is_up_to_date(self) -> bool:
        """Tell whether the files are as they were when they were taken up."""
        with self._lock:
            return self.files.are_as_read()

    def count_waiting(self) -> int:
        """Return how many rules wait to be agreed to, as the files are now, be that taken up yet or
        not.
        """
        with self._lock:
            sources = self.sources if self.files.are_as_read() else self._as_they_are()
        return sum(one.key[0] == "rules" for one in sources.waiting)

    def _as_they_are(self) -> Sources:
        files = RuleFiles(self.files.project, self.files.directory, self.files.home)
        files.reload()
        return files.sources(self._session_rules())

    def _session_rules(self) -> RuleSet:
        return RuleSet(tuple(self._answers.values()))

    def install(self, rules: Iterable[Rule], *, lasting: bool) -> None:
        """Put rules in force, each in place of an earlier one about the same.

        ``lasting``: they are written to ``rules.toml``, and answers about the same for this session
        are forgotten.

        Raises:
            ConfigError: ``rules.toml`` is not in order, so it cannot be changed; or it cannot be
                written.
        """
        with self._lock:
            by_subject = {subject(rule): rule for rule in rules}
            if lasting:
                self.files.learn(*by_subject.values())
                for about in by_subject:
                    self._answers.pop(about, None)
            else:
                self._answers |= by_subject
            self._renew()

    def remove(self, rule: Rule) -> tuple[Level, ...]:
        """Remove the answer and the learned rule with the key of ``rule``; return where there was
        one.

        Raises:
            ConfigError: as for :meth:`install`.
        """
        with self._lock:
            was_learned = self.files.forget(rule)
            was_answered = self._answers.pop(subject(rule), None) is not None
            self._renew()
        found = ((Level.SESSION, was_answered), (Level.LEARNED, was_learned))
        return tuple(level for level, was_there in found if was_there)

    def _renew(self) -> None:
        """Put in force what the sources make now; links are followed anew."""
        sources = self.files.sources(self._session_rules())
        if sources.sets() != self.sources.sets():
            self._put_in_force(sources)
        if sources.waiting and sources.waiting != self.sources.waiting:
            log.info("%s: %s", count_text(len(sources.waiting)), NEXT)
        self.sources = sources
        self.warnings = self._warnings()

    @property
    def waits(self) -> tuple[str, ...]:
        """That lines wait to be agreed to, if any do."""
        count = len(self.sources.waiting)
        return (f"{count_text(count)}: {NEXT}",) if count else ()

    def _warnings(self) -> tuple[str, ...]:
        broken = (f"{problem}; the rules that it had before stay in force" for problem in self.files.problems.values())
        return (*broken, *self.sources.notes)
