"""What `make test` draws of a table, `make nightly` tries at all."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRAWS = re.compile(r"^from tests\.support\.(fault_points|model_steps) import|^@pytest\.mark\.some\(", re.MULTILINE)


def test_every_file_that_tries_all_by_night_is_run_by_night() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("HYPOTHESIS_PROFILE=nightly")[2].partition("\n\n")[0]
    named = tuple(re.findall(r"tests/[\w/]+", recipe))
    files = [str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py") if DRAWS.search(path.read_text())]
    assert len(files) > 30
    assert [path for path in files if not path.startswith(named)] == []
