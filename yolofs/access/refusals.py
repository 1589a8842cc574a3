"""What stops an access that the rules do not allow."""

from __future__ import annotations

import os

from yolofs.access.questions import Question


class RefusedError(OSError):
    """A rule refuses an access.

    The errno is ENOENT for what is hidden, EXDEV for a directory whose files patterns would not
    guard at the new place, else EACCES.
    """

    def __init__(self, number: int, question: Question) -> None:
        super().__init__(number, os.strerror(number))
        self.question = question


class UndecidedError(Exception):
    """Somebody has to answer first."""

    def __init__(self, question: Question, *later: Question) -> None:
        super().__init__()
        self.question = question
        self.later = later
        """What is to be asked as well if this is allowed."""
