"""The walks through the code that ``docs/design/walks.md`` describes."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/walks.md"

Step = tuple[str, str]
"""A file, from the project on, and the qualified name of a function in it."""


def walks() -> dict[str, list[Step]]:
    """Return the steps of each walk, by the title of its section."""
    sections = PAGE.read_text().split("\n## ")[1:]
    step = re.compile(r"^\d+\. `(\S+)` `(\S+)`", re.MULTILINE)
    return {section.partition("\n")[0]: step.findall(section) for section in sections}
