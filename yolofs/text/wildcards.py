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
        self._starts = tuple(parts[0] for parts in starred if not any(parts[1:]))
        self._ends = tuple(parts[-1] for parts in starred if not any(parts[:-1]))
        self._inside = [parts[1] for parts in starred if len(parts) == 3 and not (parts[0] or parts[2])]
        self._starred = [parts for parts in starred if sum(map(bool, parts)) > 1 or (len(parts) > 3 and any(parts))]
        self._plain = self._written.difference(self._others)
        self.looks = 0
        """So many patterns were compared with a name so far; looking a name up counts as one."""

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
            or any(part in name for part in self._inside)
            or any(_fits(parts, name) for parts in self._starred)
        )


def _fits(parts: list[str], name: str) -> bool:
    """Tell whether a name has some parts, in this order, the first at its start and the last at its
    end.
    """
    first, *middle, last = parts
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
