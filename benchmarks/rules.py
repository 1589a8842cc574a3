"""Rules: what a change and a check cost, with many judged files and many rules.

    python -m benchmarks.rules [--files 100000] [--rules 500]

Prints one line for each figure.  Without a mount: the figures are those of the gate and the rule
book.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count

from yolofs.access.gate import Gate
from yolofs.fuse.cache.lifetimes import Lifetimes
from yolofs.fuse.handlers import Handlers
from yolofs.overlay import Overlay, Owner
from yolofs.overlay.inodes import Inode
from yolofs.rules import PathRule, RuleBook, RuleIndex, RuleSet, RuleState
from yolofs.rules.preset import preset_rules
from yolofs.session.session import Session, SessionAccess

PER_DIRECTORY = 100


def timed(action: Callable[[], object], *, times: int) -> float:
    """Return how many seconds ``action`` takes, the median of several."""
    figures = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        figures.append(time.perf_counter() - start)
    return statistics.median(figures)


def make_files(project: bytes, count: int) -> None:
    """Fill base with empty files, some in each directory."""
    for number in range(count):
        directory = os.path.join(project, b"dir%d" % (number // PER_DIRECTORY))
        if number % PER_DIRECTORY == 0:
            os.mkdir(directory)
        os.close(os.open(os.path.join(directory, b"%d" % number), os.O_CREAT | os.O_WRONLY))


def look_up_all(overlay: Overlay, count: int) -> list[Inode]:
    """Make all files known, as the kernel does."""
    found = []
    directory = overlay.root
    for number in range(count):
        if number % PER_DIRECTORY == 0:
            directory = look_up(overlay, overlay.root, b"dir%d" % (number // PER_DIRECTORY))
        found.append(look_up(overlay, directory, b"%d" % number))
    return found


def look_up(overlay: Overlay, directory: Inode, name: bytes) -> Inode:
    """Return the file at a name, which is there."""
    found = overlay.lookup(directory, name)
    assert found is not None
    return found[0]


def rule_sources(project: bytes, count: int) -> tuple[RuleSet, RuleSet]:
    """Return the preset, and rules for paths in the project, so many in all."""
    preset = preset_rules(project, b"/home/user", 1000)
    more = max(count - len(preset.rules), 0)
    own = (PathRule(project + b"/dir%d/sub/x%d" % (n, n), RuleState.ASK, "x") for n in range(more))
    return RuleSet(tuple(own)), preset


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rules", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        project = os.fsencode(os.path.realpath(directory))
        make_files(project, options.files)
        Session.create(project)
        with Session.open(project, SessionAccess.WRITE, root=project) as session:
            state = session.present()
            overlay = Overlay(
                session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from, max_fds=64
            )
            own, preset = rule_sources(project, options.rules)
            gate = Gate(overlay, RuleBook(own, preset))
            inodes = look_up_all(overlay, options.files)
            measure(gate, inodes, own, preset, project)
            compare(overlay, inodes[:PER_DIRECTORY], RuleSet((PathRule(project, RuleState.ALLOW, "x"),)), preset)
            overlay.close()


def measure(gate: Gate, inodes: list[Inode], own: RuleSet, preset: RuleSet, project: bytes) -> None:
    """Print what things cost with all of ``inodes`` judged."""
    start = time.perf_counter()
    for inode in inodes:
        gate.check_read(inode)
    first = (time.perf_counter() - start) / len(inodes)
    start = time.perf_counter()
    for inode in inodes:
        gate.check_read(inode)
    again = (time.perf_counter() - start) / len(inodes)
    rule = PathRule(project + b"/dir0", RuleState.READ_ONLY, "x")
    changed = RuleSet((*own.rules, rule))
    rules = len(changed.rules) + len(preset.rules)
    prepare = timed(lambda: RuleIndex(changed, preset), times=51)
    indexes = [RuleIndex(changed, preset), RuleIndex(own, preset)]

    def change() -> None:
        gate.replace_rules(indexes[0])
        indexes.reverse()

    swap = timed(change, times=51)
    print(f"{len(inodes)} judged files, {rules} rules")
    print(f"a change of rules: {swap * 1e6:.1f} µs on the device loop, after {prepare * 1e3:.2f} ms elsewhere")
    print(f"a check: {again * 1e9:.0f} ns for a judged file, {first * 1e9:.0f} ns for one that is not")
    start = time.perf_counter()
    gate.replace_rules(indexes[0])()
    print(f"finding what the kernel has to forget: {(time.perf_counter() - start) * 1e3:.1f} ms in another thread")


def compare(overlay: Overlay, inodes: list[Inode], own: RuleSet, preset: RuleSet) -> None:
    """Print the cost of requests without an ask, under the preset and under one rule that allows
    all.
    """
    everything = RuleSet((PathRule(b"/", RuleState.ALLOW, "x"),))
    lifetimes = Lifetimes(overlay.base, staged_s=1, base_s=1)
    sides: list[Handlers] = []
    for book in (RuleBook(own, preset), RuleBook(everything)):
        book.version = len(sides) + 1_000_000  # the inodes keep one verdict: each side must void the other's
        sides.append(Handlers(overlay, Gate(overlay, book), lifetimes))
    directory = inodes[0].parent
    assert directory is not None
    number, names, serial = directory.number, [inode.name for inode in inodes], count()

    def look_up(handlers: Handlers) -> None:
        for name in names:
            handlers.lookup(number, name)

    def get_attributes(handlers: Handlers) -> None:
        for inode in inodes:
            handlers.getattr(inode.number)

    def open_and_close(handlers: Handlers) -> None:
        for inode in inodes:
            handlers.release(handlers.open(inode.number, os.O_RDONLY).handle)

    def create_and_close(handlers: Handlers) -> None:
        for _ in inodes:
            name, owner = b"new%d.c" % next(serial), Owner(os.getuid(), os.getgid())
            handlers.release(handlers.create(number, name, 0o644, os.O_WRONLY | os.O_EXCL, owner)[0].handle)

    for requests in (look_up, get_attributes, open_and_close, create_and_close):
        figures: list[list[float]] = [[], []]
        for turn in range(101):
            for side in (0, 1) if turn % 2 else (1, 0):
                requests(sides[side])  # judges anew
                figures[side].append(timed(lambda: requests(sides[side]), times=1) / len(inodes))  # noqa: B023 - called at once
        preset_s, allowed_s = map(min, figures)
        label = requests.__name__.replace("_", " ")
        print(f"{label}: {preset_s * 1e6:.2f} µs under the preset, {allowed_s * 1e6:.2f} µs where all is allowed")


if __name__ == "__main__":
    main()
