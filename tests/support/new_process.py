"""What a fork has to forget to do what a new process does, line by line."""

from __future__ import annotations

from yolofs.journal import codec


def forget_what_was_read() -> None:
    """Forget the lines of journals: how many lines of code it takes to read one depends on those
    that were read before.
    """
    codec._matches.clear()
    codec._read_before.clear()
