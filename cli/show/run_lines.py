"""How a run ended, in words."""

from __future__ import annotations

from yolofs.audit.runs import Run


def run_result(run: Run, *, goes_on: bool = True) -> tuple[str, str]:
    """Return how a run ended and how long it took; of one without an end whether it ``goes_on``."""
    if run.end is None:
        return ("goes on", "") if goes_on else ("killed", "")
    took = f"{(run.end.time_ns - run.start.time_ns) / 1e9:.1f} s"
    return (f"exit {run.end.code}" if run.end.code is not None else "killed"), took
