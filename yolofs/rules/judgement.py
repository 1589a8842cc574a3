"""A verdict and the version of the rules that it holds for."""

from __future__ import annotations

from yolofs.rules.verdict import Verdict


class Judgement:
    """What the gate found of a file.  All files of a directory share one, as long as no rule parts
    them.
    """

    __slots__ = ("verdict", "version")

    def __init__(self, verdict: Verdict, version: int) -> None:
        self.verdict = verdict
        self.version = version
        """The version of the rules under which ``verdict`` was found; 0: it is worth nothing."""


UNJUDGED = Judgement(Verdict(None, None), 0)
"""Of a file that nobody has judged yet, or that is elsewhere since."""
