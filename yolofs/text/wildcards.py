"""Names and patterns of variables, many at once, as ``fnmatch`` has them; case counts."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


class Wildcards:
    """Names and patterns, made ready once.  Whoever wrote a tree's settings may have written very
    many.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._written = frozenset(patterns)
        self._others = [pattern for pattern in self._written if "?" in pattern or "[" in pattern]
        starred = [one.split("*") for one in self._written.difference(self._others) if "*" in one]
        self._starts = tuple(literals[0] for literals in starred if not any(literals[1:]))
        self._ends = tuple(literals[-1] for literals in starred if not any(literals[:-1]))
        self._inside = [literals[1] for literals in starred if len(literals) == 3 and not (literals[0] or literals[2])]
        self._starred = [
            literals for literals in starred if sum(map(bool, literals)) > 1 or (len(literals) > 3 and any(literals))
        ]
        self._plain = self._written.difference(self._others)
        self.looks = 0
        """How many patterns were compared with a name so far; looking a name up counts as one."""

    def fit(self, name: str) -> bool:
        """Tell whether any of them fits a name."""
        if self._fit_plainly(name, self._plain):
            return True
        self.looks += len(self._others)
        return any(fnmatchcase(name, pattern) for pattern in self._others)

    def cover(self, pattern: str) -> bool:
        """Tell whether one of them fits every name that ``pattern`` (a name or a pattern) fits;
        False if in doubt.
        """
        # A pattern without ? and [ fits all that `pattern` does if it fits its text: each * takes
        # its * as well.
        return self._fit_plainly(pattern, self._written)

    def _fit_plainly(self, name: str, written: frozenset[str]) -> bool:
        self.looks += 1
        if name in written:
            return True
        self.looks += len(self._starts) + len(self._ends) + len(self._inside) + len(self._starred)
        return (
            name.startswith(self._starts)
            or name.endswith(self._ends)
            or any(literal in name for literal in self._inside)
            or any(_fits(literals, name) for literals in self._starred)
        )


def _fits(literals: list[str], name: str) -> bool:
    """Tell whether a name has some texts in this order, the first at its start and the last at its
    end.
    """
    first, *middle, last = literals
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for literal in middle:
        found = name.find(literal, at, end)
        if found < 0:
            return False
        at = found + len(literal)
    return True
