"""Asks: how long an answer takes to wake the process, and what a thousand that wait cost everybody
else.

    python -m benchmarks.asks [--rounds 50] [--waiting 1000]

Prints one line for each figure.  Needs a mount; no other one of this user is touched.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yolofs.daemon.rpc.ask_messages import AnswerParams, AskInfo
from yolofs.daemon.rpc.client import Client

COMMAND = (sys.executable, "-P", "-m", "yolofs.cli.main")
ASKER = """
import os, sys, time
for path in sys.argv[1:]:
    os.close(os.open(path, os.O_RDONLY))
    print(time.monotonic_ns(), flush=True)
"""
CROWD = """
import os, sys, threading
def read(number):
    os.close(os.open(f"{sys.argv[1]}/{number}", os.O_RDONLY))
threads = [threading.Thread(target=read, args=(number,)) for number in range(int(sys.argv[2]), int(sys.argv[3]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
_CROWD_SIZE = 250
SETTINGS = 'ask_timeout = 600\n[rules]\n"." = "allow"\n"asked" = "ask"\n'


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--waiting", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="yolofs-bench-") as directory:
        project = Path(directory, "project")
        (project / "asked").mkdir(parents=True)
        (project / "free").mkdir()
        for number in range(max(options.waiting, options.rounds)):
            (project / f"asked/{number}").touch()
            (project / f"free/{number}").touch()
        with mounted(project, Path(directory, "run"), SETTINGS) as (view, client):
            wake_ms = sorted(wake_times(view, client, options.rounds))
            report("an answer wakes the process after", wake_ms)
            alone = sorted(open_times(view, options.rounds * 20))
            report("open and close of another file", alone)
            with crowd(view, options.waiting):
                wait_for(client, options.waiting)
                report(f"the same while {options.waiting} asks wait", sorted(open_times(view, options.rounds * 20)))
                busy = cpu_share(client.pid)
                print(f"{'the daemon then keeps busy of one processor':<48} {busy:8.1%}")
                started = time.perf_counter()
                for group in {ask.group for ask in client.asks()}:
                    client.answer(AnswerParams(group, "allow"))
                print(f"{'answering them all takes':<48} {(time.perf_counter() - started) * 1e3:8.1f} ms")


@contextmanager
def mounted(project: Path, runtime: Path, settings: str) -> Iterator[tuple[Path, Client]]:
    """Mount ``project`` by ``settings``, and give the mountpoint and a client."""
    runtime.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    os.environ["XDG_STATE_HOME"] = str(runtime / "state")
    run = [*COMMAND, "-C", str(project)]
    subprocess.run([*run, "init"], check=True, stderr=subprocess.DEVNULL)
    (project / ".yolofs.toml").write_text(settings)
    mount = subprocess.run([*run, "mount", "--root", str(project)], check=True, stdout=subprocess.PIPE, text=True)
    try:
        client = Client.connect(os.fsencode(project / ".yolofs"))
        assert client is not None
        with client:
            yield Path(mount.stdout.rstrip("\n")), client
    finally:
        subprocess.run([*run, "unmount", "--force"], check=True)


def wake_times(view: Path, client: Client, rounds: int) -> Iterator[float]:
    """Yield how long it takes from sending an answer to the process going on, in milliseconds."""
    paths = [view / f"asked/{number}" for number in range(rounds)]
    with subprocess.Popen([sys.executable, "-c", ASKER, *paths], stdout=subprocess.PIPE) as asker:
        assert asker.stdout is not None
        for _ in paths:
            (ask,) = wait_for(client, 1)
            time.sleep(0.02)  # so that it sleeps, as while a person thinks
            sent = time.monotonic_ns()
            client.answer(AnswerParams(ask.id, "allow"))
            yield (int(asker.stdout.readline()) - sent) / 1e6


def open_times(view: Path, rounds: int) -> Iterator[float]:
    """Yield how long it takes to open and close a file that is not asked, in milliseconds."""
    paths = os.listdir(view / "free")
    for number in range(rounds):
        start = time.perf_counter()
        os.close(os.open(view / "free" / paths[number % len(paths)], os.O_RDONLY))
        yield (time.perf_counter() - start) * 1e3


@contextmanager
def crowd(view: Path, count: int) -> Iterator[None]:
    """Have ``count`` threads ask, some hundred to a process."""
    starts = range(0, count, _CROWD_SIZE)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CROWD, view / "asked", str(start), str(min(start + _CROWD_SIZE, count))]
        )
        for start in starts
    ]
    try:
        yield
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(client: Client, count: int) -> list[AskInfo]:
    """Wait until ``count`` asks wait, and return them.

    Raises:
        TimeoutError: they have not come within a minute.
    """
    deadline = time.monotonic() + 60
    while len(asks := client.asks()) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(asks)} of {count} asks have come within a minute")
        time.sleep(0.001)
    return asks


def cpu_share(pid: int) -> float:
    """Return how much of one processor a process uses, over two seconds."""
    before, start = cpu_seconds(pid), time.perf_counter()
    time.sleep(2)
    return (cpu_seconds(pid) - before) / (time.perf_counter() - start)


def cpu_seconds(pid: int) -> float:
    """Return how long a process has run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(what: str, times_ms: list[float]) -> None:
    """Print a figure: median, 95th percentile and maximum."""
    p95 = times_ms[int(len(times_ms) * 0.95)]
    median = statistics.median(times_ms)
    print(f"{what:<48} {median:8.3f} ms, 95% below {p95:.3f}, at most {times_ms[-1]:.3f}", flush=True)


if __name__ == "__main__":
    main()
