"""Which directories an answer can be about, and which asks belong together.  Pure: paths and rules
in, paths out.
"""

from __future__ import annotations

from collections.abc import Iterable

from yolofs.access.questions import Question
from yolofs.paths import is_in
from yolofs.rules import NameRule, PathRule, SuffixRule, fits


def common_directory(paths: Iterable[bytes]) -> bytes:
    """Return the nearest directory that holds all of some paths; of one path its own directory."""
    directories = [path.rpartition(b"/")[0] for path in paths]
    nearest = min(directories, key=len)
    while not all(one == nearest or one.startswith(nearest + b"/") for one in directories):
        nearest = nearest.rpartition(b"/")[0]
    return nearest or b"/"


def widest_scope(question: Question) -> bytes:
    """Return the highest path for which a rule would settle a question.  A rule for a higher path
    may leave it open, because nearer rules decide.

    If no higher path settles the question, that is the asked path itself.
    """
    path, rule = question.path, question.rule
    if question.is_about_other_names:
        return path
    match rule:
        case None:
            return b"/"
        case PathRule():
            return rule.path if is_in(path, rule.path) else path
        case NameRule() | SuffixRule():
            return _last_fitting(rule, path)


def group_directory(question: Question) -> bytes:
    """Return the directory of a question's group: what a process asks below it at the same time
    belongs together.

    It is the directory that the asking rule is about.  If that rule is about everything (a pattern,
    a rule for ``/``, or no rule), it is the highest directory on the path below ``/``: ``/etc`` and
    ``/home`` are two matters.
    """
    path, rule = question.path, question.rule
    if isinstance(rule, PathRule) and rule.path == path:
        return path.rpartition(b"/")[0]
    if isinstance(rule, PathRule) and rule.path != b"/" and is_in(path, rule.path):
        return rule.path
    top, slash, _ = path[1:].partition(b"/")
    return b"/" + top if slash else b""


def _last_fitting(pattern: NameRule | SuffixRule, path: bytes) -> bytes:
    """Return the path up to the last of its names that a pattern fits."""
    found = path
    while found and not fits(pattern, found.rpartition(b"/")[2]):
        found = found.rpartition(b"/")[0]
    return found or path
