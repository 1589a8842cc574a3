"""How a session grows: a long journal, many snapshots, large directories, and the memory that it
all takes.

    python -m benchmarks.scale [--records 1000000] [--changes 100000] [--files 50000] [--generations
    10000]

Prints one line for each figure.  Without a mount: the figures are those of the core.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator

from yolofs.journal.records import Fingerprint, Stage
from yolofs.overlay import Overlay
from yolofs.overlay.inodes import Inode
from yolofs.paths import RelPath, StoreIno
from yolofs.session.session import Session, SessionAccess

BATCH = 10_000
OPEN = """
import resource, sys, time
from yolofs.session.session import Session, SessionAccess
start = time.perf_counter()
with Session.open(sys.argv[1].encode(), SessionAccess.WRITE) as session:
    opened = time.perf_counter()
    state = session.present()
    ready = time.perf_counter()
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{opened - start:.2f} {ready - opened:.2f} {mib:.0f} {len(state.tree.staged)}")
"""


def timed(action: Callable[[], object]) -> float:
    """Return how many seconds ``action`` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def write_journal(project: bytes, records: int, changes: int) -> None:
    """Fill a session with ``records`` records about ``changes`` paths, and a snapshot every
    hundredth part.
    """
    with Session.open(project, SessionAccess.WRITE, root=project) as session:
        batch = []
        for number in range(1, records + 1):
            path = b"home/user/project/dir%d/file%d.c" % (number % changes // 100, number % changes)
            batch.append(
                Stage(
                    number,
                    RelPath(path),
                    StoreIno(number),
                    base=Fingerprint(1767225600123456789, 1234, number % changes + 3),
                )
            )
            if len(batch) == BATCH:
                session.journal.append(*batch)
                batch.clear()
                session.snapshot()
        session.journal.append(*batch)


def write_checkpoint(project: bytes) -> None:
    """Write a checkpoint, as the end of a mount does."""
    with Session.open(project, SessionAccess.WRITE) as session:
        seconds = timed(lambda: session.write_checkpoint(least_records=0))
    size = os.path.getsize(os.path.join(project, b".yolofs/checkpoint"))
    print(f"checkpoint: {size / 1e6:.1f} MB, {seconds:.1f} s")


def open_journal(project: bytes) -> None:
    """Open it in a fresh process, as a daemon does."""
    done = subprocess.run([sys.executable, "-c", OPEN, project.decode()], check=True, capture_output=True, text=True)
    opened_s, replayed_s, mib, staged = done.stdout.split()
    print(f"open: scan and collect {opened_s} s, replay {replayed_s} s, peak {mib} MiB, {staged} staged files")


def snapshots(project: bytes) -> None:
    """Time snapshots with all of that staged, and in an empty session."""
    with Session.open(project, SessionAccess.WRITE) as session:
        full = statistics.median(timed(session.snapshot) for _ in range(101))
    with tempfile.TemporaryDirectory() as directory:
        Session.create(os.fsencode(directory))
        with Session.open(os.fsencode(directory), SessionAccess.WRITE, root=os.fsencode(directory)) as session:
            empty = statistics.median(timed(session.snapshot) for _ in range(101))
    print(f"snapshot: {full * 1e6:.0f} µs with all of it staged, {empty * 1e6:.0f} µs in an empty session")


@contextlib.contextmanager
def view_of(files: int) -> Iterator[tuple[Session, Overlay]]:
    """Give the view of a base directory ``many`` with so many files, without a mount."""
    with tempfile.TemporaryDirectory() as directory:
        project = os.fsencode(directory)
        os.mkdir(os.path.join(project, b"many"))
        for number in range(files):
            os.close(os.open(os.path.join(project, b"many/file%d" % number), os.O_CREAT | os.O_WRONLY))
        Session.create(project)
        with Session.open(project, SessionAccess.WRITE, root=project) as session:
            state = session.present()
            overlay = Overlay(
                session.base, session.store, session.journal, state.tree, fresh_from=state.fresh_from, max_fds=64
            )
            yield session, overlay
            overlay.close()


def directory_of(overlay: Overlay) -> Inode:
    """Look the directory of :func:`view_of` up."""
    found = overlay.lookup(overlay.root, b"many")
    assert found is not None
    return found[0]


def rename_directory(files: int) -> None:
    """Rename a base directory of many files in the view."""
    with view_of(files) as (session, overlay):
        before = sum(session.journal.segment_counts())
        seconds = timed(lambda: overlay.rename(overlay.root, b"many", overlay.root, b"other"))
        records = sum(session.journal.segment_counts()) - before
    print(f"mv of a directory of {files} files: {seconds * 1e6:.0f} µs, {records} record")


def list_directory(files: int) -> None:
    """List a base directory and look all its names up, as a listing through a mount does."""
    with view_of(files) as (_, overlay):
        directory = directory_of(overlay)

        def look() -> None:
            for name in overlay.names(directory):
                overlay.lookup(directory, name)

        print(f"a directory of {files}: listed in {timed(look) / files * 1e6:.1f} µs a name")


def memory(files: int) -> None:
    """Tell what each known file takes, and each that is staged."""
    with view_of(files) as (_, overlay):
        directory = directory_of(overlay)
        tracemalloc.start()
        for name in overlay.names(directory):
            overlay.lookup(directory, name)
        known, _ = tracemalloc.get_traced_memory()
        for inode in list(overlay.inodes.by_number.values()):
            if not inode.is_directory:
                overlay.setattr(inode, mode=0o600)
        staged, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(f"memory: {known / files:.0f} bytes for a known file, {(staged - known) / files:.0f} more once it is staged")


def many_generations(count: int) -> None:
    """Take snapshots with a change before each, and look a file up before and after."""
    with view_of(100) as (session, overlay):
        directory = directory_of(overlay)

        def look() -> float:
            return min(timed(lambda: overlay.lookup(directory, b"file0")) for _ in range(1000))

        def step() -> float:
            overlay.setattr(overlay.root, mtime_ns=time.time_ns())
            seconds = timed(session.snapshot)
            overlay.mark(session.store.next_ino)
            return seconds

        before, times = look(), [step() for _ in range(count)]
        after, tenth = look(), count // 10
    first, last = statistics.median(times[:tenth]), statistics.median(times[-tenth:])
    print(
        f"{count} snapshots: {first * 1e6:.0f} µs in the first tenth, {last * 1e6:.0f} µs in the last; "
        f"a look-up {before * 1e6:.1f} µs before and {after * 1e6:.1f} µs after them"
    )


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--generations", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        project = os.fsencode(directory)
        Session.create(project)
        seconds = timed(lambda: write_journal(project, options.records, options.changes))
        size = os.path.getsize(os.path.join(project, b".yolofs/journal"))
        print(f"journal: {options.records} records about {options.changes} paths, {size / 1e6:.0f} MB, {seconds:.1f} s")
        open_journal(project)
        write_checkpoint(project)
        open_journal(project)
        snapshots(project)
    rename_directory(options.files)
    for files in (options.files // 5, 2 * options.files):
        list_directory(files)
    memory(options.files)
    many_generations(options.generations)
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
