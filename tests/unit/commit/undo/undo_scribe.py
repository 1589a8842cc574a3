"""Commits of a scribe, and what undoes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.undo_model import Commits
from yolofs.commit import execute, plan_commit
from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.inverse import invert
from yolofs.commit.undo.undoable_names import Inverse


@pytest.fixture
def commits(scribe: CommitScribe, tmp_path: Path) -> Commits:
    """The commits of the scribe."""
    (tmp_path / "commits").mkdir()
    return Commits(scribe, os.fsencode(tmp_path / "commits"))


def inverse_of(commits: Commits, *, force: bool = False) -> Inverse:
    applied = Applied.read(1, commits.parking(1))
    return invert(applied, commits.scribe.base, commits.scribe.store, force=force)


def commit(commits: Commits) -> None:
    commits.commit(1)
    commits.wait_for_clock(1)


def execute_undo(commits: Commits) -> None:
    """Undo, whatever the host has done."""
    store, tree = KeptAndStore(commits.scribe.store, commits.directory), inverse_of(commits).tree()
    plan = plan_commit(tree, commits.scribe.base, store)
    execute(plan, store, parking=commits.parking(2), durable=False)
