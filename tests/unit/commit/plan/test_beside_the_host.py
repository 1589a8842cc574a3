"""Planning while the host works on the same files: each is looked at once."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.core_in_python import core_in_python
from tests.support.old_base import at, scribe
from yolofs.commit import plan_commit
from yolofs.commit.plan import planner
from yolofs.commit.plan.overridden_names import survey
from yolofs.commit.plan.plan import Plan
from yolofs.errors import NotPreparedError, YolofsError
from yolofs.paths import RelPath
from yolofs.store.base import Base

__all__ = ["scribe"]


@core_in_python
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


def test_what_the_host_removes_after_the_survey_is_called_no_defect(scribe: CommitScribe, tmp_path: Path) -> None:
    scribe.remove(b"a")
    file, aside = at(scribe, b"a"), tmp_path / "aside"
    file.rename(aside)
    names = list(survey(scribe.tree, scribe.base))
    aside.rename(file)
    with pytest.raises(NotPreparedError, match="somebody has changed base while it was planned"):
        plan_commit(scribe.tree, scribe.base, scribe.store, names=names)
    assert plan_commit(scribe.tree, scribe.base, scribe.store).steps


@core_in_python
def test_a_plan_that_is_wrong_each_time_is_called_a_defect(
    scribe: CommitScribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.remove(b"a")
    monkeypatch.setattr(planner._Planner, "plan", lambda one: Plan(one._base.root, ()))
    with pytest.raises(YolofsError, match="would bring back") as caught:
        scribe.plan()
    assert "defect" in caught.value.hint
