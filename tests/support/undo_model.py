"""The commits of a view that is made by hand, and undoing them."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from tests.support.commit_model import CommitScribe
from yolofs.commit import Plan, execute, plan_commit
from yolofs.commit.plan.kept_objects import KeptAndStore
from yolofs.commit.select.compose import compose
from yolofs.commit.undo.applied import Applied
from yolofs.commit.undo.homes import find_homes
from yolofs.commit.undo.inverse import invert
from yolofs.journal.codec import decode, encode
from yolofs.journal.records import Keep
from yolofs.state.tree import Tree
from yolofs.store.restored import InodeCtime


class Undo(NamedTuple):
    """An undo that is ready to be done."""

    plan: Plan
    store: KeptAndStore
    left: list[Keep]
    """What is staged then."""
    inverse: list[Keep]


class Commits(NamedTuple):
    """The commits of a scribe, in a directory of their own."""

    scribe: CommitScribe
    directory: bytes

    def parking(self, number: int) -> bytes:
        """Return the directory of a commit."""
        return os.path.join(self.directory, b"%d" % number)

    def commit(self, number: int) -> Plan:
        """Commit what is staged, after which nothing is."""
        plan = self.scribe.commit(self.parking(number))
        self.stage(Tree())
        return plan

    def wait_for_clock(self, number: int) -> None:
        """Wait until the kernel's clock has gone on since a commit ended: what is made then is
        younger.
        """
        ended_ns = os.lstat(os.path.join(self.parking(number), b"done")).st_mtime_ns
        probe = os.path.join(self.parking(number), b"probe")
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
        while os.lstat(probe).st_mtime_ns <= ended_ns:
            os.utime(probe)
        os.unlink(probe)

    def stage(self, tree: Tree) -> None:
        """Go on with another state."""
        self.scribe.freeze()
        self.scribe.records.clear()
        self.scribe.tree = tree

    def prepare(self, number: int, restored: AbstractSet[InodeCtime] = frozenset()) -> Undo:
        """Prepare to undo all of a commit, which nobody has changed since, but for the ctimes
        ``restored``.
        """
        scribe = self.scribe
        applied = Applied.read(number, self.parking(number))
        inverse = invert(applied, scribe.base, scribe.store, restored=restored)
        assert not inverse.drifted, inverse.drifted
        assert not inverse.stays
        store, tree = KeptAndStore(scribe.store, self.directory), inverse.tree()
        plan = plan_commit(tree, scribe.base, store)
        assert Plan.decode(plan.encode()) == plan
        homes = find_homes(applied, scribe.base, tree)
        left = compose(tree, scribe.tree, scribe.base, scribe.store, self.directory, homes=homes).records
        assert [decode(encode(record)) for record in left] == left
        return Undo(plan, store, left, inverse.records)

    def undo(self, number: int, by: int, restored: AbstractSet[InodeCtime] = frozenset()) -> Undo:
        """Undo all of a commit; what it had applied is staged again."""
        undo = self.prepare(number, restored)
        execute(undo.plan, undo.store, parking=self.parking(by), durable=False)
        self.stage(Tree(undo.left))
        return undo
