"""A project of which somebody is asked about, and processes that wait for the answers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.program import DEADLINE_S, Program, wait_until
from yolofs.daemon.rpc.ask_messages import AskInfo
from yolofs.daemon.rpc.client import Client

READ = "import sys; print(open(sys.argv[1]).read(), end='')"
CREATE = "import sys; open(sys.argv[1], 'x')"
READ_MANY = """
import os, sys, threading
def read(path):
    os.close(os.open(path, os.O_RDONLY))
threads = [threading.Thread(target=read, args=(path,)) for path in sys.argv[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("all read")
"""


def asked_project(tmp_path: Path) -> Program:
    """Return an initialized project that asks about all in ``secret``."""
    project = tmp_path / "project"
    (project / "secret/deep").mkdir(parents=True)
    for number in range(100):
        (project / f"secret/deep/{number}").write_text(f"{number}\n")
    (project / "secret/a").write_text("a\n")
    (project / "free").write_text("free\n")
    program = Program(project)
    program.start_session()
    settings(program)
    return program


def settings(program: Program, **values: object) -> None:
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    rules = ["[rules]", '"." = "allow"', '"secret" = "ask"']
    (program.project / ".yolofs.toml").write_text("\n".join([*lines, *rules]) + "\n")
    if values.get("ask_default") == "allow":
        program.trust()


class Reader:
    """A process that runs a script with some paths."""

    def __init__(self, *paths: Path, script: str = READ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", script, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def end(self) -> tuple[str, str]:
        """Wait for its end and return what it printed, and the last line of what it complained
        about.
        """
        out, error = self.process.communicate(timeout=DEADLINE_S)
        return out.decode(), error.decode().rstrip().rpartition("\n")[2]


@contextlib.contextmanager
def reader(*paths: Path, script: str = READ) -> Iterator[Reader]:
    started = Reader(*paths, script=script)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def wait_for_asks(client: Client, count: int) -> list[AskInfo]:
    wait_until(lambda: len(client.asks()) == count, f"{count} asks")
    return client.asks()


def wait_for_described_ask(client: Client) -> AskInfo:
    """Wait for one ask with a known process: its command is read a moment later."""
    wait_until(lambda: [bool(ask.process.command) for ask in client.asks()] == [True], "an ask with a command")
    (ask,) = client.asks()
    return ask
