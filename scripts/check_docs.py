"""Checks that the relative links in README.md, CHANGELOG.md and docs/ lead to files and headings
that exist.

Usage: check_docs.py [PROJECT].  Links to the web are not followed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
HEADING = re.compile(r"#{1,6} +(.+)")


def main() -> int:
    """Print what is broken, one line each, and return the exit code."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = [path for path in (root / "README.md", root / "CHANGELOG.md") if path.exists()]
    files += sorted(root.glob("docs/**/*.md"))
    count = 0
    problems = []
    for path in files:
        for number, target in links(path.read_text(encoding="utf-8")):
            count += 1
            problem = check(root, path, target)
            if problem:
                problems.append(f"{path.relative_to(root)}:{number}: {target}: {problem}")
    for line in problems:
        print(line, file=sys.stderr)
    if not problems:
        print(f"docs: {count} links in {len(files)} files resolve")
    return 1 if problems else 0


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and target of every link that does not stand in code."""
    for number, line in prose(text):
        for found in LINK.finditer(CODE.sub("", line)):
            yield number, found[1]


def check(root: Path, source: Path, target: str) -> str:
    """Return what is wrong with a link in ``source``, or an empty string."""
    name, _, anchor = target.partition("#")
    path = (source.parent / name).resolve() if name else source
    if not path.is_relative_to(root):
        return "leaves the project"
    if not path.exists():
        return "no such file"
    if anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
        return "no such heading"
    return ""


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are called in links, by the rule of the common code
    hosts.
    """
    titles = [found[1] for _, line in prose(text) if (found := HEADING.fullmatch(line))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines outside fenced code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


if __name__ == "__main__":
    sys.exit(main())
