"""The core without a mount: look-ups in the override tree, rules, the journal, changes and the plan
of a commit.

    python -m benchmarks.core [--rounds 5] [--entries 1000000] [--files 9999]

Prints the median of the rounds for each line, with fastest and slowest.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from benchmarks.result_tables import duration
from yolofs.commit.plan.planner import plan_commit
from yolofs.journal.journal import Journal
from yolofs.journal.records import Stage
from yolofs.overlay import Overlay, Owner
from yolofs.paths import Generation, RelPath, StoreIno
from yolofs.rules import PathRule, Rule, RuleBook, RuleSet, RuleState, SuffixRule, Verdict
from yolofs.session.session import Session, SessionAccess
from yolofs.state.tree import Entry, Tree

BATCH = 1000
LOOKUPS = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One thing to measure."""

    title: str
    count: int
    """How often ``action`` does it."""
    action: Callable[[], object]


def measure(line: Line, rounds: int) -> str:
    """Return the line of the table."""
    took = []
    for _ in range(rounds):
        gc.collect()
        start = time.perf_counter()
        line.action()
        took.append((time.perf_counter() - start) / line.count)
    spread = f"[{duration(min(took))} to {duration(max(took))}]"
    return f"{line.title:62} {duration(statistics.median(took)):>9}  {spread}"


def all_lines(entries: int, files: int) -> Iterator[Line]:
    """Yield everything that is measured; what a line needs is there until the next one is asked
    for.
    """
    yield from tree_lines(entries)
    yield from rule_lines()
    with tempfile.TemporaryDirectory() as directory:
        yield from journal_lines(os.fsencode(directory), entries)
    with tempfile.TemporaryDirectory() as directory:
        yield from session_lines(os.fsencode(directory), files)


# ---- the override tree


