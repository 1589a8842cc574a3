"""How much work may go into finding out what a rule of a tree opens.  Whoever wrote the tree chose
how much there is.
"""

from __future__ import annotations

from typing import Final

MOST_STEPS: Final = 60_000
"""For comparing: a step takes 3 to 10 µs, all of them some tenths of a second, until the user has
agreed or said no.  Sixteen patterns of four states do with fewer."""
MOST_LOOKS: Final = 60_000
"""For rules looked at one by one: a step takes 1 to 2 µs.  Some thousands of rules take as many."""


class BudgetSpentError(Exception):
    """More steps are needed than there are; what is not known by then waits."""


class Budget:
    """Counts steps."""

    __slots__ = ("most", "used")

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.most = most
        self.used = 0
        """How many steps were taken, or asked for, so far."""

    def take(self, steps: int = 1) -> None:
        """Count some steps, before they are taken.

        Raises:
            BudgetSpentError: there are not so many left.
        """
        self.used += steps
        if self.used > self.most:
            raise BudgetSpentError
