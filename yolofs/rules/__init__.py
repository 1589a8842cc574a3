"""Rules: states attached to paths, and which of them decides over a path.  Pure: nothing here looks
at a disk.
"""

from yolofs.rules.book import RuleBook
from yolofs.rules.index import RuleIndex
from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import Level, Sources
from yolofs.rules.spelling import (
    NameRule,
    PathRule,
    Rule,
    RuleSet,
    RuleSubject,
    SuffixRule,
    Waypoint,
    fits,
    parse_rule,
    parse_rules,
    spell_rule,
    subject,
)
from yolofs.rules.verdict import Verdict

__all__ = [
    "Level",
    "NameRule",
    "PathRule",
    "Rule",
    "RuleBook",
    "RuleIndex",
    "RuleSet",
    "RuleState",
    "RuleSubject",
    "Sources",
    "SuffixRule",
    "Verdict",
    "Waypoint",
    "fits",
    "parse_rule",
    "parse_rules",
    "spell_rule",
    "subject",
]
