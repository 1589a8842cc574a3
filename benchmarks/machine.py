"""What a figure depends on besides the program: machine, kernel, versions, load."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

import yolofs
from yolofs import checkout_core


def describe(scratch: Path) -> dict[str, str]:
    """Return facts by name."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "kernel": platform.release(),
        "disk": _first_line("stat", "--file-system", "--format=%T", str(scratch)),
        "python": platform.python_version(),
        "yolofs": yolofs.__version__,
        "core": "compiled" if checkout_core.choose() is not None else "as it is",
        "fuse-overlayfs": _line_of("fuse-overlayfs", "fuse-overlayfs", "--version"),
        "fio": _first_line("fio", "--version"),
        "gcc": _first_line("gcc", "--version"),
        "git": _first_line("git", "--version"),
        "load": load(),
    }


def load() -> str:
    """Return how many processes wanted to run in the last minute, on average: ours among them."""
    return f"{os.getloadavg()[0]:.1f}"


def _cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(*words: str) -> str:
    return _line_of("", *words)


def _line_of(start: str, *words: str) -> str:
    """Return the first line of a program's output that begins with ``start``."""
    try:
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return "missing"
    return next((line.strip() for line in done.stdout.splitlines() if line.startswith(start)), "unknown")