def path_of(number: int) -> RelPath:
    """Return a path of six names, in a directory of a hundred files."""
    return RelPath(b"home/user/project/part%d/dir%d/file%d.c" % (number // 10_000, number // 100, number))


def stage(number: int) -> Stage:
    """Return the record of a new file."""
    return Stage(1767225600123456789 + number, path_of(number), StoreIno(number + 1))


def tree_lines(entries: int) -> Iterator[Line]:
    """Look up paths and names in a small tree and in a large one."""
    for size in (10, entries):
        tree = Tree(stage(number) for number in range(size))
        paths = [path_of(number * 7919 % size) for number in range(LOOKUPS)]
        absent = [RelPath(path + b"x") for path in paths]
        names = [(entry.parent, entry.name) for path in paths if (entry := tree.find(path)) and entry.parent]
        assert len(names) == LOOKUPS
        yield Line(f"tree: a name in its directory; {size:,} entries", LOOKUPS, partial(_look_up, names))
        yield Line(f"tree: a path of six names; {size:,} entries", LOOKUPS, partial(_resolve, tree, paths))
        yield Line(f"tree: the same, nothing there; {size:,} entries", LOOKUPS, partial(_resolve, tree, absent))


def _look_up(names: list[tuple[Entry, bytes]]) -> None:
    for parent, name in names:
        children = parent.children
        assert children is not None
        assert children[name].staged is not None


def _resolve(tree: Tree, paths: list[RelPath]) -> None:
    for path in paths:
        tree.resolve(path)


# ---- rules


def rule_lines() -> Iterator[Line]:
    """Judge paths by few rules and by many."""
    for size in (10, 10_000):
        rules: list[Rule] = [PathRule(b"/", RuleState.ALLOW, "bench")]
        rules += [SuffixRule(b".s%d" % number, RuleState.READ_ONLY, "bench") for number in range(5)]
        rules += [PathRule(b"/" + path_of(number * 100), RuleState.READ_ONLY, "bench") for number in range(size - 6)]
        source = RuleSet(tuple(rules))
        book = RuleBook(source)
        paths = [b"/" + path_of(number) for number in range(LOOKUPS)]
        directory = book.at(b"/home/user/project/part0/dir0")
        assert book.at(paths[0]).state is RuleState.READ_ONLY
        assert book.at(paths[1]).state is RuleState.ALLOW
        yield Line(f"rules: a path of six names; {size:,} rules", LOOKUPS, partial(_judge, book, paths))
        yield Line(
            f"rules: a name in a judged directory; {size:,} rules", LOOKUPS, partial(_judge_names, book, directory)
        )
        yield Line(f"rules: others come in force; {size:,} rules", 1, partial(book.replace, source))


def _judge(book: RuleBook, paths: list[bytes]) -> None:
    for path in paths:
        book.at(path)


def _judge_names(book: RuleBook, directory: Verdict) -> None:
    for _ in range(LOOKUPS):
        book.below(directory, b"file5.c")


# ---- the journal


def journal_lines(directory: bytes, records: int) -> Iterator[Line]:
    """Append to a journal, open it, decode it and build its tree."""
    numbers = count(0)
    path = os.path.join(directory, b"journal")
    with Journal.create(path) as journal:
        batch = [stage(number) for number in range(BATCH)]
        yield Line("journal: append a record", LOOKUPS, lambda: _append(journal, numbers))
        yield Line("journal: append a record, by the thousand", BATCH, lambda: journal.append(*batch))
        yield Line("journal: append a record and make it durable", 20, lambda: _append_durably(journal, numbers))
    os.unlink(path)
    with Journal.create(path) as journal:
        for first in range(0, records, BATCH):
            journal.append(*(stage(number) for number in range(first, min(first + BATCH, records))))
    title = f"a record; {records:,} of them"
    yield Line(f"journal: open, {title}", records, lambda: Journal.open(path).close())
    with Journal.open(path) as journal:
        yield Line(f"journal: decode {title}", records, lambda: deque(journal.read(), maxlen=0))
        yield Line(f"journal: replay {title}", records, lambda: _replay(journal, records))


def _append(journal: Journal, numbers: Iterator[int]) -> None:
    for _ in range(LOOKUPS):
        journal.append(stage(next(numbers)))


def _append_durably(journal: Journal, numbers: Iterator[int]) -> None:
    for _ in range(20):
        journal.append(stage(next(numbers)))
        journal.sync()


def _replay(journal: Journal, records: int) -> None:
    tree = Tree(record for record in journal.read() if isinstance(record, Stage))
    assert len(tree.staged) == records


# ---- changes and plan


def session_lines(project: bytes, files: int) -> Iterator[Line]:
    """Compare states and plan a commit: a third each of new, rewritten and deleted files."""
    os.mkdir(os.path.join(project, b"old"))
    for number in range(2 * files // 3):
        with open(os.path.join(project, b"old/%d" % number), "wb") as file:
            file.write(b"base\n")
    Session.create(project)
    with Session.open(project, SessionAccess.WRITE, root=project) as session:
        _change(session, files)
        tree = session.state()
        changes = session.compare(Generation(0))
        plan = plan_commit(tree, session.base, session.store)
        assert len(changes) == files // 3 * 3 + 1  # and the directory of the new ones
        assert plan.steps
        yield Line(f"changes: one of {files:,}", files, lambda: session.compare(Generation(0)))
        yield Line(f"plan: one of {files:,} changes", files, lambda: plan_commit(tree, session.base, session.store))
        yield Line("snapshot: the record and its generation", 100, lambda: [session.snapshot() for _ in range(100)])


def _change(session: Session, files: int) -> None:
    state = session.present()
    overlay = Overlay(session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from, max_fds=64)
    owner = Owner(os.getuid(), os.getgid())
    new = overlay.mkdir(overlay.root, b"new", 0o755, owner)[0]
    found = overlay.lookup(overlay.root, b"old")
    assert found is not None
    for number in range(files // 3):
        inode = overlay.create(new, b"%d" % number, 0o644, owner)[0]
        overlay.write(inode, 0, b"new\n")
        overlay.release(inode, writer=True)
        known = overlay.lookup(found[0], b"%d" % number)
        assert known is not None
        overlay.open(known[0], os.O_WRONLY)
        overlay.write(known[0], 0, b"view\n")
        overlay.release(known[0], writer=True)
        overlay.unlink(found[0], b"%d" % (files // 3 + number))
    overlay.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description="The core without a mount.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the large tree and journal (%(default)s)")
    parser.add_argument("--files", type=int, default=9_999, help="that are compared and planned (%(default)s)")
    options = parser.parse_args()
    for line in all_lines(options.entries, options.files):
        print(measure(line, options.rounds), flush=True)


if __name__ == "__main__":
    main()
