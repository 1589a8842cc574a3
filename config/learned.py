"""``rules.toml``: the rules that yolofs writes by itself, and the lock that lets one process at
them at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator

import tomli_w

from yolofs.config.load import load_file
from yolofs.config.settings import LearnedRules, RuleLine

LEARNED_FILE = ".yolofs/rules.toml"
"""What errors call the file."""
_LOCK_NAME = b"rules.lock"
_HEAD = """\
# Rules learned from answers and from `yolofs rule`.  yolofs rewrites this file, comments are lost;
# rules of your own are better kept in .yolofs.toml, which it never touches.

"""


def learned_file(directory: bytes) -> bytes:
    """Return the path of the ``rules.toml`` of the session in ``directory``."""
    return os.path.join(directory, b"rules.toml")


def read_learned(directory: bytes) -> tuple[RuleLine, ...]:
    """Return the rules in the ``rules.toml`` of the session in ``directory``; none if it is absent.

    Raises:
        ConfigError: the file cannot be read, or is wrong.
    """
    return load_file(learned_file(directory), LEARNED_FILE, LearnedRules).rules


def write_learned(directory: bytes, rules: Iterable[tuple[str, str]]) -> None:
    """Replace ``rules.toml`` in one step, durably: after a crash it is the old one or the new one.

    ``rules`` are keys and states.  The caller holds the lock (:func:`learned_rules_locked`).
    """
    path = learned_file(directory)
    text = _HEAD + tomli_w.dumps({"rules": dict(rules)})
    fd = os.open(path + b".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(fd)
    os.rename(path + b".new", path)
    directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory_fd)
    finally:
        os.close(directory_fd)


@contextlib.contextmanager
def learned_rules_locked(directory: bytes) -> Iterator[None]:
    """Hold the lock on the learned rules; waits until it is free, which takes one change at the
    most.
    """
    fd = os.open(os.path.join(directory, _LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
