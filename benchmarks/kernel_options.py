"""What the kernel's options for a mount cost and save: the requests of some work, and its time
against the default.

    python benchmarks/kernel_options.py [ROUNDS]

The numbers of requests are exact.  The times are medians over the rounds, in which the options take
turns, given as a ratio to the default's; on a busy machine only the large ones mean anything.
docs/design/kernel-options.md says what follows from them.
"""

from __future__ import annotations

import collections
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

from tests.support.in_process import MountedView
from yolofs.fuse.libfuse.adapter import Adapter
from yolofs.fuse.trace import Trace

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "writeback": {"writeback": True},
    "xattrs": {"xattrs": True},
    "base 0 s": {"base_timeout_s": 0.0},
    "base 60 s": {"base_timeout_s": 60.0},
    "staged 1 s": {"staged_timeout_s": 1.0},
}
PYTHON = shlex.quote(sys.executable)
WRITES = """
file = open("log", "wb", 0)
for n in range(20000):
    file.write(b"x" * 100)
"""
APPENDS = """
for n in range(2000):
    open("log2", "ab", 0).write(b"x" * 100)
"""
SQLITE = """
import sqlite3
database = sqlite3.connect("t.db", isolation_level=None)
database.execute("create table t(a)")
for n in range(200):
    database.execute("insert into t values (?)", ("y" * 500,))
"""
WORK = {
    "20,000 writes of 100 bytes": f"{PYTHON} -c '{WRITES}'",
    "2,000 appends with open and close": f"{PYTHON} -c '{APPENDS}'",
    "sqlite, 200 transactions": f"{PYTHON} -c '{SQLITE}'",
    "untar 400 files": "mkdir out && tar xf tree.tar -C out",
    "edit 100 files and grep": "sed -i s/self/SELF/ $(ls tree/*/*.py | head -100) && grep -r SELF tree >/dev/null",
    "git add, commit, status": "cd tree && git init -q && git add -A && git -c user.name=a -c user.email=b commit -qm x"
    " && git status --porcelain",
    "make -j2 of 20 files, twice": "make -s -j2 -C c && make -s -j2 -C c",
    "read a tree three times": "for n in 1 2 3; do cat tree/*/*.py >/dev/null; done",
}


def prepare(base: Path) -> None:
    """Fill a base directory."""
    for package in ("json", "email", "asyncio", "unittest", "logging", "importlib", "concurrent", "xml", "http"):
        source = Path(sysconfig.get_path("stdlib")) / package
        shutil.copytree(source, base / "tree" / package, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["tar", "cf", "tree.tar", "tree"], cwd=base, check=True)
    (base / "c").mkdir()
    for number in range(20):
        (base / f"c/p{number}.c").write_text(f"int p{number}(void) {{ return {number}; }}\n")
    names = " ".join(f"p{number}.o" for number in range(20))
    (base / "c/Makefile").write_text(f"lib.a: {names}\n\tar rcs $@ {names}\n")


def serve(options: dict[str, Any]) -> None:
    """Do all the work in one mounted view; print requests and seconds for each as JSON."""
    os.umask(0o022)
    setattr(subprocess, "_USE_VFORK", False)  # noqa: B010 - a private name, as tests/conftest.py says
    base = Path(tempfile.mkdtemp(prefix="yolofs-bench-"))
    prepare(base)
    Adapter.enable_writeback_cache = options.pop("writeback", False)  # no setting; the view would be wrong
    trace = Trace()
    view = MountedView(os.fsencode(base), **({"spin_us": 60, "trace": trace} | options))
    results = {}
    try:
        for name, script in WORK.items():
            before = collections.Counter(trace.counts())
            start = time.perf_counter()
            subprocess.run(["sh", "-ec", script], cwd=view.mountpoint, check=True, stdout=subprocess.DEVNULL)
            results[name] = {
                "seconds": time.perf_counter() - start,
                "requests": dict(collections.Counter(trace.counts()) - before),
            }
    finally:
        view.close()
        shutil.rmtree(base)
    print(json.dumps(results))


def main() -> None:
    if len(sys.argv) > 2:
        serve(json.loads(sys.argv[2]))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    requests: dict[tuple[str, str], dict[str, int]] = {}
    for number in range(rounds):
        names = list(OPTIONS)
        for option in names[number % len(names) :] + names[: number % len(names)]:
            command = [sys.executable, __file__, "serve", json.dumps(OPTIONS[option])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for work, result in json.loads(done.stdout).items():
                seconds[option, work].append(result["seconds"])
                requests[option, work] = result["requests"]
    print(f"| {'work':35} | " + " | ".join(f"{option:>16}" for option in OPTIONS) + " |")
    for work in WORK:
        basis = statistics.median(seconds["default", work])
        cells = []
        for option in OPTIONS:
            ratio = statistics.median(seconds[option, work]) / basis
            cells.append(f"{sum(requests[option, work].values()):6} ({ratio:5.2f})".rjust(16))
        print(f"| {work:35} | " + " | ".join(cells) + " |")
    print()
    for work in WORK:
        for option in OPTIONS:
            changed = {
                name: requests[option, work].get(name, 0) - requests["default", work].get(name, 0)
                for name in requests["default", work] | requests[option, work]
            }
            print(f"{work}, {option}: " + ", ".join(f"{name} {n:+d}" for name, n in changed.items() if abs(n) > 20))


if __name__ == "__main__":
    main()
