"""``yolofs review`` while a program in the sandbox goes on writing."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until
from tests.support.started import start
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

WRITER = """
number=0
while ! test -e stop; do
    number=$((number + 1))
    echo "line $number" >> log.txt
    echo "$number" > number.new && mv number.new number
done
"""


@contextlib.contextmanager
def telling_whether_it_writes(repository: Program) -> Iterator[None]:
    """If the block fails, note how much the program has written, and how much a second later."""
    try:
        yield
    except AssertionError as failure:
        log = Path(repository.daemon["mountpoint"]) / os.path.relpath(repository.project / "log.txt", "/")
        with contextlib.suppress(OSError):
            before = log.stat().st_size
            time.sleep(1)  # that it writes can be seen only over some time
            failure.add_note(f"log.txt has {before} bytes, and {log.stat().st_size} a second later")
        raise


def test_a_review_commits_what_it_showed_and_asks_again_about_a_file_that_goes_on_changing(repository: Program) -> None:
    words = ["run", "--no-review", "sh", "-c", f"echo kept > kept; {WRITER}"]
    with start(words, repository.project) as writer:
        try:
            wait_until(lambda: b"log.txt" in repository("status", "--json").out.encode(), "it writes")
            with (
                Terminal(repository.project, ["review"], size=(110, 30)) as terminal,
                telling_whether_it_writes(repository),
            ):
                terminal.wait_for_screen("A log.txt", "A kept", "A number", gone="comparing")
                terminal.type("a")
                terminal.wait_for_screen("! A log.txt", "x A kept", "changed since (!)")
                terminal.type("/log.txt\r")
                terminal.wait_for_screen("+line 1")
                terminal.type("\r")
                terminal.wait_for_screen("this commit would apply 1 change: 1 added", "A  kept", "enter commits")
                assert not (repository.project / "kept").exists()
                terminal.type("\r")
                terminal.wait_for_screen("commit 1 done", gone="A kept")
                assert (repository.project / "kept").read_text() == "kept\n"
                assert not (repository.project / "log.txt").exists()
                assert writer.poll() is None
                terminal.type("q")
                assert terminal.wait() == 0
            repository("run", "--no-review", "touch", "stop")
            assert writer.wait(60) == 0
        finally:
            writer.kill()
            writer.wait()
