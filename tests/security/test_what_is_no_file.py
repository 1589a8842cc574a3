"""A fifo, a socket, a directory, a link or a file without end in the place of a file: said, and not
waited for.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program, run_program

_MOST_MEMORY = 2 << 30


def make_socket(path: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def make_sparse(path: Path) -> None:
    path.touch(0o600)
    os.truncate(path, 1 << 40)


KINDS: dict[str, Callable[[Path], object]] = {
    "fifo": lambda path: os.mkfifo(path, 0o600),
    "socket": make_socket,
    "directory": lambda path: path.mkdir(0o700),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "circle": lambda path: path.symlink_to(path),
    "sparse": make_sparse,
}
COMMANDS = (("status",), ("doctor",), ("sessions",), ("diff",), ("timeline",), ("commit", "--yes"))


def run(words: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that ends, and knows what to say."""
    done = run_program(words, cwd, most_memory=_MOST_MEMORY)
    assert "should not have happened" not in done.stderr, done.stderr
    return done


NAMES = ("journal", "session.json", "checkpoint", "journal.torn", "journal.cuts", "journal.length", "restored", "lock")
ALL_READ = ("journal.torn", "sparse")
"""Any part of it may name a staged file."""


@pytest.mark.parametrize(
    ("name", "kind"),
    points([pair for pair in itertools.product(NAMES, KINDS) if pair != ALL_READ], "what is no file", some=8),
)
def test_what_is_no_file_in_a_session_stops_no_command_for_ever(yolofs: Program, name: str, kind: str) -> None:
    place = yolofs.session / name
    place.unlink(missing_ok=True)
    if name == "journal.cuts":
        (yolofs.session / "journal.torn").touch()
    KINDS[kind](place)
    done = [run(words, yolofs.project) for words in COMMANDS]
    if name in ("journal", "session.json"):
        codes = {one.returncode for one in (done[0], done[3], done[4])}
        assert not codes & {0, 2}, done
        assert all(f"{place}" in one.stderr for one in (done[0], done[5])), done
    if name == "checkpoint":
        assert [one.returncode for one in done] == [0] * len(done), done


@pytest.mark.mount
@pytest.mark.parametrize("kind", points(list(KINDS), "the user's own settings", some=2))
def test_settings_of_the_user_that_are_no_file_open_nothing(yolofs: Program, home: Path, kind: str) -> None:
    """That they cannot be read opens nothing: the built-in rules hold, and what they hide is not
    shown.
    """
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
    config = home / ".config/yolofs/config.toml"
    config.parent.mkdir(parents=True)
    KINDS[kind](config)
    for words in (("status",), ("diff",)):
        done = run(words, yolofs.project)
        assert done.returncode == 0, done
        assert f"{config}: cannot be read" in done.stderr
        assert "a.txt" in done.stdout
