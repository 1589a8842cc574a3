"""Planning while the host works on the same files: each is looked at once."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.unit.commit.old_base import at, scribe
from yolofs.paths import RelPath
from yolofs.store.base import Base

__all__ = ["scribe"]


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("first", ["is there", "is away"])
def test_a_file_that_comes_and_goes_between_two_looks_is_no_mistake_of_ours(
    scribe: CommitScribe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, number: int
) -> None:
    scribe.write(b"a", b"staged")
    scribe.write(b"g1", b"staged, too")
    file, aside = at(scribe, b"a"), tmp_path / "aside"
    if first == "is away":
        file.rename(aside)
    calls, really = itertools.count(1), Base.look

    def look(self: Base, rel: RelPath | None) -> os.stat_result | None:
        if rel == b"a" and next(calls) == number:
            if aside.exists():
                aside.rename(file)
            else:
                file.rename(aside)
        return really(self, rel)

    monkeypatch.setattr(Base, "look", look)
    with contextlib.suppress(FileNotFoundError):  # of which the command says the path
        scribe.plan()
